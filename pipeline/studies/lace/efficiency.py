"""Relative efficiency with paired Monte Carlo intervals: per cell, and as geometric means over cells and budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.studies.results import Measured

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True, eq=False)
class LogRatio:
    """The log of a ratio of mean errors, with each replicate's influence on it.

    Attributes:
        value: log(mean reference error / mean error).
        influence: (B,) centred influence values; their mean square over B is the variance.
    """

    value: float
    influence: FloatArray

    @property
    def variance(self) -> float:
        """Delta-method variance of ``value``."""
        size = len(self.influence)
        return float(self.influence @ self.influence) / (size * max(size - 1, 1))

    def measured(self, paper: float | None = None) -> Measured:
        """The ratio itself with its 95% Monte Carlo interval."""
        return _measured(self.value, self.variance, paper)


def log_ratio(reference: FloatArray, errors: FloatArray) -> LogRatio:
    """RE = mean(reference)/mean(errors) of the same B replicates, by the paired delta method.

    Replicates where either is NaN (a level without labels) are left out of both, with influence 0.
    """
    finite = np.isfinite(reference) & np.isfinite(errors)
    influence = np.zeros(len(finite))
    top, bottom = reference[finite], errors[finite]
    if not len(top) or not top.mean() > 0.0 or not bottom.mean() > 0.0:
        return LogRatio(math.nan, influence)
    influence[finite] = top / top.mean() - bottom / bottom.mean()
    return LogRatio(float(np.log(top.mean() / bottom.mean())), influence)


def geometric_mean(
    cells: Sequence[LogRatio], paper: float | None = None, *, groups: Sequence[object] | None = None
) -> Measured:
    """Geometric mean of RE over cells, with its 95% Monte Carlo interval.

    Args:
        cells: one per cell (and budget).
        paper: the number to show beside it.
        groups: cells of the same group share their replicates (nested budgets of one benchmark), so that their
            influences add up replicate by replicate; None means all cells are independent.
    """
    finite = [index for index, cell in enumerate(cells) if math.isfinite(cell.value)]
    if not finite:
        return Measured(math.nan, paper=paper)
    value = float(np.mean([cells[index].value for index in finite]))
    if groups is None:
        variance = sum(cells[index].variance for index in finite) / len(finite) ** 2
    else:
        joined: dict[object, FloatArray] = {}
        for index in finite:
            group = groups[index]
            joined[group] = joined[group] + cells[index].influence if group in joined else cells[index].influence
        variance = sum(LogRatio(0.0, total).variance for total in joined.values()) / len(finite) ** 2
    return _measured(value, variance, paper)


def _measured(value: float, variance: float, paper: float | None) -> Measured:
    half = NORMAL_95 * math.sqrt(variance)
    return Measured(math.exp(value), math.exp(value - half), math.exp(value + half), paper)
