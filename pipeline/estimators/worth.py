"""What labels are worth: as many labels of the plain mean as have the same standard error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.floats import BoolArray, FloatArray, IntArray
from pipeline.estimators.intervals import t_quantile
from pipeline.estimators.results import Estimate

MIN_RANGE_LABELS = 30
"""Labeled items from which the noise of ``worth`` can be told."""
_MOST_REFITS = 80


def labels_worth(ratio: float, n: float, target: str, pool_size: float | None = None) -> float:
    """Labels of the plain mean with the same standard error, under the same design, clusters and target.

    About a population n·ρ, about a pool 1/((1/n − 1/M)/ρ + 1/M) with ρ = V_plain/V; never more than the pool's items.

    Args:
        ratio: ρ, the variance of the labels' plain mean over that of the estimate.
        n: labeled items.
        target: "population", "deployment" or "pool".
        pool_size: M; None is a pool without end.
    """
    if not (math.isfinite(ratio) and ratio > 0.0):
        return math.nan
    if target != "pool" or pool_size is None:
        worth = n * ratio
    else:
        worth = 1.0 / ((1.0 / n - 1.0 / pool_size) / ratio + 1.0 / pool_size)
    return worth if pool_size is None else min(worth, float(pool_size))


def worth_spread(own: FloatArray, plain: FloatArray, rest: float = 0.0) -> float | None:
    """Half width of the 95 % range of log ρ, ρ = V_plain/V: delete-one jackknife over independent units, t_{units − 1}.

    Without unit i the fits stay as they are, and its squared influence leaves both variances.

    Args:
        own: (C,) squared influence values of the estimate, summed over each item or cluster before squaring.
        plain: (C,) those of the plain mean.
        rest: what both variances have in common besides, s²/M for a population, over Σ plain.

    Returns:
        None where units are fewer than 30 or a variance is 0.
    """
    units = len(own)
    if units < MIN_RANGE_LABELS:
        return None
    left_plain = float(plain.sum()) - plain
    left_own = float(own.sum()) - own + rest * left_plain
    if min(left_plain.min(), left_own.min()) <= 0.0:
        return None
    log_ratio = np.log(left_plain * (1.0 + rest) / left_own)
    se = math.sqrt((units - 1) / units * float(np.sum((log_ratio - log_ratio.mean()) ** 2)))
    return float(t_quantile(units - 1, 0.95)) * se


def jackknife_worth(
    estimate: Estimate,
    units: IntArray,
    keys: NDArray[np.uint64],
    refit: Callable[[BoolArray], Estimate],
) -> Estimate:
    """The estimate with the range of ``worth`` from refits without each independent unit (or group of units).

    Delete-one jackknife of log ρ up to 80 units; beyond, 80 groups of units. Fits that stay as they are when a label
    leaves show half of that noise.

    Args:
        estimate: with ``worth``.
        units: (n,) codes 0..C−1 of what is independent among the labels.
        keys: (n,) numbers that deal units to groups, so that the order of rows plays no part.
        refit: (n,) labels kept → the estimate from them alone.
    """
    count = int(units.max()) + 1
    if estimate.worth is None or min(estimate.n_items, count) < MIN_RANGE_LABELS:
        return replace(estimate, worth_low=None, worth_high=None)
    mixed = np.zeros(count, dtype=np.uint64)
    np.add.at(mixed, units, keys)
    group = np.empty(count, dtype=np.intp)
    groups = min(count, _MOST_REFITS)
    group[np.argsort(mixed, kind="stable")] = np.arange(count) % groups
    fits = [refit(group[units] != left_out) for left_out in range(groups)]
    ratios = np.array([math.log(fit.naive_se / fit.se) if fit.se > 0.0 and fit.naive_se > 0.0 else 0.0 for fit in fits])
    se = 2.0 * math.sqrt((groups - 1) / groups * float(np.sum((ratios - ratios.mean()) ** 2)))
    return with_worth(estimate, float(t_quantile(groups - 1, 0.95)) * se)


def with_worth(estimate: Estimate, spread: float | None = None) -> Estimate:
    """The estimate with ``worth`` from its own ``se`` and ``naive_se``; its range from the spread of log ρ, if given.

    None where the standard error is 0, or n < 2.
    """
    if estimate.n_items < 2 or not (estimate.se > 0.0 and estimate.naive_se > 0.0):
        return replace(estimate, worth=None, worth_low=None, worth_high=None)
    n, target, size = estimate.n_items, estimate.target, estimate.pool_size
    ratio = (estimate.naive_se / estimate.se) ** 2
    value = labels_worth(ratio, n, target, size)
    if spread is None or n < MIN_RANGE_LABELS:
        return replace(estimate, worth=value, worth_low=None, worth_high=None)
    low, high = (labels_worth(ratio * math.exp(side * spread), n, target, size) for side in (-1.0, 1.0))
    return replace(estimate, worth=value, worth_low=low, worth_high=high)
