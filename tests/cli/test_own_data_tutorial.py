"""The numbers that docs/methods/own-data.md quotes, and that the example tables are those of their script."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest

from pipeline.cli import main

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "methods" / "own-data.md"


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_the_numbers_that_the_page_quotes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit):
        main(shlex.split(commands()[0])[1:])
    assert "80 labels are worth about 166, 129 to 214" in capsys.readouterr().out


def test_the_example_tables_are_those_of_their_script(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "examples" / "own-data" / "make.py"))
    rng = np.random.default_rng(20)
    script["answers"].__globals__["HERE"] = tmp_path
    script["answers"](rng)
    script["scores"](rng)
    for name in ("answers.csv", "truth.csv", "scores.csv"):
        assert (tmp_path / name).read_bytes() == (ROOT / "examples" / "own-data" / name).read_bytes()
