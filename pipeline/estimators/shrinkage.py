"""Empirical-Bayes shrinkage of a discrete profile's small groups, beside the unshrunk interval."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.intervals import t_quantile
from pipeline.estimators.results import Profile

__all__ = ["shrink_profile"]

FloatArray: TypeAlias = NDArray[np.float64]


def shrink_profile(profile: Profile) -> Profile:
    """θ̃_g = μ̂ + B_g(θ̂_g − μ̂), B_g = τ̂²/(τ̂² + V_g): groups with noisy estimates move towards the common mean.

    τ̂² solves Σ(θ̂ − μ̂)²/(τ² + V) = G − 1 (Paule and Mandel) with μ̂ the precision-weighted mean. The variance is
    Morris's: B V + (1 − B)²·Var(μ̂) + 2(1 − B)²(θ̂ − μ̂)²/(G − 3)₊, the last term for not knowing τ. Such an interval
    is right on average over groups, not for each group: report it beside the unshrunk one, which ``diagnostics``
    keep as ``unshrunk_value``, ``unshrunk_low`` and ``unshrunk_high``.

    Args:
        profile: a profile over disjoint groups (Categorical), whose estimates are independent; at least 4 groups
            with an estimate and a positive variance.

    Returns:
        Profile with ``method`` ending in "+shrunk"; groups without an estimate stay NaN.

    Raises:
        ValueError: a profile with overlapping neighbourhoods, or too few groups.
    """
    kinds = profile.diagnostics.get("locality")
    if kinds is not None and any(kind != "categorical" for kind in kinds):
        raise ValueError(f"shrinkage needs disjoint groups (Categorical), got a profile with locality {list(kinds)}")
    known = np.isfinite(profile.value) & np.isfinite(profile.variance)
    noisy = known & (profile.variance > 0.0)
    if noisy.sum() < 4:
        raise ValueError(f"shrinkage needs at least 4 groups with an estimate and a variance, got {int(noisy.sum())}")
    value, variance = profile.value, profile.variance
    between = _between_variance(value[noisy], variance[noisy])
    weight = 1.0 / (between + variance[noisy])
    mean = float(weight @ value[noisy] / weight.sum())
    keep = np.where(known, between / np.where(between + variance > 0.0, between + variance, 1.0), np.nan)
    keep = np.where(known & (variance == 0.0), 1.0, keep)
    gone = 1.0 - keep
    groups = int(noisy.sum())
    unsure = 2.0 * gone**2 * (value - mean) ** 2 / max(groups - 3, 1)
    shrunk = mean + keep * (value - mean)
    spread = keep * variance + gone**2 / weight.sum() + unsure
    se = np.sqrt(spread)
    half = t_quantile(np.where(known, profile.df, 2.0), profile.level) * se
    low, high = shrunk - half, shrunk + half
    if profile.diagnostics.get("binary"):
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    facts = {
        **profile.diagnostics,
        "shrunk_towards": mean,
        "between_sd": float(np.sqrt(between)),
        "kept": keep,
        "unshrunk_value": profile.value,
        "unshrunk_low": profile.low,
        "unshrunk_high": profile.high,
    }
    return replace(
        profile, value=shrunk, se=se, variance=spread, low=low, high=high, method=f"{profile.method}+shrunk",
        diagnostics=facts,
    )  # fmt: skip


def _between_variance(value: FloatArray, variance: FloatArray) -> float:
    """τ² ≥ 0 with Σ(θ − μ)²/(τ² + V) = G − 1, by bisection; 0 where the spread is no more than noise."""

    def excess(between: float) -> float:
        weight = 1.0 / (between + variance)
        mean = weight @ value / weight.sum()
        return float(weight @ (value - mean) ** 2) - (len(value) - 1)

    if excess(0.0) <= 0.0:
        return 0.0
    low, high = 0.0, float(value.var()) * 4.0 + float(variance.max())
    while excess(high) > 0.0:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return 0.5 * (low + high)
