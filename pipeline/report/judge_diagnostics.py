"""How a rater judges: position effect, swap consistency, ties, failures, length, itself, agreement with gold, drift."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from pipeline.estimators import Estimate, naive_mean

_LEAST = 3
_ORDINAL_LEVELS = 30
_KEY = ["item_id", "target", "pair", "draw"]
"""What names a swap pair."""
Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class PairDiagnostics:
    """One rater's pairwise verdicts.

    Attributes:
        rater: the model; ``kind`` is ``pairwise`` (answers against anchors) or ``chains`` (w1 against w2).
        verdicts: verdicts asked; ``failed`` the share of them that is null; ``ties`` the share of ties among the rest.
        position_effect: P(first wins) − P(second wins) in [−1, 1], with an interval over items; 0 for a fair rater, 1
            for one that always says "first".
        pairs: swap pairs with both verdicts; ``half`` those with one verdict only, which count for nothing.
        consistent: share of ``pairs`` that say the same in both orders.
        wins, losses: shares of ``pairs`` in which the target's text (or w1) wins, or loses, in both orders.
        agreement: on labeled items, where exactly one of target and anchor answered right and the pair is consistent
            and no tie: share of pairs won by the right one; None for chains or without anchors' grades.
    """

    rater: str
    kind: str
    verdicts: int
    failed: float
    ties: float
    position_effect: Estimate | None
    pairs: int
    half: int
    consistent: Estimate | None
    wins: float
    losses: float
    agreement: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values."""
        return _plain(asdict(self), self)


@dataclass(frozen=True, slots=True)
class ScoreDiagnostics:
    """One rater's scores of whole answers.

    Attributes:
        rater: the model.
        scores: scores asked; ``failed`` the null share; ``repaired`` the share that took a second request.
        labels: labeled answers that what follows rests on.
        agreement: share of scores on the right side of ½ on labeled items, with an interval over items; None where
            outcomes are not 0 or 1.
        gold_correlation: correlation of an answer's mean score with its outcome, with its 95 % interval (Fisher's z).
        verbosity: correlation of score and log length given the outcome, with its 95 % interval.
        self_preference: mean score of its own answers minus that of others' to the same items, given the outcome;
            None where it is no target.
        drift: correlation of score and time asked, given the profile level, with its 95 % interval; None without
            times.
    """

    rater: str
    scores: int
    failed: float
    repaired: float
    labels: int
    agreement: Estimate | None
    gold_correlation: Triple | None
    verbosity: Triple | None
    self_preference: Estimate | None
    drift: Triple | None

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values."""
        return _plain(asdict(self), self)


def _plain(values: dict[str, Any], source: object) -> dict[str, Any]:
    plain = {}
    for name, value in values.items():
        attribute = getattr(source, name)
        plain[name] = (
            attribute.to_dict()
            if isinstance(attribute, Estimate)
            else None
            if isinstance(value, float) and not math.isfinite(value)
            else value
        )
    return plain


def labeled_outcomes(signals: pl.DataFrame) -> pl.DataFrame:
    """(item_id, target, y) of labeled items, from a signals table."""
    return signals.filter(pl.col("labeled") & pl.col("y").is_not_null()).select("item_id", "target", "y")


def pair_diagnostics(
    preferences: pl.DataFrame, *, outcomes: pl.DataFrame | None = None, anchors: pl.DataFrame | None = None
) -> tuple[PairDiagnostics, ...]:
    """Diagnostics of every rater in a preferences table, chains and anchor pairs apart.

    Args:
        preferences: the table; verdicts that were never asked for lack of an input are left out.
        outcomes: item_id, target, y of labeled items.
        anchors: item_id, pair, phi: what the anchors' answers were worth.
    """
    chains = pl.col("pair") == "chains"
    asked = preferences.lazy().filter(
        pl.col("verdict_reason").is_null() | ~pl.col("verdict_reason").is_in(["missing_input", "not_asked"])
    )
    raters = asked.select("rater", chains.alias("chains")).unique().sort("rater", "chains", descending=[False, True])
    rows = []
    for rater, of_chains in raters.collect().iter_rows():
        own = asked.filter((pl.col("rater") == rater) & (chains == of_chains)).select(*_KEY, "order", "verdict")
        frame, kind = own.collect(), "chains" if of_chains else "pairwise"
        asked_of, decided = frame.height, frame.filter(pl.col("verdict").is_not_null())
        del frame  # the verdicts on chains of 20,000 items are 1.3 million rows
        both, half = _swapped(decided)
        entry = PairDiagnostics(
            rater=str(rater),
            kind=str(kind),
            verdicts=asked_of,
            failed=1.0 - decided.height / asked_of,
            ties=_mean(decided["verdict"] == "tie"),
            position_effect=_position_effect(decided),
            pairs=both.height,
            half=half,
            consistent=_over_items(both["consistent"].to_numpy(), both["item_id"]),
            wins=_mean(both["said"] == 1.0),
            losses=_mean(both["said"] == -1.0),
        )
        if kind == "pairwise" and outcomes is not None and anchors is not None:
            entry = replace(entry, agreement=_pair_agreement(both, outcomes, anchors))
        rows.append(entry)
    return tuple(rows)


def _mean(series: pl.Series) -> float:
    value = series.mean()
    return float(value) if isinstance(value, int | float) else math.nan


def _over_items(values: np.ndarray[Any, Any], items: pl.Series) -> Estimate | None:
    """Mean of values in [0, 1] with an interval in which whole items are the units."""
    if len(values) < _LEAST or items.n_unique() < 2:
        return None
    if np.ptp(values) == 0.0:
        return naive_mean(values[: items.n_unique()], interval="wilson")
    return naive_mean(values, clusters=_codes(items).to_numpy(), interval="wilson")


def _codes(items: pl.Series) -> pl.Series:
    """Numbers in the place of ids: as they come where equal ones lie together."""
    return items.rle_id() if items.is_sorted() else items.rank("dense")


def _position_effect(decided: pl.DataFrame) -> Estimate | None:
    """Wilson's interval of the mean of 1, ½, 0 for first, tie, second, carried to [−1, 1]."""
    points = decided.select(
        pl.when(pl.col("verdict") == "first").then(1.0).when(pl.col("verdict") == "second").then(0.0).otherwise(0.5)
    ).to_series()
    share = _over_items(points.to_numpy(), decided["item_id"])
    if share is None:
        return None
    ends = {name: 2.0 * getattr(share, name) - 1.0 for name in ("value", "low", "high")}
    return replace(share, **ends, se=2.0 * share.se, method="position_effect")


