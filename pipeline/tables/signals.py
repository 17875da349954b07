"""Assembles the label-free signals of every item and target from the tables of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from pipeline.tables.cast import DIRECT, PAPER_CAST, Cast
from pipeline.tables.column_roles import ProfileKind
from pipeline.tables.schemas import TableSchema, signals_schema

MISSING_SHARE = 0.01
"""A signal gets a missing-reply indicator where it is null for at least this share of a target's items."""

_ITEM = ["item_id", "target"]


def _judge_signals(scores: pl.DataFrame, cast: Cast) -> pl.DataFrame:
    """Mean scores by criterion and judge; ``disagreement`` = (1/R)·Σ(G − mean)² of the first criterion.

    Null unless every score that it is made of is there: a mean over those that answered would mean something else on
    each item.
    """
    pointwise = scores.filter(pl.col("candidate").is_null())
    frame = pointwise.select(_ITEM).unique(maintain_order=True)
    for name, (criterion, judge) in cast.judge_columns().items():
        of = [
            pl.col(column) == value for column, value in (("prompt", criterion), ("rater", judge)) if value is not None
        ]
        own = pointwise.filter(*of).group_by(_ITEM, maintain_order=True)
        mean, spread = _whole(pl.col("score").mean()).alias(name), _whole(pl.col("score").var(ddof=0))
        columns = [mean, spread.alias("disagreement")] if name == "judge" else [mean]
        frame = frame.join(own.agg(columns), on=_ITEM, how="left")
    return frame


def _whole(of: pl.Expr) -> pl.Expr:
    return pl.when(pl.col("score").is_null().any()).then(None).otherwise(of)


def _pair_signals(preferences: pl.DataFrame, cast: Cast) -> pl.DataFrame:
    """``pair_<anchor>`` = (wins + ½ ties) over both orders and all judges; half a swap pair is no signal."""
    wide = _points(preferences, list(cast.anchors), len(cast.judges)).pivot(on="pair", index=_ITEM, values="points")
    return wide.rename({name: f"pair_{name}" for name in cast.anchors if name in wide.columns})


def _points(preferences: pl.DataFrame, pairs: Sequence[str], judges: int) -> pl.DataFrame:
    """item_id, target, pair, points of the target in [0, 1]; null where a verdict is missing."""
    points = pl.when(pl.col("verdict") == "tie").then(0.5).otherwise(pl.col("wins").cast(pl.Float64))
    judged = preferences.filter(pl.col("pair").is_in(list(pairs))).with_columns(points.alias("points"))
    complete = (pl.col("points").count() == 2 * judges) & (pl.len() == 2 * judges)
    return judged.group_by([*_ITEM, "pair"], maintain_order=True).agg(
        pl.when(complete).then(pl.col("points").mean()).otherwise(None).alias("points")
    )


def _direct_signals(preferences: pl.DataFrame, cast: Cast) -> pl.DataFrame:
    """``preference``: points of a target in the direct comparison with the other one (½ with itself)."""
    others = {f"{DIRECT}{name}": name for name in cast.compared}
    points = _points(preferences, list(others), len(cast.judges))
    ours = points.with_columns(pl.col("pair").replace_strict(others, return_dtype=pl.String).alias("other")).drop(
        "pair"
    )
    theirs = ours.select(
        "item_id",
        pl.col("other").alias("target"),
        (1.0 - pl.col("points")).alias("points"),
        pl.col("target").alias("other"),
    )
    both = pl.concat([ours.select(theirs.columns), theirs])
    if len(cast.compared) == 2:
        return both.select(*_ITEM, pl.col("points").alias("preference"))
    itself = (
        both.select(_ITEM)
        .unique(maintain_order=True)
        .with_columns(pl.lit(0.5).alias("points"), pl.col("target").alias("other"))
    )
    wide = pl.concat([both, itself.select(both.columns)]).pivot(on="other", index=_ITEM, values="points")
    return wide.rename({name: f"preference_{name}" for name in cast.compared if name in wide.columns})


def _own_signals(own: pl.DataFrame, targets: Sequence[str]) -> pl.DataFrame:
    """The user's numbers, one column each; those of an item are every target's."""
    shared = own.filter(pl.col("target").is_null()).drop("target")
    everyone = pl.DataFrame({"target": list(targets)}, schema={"target": pl.String})
    rows = pl.concat(
        [own.filter(pl.col("target").is_not_null()), shared.join(everyone, how="cross").select(own.columns)]
    )
    return rows.pivot(on="signal", index=_ITEM, values="value")


