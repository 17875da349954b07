"""The store of labels: several writers at once, a writer killed at any moment, and words taken back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.tables import label_store
from pipeline.tables.label_store import Label, LabelStore

WRITER = """
import sys
from pathlib import Path
from pipeline.tables.label_store import Label, LabelStore
store, rater, n = LabelStore(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
for k in range(n):
    store.add([Label(f"u{k}", "right", float(k % 2), rater, "now")])
    print(k, flush=True)
"""


def _writer(path: Path, rater: str, n: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, path, rater, str(n)], stdout=subprocess.PIPE, text=True)


def test_writers_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    # Two of them are the same person in two tabs.
    writers = [_writer(path, rater, 40) for rater in ("ann", "ann", "bob")]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    labels = LabelStore(path).read()
    assert {key[2] for key in labels.words} == {"ann", "bob"}
    assert len(labels.words) == 80
    assert len(path.read_bytes().splitlines()) == 80


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_writer_has_kept_all_it_acknowledged_and_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    for round_ in range(3):
        writer = _writer(path, f"r{round_}", 100_000)
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(7)]
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout.read().splitlines() if line]
        writer.wait()
        writer.stdout.close()
        store = LabelStore(path)
        assert {f"u{k}" for k in acknowledged} <= {
            unit for unit, _, rater in store.read().words if rater == f"r{round_}"
        }
        assert store.add([Label("after", "right", 1.0, f"r{round_}", "now")]) == 1


def test_a_word_is_taken_back_skipped_and_noted(tmp_path: Path) -> None:
    store = LabelStore(tmp_path / "labels.jsonl")
    about = ("u", "right")
    assert store.add([Label(*about, None, "ann", "1")]) == 0, "nothing to take back"
    assert store.add([Label(*about, 1.0, "ann", "2"), Label("v", "right", "B", "ann", "3")]) == 2
    assert store.read().texts == {("v", "right"): {"ann": "B"}}
    assert store.read().settled_texts() == {("v", "right"): "B"}
    assert [key[0] for key in store.read().words] == ["u", "v"]
    assert store.add([Label(*about, 1.0, "ann", "4", note="sure")]) == 1, "a note is news"
    assert [key[0] for key in store.read().words] == ["v", "u"], "in the order in which they were said"
    store.add([Label(*about, None, "ann", "5")])
    assert about not in store.read().by_rater
    store.add([Label(*about, None, "ann", "6", skipped="blurred")])
    assert about not in store.read().by_rater
    assert store.read().words[*about, "ann"].skipped == "blurred"
    assert LabelStore(store.path).read() == store.read()


def test_raters_who_give_different_right_answers_contradict_each_other(tmp_path: Path) -> None:
    store = LabelStore(tmp_path / "labels.jsonl")
    store.add([Label("v", "answer", text, rater, "now") for rater, text in (("ann", "B"), ("bob", "C"))])
    assert store.read().contradictions() == (("v", "answer"),)


def test_what_was_read_once_is_not_read_again_unless_the_file_is_another(tmp_path: Path) -> None:
    store = LabelStore(tmp_path / "labels.jsonl")
    store.add(Label(f"u{k}", "right", 1.0, "ann", "now") for k in range(200))
    before = store.lines_read
    store.add([Label("new", "right", 1.0, "ann", "now")])
    assert store.read().by_rater["new", "right"]
    assert store.lines_read == before + 1
    other = LabelStore(tmp_path / "other.jsonl")
    other.add([Label("x", "right", 0.0, "bob", "now")])
    other.path.replace(store.path)
    assert list(store.read().by_rater) == [("x", "right")]
    store.path.unlink()
    assert not store.read().words


def test_who_holds_the_lock_for_long_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_store, "PATIENCE", 0.0)
    store = LabelStore(tmp_path / "labels.jsonl")
    with store._locked(), pytest.raises(InputError, match="is being written by another program"):
        LabelStore(store.path).add([Label("u", "right", 1.0, "ann", "now")])


@pytest.mark.parametrize(
    "change", ['"value": [1]', '"value": true, "note": 3', '"rater": null', '"value": "x", "at": {}']
)
def test_a_line_of_the_wrong_kinds_is_damaged(tmp_path: Path, change: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(
        '{"schema": 1, "unit": "u", "criterion": "c", "value": 1, "rater": "a", "at": "n", ' + change + "}\n"
    )
    with pytest.raises(InputError, match="line 1 is damaged"):
        LabelStore(path).read()
