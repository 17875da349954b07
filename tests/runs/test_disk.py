"""Disks: full, read-only or in the way, a run ends in one line, and nothing paid for is lost."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli import _run
from pipeline.errors import DataError, StoppedEarly
from pipeline.runs.call_log import CallLog
from pipeline.tables.store import RowSpool
from pipeline.testing import run_scripted

CONFIG = {"benchmark": {"preset": "embedded", "limit": 6}, "models": {"gpt": {"model": "openai/gpt"}},
          "roles": {"targets": ["gpt"]}, "estimate": ["naive"], "design": {"labeled": 6}}  # fmt: skip


@pytest.mark.parametrize("place", [(CallLog, "append"), (RowSpool, "add"), (RowSpool, "write")])
def test_a_full_disk_under_the_run_stops_it_and_resuming_asks_only_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*place, full)
    with pytest.raises(StoppedEarly, match="no space left") as stopped:
        run_scripted(CONFIG, {"gpt": "Answer: 1\nConfidence: 50"}, folder=tmp_path)
    assert stopped.value.resume_command is not None
    assert stopped.value.resume_command.startswith("auxeval resume ")
    monkeypatch.undo()
    again = run_scripted(CONFIG, {"gpt": "Answer: 1\nConfidence: 50"}, folder=tmp_path)
    assert again.run.state == "done"
    assert again.calls["gpt"] == []
    assert again.run.manifest["calls"]["answered"] == 6  # what was paid for counts as this run's


def test_a_cache_that_cannot_be_opened_leaves_no_run_behind(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(DataError, match="cannot be used as the cache directory"):
        run_scripted(CONFIG, {"gpt": "x"}, folder=tmp_path)
    assert not list(tmp_path.rglob("manifest.json"))


def test_a_path_that_cannot_be_used_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a-file").write_text("")
    assert _run(["run", "--quiet", "--limit", "2", "--runs-dir", str(tmp_path / "a-file")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "a-file" in captured.err
    assert captured.err.count("\n") == 1