def _swapped(decided: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Pairs with a verdict in both orders, and how many have one only.

    ``said`` is 1, −1 or 0 where both orders agree that the target's text (or w1) wins, loses or ties; else infinite.
    """
    side = (
        pl.when(pl.col("verdict") == "tie")
        .then(0.0)
        .when((pl.col("verdict") == "first") == (pl.col("order") == "ab"))
        .then(1.0)
        .otherwise(-1.0)
    )
    sides = decided.select(*_KEY, "order", side.alias("side"))
    orders = [sides.filter(pl.col("order") == order).drop("order") for order in ("ab", "ba")]
    if all(one.equals(other) for one, other in zip(*(part.select(_KEY) for part in orders), strict=True)):
        both = orders[0].with_columns(orders[1]["side"].alias("side_right"))
    else:
        both = orders[0].join(orders[1], on=_KEY, how="inner", maintain_order="left")
    same = pl.col("side") == pl.col("side_right")
    choice = pl.when(same).then(pl.col("side")).otherwise(math.inf)
    both = both.with_columns(same.cast(pl.Float64).alias("consistent"), choice.alias("said"))
    return both, sides.height - 2 * both.height


def _pair_agreement(both: pl.DataFrame, outcomes: pl.DataFrame, anchors: pl.DataFrame) -> Estimate | None:
    named = both.with_columns(pl.col("item_id", "target", "pair").cast(pl.String))
    joined = named.join(outcomes, on=["item_id", "target"], how="inner", maintain_order="left").join(
        anchors, on=["item_id", "pair"], how="inner", maintain_order="left"
    )
    decided = joined.filter(
        pl.col("said").is_in([1.0, -1.0])
        & pl.col("phi").is_not_null()
        & ((pl.col("y") >= 0.5) != (pl.col("phi") >= 0.5))
    )
    right = ((decided["said"] == 1.0) == (decided["y"] >= 0.5)).cast(pl.Float64)
    return _over_items(right.to_numpy(), decided["item_id"])


def score_diagnostics(
    scores: pl.DataFrame,
    responses: pl.DataFrame,
    outcomes: pl.DataFrame,
    *,
    levels: pl.DataFrame | None = None,
    asked_at: Mapping[str, str] | None = None,
) -> tuple[ScoreDiagnostics, ...]:
    """Diagnostics of every rater of whole answers (pointwise scores).

    Args:
        scores: table of a run; responses: the same, with the ``length`` of each text.
        outcomes: item_id, target, y of labeled items.
        levels: item_id, profile; what drift is measured within.
        asked_at: request key → time, for drift.
    """
    answers = responses.filter((pl.col("stage") == "answer") & (pl.col("draw") == 0)).select(
        "item_id", pl.col("model").alias("target"), "length"
    )
    pointwise = scores.filter(
        pl.col("candidate").is_null()
        & (pl.col("score_reason").is_null() | ~pl.col("score_reason").is_in(["missing_input", "not_asked"]))
    )
    key = ["item_id", "target"]
    rows = []
    for (rater,), frame in sorted(pointwise.group_by(["rater"]), key=lambda entry: entry[0]):
        scored = frame.filter(pl.col("score").is_not_null()).sort("item_id", "target", "prompt")
        graded = scored.join(outcomes, on=key, how="inner", maintain_order="left")
        means = graded.group_by(key, maintain_order=True).agg(pl.col("score").mean(), pl.col("y").first())
        means = means.join(answers, on=key, how="left", maintain_order="left")
        rows.append(
            ScoreDiagnostics(
                rater=str(rater),
                scores=frame.height,
                failed=frame["score"].null_count() / frame.height,
                repaired=_mean(frame["repaired"].fill_null(False)),
                labels=means.height,
                agreement=_agreement(graded),
                gold_correlation=_fisher(_correlation(means["score"], means["y"]), means.height),
                verbosity=_verbosity(means),
                self_preference=_self_preference(means, str(rater)),
                drift=_drift(scored, levels, asked_at or {}),
            )
        )
    return tuple(rows)


def _agreement(graded: pl.DataFrame) -> Estimate | None:
    if not graded["y"].is_in([0.0, 1.0]).all():
        return None
    right = graded.select(
        pl.when(pl.col("score") == 0.5)
        .then(0.5)
        .otherwise(((pl.col("score") > 0.5) == (pl.col("y") > 0.5)).cast(pl.Float64))
    ).to_series()
    return _over_items(right.to_numpy(), graded["item_id"])


def _correlation(first: pl.Series, second: pl.Series) -> float | None:
    a, b = first.to_numpy().astype(float), second.to_numpy().astype(float)
    if len(a) < _LEAST or np.ptp(a) < 1e-12 or np.ptp(b) < 1e-12:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def _fisher(correlation: float | None, n: int) -> Triple | None:
    """Correlation with its 95 % interval by Fisher's z; n independent units."""
    if correlation is None or n < 5 or abs(correlation) >= 1.0:
        return None
    z, half = math.atanh(correlation), 1.959963984540054 / math.sqrt(n - 3)
    return correlation, math.tanh(z - half), math.tanh(z + half)


def _given_outcome(name: str) -> pl.Expr:
    """A column less its straight line in y (its mean within right and wrong answers, where y is 0 or 1)."""
    y, value = pl.col("y"), pl.col(name)
    slope = pl.when(y.var() > 0).then(pl.cov(value, y) / y.var()).otherwise(0.0)
    return value - value.mean() - slope * (y - y.mean())


def _verbosity(means: pl.DataFrame) -> Triple | None:
    """Answers are the units."""
    long = means.filter(pl.col("length") > 0).with_columns(pl.col("length").log())
    if long.height < 5:
        return None
    rest = long.select(_given_outcome("score").alias("score"), _given_outcome("length").alias("length"))
    return _fisher(_correlation(rest["score"], rest["length"]), rest.height)


def _self_preference(means: pl.DataFrame, rater: str) -> Estimate | None:
    """Own minus others' mean score of one item, both less what the outcome explains; items are the units."""
    if rater not in means["target"].to_list() or means["target"].n_unique() < 2:
        return None
    rest = means.with_columns(_given_outcome("score").alias("rest"), own=pl.col("target") == rater)
    sides = rest.group_by(["item_id", "own"], maintain_order=True).agg(pl.col("rest").mean())
    wide = sides.filter("own").join(sides.filter(~pl.col("own")), on="item_id", how="inner", maintain_order="left")
    if wide.height < _LEAST:
        return None
    return naive_mean((wide["rest"] - wide["rest_right"]).to_numpy(), interval="t")


def _drift(scored: pl.DataFrame, levels: pl.DataFrame | None, asked_at: Mapping[str, str]) -> Triple | None:
    """Time is its rank. Items are asked in their order, so both are taken less their mean at the profile's level."""
    if not asked_at:
        return None
    times = pl.DataFrame({"request_key": list(asked_at), "at": list(asked_at.values())})
    timed = scored.join(times, on="request_key", how="inner", maintain_order="left")
    if timed["at"].n_unique() < _LEAST:
        return None
    timed = timed.with_columns(pl.col("at").rank().alias("time"))
    if levels is not None and levels["profile"].n_unique() <= _ORDINAL_LEVELS:
        timed = timed.join(levels, on="item_id", how="left", maintain_order="left").with_columns(
            pl.col(name) - pl.col(name).mean().over("profile") for name in ("score", "time")
        )
    return _fisher(_correlation(timed["score"], timed["time"]), timed["item_id"].n_unique())
