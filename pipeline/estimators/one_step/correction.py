"""One correction for means and gaps: ψ = φ − λ D under every rule for λ, and the variance it saves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.checks import check_matrix, check_vector
from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.means import mean_and_variance
from pipeline.estimators.one_step import control_variate as cv
from pipeline.estimators.sampling import LabelDraw, labeled_clusters
from pipeline.estimators.validation import check_probabilities

Target: TypeAlias = Literal["pool", "population"]
Power: TypeAlias = float | Literal["tuned", "loo", "cross-fit", "pooled"]
POWER_RULES = ("tuned", "loo", "cross-fit", "pooled")
DEFAULT_SEED = 20260
"""Seed of folds and bootstrap where no generator is given, so that equal inputs give equal bytes."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """Outcomes after the correction ψ_i = φ_i − λ_i'D_i, with the mean's standard error."""

    psi: FloatArray
    value: float
    se: float
    df: float
    power: FloatArray
    power_se: FloatArray


@dataclass(frozen=True, slots=True)
class Design:
    """What the correction needs to know besides outcome and contrasts; ``draw`` where labels have unequal chances."""

    power: Power
    power_from: tuple[tuple[FloatArray, FloatArray], ...]
    clusters: ArrayLike | None
    folds: int
    fpc: float
    rng: np.random.Generator
    draw: LabelDraw | None = None

    def mean(self, values: FloatArray) -> tuple[float, float, float]:
        """Mean of (N,) values as the draw weighs them, its variance about the target, degrees of freedom."""
        if self.draw is None:
            value, variance, df = mean_and_variance(values, self.clusters)
            return value, variance * self.fpc, df
        value, influence = self.draw.plain(values)
        return value, self.draw.variance(influence, finite=self.fpc < 1.0), self.draw.freedom


def labels_draw(
    chances: ArrayLike | None, clusters: ArrayLike | None, n: int, pool_size: int | None
) -> LabelDraw | None:
    """The draw of N labels with unequal chances (N,); None where no chances are given."""
    values = check_probabilities(chances, n)
    if values is None:
        return None
    groups = None if clusters is None else labeled_clusters(clusters, np.ones(n, dtype=np.bool_))
    weights = 1.0 / values
    return LabelDraw(weights / weights.sum(), 1.0 - values, np.ones(n), None, groups, pool_size or n)


def covered(target: str | None, pool_size: int | None) -> Target:
    """What an interval is about: the pool's own mean where a pool is given, unless asked otherwise."""
    if target not in (None, "pool", "population"):
        raise ValueError(f"target must be 'pool' or 'population', got {target!r}")
    if target == "pool" and pool_size is None:
        raise ValueError("target='pool' needs the pool's predictions (pool_tau)")
    return "pool" if pool_size is not None and target != "population" else "population"


def pool_spread(outcome: FloatArray, design: Design, pool_size: int | None, target: Target) -> float:
    """(s²/F)·d: what the variance about a population has from the pool being a sample of it; 0 about the pool."""
    if pool_size is None or target == "pool" or len(outcome) < 2:
        return 0.0
    if design.draw is not None:
        _, influence = design.draw.plain(outcome)
        weights = design.draw.shares
        spread = float(weights @ (outcome - weights @ outcome) ** 2) / max(1.0 - float(weights @ weights), 0.05)
        return spread / pool_size * design.draw.design_effect(influence, weights)
    return mean_and_variance(outcome, design.clusters)[1] * len(outcome) / pool_size


def check_power(power: Power, power_from: object) -> None:
    """ValueError or TypeError unless ``power`` is a finite number or a known rule with what it needs."""
    if isinstance(power, str):
        if power not in POWER_RULES:
            raise ValueError(f"power must be a number or one of {', '.join(POWER_RULES)}, got {power!r}")
        if power == "pooled" and not power_from:
            raise ValueError("power 'pooled' needs power_from: (phi, tau) of at least one other target")
    elif isinstance(power, bool) or not isinstance(power, int | float | np.number):
        raise TypeError(f"power must be a number or one of {', '.join(POWER_RULES)}, got {type(power).__name__}")
    elif not math.isfinite(power):
        raise ValueError(f"power must be finite, got {power}")


def other_targets(
    power_from: Sequence[tuple[ArrayLike, ArrayLike]] | None, pooled_contrast: bool
) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """(outcome, contrast) of every other target, the contrast being of the same kind as the target's own."""
    pairs = []
    for position, (phi, tau) in enumerate(power_from or ()):
        outcome = check_vector(phi, f"power_from[{position}] phi")
        draws = check_matrix(tau, f"power_from[{position}] tau", rows=len(outcome), min_columns=2)
        contrast = cv.pool_contrast(draws, draws) if pooled_contrast else cv.within_item_contrast(draws)
        pairs.append((outcome, contrast))
    return tuple(pairs)


