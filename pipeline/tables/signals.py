"""Assembles the label-free signals of every item and target from the tables of a run."""

from __future__ import annotations

from typing import Literal

import polars as pl

from pipeline.tables.schemas import SIGNALS, ProfileKind, TableSchema, signals_schema

__all__ = ["MISSING_SHARE", "assemble_signals"]

MISSING_SHARE = 0.01
"""A signal gets a missing-reply indicator where it is null for at least this share of a target's items."""

_ANCHOR_LEVELS = ("weak", "medium", "strong")
_ITEM = ["item_id", "target"]


def _judge_signals(scores: pl.DataFrame) -> pl.DataFrame:
    """``judge`` = mean of G1..G3 and ``disagreement`` = (1/R)·Σ(Gr − mean)²; null unless every prompt has a score."""
    pointwise = scores.filter(pl.col("candidate").is_null())
    return pointwise.group_by(_ITEM, maintain_order=True).agg(
        pl.when(pl.col("score").is_null().any()).then(None).otherwise(pl.col("score").mean()).alias("judge"),
        pl.when(pl.col("score").is_null().any())
        .then(None)
        .otherwise(pl.col("score").var(ddof=0))
        .alias("disagreement"),
    )


def _pair_signals(preferences: pl.DataFrame) -> pl.DataFrame:
    """``pair_<anchor>`` = (wins + ½ ties)/2 over the two orders; half a swap pair is no signal."""
    points = pl.when(pl.col("verdict") == "tie").then(0.5).otherwise(pl.col("wins").cast(pl.Float64))
    judged = preferences.filter(pl.col("pair").is_in(_ANCHOR_LEVELS)).with_columns(points.alias("points"))
    complete = (pl.col("points").count() == 2) & (pl.len() == 2)
    per_pair = judged.group_by([*_ITEM, "pair"], maintain_order=True).agg(
        pl.when(complete).then(pl.col("points").mean()).otherwise(None).alias("points")
    )
    wide = per_pair.pivot(on="pair", index=_ITEM, values="points")
    return wide.rename({level: f"pair_{level}" for level in _ANCHOR_LEVELS if level in wide.columns})


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
    frame = frame.join(_judge_signals(scores), on=_ITEM, how="left")
    frame = frame.join(_pair_signals(preferences), on=_ITEM, how="left")
    for name in SIGNALS:
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(name))
    labeled = pl.col("labeled") & pl.col("gold").is_not_null() & pl.col("phi").is_not_null()
    frame = frame.with_columns(labeled.alias("labeled")).with_columns(
        pl.when(pl.col("labeled")).then(pl.col("phi")).otherwise(None).alias("y")
    )
    used = _indicated(frame)
    frame = frame.with_columns(pl.col(name).is_null().alias(f"{name}_missing") for name in used)
    schema = signals_schema(used, kind)
    return frame.select(list(schema.columns)).sort(_ITEM), schema


def _indicated(frame: pl.DataFrame) -> tuple[str, ...]:
    shares = frame.group_by("target").agg(pl.col(name).is_null().mean() for name in SIGNALS)
    return tuple(name for name in SIGNALS if any(MISSING_SHARE <= share < 1.0 for share in shares[name].to_list()))
