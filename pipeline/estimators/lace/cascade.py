"""Profiles from three layers: cheap signals everywhere, an expensive rater on some items, gold labels on fewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import BoolArray, FloatArray, as_floats
from pipeline.estimators.intervals import check_level
from pipeline.estimators.lace.core import LabeledSample, LocalFit, fit_points, label_weights, point_blocks
from pipeline.estimators.lace.fixed import DEFAULT_RIDGE, check_options, check_ridge_number, pose_problem
from pipeline.estimators.lace.interval import (
    FittedProfile,
    Interval,
    PointSummary,
    Target,
    join_summaries,
    summarise,
    verdicts,
)
from pipeline.estimators.lace.localities import Locality, ProfileAxis
from pipeline.estimators.lace.pool import PoolMoments, pool_moments
from pipeline.estimators.results import Profile
from pipeline.estimators.signals import scale_of
from pipeline.estimators.validation import is_binary, warn_if_unscaled


def lace_cascade(
    z: ArrayLike,
    y: ArrayLike,
    expensive: ArrayLike,
    signals: ArrayLike,
    *,
    at: ArrayLike | None = None,
    labeled: ArrayLike | None = None,
    locality: Locality | Sequence[Locality] | None = None,
    ridge: float = DEFAULT_RIDGE,
    standardize: bool = False,
    target: Target = "pool",
    interval: Interval = "auto",
    level: float = 0.95,
) -> Profile:
    """θ̂(z) = Ȳ_L − β̂₁'(H̄_L − H̄_A) − β̂₀'(S̄_A − S̄_T), H = (E, S): appendix F of the paper.

    β̂₁ is the local ridge coefficient of Y on H with Σ_HH over the rated items A, β̂₀ that of Y on S with Σ_SS over
    the pool T; L ⊂ A ⊂ T, each a random part of the next.

    Interval: V = V₁ + V₂. V₁ is LACE's variance with residuals of stage 1 and the factor 1 − n/|A|: how L stands for
    A. V₂ = (1 − |A|/M) Σ_A w_A² · s₀², with s₀² = Σ_L w² r₀²/(1 − H₀)/Σ_L w² from the residuals of stage 0: how A
    stands for T. Degrees of freedom are combined as Satterthwaite's; small samples fall back on Wilson as elsewhere.

    Args:
        z: (M,) or (M, q) profile values.
        y: (M,) outcomes, NaN where not labeled; never read outside ``labeled``.
        expensive: (M, E) or (M,) ratings, NaN where not rated; a row counts as rated when all its values are finite.
        signals: (M, K) finite numbers on the whole pool.
        at, labeled, locality, target, interval, level: as in ``lace_profile``.
        ridge: λ ≥ 0 of both stages.
        standardize: divide the signals by their pool sd and the ratings by their sd over A first.

    Returns:
        Profile; ``beta`` is β̂₁ (G, E + K), ``diagnostics["beta0"]`` is β̂₀, ``gain`` the estimated variance ratio
        against the plain local mean.

    Raises:
        ValueError: shapes that do not fit, nothing rated, a labeled item that is not rated.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            appendix F.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> z, rated = rng.choice(['easy', 'hard'], 200), np.arange(200) < 120
        >>> y = np.where(np.arange(200) < 60, signals[:, 0] + rng.normal(size=200), np.nan)
        >>> rating = np.where(rated, signals[:, 0] + 0.1 * rng.normal(size=200), np.nan)
        >>> lace_cascade(z, y, rating, signals).value.round(2)
        array([ 0.2 , -0.06])
    """
    check_options(target, interval, None, ridge)
    check_level(level)
    penalty = check_ridge_number(ridge)
    problem = pose_problem(z, y, signals, labeled, at, locality, None)
    ratings, rated = _check_ratings(expensive, problem.labeled)
    cheap = problem.signals
    both = np.concatenate([ratings, cheap], axis=1)
    centre0, scale0 = scale_of(cheap)
    centre1, scale1 = scale_of(both[rated])
    if standardize:
        scale1 = np.concatenate([scale1[: ratings.shape[1]], scale0])
    else:
        warn_if_unscaled(np.concatenate([both[rated].std(axis=0)[: ratings.shape[1]], cheap.std(axis=0)]))
        scale0, scale1 = np.ones_like(scale0), np.ones_like(scale1)
    axis = problem.axis
    rated_axis = ProfileAxis(axis.z[rated], axis.points, axis.at, axis.localities, axis.levels)
    scaled = (cheap - centre0) / scale0
    pool, middle = pool_moments(axis, scaled), pool_moments(rated_axis, (both[rated] - centre1) / scale1)
    cheap_on_rated = pool_moments(rated_axis, scaled[rated])
    mask = problem.labeled
    first = LabeledSample(
        axis.z[mask], problem.y[mask], (both[mask] - centre1) / scale1 - middle.centre, None, int(rated.sum())
    )
    zero = LabeledSample(axis.z[mask], problem.y[mask], scaled[mask] - pool.centre, None, len(rated))
    drift = cheap_on_rated.mean + cheap_on_rated.centre - (pool.mean + pool.centre)
    if rated.all():
        drift = np.zeros_like(drift)
    summary, beta0, gain = _two_stages(axis, first, zero, middle, pool, drift, penalty)
    verdict = verdicts(summary.raw_r2, summary.r2, summary.n_effective, both.shape[1])
    diagnostics = {
        "ridge": penalty, "standardized": standardize, "n_rated": int(rated.sum()), "beta0": beta0,
        "locality": axis.names, "label_draw_p": problem.draw_p,
        "variance": "(1 - n/|A|) stage-1 residuals + (1 - |A|/M) stage-0 residuals",
    }  # fmt: skip
    whole = replace(zero, signals=np.empty((len(zero.y), 0)))
    fitted = FittedProfile(
        axis.at, summary, whole, is_binary(zero.y), pool.square, summary.df, verdict, "lace_cascade", diagnostics
    )
    return replace(fitted.profile(target, interval, level), gain=gain)


def _check_ratings(expensive: ArrayLike, labeled: BoolArray) -> tuple[FloatArray, BoolArray]:
    ratings = as_floats(expensive, "expensive")
    ratings = ratings[:, None] if ratings.ndim == 1 else ratings
    if ratings.ndim != 2 or len(ratings) != len(labeled):
        raise ValueError(f"expensive must have shape ({len(labeled)}, E), got {np.shape(expensive)}")
    rated = np.isfinite(ratings).all(axis=1)
    missing = int((labeled & ~rated).sum())
    if missing:
        raise ValueError(f"{missing} labeled items have no expensive rating: the labeled set must lie in the rated set")
    return ratings, np.asarray(rated)


def _two_stages(
    axis: ProfileAxis,
    first: LabeledSample,
    zero: LabeledSample,
    middle: PoolMoments,
    pool: PoolMoments,
    drift: FloatArray,
    ridge: float,
) -> tuple[PointSummary, FloatArray, FloatArray]:
    """Summary of θ̂ with V₁ + V₂, β̂₀ (G, K) and the gain against the plain local mean (G,)."""
    parts, betas, gains = [], [], []
    for block in point_blocks(len(axis.points), len(first.y), first.signals.shape[1]):
        weights = label_weights(axis, first, axis.points[block])
        upper = fit_points(first, weights, weights, middle.mean[block], middle.gram[block], ridge)
        lower = fit_points(zero, weights, weights, pool.mean[block], pool.gram[block], ridge)
        stage = summarise(first, upper)
        between = (1.0 - first.rows / zero.rows) * middle.square[block] * _residual_spread(lower)
        if first.rows == zero.rows:
            between = np.zeros_like(between)
        variance = stage.variance + between
        base = summarise(zero, lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            df = variance**2 / (stage.variance**2 / stage.df + between**2 / base.df)
            plain = (1.0 - len(zero.y) / zero.rows) * np.vecdot(
                weights**2 / (1.0 - np.minimum(weights, 0.95)), upper.centred**2
            )
            gains.append(np.where(variance > 0.0, plain / variance, 1.0))
        value = stage.value - np.einsum("gk,gk->g", drift[block], lower.beta)
        parts.append(
            replace(stage, value=value, variance=variance, df=np.maximum(np.where(variance > 0.0, df, stage.df), 2.0))
        )
        betas.append(lower.beta)
    return join_summaries(parts), np.concatenate(betas), np.concatenate(gains)


def _residual_spread(fit: LocalFit) -> FloatArray:
    """s₀² = Σw² r²/(1 − H)/Σw²."""
    square = np.vecdot(fit.weights, fit.weights)
    weighted = np.vecdot(fit.weights**2 / (1.0 - fit.leverage), fit.residual**2)
    return np.asarray(np.where(square > 0.0, weighted / np.where(square > 0.0, square, 1.0), np.nan))