def _groups(n: int, clusters: ArrayLike | None) -> tuple[IntArray, int]:
    """The independent units: clusters, else single items."""
    if clusters is None:
        return np.arange(n, dtype=np.intp), n
    return cluster_index(clusters, n)


def _tuned(outcome: FloatArray, contrasts: FloatArray, design: Design) -> Corrected:
    """λ = OLS slope; SE = s√(1/N + D̄'S_DD⁻¹D̄) with s² = RSS/(N − 1 − rank), or cluster-robust, or with fpc."""
    n, slope = len(outcome), cv.least_squares(outcome, contrasts)
    if n < 2 + contrasts.shape[1] and slope.rank > 0:
        raise ValueError(f"power 'tuned' needs at least {2 + contrasts.shape[1]} items, got {n}; use a number")
    psi = outcome - contrasts @ slope.power
    if design.draw is not None:
        value, variance, df = design.mean(psi)
        return Corrected(psi, value, _root(variance), df, slope.power, slope.power_se)
    df = float(n - 1 - slope.rank)
    if design.clusters is not None:
        scores = slope.residual * slope.weights
        _, variance, df = mean_and_variance(scores * n, design.clusters)
    else:
        leverage = 0.0 if design.fpc < 1.0 else slope.leverage
        variance = slope.rss / df * (1.0 / n + leverage) if df > 0 else math.nan
    se = math.sqrt(variance * design.fpc) if variance >= 0.0 else math.nan
    return Corrected(psi, float(psi.mean()), se, df, slope.power, slope.power_se)


def _powers(outcome: FloatArray, contrasts: FloatArray, design: Design) -> tuple[FloatArray, FloatArray]:
    """λ of every item (N, k) where its own outcome played no part in it, and the standard error of their mean (k,)."""
    n, k = contrasts.shape
    if design.power == "pooled":
        power, power_se = cv.pooled_slope(design.power_from)
        return np.full((n, k), power), np.full(k, power_se)
    if not isinstance(design.power, str):
        return np.full((n, k), float(design.power)), np.zeros(k)
    groups, count = _groups(n, design.clusters)
    if design.power == "cross-fit":
        groups = cv.random_folds(count, design.folds, design.rng)[groups]
        count = design.folds
    slopes = cv.left_out_slopes(outcome, contrasts, groups, count)
    if design.power == "loo":
        slopes = np.clip(slopes, 0.0, 1.0)
    return slopes[groups], cv.least_squares(outcome, contrasts).power_se


def correct(outcome: FloatArray, contrasts: FloatArray, design: Design) -> Corrected:
    """Outcomes (N,) corrected by contrasts (N, k) under the design's rule for λ."""
    if design.power == "tuned":
        return _tuned(outcome, contrasts, design)
    powers, power_se = _powers(outcome, contrasts, design)
    psi = outcome - np.sum(powers * contrasts, axis=1)
    value, variance, df = design.mean(psi)
    return Corrected(psi, value, _root(variance), df, powers.mean(axis=0), power_se)


def _root(variance: float) -> float:
    return math.sqrt(variance) if variance >= 0.0 else math.nan


def contrast_of(tau: FloatArray, pool_tau: ArrayLike | None, name: str) -> tuple[FloatArray, int | None]:
    """The contrast to subtract and the pool's size (None without a pool)."""
    if pool_tau is None:
        return cv.within_item_contrast(tau), None
    pool = check_matrix(pool_tau, name, min_columns=1)
    if len(pool) < len(tau):
        raise ValueError(f"{name} must hold the {len(tau)} labeled items and the others, got {len(pool)} rows")
    return cv.pool_contrast(tau, pool), len(pool)


def variance_reduction(
    fit: Corrected, naive_se: float, outcome: FloatArray, design: Design, level: float
) -> dict[str, float]:
    """1 − SE²/SE²_naive with a bootstrap interval over items; 0 without any correction, NaN where undefined."""
    names = ("variance_reduction", "variance_reduction_low", "variance_reduction_high")
    if np.array_equal(fit.psi, outcome):
        return dict.fromkeys(names, 0.0)
    if not (naive_se > 0.0 and math.isfinite(fit.se)):
        return dict.fromkeys(names, math.nan)
    ratio = (fit.se / naive_se) ** 2
    groups, count = _groups(len(outcome), design.clusters)
    psi, phi = fit.psi, outcome
    if design.draw is not None:
        psi, phi = (design.draw.plain(values)[1] * len(outcome) for values in (psi, phi))
    low, high = cv.bootstrap_variance_ratio(psi, phi, groups, count, level, design.rng)
    return dict(zip(names, (1.0 - ratio, 1.0 - ratio * high, 1.0 - ratio * low), strict=True))
