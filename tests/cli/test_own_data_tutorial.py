"""Every command of docs/methods/own-data.md, in its order, and that the example tables are those of their script."""

from __future__ import annotations

import csv
import re
import runpy
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipeline.cli import main

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "methods" / "own-data.md"


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def fill(sheet: Path) -> None:
    rows = list(csv.reader(sheet.open(encoding="utf-8-sig", newline="")))
    for position, row in enumerate(rows[1:]):
        row[3] = str(position % 2)
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)


def test_every_command_of_the_tutorial_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples" / "own-data", tmp_path / "examples" / "own-data")
    shutil.copytree(ROOT / "tests" / "tables" / "fixtures", tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    found = commands()
    assert len(found) >= 12
    for command in found:
        words = shlex.split(command)
        assert words[0] == "auxeval"
        if words[1:3] == ["labels", "import"]:
            fill(tmp_path / "sheet.csv")
        with pytest.raises(SystemExit) as caught:
            main(words[1:])
        out, err = capsys.readouterr()
        assert not caught.value.code, f"{command}\n{err}"
        assert out, command
    assert {"estimates.json", "estimates.csv", "report.html"} == {p.name for p in (tmp_path / "report").iterdir()}


def test_the_numbers_that_the_page_quotes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit):
        main(shlex.split(commands()[0])[1:])
    assert "80 labels are worth 166" in capsys.readouterr().out


def test_the_example_tables_are_those_of_their_script(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "examples" / "own-data" / "make.py"))
    rng = np.random.default_rng(20)
    script["answers"].__globals__["HERE"] = tmp_path
    script["answers"](rng)
    script["scores"](rng)
    for name in ("answers.csv", "truth.csv", "scores.csv"):
        assert (tmp_path / name).read_bytes() == (ROOT / "examples" / "own-data" / name).read_bytes()
