"""How a rater judges: position effect, swap consistency, ties, failures, length, itself, agreement with gold, drift."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from pipeline.estimators import Estimate, naive_mean

__all__ = ["PairDiagnostics", "ScoreDiagnostics", "pair_diagnostics", "score_diagnostics"]

_MIN_PAIRS = 3


@dataclass(frozen=True, slots=True)
class PairDiagnostics:
    """One rater's pairwise verdicts.

    Attributes:
        rater: the model; ``kind`` is ``pairwise`` (answers against anchors) or ``chains`` (w1 against w2).
        verdicts: verdicts asked; ``failed`` the share of them that is null; ``ties`` the share of ties among the rest.
        position_effect: P(first wins) − P(second wins), with an interval over items; 0 for a fair rater.
        pairs: swap pairs with both verdicts; ``consistent`` the share of them that says the same in both orders.
    """

    rater: str
    kind: str
    verdicts: int
    failed: float
    ties: float
    position_effect: Estimate | None
    pairs: int
    consistent: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values."""
        return _plain(asdict(self), self)


@dataclass(frozen=True, slots=True)
class ScoreDiagnostics:
    """One rater's scores.

    Attributes:
        rater: the model.
        scores: scores asked; ``failed`` the null share; ``repaired`` the share that took a second request.
        agreement: share of scores on the right side of ½ where gold is known, with an interval over items.
        gold_correlation: correlation of the mean score with φ over items and targets where gold is known.
        verbosity: correlation of score and log length within right and within wrong answers, with its 95 % interval.
        self_preference: mean score of its own answers minus that of others', given correctness; None where it is
            no target.
        drift: correlation of score and time asked, with its 95 % interval.
    """

    rater: str
    scores: int
    failed: float
    repaired: float
    agreement: Estimate | None
    gold_correlation: float | None
    verbosity: tuple[float, float, float] | None
    self_preference: Estimate | None
    drift: tuple[float, float, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values."""
        return _plain(asdict(self), self)


def _plain(values: dict[str, Any], source: object) -> dict[str, Any]:
    return {
        name: getattr(source, name).to_dict() if isinstance(getattr(source, name), Estimate) else value
        for name, value in values.items()
    }


def pair_diagnostics(preferences: pl.DataFrame) -> tuple[PairDiagnostics, ...]:
    """Diagnostics of every rater in a preferences table, chains and anchor pairs apart."""
    asked = preferences.filter(pl.col("verdict_reason").is_null() | (pl.col("verdict_reason") != "missing_input"))
    asked = asked.with_columns(
        pl.when(pl.col("pair") == "chains").then(pl.lit("chains")).otherwise(pl.lit("pairwise")).alias("kind")
    )
    found = []
    for (rater, kind), frame in sorted(asked.group_by(["rater", "kind"]), key=lambda entry: entry[0]):
        known = frame.filter(pl.col("verdict").is_not_null())
        found.append(
            PairDiagnostics(
                rater=str(rater),
                kind=str(kind),
                verdicts=frame.height,
                failed=1.0 - known.height / frame.height,
                ties=_mean(known["verdict"] == "tie"),
                position_effect=_position_effect(known),
                **_consistency(known),
            )
        )
    return tuple(found)


def _mean(series: pl.Series) -> float:
    value = series.mean()
    return float(value) if isinstance(value, int | float) else math.nan


def _over_items(values: np.ndarray[Any, Any], items: pl.Series) -> Estimate | None:
    """Mean with an interval in which whole items are the units."""
    if len(values) < _MIN_PAIRS or items.n_unique() < 2:
        return None
    return naive_mean(values, clusters=items.to_numpy(), interval="t")


def _position_effect(known: pl.DataFrame) -> Estimate | None:
    points = known.select(
        pl.when(pl.col("verdict") == "first").then(1.0).when(pl.col("verdict") == "second").then(-1.0).otherwise(0.0)
    ).to_series()
    return _over_items(points.to_numpy(), known["item_id"])


def _consistency(known: pl.DataFrame) -> dict[str, Any]:
    key = ["item_id", "target", "pair", "draw"]
    orders = [known.filter(pl.col("order") == order).select([*key, "verdict"]) for order in ("ab", "ba")]
    both = orders[0].join(orders[1], on=key, how="inner")
    swapped = pl.col("verdict_right").replace({"first": "second", "second": "first"})
    same = both.select((pl.col("verdict") == swapped).cast(pl.Float64)).to_series()
    return {"pairs": both.height, "consistent": _over_items(same.to_numpy(), both["item_id"])}


def score_diagnostics(
    scores: pl.DataFrame, responses: pl.DataFrame, *, asked_at: Mapping[str, str] | None = None
) -> tuple[ScoreDiagnostics, ...]:
    """Diagnostics of every rater of whole answers (pointwise scores).

    Args:
        scores, responses: tables of a run.
        asked_at: request key → time, for drift.
    """
    answers = responses.filter((pl.col("stage") == "answer") & (pl.col("draw") == 0)).select(
        "item_id", pl.col("model").alias("target"), "phi", pl.col("text").str.len_chars().alias("length")
    )
    pointwise = scores.filter(
        pl.col("candidate").is_null() & (pl.col("score_reason").is_null() | (pl.col("score_reason") != "missing_input"))
    )
    found = []
    for (rater,), frame in sorted(pointwise.group_by(["rater"]), key=lambda entry: entry[0]):
        known = frame.filter(pl.col("score").is_not_null()).join(answers, on=["item_id", "target"], how="left")
        graded = known.filter(pl.col("phi").is_not_null())
        found.append(
            ScoreDiagnostics(
                rater=str(rater),
                scores=frame.height,
                failed=frame["score"].null_count() / frame.height,
                repaired=_mean(frame["repaired"].fill_null(False)),
                agreement=_agreement(graded),
                gold_correlation=_gold_correlation(graded),
                verbosity=_verbosity(graded),
                self_preference=_self_preference(graded, str(rater)),
                drift=_drift(known, asked_at or {}),
            )
        )
    return tuple(found)


def _agreement(graded: pl.DataFrame) -> Estimate | None:
    right = graded.select(
        pl.when(pl.col("score") == 0.5)
        .then(0.5)
        .otherwise(((pl.col("score") > 0.5) == (pl.col("phi") >= 0.5)).cast(pl.Float64))
    ).to_series()
    return _over_items(right.to_numpy(), graded["item_id"])


def _gold_correlation(graded: pl.DataFrame) -> float | None:
    means = graded.group_by(["item_id", "target"]).agg(pl.col("score").mean(), pl.col("phi").first())
    return _correlation(means["score"].to_numpy(), means["phi"].to_numpy())


def _correlation(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float | None:
    if len(a) < _MIN_PAIRS or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def _fisher(correlation: float | None, n: int) -> tuple[float, float, float] | None:
    """Correlation with its 95 % interval by Fisher's z."""
    if correlation is None or n < 5 or abs(correlation) >= 1.0:
        return None
    z, half = math.atanh(correlation), 1.959964 / math.sqrt(n - 3)
    return correlation, math.tanh(z - half), math.tanh(z + half)


def _verbosity(graded: pl.DataFrame) -> tuple[float, float, float] | None:
    """Score and log length, both centred within right and within wrong answers; answers are the units."""
    means = (
        graded.filter(pl.col("length") > 0)
        .group_by(["item_id", "target"])
        .agg(pl.col("score").mean(), pl.col("phi").first(), pl.col("length").first().log().alias("length"))
    )
    centred = means.select(
        *(pl.col(name) - pl.col(name).mean().over(pl.col("phi") >= 0.5) for name in ("score", "length"))
    )
    return _fisher(_correlation(centred["score"].to_numpy(), centred["length"].to_numpy()), centred.height)


def _self_preference(graded: pl.DataFrame, rater: str) -> Estimate | None:
    """Own minus others' mean score of one item, both as residuals from the mean given correctness."""
    if rater not in graded["target"].to_list() or graded["target"].n_unique() < 2:
        return None
    residual = graded.with_columns(
        (pl.col("score") - pl.col("score").mean().over(pl.col("phi") >= 0.5)).alias("residual"),
        own=pl.col("target") == rater,
    )
    sides = residual.group_by(["item_id", "own"]).agg(pl.col("residual").mean())
    wide = sides.filter("own").join(sides.filter(~pl.col("own")), on="item_id", how="inner")
    if wide.height < _MIN_PAIRS:
        return None
    return naive_mean((wide["residual"] - wide["residual_right"]).to_numpy(), interval="t")


def _drift(known: pl.DataFrame, asked_at: Mapping[str, str]) -> tuple[float, float, float] | None:
    times = [asked_at.get(key) for key in known["request_key"].to_list()]
    pairs = [(score, at) for score, at in zip(known["score"].to_list(), times, strict=True) if at]
    if len({at for _, at in pairs}) < _MIN_PAIRS:
        return None
    order = np.argsort(np.argsort([at for _, at in pairs], kind="stable"), kind="stable").astype(float)
    return _fisher(_correlation(np.array([score for score, _ in pairs]), order), len(pairs))
