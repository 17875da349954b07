"""`auxeval plan TABLE`: labels for a half-width, and what each family of signals is worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.cli import main
from pipeline.estimators import lace_mean
from pipeline.estimators.labels.planning import plan_mean


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.fixture
def data() -> dict[str, Any]:
    rng = np.random.default_rng(8)
    skill = rng.standard_normal(1500)
    truth = (rng.random(1500) < 1 / (1 + np.exp(-2.5 * skill))).astype(float)
    return {
        "gold": [f"{v:.0f}" if k < 120 else None for k, v in enumerate(truth)],
        "judge": skill + 0.2 * rng.standard_normal(1500),
        "noise": rng.standard_normal(1500),
        "level": rng.integers(1, 4, 1500),
    }


@pytest.fixture
def table(tmp_path: Path, data: dict[str, Any]) -> Path:
    path = tmp_path / "t.csv"
    pl.DataFrame(data).write_csv(path)
    return path


def test_the_plan_is_that_of_the_formulas(
    table: Path, data: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (
        "plan",
        table,
        "--gold",
        "gold",
        "--signals",
        "judge,noise",
        "--profile",
        "level",
        "--half-width",
        0.05,
    )
    code, out, _ = call(capsys, *arguments, "--json")
    assert code == 0
    plans = {row["what"]: row for row in json.loads(out)["labels"]["plans"]}
    y = np.array([np.nan if cell is None else float(cell) for cell in data["gold"]])
    pilot = lace_mean(y, np.column_stack([data["judge"], data["noise"]]), adapt="curved", learner="logistic")
    expected = plan_mean(pilot, 1500, 0.05, outcome_variance=float(np.nanvar(y, ddof=1)))
    assert plans["mean of these items"]["labels"] == expected.labels
    assert plans["worst point along level"]["labels"] > expected.labels
    assert plans["worst point along level"]["at"] in (1.0, 2.0, 3.0)
    assert "Gold labels needed" in call(capsys, *arguments)[1]


def test_what_cannot_be_reached_is_said(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "plan", table, "--gold", "gold", "--signals", "judge", "--half-width", 0.01)
    assert code == 0
    assert "not reachable" in out
    assert "more items" in out


def test_families_say_what_they_are_worth_against_their_cost(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("plan", table, "--gold", "gold", "--signals", "judge,noise")
    code, out, _ = call(capsys, *arguments, "--family", "good judge=judge@1", "--family", "dice=noise@3")
    assert code == 0
    lines = out.splitlines()[-2:]
    assert lines[0].startswith("good judge: 25 % of the money, ")
    assert float(lines[0].split(", ")[1].split("×")[0]) > 1.3
    assert lines[1] == "dice: 75 % of the money, 1.0× the labels"


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--family", "x"), "--family takes NAME=COL"),
        (("--family", "x=juge"), "did you mean 'judge'"),
        (("--family", "x=judge", "--family", "y=judge"), "is in two families"),
        (("--family", "x=judge@much"), "is no cost"),
        (("--half-width", "0"), "--half-width must be positive"),
    ],
)
def test_refusals(table: Path, capsys: pytest.CaptureFixture[str], extra: tuple[str, ...], message: str) -> None:
    code, out, err = call(capsys, "plan", table, "--gold", "gold", "--signals", "judge,noise", *extra, "--json")
    assert (code, out) == (2, "")
    assert message in err


def test_too_few_labels_to_plan_from(tmp_path: Path, data: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.csv"
    pl.DataFrame({**data, "gold": data["gold"][:4] + [None] * 1496}).write_csv(path)
    code, _, err = call(capsys, "plan", path, "--gold", "gold", "--signals", "judge")
    assert (code, "4 labels are too few" in err) == (2, True)
