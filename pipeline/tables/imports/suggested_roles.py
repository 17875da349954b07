"""Which columns of an imported table to estimate with, where nobody has said so yet."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.imports.imported import ImportedTable

_FACTS = ("choice_probability", "choice_margin", "answer_chars", "output_tokens")
"""Label-free columns that our imports make, the most telling ones first."""
_MAX_SIGNALS = 6


def suggested_by_task(imported: ImportedTable) -> list[tuple[tuple[str, ...], ColumnRoles]]:
    """For each task that can be estimated, which rows to take (``COL=VALUE``) and which columns.

    Items of different tasks are different items even where their ids agree, so that each task is estimated by itself;
    samples that failed or were never scored are no items to label and are left out.
    """
    frame = imported.frame
    tasks = frame["task"].unique(maintain_order=True).to_list() if "task" in frame.columns else [None]
    chosen = []
    for task in tasks:
        part = frame if task is None else frame.filter(pl.col("task") == task)
        where = [f"task={task}"] if len(tasks) > 1 else []
        if "reason" in part.columns and part["reason"].null_count() < part.height:
            part = part.filter(pl.col("reason").is_null())
            where.append("reason=")
        scores = tuple(name for name in imported.scores if part[name].drop_nulls().len() >= 2)
        roles = suggested_roles(ImportedTable(part, scores)) if scores else None
        if roles is not None:
            chosen.append((tuple(where), roles))
    return chosen


def suggested_roles(imported: ImportedTable) -> ColumnRoles | None:
    """A score as the gold, the other scores and label-free facts that can help as signals.

    The gold is the first score that some signal can help, else the first that varies. None where the table has no
    items or no scores.
    """
    frame = imported.frame
    if "item_id" not in frame.columns or not imported.scores:
        return None
    parts = frame.partition_by("model") if "model" in frame.columns else [frame]
    varying = [name for name in imported.scores if frame[name].drop_nulls().n_unique() > 1] or imported.scores[:1]
    choices = [(gold, _signals(imported, parts, gold)) for gold in varying]
    gold, signals = next((choice for choice in choices if choice[1]), choices[0])
    return ColumnRoles(
        gold=gold,
        signals=signals,
        id="item_id",
        model="model" if len(parts) > 1 else None,
        cluster="cluster" if _repeats(frame) else None,
    )


def _signals(imported: ImportedTable, parts: Sequence[pl.DataFrame], gold: str) -> tuple[str, ...]:
    columns = [name for name in (*imported.scores, *_FACTS) if name in imported.frame.columns and name != gold]
    return tuple(name for name in columns if any(_can_help(part, name, gold) for part in parts))[:_MAX_SIGNALS]


def _can_help(part: pl.DataFrame, name: str, gold: str) -> bool:
    """Whether a column varies where the gold is known, is no copy of it, and is known on rows without it, if any."""
    if part[name].equals(part[gold], null_equal=True):
        return False
    labeled, unlabeled = part.filter(pl.col(gold).is_not_null()), part.filter(pl.col(gold).is_null())
    complete = not unlabeled.height or unlabeled[name].null_count() < unlabeled.height
    return complete and labeled[name].drop_nulls().n_unique() > 1


def _repeats(frame: pl.DataFrame) -> bool:
    """Whether an item stands several times for one model, as with epochs."""
    return "cluster" in frame.columns and bool(frame.select("cluster", "model").is_duplicated().any())
