"""`auxeval runs list`: what it says of a run whose process was killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.runs.directory import RunDirectory


@pytest.mark.parametrize(("held", "state"), [(True, "running"), (False, "stopped")])
def test_a_run_is_running_only_while_a_process_holds_it(
    held: bool, state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = RunDirectory(tmp_path / "r")
    directory.path.mkdir()
    directory.config_file.write_text("name: r", encoding="utf-8")
    (directory.path / "manifest.json").write_text('{"schema": 1, "state": "running"}', encoding="utf-8")

    def listed() -> dict[str, object]:
        with pytest.raises(SystemExit):
            main(["runs", "list", "--runs-dir", str(tmp_path), "--json"])
        (entry,) = json.loads(capsys.readouterr().out)["runs"]
        return dict(entry)

    if held:
        with directory.locked():
            entry = listed()
    else:
        entry = listed()
    assert entry["state"] == state
    assert ("resume" in str(entry["reason"])) is not held
