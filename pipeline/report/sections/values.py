"""Estimates as cells of a table, and what all sections ask of a run's estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pipeline.estimators import Estimate
from pipeline.report.markup import Number, Span
from pipeline.report.run_folder import RunFolder
from pipeline.report.terminal import number, span


def value(amount: float, *, percent: bool, digits: int = 1) -> Number:
    """A number in percent or as it is."""
    return Number(100.0 * amount if percent else amount, number(amount, percent=percent, digits=digits))


def between(low: float, high: float, *, percent: bool) -> Span:
    """An interval in percent or as it is."""
    scale = 100.0 if percent else 1.0
    return Span(scale * low, scale * high, span(low, high, percent=percent))


def share(amount: float) -> Number:
    """A share in percent with one digit."""
    return value(amount, percent=True)


def means(run: RunFolder) -> Iterator[tuple[str, str, Estimate]]:
    """(target, method, estimate) of every mean."""
    for target, methods in run.estimates.items():
        for method, estimate in methods.items():
            if isinstance(estimate, Estimate):
                yield target, method, estimate


def is_share(run: RunFolder) -> bool:
    """Whether all means are shares, so that percent reads best."""
    return all(-0.2 <= e.value <= 1.2 for _, _, e in means(run) if math.isfinite(e.value))


def truth(run: RunFolder, target: str) -> float | None:
    """The true accuracy of a simulated target; None for any other, and where outcomes are no right or wrong."""
    grading = str(run.benchmark.get("grading") or "")
    if grading == "squared_error" or grading.startswith("python:"):
        return None
    simulated = (run.estimates.extra.get("simulated") or {}).get(target) or {}
    accuracy = simulated.get("true_accuracy")
    return float(accuracy) if isinstance(accuracy, int | float) else None
