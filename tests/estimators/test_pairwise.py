"""Win rates and Bradley–Terry scores from votes: laws, coverage, and the document of a table of votes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import pipeline
from pipeline.cli import main
from pipeline.estimators.gaps.pairwise import bradley_terry, check_votes, win_rate

TRUE = np.array([0.6, 0.1, -0.2, -0.5])


def world(rng: np.random.Generator, size: int, labels: int) -> tuple[Any, ...]:
    """Comparisons of four models, a judge that mostly says what people say, and some votes."""
    first = rng.integers(0, 4, size)
    second = (first + rng.integers(1, 4, size)) % 4
    votes = (rng.random(size) < expit(TRUE[first] - TRUE[second])).astype(float)
    judge = np.where(rng.random(size) < 0.85, votes, 1.0 - votes) - 0.5
    shown = np.where(rng.permutation(size) < labels, votes, np.nan)
    return first, second, shown, judge[:, None]


def test_all_votes_give_the_maximum_likelihood() -> None:
    first, second, votes, judge = world(np.random.default_rng(1), 400, 400)

    def loss(free: np.ndarray) -> float:
        beta = np.append(free, -free.sum())
        x = beta[first] - beta[second]
        return float(np.sum(np.logaddexp(0.0, x) - votes * x))

    fitted = minimize(loss, np.zeros(3), tol=1e-12).x
    assert bradley_terry(check_votes(first, second, votes, judge)).scores[:3] == pytest.approx(fitted, abs=1e-4)


def test_the_order_of_the_sides_does_not_matter() -> None:
    first, second, votes, judge = world(np.random.default_rng(2), 300, 150)
    straight = bradley_terry(check_votes(first, second, votes, judge))
    turned = bradley_terry(check_votes(second, first, 1.0 - votes, -judge))
    assert turned.scores == pytest.approx(straight.scores, abs=1e-9)
    assert turned.covariance == pytest.approx(straight.covariance, abs=1e-9)


def test_repeated_prompts_count_once() -> None:
    first, second, votes, judge = world(np.random.default_rng(3), 300, 300)
    once = bradley_terry(check_votes(first, second, votes, judge))
    twice = [np.concatenate([part, part]) for part in (first, second, votes, judge)]
    clustered = bradley_terry(check_votes(*twice, clusters=np.tile(np.arange(300), 2)))
    assert clustered.scores == pytest.approx(once.scores, abs=1e-9)
    assert clustered.covariance == pytest.approx(once.covariance, rel=1e-9)


@pytest.mark.parametrize("signals", [False, True])
def test_joint_coverage_and_precision(signals: bool) -> None:
    rng = np.random.default_rng(4)
    inside, widths, runs = 0, [], 200
    contrasts = [(a, b) for a in range(4) for b in range(a)]
    for _ in range(runs):
        first, second, votes, judge = world(rng, 600, 150)
        fit = bradley_terry(check_votes(first, second, votes, judge if signals else judge[:, :0]))
        gaps = [fit.difference(a, b) for a, b in contrasts]
        errors = [abs(value - TRUE[a] + TRUE[b]) / se for (value, se), (a, b) in zip(gaps, contrasts, strict=True)]
        inside += max(errors) <= fit.quantile
        widths.append(np.mean([se for _, se in gaps]))
    # Nominal .95; three standard errors of 200 runs are .046.
    assert inside / runs > 0.95 - 0.046
    # 150 votes alone have .307 ± .001; the judge agrees with 85 % of the votes (R² about .45 at a labelled share of ¼).
    assert (np.mean(widths) < 0.28) == signals


def test_win_rates_are_plain_means_without_signals() -> None:
    first, second, votes, judge = world(np.random.default_rng(5), 200, 100)
    checked = check_votes(first, second, votes, judge[:, :0])
    rows = (first == 0) | (second == 0)
    rate = win_rate(checked, rows, np.where(first == 0, 1.0, -1.0))
    assert rate is not None
    own = np.where(first == 0, votes, 1.0 - votes)[rows]
    own = own[np.isfinite(own)]
    assert rate.value == pytest.approx(own.mean())
    assert rate.se == pytest.approx(own.std(ddof=1) / np.sqrt(len(own)))


def test_a_model_that_wins_everything_has_no_score() -> None:
    first, second = np.zeros(50, int), np.ones(50, int)
    with pytest.raises(ValueError, match="win or lose every vote"):
        bradley_terry(check_votes(first, second, np.ones(50), np.zeros((50, 0))))


def estimate(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["estimate", str(path), "--pairwise", "--gold", "human", *more, "--json"])
    printed = capsys.readouterr()
    assert not caught.value.code, printed.err
    document: dict[str, Any] = json.loads(printed.out)
    return document


def test_a_table_of_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, votes, judge = world(np.random.default_rng(6), 400, 200)
    frame = pl.DataFrame(
        {
            "prompt": [f"p{i}" for i in range(400)],
            "model_a": [f"m{k}" for k in first],
            "model_b": [f"m{k}" for k in second],
            "human": ["" if np.isnan(v) else "A" if v else "B" for v in votes],
            "judge": ["tie" if i % 50 == 0 else "A" if j > 0 else "B" for i, j in enumerate(judge[:, 0])],
        }
    )
    path = tmp_path / "votes.csv"
    frame.write_csv(path)
    document = estimate(path, capsys, "--signals", "judge", "--id", "prompt")
    assert set(document["targets"]) == {"m0", "m1", "m2", "m3"}
    assert document["targets"]["m0"]["win_rate"]["value"] > document["targets"]["m3"]["win_rate"]["value"]
    assert len(document["decisions"]["pairs"]) == 6
    assert document["decisions"]["rank_sets"][0]["best"] == 1
    swapped = frame.select("prompt", pl.col("model_b").alias("model_a"), pl.col("model_a").alias("model_b"),
                           *(pl.col(c).replace({"A": "B", "B": "A"}) for c in ("human", "judge")))  # fmt: skip
    both = tmp_path / "both.csv"
    pl.concat([frame, swapped]).write_csv(both)
    again = estimate(both, capsys, "--signals", "judge", "--id", "prompt")
    assert again["targets"] == document["targets"]
    assert "400 rows repeat a comparison" in again["warnings"][0]["message"]


def test_a_word_that_names_no_side_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("model_a,model_b,human\nx,y,A\nx,y,better\nx,y,B\n")
    with pytest.raises(SystemExit) as caught:
        main(["estimate", str(path), "--pairwise", "--gold", "human"])
    assert caught.value.code == 2
    assert "'better' in row 2 (line 3), which names no side" in capsys.readouterr().err


def test_votes_without_pairwise_are_told_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("model_a,model_b,human,s\n" + "x,y,A,1\nx,y,B,0\nx,y,A,1\n" * 4)
    with pytest.raises(SystemExit) as caught:
        main(["estimate", str(path), "--gold", "human", "--signals", "s"])
    assert caught.value.code == 2
    assert "votes on pairs of models: add --pairwise" in capsys.readouterr().err


def test_votes_from_python_are_those_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, votes, _ = world(np.random.default_rng(8), 120, 120)
    frame = pl.DataFrame({"model_a": [f"m{k}" for k in first], "model_b": [f"m{k}" for k in second], "human": votes})
    frame.write_csv(tmp_path / "votes.csv")
    given = pipeline.estimate(frame, gold="human", pairwise=True)
    assert given.to_dict()["targets"] == estimate(tmp_path / "votes.csv", capsys)["targets"]
