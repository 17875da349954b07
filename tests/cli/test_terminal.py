"""What people see: 80 columns whatever the names, colour on a terminal alone, nothing with NO_COLOR."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.cells import cell_len

from pipeline.cli import main
from pipeline.cli.output import console
from pipeline.evaluation.document import EstimateSet, Warned
from pipeline.report.terminal import print_estimates

MODELS = [
    "provider/an-enormously-long-model-name-without-any-blank-2026-11-30-preview",
    "深度求索语言模型对话增强版二〇二六年十一月",
    "نموذج لغوي كبير للمحادثة العربية الفصحى",
    "evil\x1b[31m\u202ename",
    *(f"model-{k}" for k in range(8)),
]
LEVELS = ["exercises for beginners, first semester, with solutions and comments", "高级", "z"]


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Twelve models whose names and levels are long, wide or dangerous, and whose gold is in the billions."""
    rng = np.random.default_rng(5)
    skill = rng.standard_normal(60)
    frames = []
    for shift, model in enumerate(MODELS):
        gold = 1e9 * (skill + 0.5 * rng.standard_normal(60)) + 1e12 * shift
        frames.append(
            pl.DataFrame(
                {
                    "id": [f"q{row}" for row in range(60)],
                    "model": [model] * 60,
                    "gold": [value if row % 2 else None for row, value in enumerate(gold)],
                    "judge": skill,
                    "level": [LEVELS[row % 3] for row in range(60)],
                }
            )
        )
    monkeypatch.chdir(tmp_path)
    pl.concat(frames).write_csv("t.csv")
    return "t.csv --gold gold --signals judge --id id --model model"


@pytest.mark.parametrize("command", ["estimate {} --profile level", "plan {}", "estimate {} --methods naive,gaps"])
def test_tables_fit_80_columns(command: str, hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(command.format(hostile).split())
    assert not caught.value.code
    out = capsys.readouterr().out
    assert max(map(cell_len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "\u202e" not in out


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("terminal", "no_color", "coloured"), [(1, 0, 1), (1, 1, 0), (0, 0, 0)])
def test_colour(monkeypatch: pytest.MonkeyPatch, terminal: int, no_color: int, coloured: int) -> None:
    stream = _Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    print_estimates(console(), EstimateSet({}, warnings=(Warned("x", "beware"),)))
    assert "beware" in stream.getvalue()
    assert ("\x1b[33m" in stream.getvalue()) == bool(coloured)


def test_gaps_are_in_the_unit_of_the_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    rows = [
        (f"q{k}", m, 3.0 + m + 0.1 * rng.standard_normal(), rng.standard_normal()) for k in range(40) for m in (0, 1)
    ]
    path = tmp_path / "ratings.csv"
    pl.DataFrame(rows, schema=["id", "model", "gold", "judge"], orient="row").write_csv(path)
    with pytest.raises(SystemExit):
        main(f"estimate {path} --gold gold --signals judge --id id --model model --target population".split())
    line = next(line for line in capsys.readouterr().out.splitlines() if "0 − 1" in line or "1 − 0" in line)
    assert abs(abs(float(line.split("LACE")[1].split()[0])) - 1.0) < 0.2
