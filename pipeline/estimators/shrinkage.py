"""Empirical-Bayes shrinkage of a discrete profile's small groups, beside the unshrunk interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import t_quantile
from pipeline.estimators.results import Profile

_GRID = 400  # values of the between-group sd


def shrink_profile(profile: Profile) -> Profile:
    """θ_g ~ N(μ, τ²), θ̂_g | θ_g ~ N(θ_g, V_g): groups with noisy estimates move towards the common mean.

    Given τ, the mean of θ_g is μ̂ + B_g(θ̂_g − μ̂) with B_g = τ²/(τ² + V_g) and its variance B_g V_g + (1 − B_g)²·Var(μ̂).
    Both are averaged over the posterior of τ under a flat prior, the spread between τ's added to the variance: a single
    estimated τ is 0 too often, and its intervals too short. Such an interval is right on average over groups, not for
    each group: report it beside the unshrunk one, which ``diagnostics`` keep as ``unshrunk_value``, ``unshrunk_low``
    and ``unshrunk_high``.

    Args:
        profile: a profile over disjoint groups (Categorical), whose estimates are independent; at least 4 groups
            with an estimate and a positive variance.

    Returns:
        Profile with ``method`` ending in "+shrunk"; groups without an estimate stay NaN, groups known exactly stay.

    Raises:
        ValueError: a profile with overlapping neighbourhoods, or too few groups.

    References:
        Gelman et al., "Bayesian Data Analysis", third edition (2013), section 5.4.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> z = np.repeat(list('abcde'), 20)
        >>> y = (rng.uniform(size=100) < np.repeat([0.2, 0.4, 0.5, 0.6, 0.8], 20)).astype(float)
        >>> profile = lace_profile(z, y, rng.normal(size=100), target='population')
        >>> bool(shrink_profile(profile).value.std() < profile.value.std())
        True
    """
    kinds = profile.localities
    if any(kind != "categorical" for kind in kinds):
        raise ValueError(f"shrinkage needs disjoint groups (Categorical), got a profile with locality {list(kinds)}")
    finite = np.isfinite(profile.value) & np.isfinite(profile.variance)
    noisy = finite & (profile.variance > 0.0)
    if noisy.sum() < 4:
        raise ValueError(f"shrinkage needs at least 4 groups with an estimate and a variance, got {int(noisy.sum())}")
    moved, spread, mean, between = _posterior(profile.value[noisy], profile.variance[noisy])
    value, variance = profile.value.copy(), profile.variance.copy()
    value[noisy], variance[noisy] = moved, spread
    se = np.sqrt(variance)
    half = t_quantile(np.where(finite, profile.df, 2.0), profile.level) * se
    low, high = value - half, value + half
    if profile.binary:
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    diagnostics = {
        **profile.diagnostics,
        "shrunk_towards": mean,
        "between_sd": between,
        "unshrunk_value": profile.value,
        "unshrunk_low": profile.low,
        "unshrunk_high": profile.high,
    }
    return replace(
        profile, value=value, se=se, variance=variance, low=low, high=high, method=f"{profile.method}+shrunk",
        diagnostics=diagnostics,
    )  # fmt: skip


def _posterior(value: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray, float, float]:
    """Mean and variance of θ_g (both (G,)), the mean of μ and the root of the mean of τ², over the posterior of τ."""
    tau = np.linspace(0.0, 5.0 * float(value.std()) + float(np.sqrt(variance.min())), _GRID)[:, None]
    total = tau**2 + variance
    precision = (1.0 / total).sum(axis=1)
    centre = (value / total).sum(axis=1) / precision
    distance = ((value - centre[:, None]) ** 2 / total).sum(axis=1)
    log_density = -0.5 * (np.log(total).sum(axis=1) + np.log(precision) + distance)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    keep = tau**2 / total
    means = centre[:, None] + keep * (value - centre[:, None])
    within = keep * variance + (1.0 - keep) ** 2 / precision[:, None]
    moved = weight @ means
    spread = weight @ (within + (means - moved) ** 2)
    return moved, spread, float(weight @ centre), float(np.sqrt(weight @ tau[:, 0] ** 2))
