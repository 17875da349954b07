"""`auxeval estimate --best-of-n` on a long table of scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.cli import main


def estimate(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["estimate", *(str(argument) for argument in arguments)])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


def score_table(path: Path, scores: int = 4) -> Path:
    rng = np.random.default_rng(2)
    rows = [
        {"prompt": p, "candidate": c, "draw": d, "score": round(rng.normal(c / 4, 1), 3), "gold": c % 2}
        for p in range(30)
        for c in range(5)
        for d in range(scores)
    ]
    pl.DataFrame(rows).write_csv(path)
    return path


def test_best_of_n_from_a_long_score_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from pipeline.estimators import best_of_n

    path = score_table(tmp_path / "s.csv")
    document = json.loads(estimate(capsys, path, "--best-of-n", "2,4", "--j", 2, "--gold", "gold", "--json")[1])
    entries = {(row["n"], row["measure"]): row for row in document["best_of_n"]}
    assert set(entries) == {(n, m) for n in (2, 4) for m in ("score", "gain", "gold", "gold_gain")}
    frame = pl.read_csv(path).sort("prompt", "candidate", "draw")
    matrices = frame["score"].to_numpy().reshape(30, 5, 4)
    expected = np.mean([best_of_n(matrix, 4, 2) for matrix in matrices])
    assert entries[4, "score"]["estimate"]["value"] == pytest.approx(expected, abs=1e-12)
    assert entries[4, "score"]["j"] == 2
    assert json.loads(estimate(capsys, path, "--best-of-n", "2", "--json")[1])["best_of_n"][0]["j"] == 3
    assert "Best of N" in estimate(capsys, path, "--best-of-n", "2")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--best-of-n", "2", "--j", 4), "J selection scores leave none held out of 4"),
        (("--best-of-n", "9"), "no prompt has more than 5 scored candidates"),
        (("--best-of-n", "two"), "is no list of whole numbers"),
        (("--best-of-n", "2", "--prompt", "promt"), "did you mean 'prompt'"),
    ],
)
def test_best_of_n_refusals(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[Any, ...], message: str
) -> None:
    code, out, err = estimate(capsys, score_table(tmp_path / "s.csv"), *arguments, "--json")
    assert (code, out) == (2, "")
    assert message in err


GOLDS = {
    "right and wrong": lambda p, c: c % 2,
    "always right": lambda p, c: 1,
    "grades between": lambda p, c: (c % 3) / 2,
    "nearly always right": lambda p, c: 1 if p else 0.5,
    "a prompt without gold": lambda p, c: None if p == 3 else 1,
    "another scale, all alike": lambda p, c: 1 + 8 * (c == 4),
}


@pytest.mark.parametrize("kind", GOLDS)
def test_gold_intervals_have_a_width_and_end_where_gold_does(
    kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = [
        {"prompt": p, "candidate": c, "draw": d, "score": 10 * c + d + p % 2, "gold": GOLDS[kind](p, c)}
        for p in range(12)
        for c in range(5)
        for d in range(3)
    ]
    path = tmp_path / "g.csv"
    pl.DataFrame(rows).write_csv(path)
    document = json.loads(estimate(capsys, path, "--best-of-n", "2,5", "--gold", "gold", "--json")[1])
    gold = [row["estimate"] for row in document["best_of_n"] if row["measure"] == "gold"]
    assert len(gold) == 2
    given = [row["gold"] for row in rows if row["gold"] is not None]
    most = max(1, *given)
    for entry in gold:
        assert min(0, *given) <= entry["low"] < entry["high"] <= most, entry
        assert entry["low"] <= entry["value"] <= entry["high"]


def test_a_pilot_says_which_design_to_collect_next(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from pipeline.estimators import compare_designs

    path = score_table(tmp_path / "s.csv")
    words = ("plan", path, "--best-of-n", 3, "--j", 2, "--budget", 1000, "--generation-cost", 2.5)

    def plan(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), out, err

    designs = json.loads(plan(*words, "--json")[1])["designs"]
    matrices = pl.read_csv(path).sort("prompt", "candidate", "draw")["score"].to_numpy().reshape(30, 5, 4)
    expected = [
        {"target": "all", **row.to_dict()} for row in compare_designs(matrices, 3, 2, 1000, generation_cost=2.5)
    ]
    assert [row["name"] for row in designs] == [row["name"] for row in expected]
    assert designs == [pytest.approx(row) for row in expected]
    assert "fresh winner" in plan(*words)[1]
    for bad, message in (
        (("plan", path, "--best-of-n", 3), "needs --budget"),
        (("plan", path, "--best-of-n", 3, "--budget", -1), "budget must be"),
        (("plan", path, "--best-of-n", 9, "--budget", 5), "no prompt has more than 5"),
        (("plan", tmp_path / "absent", "--best-of-n", 3, "--budget", 5), "TABLE of scores"),
    ):
        code, _, err = plan(*bad)
        assert (code, message in err) == (2, True), err
