"""Repeated answers: variance between items and of sampling, and what more answers or more items would buy."""

from __future__ import annotations

import math

from pipeline.estimators import Estimate, VarianceComponents
from pipeline.evaluation.document import EstimateSet
from pipeline.report.document_tables import is_share
from pipeline.report.page_values import Part
from pipeline.report.values import Cell, Number, quantity, table


def repeats(estimates: EstimateSet) -> tuple[Part, ...]:
    """The parts; none where no target has several graded answers per item."""
    percent = is_share(estimates)
    rows = []
    for target, methods in estimates.items():
        repeated = methods.get("repeated_decoding")
        parts = repeated.components if isinstance(repeated, Estimate) else None
        if parts is not None and math.isfinite(parts.item):
            rows.append(_row(target, parts, percent))
    if not rows:
        return ()
    note = (
        "item: variance of the items' own means; sampling: variance of the answers to one item. item share: correlation"
        " of two answers to one item. The SE is clustered by item; the last columns say what it would be with twice"
        " the answers to each item, with no end of answers, or with twice the items."
    )
    columns = ["target", "items", "answers to each", "item", "sampling", "item share, %", "SE", "SE, 2 × answers"]
    made = table(
        "Where the variance of repeated answers comes from",
        [*columns, "SE, endless answers", "SE, 2 × items"],
        rows,
        numeric=range(1, 10),
        note=note,
        source="estimates.json, targets → target → repeated_decoding → components",
    )
    return (made,)


def _row(target: str, parts: VarianceComponents, percent: bool) -> list[Cell]:
    items, answers = parts.items, parts.repeats

    def error(number: int, each: float) -> Number:
        value = parts.standard_error(items=number, repeats=each)
        return quantity(value, percent=percent, digits=2 if percent else 1)

    return [
        target,
        items,
        answers,
        Number(parts.item, f"{parts.item:.4f}"),
        Number(parts.sampling, f"{parts.sampling:.4f}"),
        "–" if math.isnan(parts.item_share) else quantity(parts.item_share, percent=True),
        quantity(parts.se, percent=percent, digits=2 if percent else 1),
        error(items, 2.0 * answers),
        error(items, math.inf),
        error(2 * items, float(answers)),
    ]
