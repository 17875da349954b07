"""Means over prompts and paired differences: uncertainty over whole prompts, never over folds or calls."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.floats import as_floats
from pipeline.estimators.intervals import check_level, normal_quantile, t_quantile
from pipeline.estimators.results import Estimate

__all__ = ["paired_difference", "population_mean"]

FloatArray = NDArray[np.float64]


def population_mean(
    values: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    interval: Literal["z", "t"] = "z",
) -> Estimate:
    """H̄ ± z·s_H/√T over T independent prompts, s_H² = Σ(H_p − H̄)²/(T − 1).

    Args:
        values: (P,) one finite estimate per pool.
        clusters: (P,) the prompt of each pool; pools of one prompt are averaged first, so that the prompts
            are the units. None: every pool is its own prompt.
        weights: (P,) prespecified nonnegative weights. With clusters they average the pools of one prompt
            (normalised to one within it) and prompts count equally; without, they weigh the prompts, with the
            linearised standard error.
        level: nominal coverage of the interval.
        interval: "z" normal quantile, "t" Student's with T − 1 degrees of freedom (few prompts).

    Returns:
        Estimate whose ``n`` is the number of prompts T.

    Raises:
        ValueError: wrong shapes, non-finite values, negative weights, fewer than two prompts of positive weight.
    """
    return _mean(_values(values, "values"), clusters, weights, level, interval, "population_mean")


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    interval: Literal["z", "t"] = "z",
) -> Estimate:
    """Mean of a − b over prompts that both policies share, from per-prompt differences.

    Args:
        a, b: (P,) estimates of the two policies on the same pools or prompts, in the same order.
        clusters, weights, level, interval: as in ``population_mean``.
    """
    first, second = _values(a, "a"), _values(b, "b")
    if first.shape != second.shape:
        raise ValueError(f"a and b must have the same shape, got {first.shape} and {second.shape}")
    return _mean(first - second, clusters, weights, level, interval, "paired_difference")


def _mean(
    values: FloatArray, clusters: ArrayLike | None, weights: ArrayLike | None, level: float, interval: str, method: str
) -> Estimate:
    level = check_level(level)
    if interval not in ("z", "t"):
        raise ValueError(f'interval must be "z" or "t", got {interval!r}')
    share = _weights(weights, len(values))
    units, share = _units(values, clusters, share)
    units, share = units[share > 0.0], share[share > 0.0]  # a prompt without weight is not a unit
    count = len(units)
    if count < 2:
        raise ValueError("at least 2 prompts with a positive weight are needed: one gives no standard error")
    share = share / share.sum()
    deviations = units - units[0]
    centre = float(units[0] + share @ deviations)
    deviations = deviations - share @ deviations
    se = float(np.sqrt(count / (count - 1) * np.sum((share * deviations) ** 2)))
    quantile = normal_quantile(level) if interval == "z" else float(t_quantile(count - 1, level))
    diagnostics: dict[str, Any] = {
        "prompts": count,
        "pools": len(values),
        "sd": float(np.sqrt(np.sum(share * deviations**2) * count / (count - 1))),
        "interval": interval,
        "df": count - 1,
    }
    return Estimate(centre, se, centre - quantile * se, centre + quantile * se, level, count, method, diagnostics)


def _units(values: FloatArray, clusters: ArrayLike | None, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One value and one weight per prompt."""
    if clusters is None:
        return values, share
    index, count = cluster_index(clusters, len(values))
    totals = np.bincount(index, weights=share, minlength=count)
    if (totals <= 0.0).any():
        raise ValueError("the weights of every prompt's pools must have a positive sum")
    return np.bincount(index, weights=share * values, minlength=count) / totals, np.ones(count)


def _weights(weights: ArrayLike | None, count: int) -> FloatArray:
    if weights is None:
        return np.ones(count)
    share = as_floats(weights, "weights")
    if share.shape != (count,):
        raise ValueError(f"weights must have shape ({count},), got {share.shape}")
    if not np.isfinite(share).all() or (share < 0.0).any() or share.sum() <= 0.0:
        raise ValueError("weights must be finite and nonnegative with a positive sum")
    return share


def _values(values: ArrayLike, name: str) -> FloatArray:
    array = as_floats(values, name)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must have shape (P,) with P ≥ 1, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite (no NaN or infinity)")
    return array
