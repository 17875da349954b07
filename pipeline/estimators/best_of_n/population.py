"""Means over prompts and paired differences: uncertainty over whole prompts, never over folds or calls."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.floats import FloatArray, as_floats
from pipeline.estimators.intervals import check_level, normal_quantile, t_quantile, wilson_interval
from pipeline.estimators.results import Estimate

_ROUNDING = 1e-12


def population_mean(
    values: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    interval: Literal["t", "z", "wilson"] = "t",
) -> Estimate:
    """H̄ ± t·s_H/√T over T independent prompts, s_H² = Σ(H_p − H̄)²/(T − 1).

    Args:
        values: (P,) one finite estimate per pool.
        clusters: (P,) the prompt of each pool; pools of one prompt are averaged first, so that the prompts
            are the units. None: every pool is its own prompt.
        weights: (P,) prespecified nonnegative weights. With clusters they average the pools of one prompt
            (normalised to one within it) and prompts count equally; without, they weigh the prompts, with the
            linearised standard error.
        level: nominal coverage of the interval.
        interval: "t" Student's with T − 1 degrees of freedom; "z" the normal quantile; "wilson", for values in [0, 1]
            (0/1 scores), Wilson's form about the mean with n_eff = H̄(1 − H̄)/SE² prompts, T where all agree: it has a
            width and stays inside [0, 1].

    Returns:
        Estimate whose ``n`` is the number of prompts T.

    Raises:
        ValueError: wrong shapes, non-finite values, negative weights, fewer than two prompts of positive weight,
            "wilson" for values outside [0, 1].

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 5.2.
        Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927), JASA 22.

    Example:
        >>> population_mean([0.5, 0.75, 1.0]).value
        0.75
    """
    return _mean(_values(values, "values"), clusters, weights, level, interval, "population_mean")


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    interval: Literal["t", "z"] = "t",
) -> Estimate:
    """Mean of a − b over prompts that both policies share, from per-prompt differences.

    Where the differences of shares in [0, 1] are all equal the interval is Agresti and Min's with half a count in each
    cell, t/(T + 2) on either side: no difference seen proves no equality.

    Args:
        a, b: (P,) estimates of the two policies on the same pools or prompts, in the same order.
        clusters, weights, level, interval: as in ``population_mean``.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 5.2.
        Agresti and Min, "Simple Improved Confidence Intervals for Comparing Matched Proportions" (2005), Statistics
            in Medicine 24.

    Example:
        >>> paired_difference([0.5, 0.75, 1.0], [0.25, 0.5, 0.5]).value.__round__(3)
        0.333
    """
    first, second = _values(a, "a"), _values(b, "b")
    if first.shape != second.shape:
        raise ValueError(f"a and b must have the same shape, got {first.shape} and {second.shape}")
    estimate = _mean(first - second, clusters, weights, level, interval, "paired_difference")
    shares = min(first.min(), second.min()) >= -_ROUNDING and max(first.max(), second.max()) <= 1.0 + _ROUNDING
    if estimate.se > _ROUNDING or not shares:
        return estimate
    half = float(t_quantile(estimate.n - 1, estimate.level)) / (estimate.n + 2.0)
    ends = max(estimate.value - half, -1.0), min(estimate.value + half, 1.0)
    return replace(estimate, low=ends[0], high=ends[1], interval="agresti-min")


def _mean(
    values: FloatArray, clusters: ArrayLike | None, weights: ArrayLike | None, level: float, interval: str, method: str
) -> Estimate:
    level = check_level(level)
    choices = ("t", "z", "wilson") if method == "population_mean" else ("t", "z")
    if interval not in choices:
        raise ValueError(f"interval must be one of {', '.join(choices)}, got {interval!r}")
    if interval == "wilson" and (values.min() < -_ROUNDING or values.max() > 1.0 + _ROUNDING):
        raise ValueError("interval 'wilson' needs values in [0, 1]; use interval='t'")
    centre, se, sd, count = unit_moments(values, clusters, weights)
    if interval == "wilson":
        low, high = share_interval(centre, se, count, level)
    else:
        quantile = normal_quantile(level) if interval == "z" else float(t_quantile(count - 1, level))
        low, high = centre - quantile * se, centre + quantile * se
    diagnostics: dict[str, Any] = {
        "prompts": count,
        "pools": len(values),
        "sd": sd,
        "interval": interval,
        "df": count - 1,
    }
    return Estimate(
        centre, se, low, high, level, count, method, diagnostics, df=math.inf if interval == "z" else count - 1.0,
        interval=interval, outcome_variance=sd**2, naive_value=centre, naive_se=se,
    )  # fmt: skip


def share_interval(mean: float, se: float, units: int, level: float) -> tuple[float, float]:
    """Wilson's interval of a mean of values in [0, 1], t quantile, n_eff = p(1 − p)/SE²; ``units`` where all agree."""
    share = min(max(mean, 0.0), 1.0)
    spread = share * (1.0 - share)
    agree = se <= _ROUNDING or spread <= _ROUNDING
    low, high = wilson_interval(share, float(units) if agree else spread / se**2, float(t_quantile(units - 1, level)))
    return float(low), float(high)


def unit_moments(
    values: FloatArray, clusters: ArrayLike | None, weights: ArrayLike | None = None
) -> tuple[float, float, float, int]:
    """Mean of finite (P,) values over prompts, its standard error, the standard deviation, the number of prompts."""
    units, share = _units(values, clusters, None if weights is None else _weights(weights, len(values)))
    count = len(units)
    if count < 2:
        raise ValueError("at least 2 prompts with a positive weight are needed: one gives no standard error")
    deviations = units - units[0]
    if share is None:
        centre, se, sd = _equal_moments(deviations)
    else:
        centre, se, sd = _weighted_moments(deviations, share / share.sum())
    return centre + float(units[0]), se, sd, count


def _equal_moments(deviations: FloatArray) -> tuple[float, float, float]:
    """Mean, its standard error and the standard deviation of units that count equally."""
    count = len(deviations)
    centre = float(deviations.sum()) / count
    deviations = deviations - centre
    variance = float(deviations @ deviations) / (count - 1)
    return centre, math.sqrt(variance / count), math.sqrt(variance)


def _weighted_moments(deviations: FloatArray, share: FloatArray) -> tuple[float, float, float]:
    """The same under weights that sum to one; the standard error is the linearised one."""
    ratio = len(share) / (len(share) - 1)
    centre = float(share @ deviations)
    deviations = deviations - centre
    se = float(np.sqrt(ratio * np.sum((share * deviations) ** 2)))
    return centre, se, float(np.sqrt(ratio * np.sum(share * deviations**2)))


def _units(
    values: FloatArray, clusters: ArrayLike | None, share: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """One value per prompt, and its weight or None where prompts count equally."""
    if clusters is None:
        if share is None:
            return values, None
        weighed = share > 0.0  # a prompt without weight is not a unit
        return values[weighed], share[weighed]
    index, count = cluster_index(clusters, len(values))
    share = np.ones(len(values)) if share is None else share
    totals = np.bincount(index, weights=share, minlength=count)
    if (totals <= 0.0).any():
        raise ValueError("the weights of every prompt's pools must have a positive sum")
    return np.bincount(index, weights=share * values, minlength=count) / totals, None


def _weights(weights: ArrayLike, count: int) -> FloatArray:
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
