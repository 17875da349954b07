"""Formulas of the one-step estimator: contrasts, the power λ in all its forms, the test of λ = 0, the bootstrap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from pipeline.estimators.floats import FloatArray, IntArray

IndexArray = IntArray
_ROUNDING = 1e-12
BOOTSTRAP_DRAWS = 500


def _without_rounding(contrast: FloatArray, scale: float) -> FloatArray:
    """The contrast, exactly 0 where it is no more than the rounding error of values of that scale."""
    return np.zeros_like(contrast) if np.abs(contrast).max() <= _ROUNDING * scale else contrast


def within_item_contrast(tau: FloatArray) -> FloatArray:
    """D_i = τ_i0 − (1/M) Σ_{j≥1} τ_ij, (N,) from (N, M + 1); exactly 0 for a constant τ."""
    contrast = -np.mean(tau[:, 1:] - tau[:, :1], axis=1)
    return _without_rounding(contrast, float(np.abs(tau).max()))


def pool_contrast(tau: FloatArray, pool_tau: FloatArray) -> FloatArray:
    """D_i = τ̄_i − (1/F) Σ_f τ̄_f, (N,), where τ̄ is the mean over an item's draws."""
    origin = pool_tau[0, 0]
    contrast = np.mean(tau - origin, axis=1) - np.mean(pool_tau - origin)
    return _without_rounding(contrast, float(np.abs(pool_tau).max()))


def _scale_of(contrasts: FloatArray) -> FloatArray:
    """Root sum of squares about the mean, (k,); infinite for a constant column, so that its slope becomes 0."""
    centred = contrasts - contrasts.mean(axis=0)
    norm = np.sqrt(np.sum(centred**2, axis=0))
    constant = norm <= _ROUNDING * math.sqrt(len(contrasts)) * np.abs(contrasts).max(axis=0)
    return np.where(constant, np.inf, norm)


