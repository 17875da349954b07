"""The rows of a user's table as the items of a page's matrix: every column beside the outcomes of all targets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from pipeline.report.item_browser import BLOCK, Items, matrix
from pipeline.report.page_values import Part
from pipeline.report.values import clean

_LONGEST = 2_000
_MOST_TEXT = 40_000_000
"""Characters of all texts together; beyond it each is cut."""
_QUESTION = ("question", "prompt", "input", "instruction", "query", "problem")


def table_items(frame: pl.DataFrame, *, gold: str, item: str | None, model: str | None) -> tuple[Part, ...]:
    """The matrix of a table; none where the rows have no ids.

    Args:
        frame: all of its columns, one row per item and target.
        gold: column of the outcome.
        item: column of the id.
        model: column of the target; None: there is one.
    """
    if item is None or item not in frame.columns or gold not in frame.columns:
        return ()
    targets = tuple(map(str, frame[model].unique(maintain_order=True).drop_nulls())) if model else ("all",)
    texts = [name for name, kind in frame.schema.items() if kind == pl.String and name not in (item, model, gold)]
    size = sum(int(frame[name].str.len_bytes().sum() or 0) for name in texts)
    cut = _LONGEST if size <= _MOST_TEXT else max(120, _LONGEST * _MOST_TEXT // size)
    question = next((name for name in _QUESTION if name in texts), None)
    listed = [name for name in frame.columns if name not in (item, model, question)]
    groups = frame.with_columns(pl.col(item).cast(pl.String)).partition_by(item, maintain_order=True)

    def blocks() -> Iterator[list[dict[str, Any]]]:
        for start in range(0, len(groups), BLOCK):
            yield [_item(g, (item, model, gold, question), listed, targets, cut) for g in groups[start : start + BLOCK]]

    note = (
        "An item opens on what the table holds of it, all targets side by side. Search looks into ids and the"
        f" beginnings of questions. Texts beyond {cut:,} characters are cut on this page, and say so."
    )
    return matrix(Items(targets, blocks, note))


def _item(
    group: pl.DataFrame,
    roles: tuple[str, str | None, str, str | None],
    listed: Sequence[str],
    targets: Sequence[str],
    cut: int,
) -> dict[str, Any]:
    item, model, gold, question = roles
    rows: dict[str, dict[str, Any]] = {}
    for row in group.iter_rows(named=True):
        rows.setdefault(str(row[model]) if model else "all", row)
    outcomes = [_number(row[gold]) for row in rows.values()]
    first = group.row(0, named=True)
    return {
        "id": clean(str(first[item])),
        "question": "" if question is None or first[question] is None else _cut(str(first[question]), cut),
        "gold": None, "choices": None, "profile": None, "chains": [], "anchors": [],
        "labeled": any(outcome is not None for outcome in outcomes),
        "targets": [_target(rows.get(name), gold, listed, cut) for name in targets],
    }  # fmt: skip


def _target(row: dict[str, Any] | None, gold: str, listed: Sequence[str], cut: int) -> dict[str, Any] | None:
    if row is None:
        return None
    cells = [[clean(name), None if row[name] is None else _cut(str(row[name]), cut)] for name in listed]
    return {
        "phi": _number(row[gold]), "cells": cells, "answer": None, "confidence": None, "outcome": None, "text": None,
        "more": [], "pairs": [], "chains": {}, "judged": None, "phrase": None, "scores": [], "repaired": 0,
        "taus": [], "candidates": [], "nulls": [],
    }  # fmt: skip


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        value = {"true": "1", "yes": "1", "correct": "1", "false": "0", "no": "0"}.get(value.strip().lower(), value)
    try:
        made = float(value)
    except (TypeError, ValueError):
        return None
    return made if math.isfinite(made) else None


def _cut(text: str, most: int) -> str:
    kept = clean(text[:most])
    return kept if len(text) <= most else f"{kept} … [{len(text) - most:,} more characters in the table]"
