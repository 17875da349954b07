"""Assembles the label-free signals of every item and target from the tables of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from pipeline.tables.schemas import PAPER_ANCHORS, PAPER_JUDGES, ProfileKind, TableSchema, signal_names, signals_schema

__all__ = ["MISSING_SHARE", "assemble_signals"]

MISSING_SHARE = 0.01
"""A signal gets a missing-reply indicator where it is null for at least this share of a target's items."""

_ITEM = ["item_id", "target"]


def _judge_signals(scores: pl.DataFrame, judges: Sequence[str]) -> pl.DataFrame:
    """``judge`` = mean of all scores, ``judge_<entry>`` of each judge's, ``disagreement`` = (1/R)·Σ(G − mean)².

    Null unless every prompt of every judge that it is made of has a score: a mean over those that answered would mean
    something else on each item.
    """
    pointwise = scores.filter(pl.col("candidate").is_null())
    whole = pl.col("score").is_null().any()
    frame = pointwise.group_by(_ITEM, maintain_order=True).agg(
        pl.when(whole).then(None).otherwise(pl.col("score").mean()).alias("judge"),
        pl.when(whole).then(None).otherwise(pl.col("score").var(ddof=0)).alias("disagreement"),
    )
    if len(judges) < 2:
        return frame
    for name in judges:
        own = pointwise.filter(pl.col("rater") == name).group_by(_ITEM, maintain_order=True)
        column = pl.when(whole).then(None).otherwise(pl.col("score").mean()).alias(f"judge_{name}")
        frame = frame.join(own.agg(column), on=_ITEM, how="left")
    return frame


def _pair_signals(preferences: pl.DataFrame, judges: int, anchors: Sequence[str]) -> pl.DataFrame:
    """``pair_<anchor>`` = (wins + ½ ties) over both orders and all judges; half a swap pair is no signal."""
    points = pl.when(pl.col("verdict") == "tie").then(0.5).otherwise(pl.col("wins").cast(pl.Float64))
    judged = preferences.filter(pl.col("pair").is_in(list(anchors))).with_columns(points.alias("points"))
    complete = (pl.col("points").count() == 2 * judges) & (pl.len() == 2 * judges)
    per_pair = judged.group_by([*_ITEM, "pair"], maintain_order=True).agg(
        pl.when(complete).then(pl.col("points").mean()).otherwise(None).alias("points")
    )
    wide = per_pair.pivot(on="pair", index=_ITEM, values="points")
    return wide.rename({name: f"pair_{name}" for name in anchors if name in wide.columns})


def _outcomes(responses: pl.DataFrame, missing_reply: Literal["wrong", "exclude"]) -> pl.DataFrame:
    """φ of each target's first answer, its confidence, and whether a reply is there at all."""
    answers = responses.filter((pl.col("stage") == "answer") & (pl.col("draw") == 0))
    phi = pl.col("phi")
    if missing_reply == "wrong":
        phi = phi.fill_null(0.0)
    return answers.select("item_id", pl.col("model").alias("target"), phi.alias("phi"), "confidence")


def assemble_signals(
    items: pl.DataFrame,
    responses: pl.DataFrame,
    preferences: pl.DataFrame,
    scores: pl.DataFrame,
    *,
    targets: tuple[str, ...],
    judges: tuple[str, ...] = PAPER_JUDGES,
    anchors: tuple[str, ...] = PAPER_ANCHORS,
    missing_reply: Literal["wrong", "exclude"] = "wrong",
    kind: ProfileKind | None = None,
) -> tuple[pl.DataFrame, TableSchema]:
    """The signals table: one row per item and target.

    ``y`` is φ where the item is labeled, else null. A labeled item without a reply counts as ``missing_reply`` says:
    0 (``wrong``) or null with ``labeled`` false (``exclude``). An item whose gold is unknown is not labeled.

    Returns:
        The frame sorted by (item_id, target) and its schema, with an indicator ``<signal>_missing`` for each signal
        that is null for at least 1 % of the items of some target but not for all of them.
    """
    base = items.select("item_id", "labeled", "profile", "gold").join(
        pl.DataFrame({"target": list(targets)}, schema={"target": pl.String}), how="cross"
    )
    frame = base.join(_outcomes(responses, missing_reply), on=_ITEM, how="left")
    signals = signal_names(judges, anchors)
    frame = frame.join(_judge_signals(scores, judges), on=_ITEM, how="left")
    frame = frame.join(_pair_signals(preferences, len(judges), anchors), on=_ITEM, how="left")
    for name in signals:
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(name))
    labeled = pl.col("labeled") & pl.col("gold").is_not_null() & pl.col("phi").is_not_null()
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