def _pseudo_inverse(moments: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Inverse of symmetric matrices (…, k, k) on the space of their eigenvalues above 1e-10, and its rank."""
    values, vectors = np.linalg.eigh(moments)
    kept = values > 1e-10
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    return (vectors * inverse[..., None, :]) @ np.swapaxes(vectors, -1, -2), kept.sum(axis=-1)


@dataclass(frozen=True, slots=True)
class Slope:
    """Ordinary least squares of an outcome on contrasts, with intercept.

    Attributes:
        power: (k,) slopes λ; 0 for a contrast that does not vary.
        power_se: (k,) their standard errors, s·√diag(C⁻¹), C the centred cross-products.
        rank: number of contrasts that vary independently.
        rss: residual sum of squares.
        leverage: D̄' C⁻¹ D̄.
        residual: (N,) residuals.
        weights: (N,) linear weights of the fitted value at contrast 0: its value is Σ weights·outcome.
    """

    power: FloatArray
    power_se: FloatArray
    rank: int
    rss: float
    leverage: float
    residual: FloatArray
    weights: FloatArray


def least_squares(outcome: FloatArray, contrasts: FloatArray) -> Slope:
    """OLS of outcome (N,) on contrasts (N, k) and an intercept; λ = S_Dφ/S_DD for k = 1."""
    n = len(outcome)
    scale = _scale_of(contrasts)
    mean = contrasts.mean(axis=0)
    centred = (contrasts - mean) / scale
    inverse, rank = _pseudo_inverse(centred.T @ centred)
    centred_outcome = outcome - outcome.mean()
    slope = inverse @ (centred.T @ centred_outcome)
    residual = centred_outcome - centred @ slope
    rss = float(residual @ residual)
    df = n - 1 - int(rank)
    variance = rss / df if df > 0 else math.nan
    spread = np.sqrt(np.maximum(np.diag(inverse), 0.0))
    power_se = np.where(spread > 0.0, math.sqrt(variance) if variance >= 0.0 else math.nan, math.nan) * spread / scale
    start = mean / scale
    return Slope(
        power=slope / scale,
        power_se=np.asarray(power_se),
        rank=int(rank),
        rss=rss,
        leverage=float(start @ inverse @ start),
        residual=residual,
        weights=1.0 / n - centred @ (inverse @ start),
    )


def left_out_slopes(outcome: FloatArray, contrasts: FloatArray, groups: IndexArray, count: int) -> FloatArray:
    """λ of every group from the items outside it: (count, k); 0 where nothing varies there.

    Args:
        outcome: (N,).
        contrasts: (N, k).
        groups: (N,) group of each item in 0..count−1: itself, its cluster or its fold.
        count: number of groups.
    """
    scale = _scale_of(contrasts)
    x = (contrasts - contrasts.mean(axis=0)) / scale
    y = outcome - outcome.mean()
    columns = [np.ones_like(y), y, *x.T, *(x * y[:, None]).T, *(x[:, :, None] * x[:, None, :]).reshape(len(x), -1).T]
    sums = np.stack([np.bincount(groups, weights=column, minlength=count) for column in columns], axis=1)
    rest = sums.sum(axis=0) - sums
    k = x.shape[1]
    size = np.maximum(rest[:, 0], 1.0)
    mean_y, mean_x = rest[:, 1] / size, rest[:, 2 : 2 + k] / size[:, None]
    cross = rest[:, 2 + k : 2 + 2 * k] - (size * mean_y)[:, None] * mean_x
    square = rest[:, 2 + 2 * k :].reshape(count, k, k) - size[:, None, None] * mean_x[:, :, None] * mean_x[:, None, :]
    inverse, _ = _pseudo_inverse(square)
    return np.asarray((inverse @ cross[:, :, None])[:, :, 0] / scale)


def random_folds(n: int, folds: int, rng: np.random.Generator) -> IndexArray:
    """(n,) fold of each item: fold k is ``np.array_split(rng.permutation(n), folds)[k]``.

    Raises:
        ValueError: fewer than 2 folds.
    """
    if folds < 2:
        raise ValueError(f"folds must be at least 2, got {folds}")
    fold_of = np.empty(n, dtype=np.intp)
    for fold, members in enumerate(np.array_split(rng.permutation(n), folds)):
        fold_of[members] = fold
    return fold_of


def pooled_slope(pairs: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[float, float]:
    """One λ for several targets, Σ_t S_Dφ,t / Σ_t S_DD,t, and its standard error.

    Args:
        pairs: (outcome (N_t,), contrast (N_t,)) of each target; centred within the target.

    Returns:
        (λ, SE); (0, NaN) if no contrast varies. The SE is robust to unequal variances.
    """
    cross = square = score = 0.0
    centred = [(outcome - outcome.mean(), contrast - contrast.mean()) for outcome, contrast in pairs]
    for (_, contrast), (y, x) in zip(pairs, centred, strict=True):
        if np.abs(x).max() > _ROUNDING * np.abs(contrast).max():
            cross, square = cross + float(x @ y), square + float(x @ x)
    if square == 0.0:
        return 0.0, math.nan
    power = cross / square
    score = sum(float(np.sum((x * (y - power * x)) ** 2)) for y, x in centred)
    return power, math.sqrt(score) / square


def within_item_test(outcome: FloatArray, tau: FloatArray) -> float:
    """p-value of "draw 0 says no more about φ_i than draws 1..M do", that is λ = 0, two-sided.

    Under it an item's draws are exchangeable given its outcome, so T = Σ (φ_i − φ̄) D_i has mean 0 and variance
    Σ (φ_i − φ̄)² v_i over relabelings of the draws, v_i the mean square of D_i over which draw is called 0; T/√Var
    against the normal. No equal-variance assumption is needed. NaN where outcome or draws do not vary.
    """
    draws = tau.shape[1]
    spread = tau - tau[:, :1]
    contrast = (spread - spread.mean(axis=1, keepdims=True)) * (draws / (draws - 1))
    centred = outcome - outcome.mean()
    variance = float(np.sum(centred**2 * np.mean(contrast**2, axis=1)))
    floor = (_ROUNDING * float(np.abs(tau).max())) ** 2 * float(np.sum(centred**2))
    if variance <= floor:
        return math.nan
    z = float(centred @ contrast[:, 0]) / math.sqrt(variance)
    return float(2.0 * ndtr(-abs(z)))


def bootstrap_variance_ratio(
    corrected: FloatArray, outcome: FloatArray, groups: IndexArray, count: int, level: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Percentile interval of Var(ψ)/Var(φ) relative to its value in the sample, resampling groups of items.

    λ is held at its fitted values. Both ends are NaN when the outcome does not vary or half of the resamples have
    no variance.
    """
    matrix: list[Any] = []
    for values in (corrected, outcome):
        centred = values - values.mean()
        sums = np.bincount(groups, weights=centred, minlength=count)
        matrix.append(sums)
    sizes = np.bincount(groups, minlength=count).astype(np.float64)
    index = rng.integers(0, count, size=(BOOTSTRAP_DRAWS, count))
    index += np.arange(BOOTSTRAP_DRAWS)[:, None] * count
    weights = np.bincount(index.ravel(), minlength=BOOTSTRAP_DRAWS * count).reshape(BOOTSTRAP_DRAWS, count)
    weights = weights.astype(np.float64)
    total = weights @ sizes
    spread_size = weights @ sizes**2

    def variance(sums: FloatArray) -> FloatArray:
        mean = (weights @ sums) / total
        return np.asarray(weights @ sums**2 - 2.0 * mean * (weights @ (sums * sizes)) + mean**2 * spread_size)

    whole = float(np.sum(matrix[0] ** 2)), float(np.sum(matrix[1] ** 2))
    bottom = variance(matrix[1])
    usable = bottom > 1e-12 * whole[1]
    if whole[0] <= 0.0 or whole[1] <= 0.0 or usable.sum() < BOOTSTRAP_DRAWS / 2:
        return math.nan, math.nan
    ratio = variance(matrix[0])[usable] / bottom[usable] * (whole[1] / whole[0])
    low, high = np.quantile(ratio, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(max(low, 0.0)), float(high)
