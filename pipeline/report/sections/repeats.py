"""Repeated answers: variance between items and of sampling, and what more answers or more items would buy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pipeline.estimators import Estimate
from pipeline.report.markup import Cell, Number, section, table
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.values import is_share, value


def repeats(run: RunFolder) -> str:
    """The section; empty where no target has several graded answers per item."""
    percent = is_share(run)
    rows = []
    for target, methods in run.estimates.items():
        repeated = methods.get("repeated_decoding")
        parts = (repeated.diagnostics.get("components") or {}) if isinstance(repeated, Estimate) else {}
        if parts.get("item") is not None and parts.get("sampling") is not None:
            rows.append(_row(target, parts, percent))
    if not rows:
        return ""
    note = (
        "item: variance of the items' own means; sampling: variance of the answers to one item. item share: correlation"
        " of two answers to one item. The SE is clustered by item; the last columns say what it would be with twice"
        " the answers to each item, with no end of answers, or with twice the items."
    )
    columns = ["target", "items", "answers to each", "item", "sampling", "item share, %", "SE", "SE, 2 × answers"]
    made = table(
        [*columns, "SE, endless answers", "SE, 2 × items"],
        rows,
        caption="Where the variance of repeated answers comes from",
        numeric=range(1, 10),
        note=note,
        source="estimates.json, targets → target → repeated_decoding → diagnostics → components",
    )
    return section("repeats", "Repeated answers", made)


def _row(target: str, parts: Mapping[str, Any], percent: bool) -> list[Cell]:
    items, answers = int(parts["items"]), int(parts["repeats"])
    between, within = max(float(parts["item"]), 0.0), float(parts["sampling"])

    def error(number: int, each: float) -> Number:
        return value(math.sqrt((between + within / each) / number), percent=percent, digits=2 if percent else 1)

    share = parts.get("item_share")
    return [
        target,
        items,
        answers,
        Number(float(parts["item"]), f"{parts['item']:.4f}"),
        Number(within, f"{within:.4f}"),
        "–" if share is None else value(float(share), percent=True),
        value(float(parts["se"]), percent=percent, digits=2 if percent else 1),
        error(items, 2.0 * answers),
        error(items, math.inf),
        error(2 * items, float(answers)),
    ]
