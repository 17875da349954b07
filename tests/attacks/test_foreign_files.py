"""What comes from elsewhere is data: a cassette or a run folder runs no code and reaches no file but its own."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline import code_permission
from pipeline.cli import main

MODULE = "attacker_metric"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory in which the attacker's module can be imported, and leaves a trace when it is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(code_permission, "_PERMITTED", set())
    text = (
        f"open({str(tmp_path / 'trace')!r}, 'w').close()\ndef grade(answer, gold):\n    return float(answer == gold)\n"
    )
    (tmp_path / f"{MODULE}.py").write_text(text, encoding="utf-8")
    sys.modules.pop(MODULE, None)
    yield tmp_path
    sys.modules.pop(MODULE, None)


def _config(grading: str | None = None) -> dict[str, Any]:
    benchmark = {"preset": "embedded", "limit": 4} | ({"grading": grading} if grading else {})
    return {
        "schema": 1, "name": "own", "benchmark": benchmark, "models": {"m": {"model": "sim/strong"}},
        "roles": {"targets": ["m"]}, "design": {"labeled": 4}, "estimate": ["naive"],
    }  # fmt: skip


def _fails(*command: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(command))
    return int(end.value.code or 0)


def _cassette(place: Path, change: Callable[[dict[str, Any]], None] | None = None) -> Path:
    """An honest cassette whose header was changed by another hand."""
    pipeline.run(_config(), run_id="own", yes=True)
    assert _fails("export", "own", "own.jsonl.gz") == 0
    with gzip.open("own.jsonl.gz", "rt") as file:
        lines = file.read().splitlines()
    head = json.loads(lines[0])
    if change is not None:
        change(head)
    with gzip.open("evil.jsonl.gz", "wt") as file:
        file.write("\n".join([json.dumps(head), *lines[1:]]) + "\n")
    return place / "evil.jsonl.gz"


def _with_code(head: dict[str, Any]) -> None:
    head["config"]["benchmark"]["grading"] = f"python:{MODULE}:grade"


def test_a_cassette_whose_header_was_changed_runs_no_code(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cassette = _cassette(place, _with_code)
    capsys.readouterr()
    assert _fails("replay", str(cassette)) == 2
    said = capsys.readouterr().err
    assert f"--allow-code {MODULE}" in said
    assert len(said.strip().splitlines()) == 1
    assert not (place / "trace").exists()


def test_a_cassette_runs_its_code_once_the_command_line_repeats_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.run(_config(f"python:{MODULE}:grade"), run_id="own", yes=True)
    assert _fails("export", "own", "own.jsonl.gz") == 0
    monkeypatch.setattr(code_permission, "_PERMITTED", set())
    sys.modules.pop(MODULE, None)
    (place / "trace").unlink()
    for flags in ([], ["--allow-code", "another_module"]):
        assert _fails("replay", "own.jsonl.gz", "--out", "again", *flags) == 2
        assert not (place / "trace").exists()
    assert _fails("replay", "own.jsonl.gz", "--out", "again", "--allow-code", MODULE) == 0
    assert (place / "trace").exists()


@pytest.mark.parametrize("command", ["replay", "resume", "plan", "export", "config check"])
def test_a_run_folder_from_elsewhere_runs_no_code(
    place: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.run(_config(), run_id="own", yes=True)
    shutil.copytree("runs/own", "foreign")
    file = place / "foreign" / "config.yaml"
    file.write_text(file.read_text("utf-8").replace("grading: null", f"grading: python:{MODULE}:grade"), "utf-8")
    assert MODULE in file.read_text("utf-8")
    target = [str(file)] if command == "config check" else ["foreign", "out.gz"] if command == "export" else ["foreign"]
    assert _fails(*command.split(), *target) == 2
    assert f"--allow-code {MODULE}" in capsys.readouterr().err
    assert not (place / "trace").exists()


def test_ones_own_run_is_carried_on_without_a_flag_while_module_and_folder_agree(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline.run(_config(f"python:{MODULE}:grade"), run_id="mine", yes=True)
    shutil.copytree("runs/mine", "moved")

    def fresh() -> None:
        monkeypatch.setattr(code_permission, "_PERMITTED", set())
        sys.modules.pop(MODULE, None)

    fresh()
    assert _fails("replay", "mine") == 0
    fresh()
    assert _fails("replay", "moved") == 2
    fresh()
    module = place / f"{MODULE}.py"
    module.write_text(module.read_text("utf-8") + "# edited\n", "utf-8")
    assert _fails("replay", "mine", "--out", "again") == 2
    fresh()
    assert _fails("replay", "mine", "--out", "again", "--allow-code", MODULE) == 0


@pytest.mark.parametrize("module", ["os", "subprocess", "os.path", "numpy", "pipeline.cli", "litellm", "a b", ""])
def test_no_flag_allows_the_standard_library_or_a_dependency(place: Path, module: str) -> None:
    cassette = _cassette(place, lambda head: head["config"]["benchmark"].update(grading=f"python:{module}:system"))
    assert _fails("replay", str(cassette), "--allow-code", module) == 2


@pytest.mark.parametrize("run_id", ["../../out", "/tmp/out", "..", "a/b", ""])
def test_a_cassette_names_no_folder_but_its_own(place: Path, run_id: str) -> None:
    cassette = _cassette(place, lambda head: head.update(run_id=run_id))
    before = {path for path in place.parent.rglob("*") if "pytest" not in path.name}
    assert _fails("replay", str(cassette)) == 2
    assert {path for path in place.parent.rglob("*") if "pytest" not in path.name} - before == set()


def test_a_cassette_reads_no_file_of_this_machine(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "private.csv").write_text("id,question,gold\n1,what?,7\n", encoding="utf-8")

    def change(head: dict[str, Any]) -> None:
        head["config"]["benchmark"].update(preset="custom", path=str(place / "private.csv"))
        head["benchmark_file"] = None

    assert _fails("replay", str(_cassette(place, change))) == 2
    assert "outside the cassette" in capsys.readouterr().err


def test_a_prompt_of_another_hash_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def change(head: dict[str, Any]) -> None:
        name = next(name for name in head["prompts"] if name.startswith("answer"))
        head["prompts"][name] += "\nBe brief.\n"

    assert _fails("replay", str(_cassette(place, change))) == 2
    assert "was edited" in capsys.readouterr().err


def test_an_edited_prompt_is_never_mixed_in(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.run(_config(), run_id="own", yes=True)
    file = next((place / "runs" / "own" / "prompts" / "answer").rglob("*.md"))
    file.write_text(file.read_text("utf-8") + "\nBe brief.\n", encoding="utf-8")
    assert _fails("resume", "own") == 2
    said = capsys.readouterr().err
    assert "was edited" in said
    assert "answer" in said
