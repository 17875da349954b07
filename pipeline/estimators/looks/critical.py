"""Critical values of looks at one statistic, and what plain intervals are worth at several looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from pipeline.estimators.looks.spending import look_information, spent
from pipeline.estimators.looks.walk import increasing, inside_until, solve, starting_at


def next_critical(information: ArrayLike, critical: Sequence[float], increment: float) -> float:
    """Critical value of the look at the last information, those of the looks before given.

    Args:
        information: (k,) of all looks so far, this one last.
        critical: (k − 1) values that were used; ∞ where nothing could be decided.
        increment: error that this look may spend.

    Returns:
        c > 0; ∞ where the increment is below what 8 standard errors leave.
    """
    rising = increasing(information)
    if len(critical) != len(rising) - 1:
        raise ValueError(f"{len(rising)} looks need the critical values of {len(rising) - 1}, got {len(critical)}")
    return solve(inside_until(rising, critical), rising[-1], increment)


def _increments(times: ArrayLike, alpha: float, spending: str) -> list[float]:
    rising = np.maximum.accumulate(np.atleast_1d(np.asarray(times, dtype=np.float64))).tolist()
    total = [0.0] + [spent(t, alpha, spending) for t in rising]
    return [later - before for before, later in pairwise(total)]


def same_looks(
    times: ArrayLike, information: ArrayLike, alpha: float, spending: str
) -> tuple[list[float], list[float]]:
    increments, rising = _increments(times, alpha, spending), increasing(information)
    if len(increments) != len(rising):
        raise ValueError(f"times and information must have one length, got {len(increments)} and {len(rising)}")
    return increments, rising


def critical_values(
    times: ArrayLike, information: ArrayLike, alpha: float = 0.05, spending: str = "obrien-fleming"
) -> list[float]:
    """Critical values of all looks at one statistic: together they are crossed with chance ``spent``.

    Args:
        times: (K,) times in [0, 1]; one that falls counts as the largest before it.
        information: (K,) positive, in any unit.
        alpha: two-sided error of the plan.
        spending: as in ``spent``.

    Returns:
        K values; ∞ at a look that can decide nothing.

    Raises:
        ValueError: lengths that differ, an unknown spending, information that is not positive.
    """
    increments, rising = same_looks(times, information, alpha, spending)
    paths, values = starting_at(), []
    for k, increment in enumerate(increments):
        values.append(solve(paths, rising[k], increment))
        if k + 1 < len(rising):
            bound = values[-1] * math.sqrt(rising[k])
            paths = paths.step(bound, rising[k], rising[k + 1] - rising[k])
    return values


def level_of_looks(sizes: ArrayLike, items: int, target: Literal["population", "pool"]) -> float:
    """Chance that the plain 95 % intervals of all these looks are right together.

    Args:
        sizes: label counts at the looks.
        items: M.
        target: what the intervals are about; about a pool, a look at all its labels cannot be wrong.
    """
    counts = sorted({float(size) for size in np.atleast_1d(np.asarray(sizes, dtype=np.float64)) if size > 0.0})
    information = [look_information(count, items, target) for count in counts]
    rising = increasing([value for value in information if math.isfinite(value)]) if counts else []
    if not rising:
        return 1.0
    return float(inside_until(rising, [-float(ndtri(0.025))] * len(rising)).mass.sum())