def _probability_signals(probabilities: pl.DataFrame) -> pl.DataFrame:
    """Means over what they were asked by; null unless all of it is there, as a judge's mean score."""
    value = pl.when(pl.col("value").is_null().any()).then(None).otherwise(pl.col("value").mean())
    return (
        probabilities.group_by([*_ITEM, "signal"], maintain_order=True)
        .agg(value.alias("value"))
        .pivot(on="signal", index=_ITEM, values="value")
    )


def counted_phi(missing_reply: Literal["wrong", "exclude"]) -> pl.Expr:
    """φ as it counts: an answer that was refused, cut off or cannot be read is wrong, or left out, as asked.

    A call that failed says nothing of the model and is always left out: a target whose server was down had 0 %.
    """
    answered = pl.col("phi_reason").is_null() | (pl.col("phi_reason") != "failed")
    wrong = pl.col("phi").is_null() & answered & (missing_reply == "wrong")
    return pl.when(wrong).then(0.0).otherwise(pl.col("phi"))


def _outcomes(responses: pl.DataFrame, missing_reply: Literal["wrong", "exclude"], rated: bool) -> pl.DataFrame:
    """φ of each target's first answer, its confidence, and whether a reply is there at all."""
    answers = responses.filter((pl.col("stage") == "answer") & (pl.col("draw") == 0))
    phi = pl.col("phi") if rated else counted_phi(missing_reply)  # what nobody has rated is not wrong
    return answers.select("item_id", pl.col("model").alias("target"), phi.alias("phi"), "confidence")


def assemble_signals(
    items: pl.DataFrame,
    responses: pl.DataFrame,
    preferences: pl.DataFrame,
    scores: pl.DataFrame,
    *,
    targets: tuple[str, ...],
    cast: Cast = PAPER_CAST,
    own: pl.DataFrame | None = None,
    probabilities: pl.DataFrame | None = None,
    missing_reply: Literal["wrong", "exclude"] = "wrong",
    kind: ProfileKind | None = None,
) -> tuple[pl.DataFrame, TableSchema]:
    """The signals table: one row per item and target.

    ``y`` is φ where the item is labeled, else null. A labeled item without a reply counts as ``missing_reply`` says:
    0 (``wrong``) or null with ``labeled`` false (``exclude``). An item whose gold is unknown is not labeled.

    Args:
        items, responses, preferences, scores: tables of a run.
        targets: the evaluated models.
        cast: who gave signals.
        probabilities: item_id, target, signal, source, value of what token probabilities say.
        own: item_id, target (null: every target's), signal, value of the user's own numbers.
        missing_reply: what a labeled item without a reply counts as.
        kind: of the profile axis.

    Returns:
        The frame sorted by (item_id, target) and its schema, with an indicator ``<signal>_missing`` for each signal
        that is null for at least 1 % of the items of some target but not for all of them.
    """
    base = items.select("item_id", "labeled", "profile", "gold").join(
        pl.DataFrame({"target": list(targets)}, schema={"target": pl.String}), how="cross"
    )
    frame = base.join(_outcomes(responses, missing_reply, cast.rated), on=_ITEM, how="left")
    signals = cast.signal_names()
    parts = [_judge_signals(scores, cast), _pair_signals(preferences, cast)]
    parts += [_direct_signals(preferences, cast)] if cast.compared else []
    parts += [_probability_signals(probabilities)] if probabilities is not None else []
    parts += [_own_signals(own, targets)] if own is not None and cast.own else []
    for part in parts:
        frame = frame.join(part, on=_ITEM, how="left")
    for name in signals:
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(name))
    has_gold = pl.lit(True) if cast.rated else pl.col("gold").is_not_null()
    labeled = pl.col("labeled") & has_gold & pl.col("phi").is_not_null()
    frame = frame.with_columns(labeled.alias("labeled")).with_columns(
        pl.when(pl.col("labeled")).then(pl.col("phi")).otherwise(None).alias("y")
    )
    used = _indicated(frame, signals)
    frame = frame.with_columns(pl.col(name).is_null().alias(f"{name}_missing") for name in used)
    schema = signals_schema(signals, used, kind)
    return frame.select(list(schema.columns)).sort(_ITEM), schema


def _indicated(frame: pl.DataFrame, signals: Sequence[str]) -> tuple[str, ...]:
    shares = frame.group_by("target").agg(pl.col(name).is_null().mean() for name in signals)
    return tuple(name for name in signals if any(MISSING_SHARE <= share < 1.0 for share in shares[name].to_list()))
