"""How much of a mean's variance comes from the choice of items and how much from sampling the answers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.checks import check_matrix

__all__ = ["VarianceComponents", "variance_components"]


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Var φ = item + sampling, from R answers to each of N items.

    Attributes:
        items: N.
        repeats: R.
        mean: mean over all answers.
        item: variance of the items' own means, Var E[φ | x]; unbiased, so it may be slightly negative; NaN if R = 1.
        sampling: mean variance of an item's answers, E Var[φ | x]; NaN if R = 1.
        item_share: item/(item + sampling) floored at 0: the correlation of two answers to one item.
        se: standard error of the mean over all N·R answers.
    """

    items: int
    repeats: int
    mean: float
    item: float
    sampling: float
    item_share: float
    se: float

    def standard_error(self, *, items: int, repeats: int) -> float:
        """SE of a study with other numbers of items and answers: √((item + sampling/repeats)/items)."""
        return math.sqrt(max(max(self.item, 0.0) + self.sampling / repeats, 0.0) / items)

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values; NaN is None."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def variance_components(phi: ArrayLike) -> VarianceComponents:
    """One-way random-effects components of repeated outcomes.

    With MSB the mean square between items and MSW within: sampling = MSW, item = (MSB − MSW)/R, SE² = MSB/(N·R).

    Args:
        phi: (N, R) outcomes, N ≥ 2; with R = 1 the parts cannot be told apart and are NaN.

    Raises:
        ValueError: wrong shape, fewer than two items, missing values.
        TypeError: outcomes that are not numbers.
    """
    outcome = check_matrix(phi, "phi")
    items, repeats = outcome.shape
    if items < 2:
        raise ValueError(f"variance components need at least 2 items, got {items}")
    means = outcome.mean(axis=1)
    between = float(repeats * np.var(means, ddof=1))
    se = math.sqrt(between / (items * repeats))
    mean = float(means.mean())
    if repeats == 1:
        return VarianceComponents(items, repeats, mean, math.nan, math.nan, math.nan, se)
    within = float(np.sum((outcome - means[:, None]) ** 2) / (items * (repeats - 1)))
    item = (between - within) / repeats
    total = item + within
    share = min(max(item / total, 0.0), 1.0) if total > 0.0 else math.nan
    return VarianceComponents(items, repeats, mean, item, within, share, se)
