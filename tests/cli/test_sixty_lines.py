"""The terminal: at most 60 lines whatever the number of models, the verdict first, everything with --all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.cells import cell_len

from pipeline.cli import main


@pytest.fixture
def sixteen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    rng = np.random.default_rng(11)
    rows = [
        (f"q{k}", f"model-{m:02}", float(right) if k % 3 == 0 else None, judge, f"l{k % 4}")
        for m in range(16)
        for k in range(120)
        for right, judge in [(rng.random() < 0.2 + 0.04 * m, rng.random())]
    ]
    pl.DataFrame(rows, schema=["id", "model", "gold", "judge", "level"], orient="row").write_csv(tmp_path / "t.csv")
    monkeypatch.chdir(tmp_path)
    return "estimate t.csv --gold gold --signals judge --id id --model model --profile level"


def _printed(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(SystemExit) as caught:
        main(command.split())
    assert not caught.value.code
    return capsys.readouterr().out.splitlines()


def test_sixteen_models_are_one_screen_and_nothing_is_lost(sixteen: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = _printed(sixteen, capsys)
    assert len(lines) <= 60
    assert max(map(cell_len, lines)) <= 80
    assert "model-15" in lines[0] or "best" in lines[0]
    board = [line for line in lines if line.strip().startswith("model-")][:16]
    assert len(board) == len({line.split()[0] for line in board}) == 16
    assert any("--all" in line for line in lines)
    every = _printed(sixteen + " --all", capsys)
    assert len(every) > 200
    assert max(map(cell_len, every)) <= 80
    assert not any("(--all" in line for line in every)
