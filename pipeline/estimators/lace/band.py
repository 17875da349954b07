"""Simultaneous bands: one critical value for the whole profile, by a multiplier bootstrap on influence values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import check_level
from pipeline.estimators.lace.fixed import DEFAULT_RIDGE, check_options, pose_problem
from pipeline.estimators.lace.interval import Interval, Target
from pipeline.estimators.lace.localities import Locality
from pipeline.estimators.lace.profile import fit_profile
from pipeline.estimators.results import Profile
from pipeline.estimators.sampling import Sampling

_BATCH = 4_000_000  # doubles of multipliers drawn at once


def lace_profile_band(
    z: ArrayLike,
    y: ArrayLike,
    signals: ArrayLike,
    *,
    rng: np.random.Generator | int,
    draws: int = 2000,
    labeled: ArrayLike | None = None,
    at: ArrayLike | None = None,
    locality: Locality | Sequence[Locality] | None = None,
    ridge: float | Literal["cv"] = DEFAULT_RIDGE,
    coefficient_locality: Locality | Sequence[Locality] | None = None,
    standardize: bool = False,
    adapt: Literal["average"] | None = None,
    learner: Literal["logistic"] | None = None,
    target: Target = "pool",
    interval: Interval = "auto",
    level: float = 0.95,
    inclusion_probabilities: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    sampling: Sampling | None = None,
) -> Profile:
    """A profile whose intervals cover the whole curve at once with probability ``level``.

    The critical value k is the level-quantile of max_z |Σ_i ξ_i c_i(z) e_i|/(Σ_i c_i(z)² e_i²)^½ over standard normal
    ξ. Each point then gets its pointwise interval (t with its own degrees of freedom, or Wilson's) at the pointwise
    level 2Φ(k) − 1, so that small effective samples widen the band.

    Args:
        rng: seed or generator of the multipliers (and of random folds).
        draws: number of bootstrap draws, at least 100.
        z, y, signals and the other options: as in ``lace_profile``.

    Returns:
        Profile with ``level`` simultaneous; ``diagnostics["pointwise_level"]`` and ``["critical_value"]`` say how.

    References:
        Chernozhukov, Chetverikov and Kato, "Gaussian Approximations and Multiplier Bootstrap for Maxima of Sums of
            High-Dimensional Random Vectors" (2013), arXiv 1212.6906.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> y = (signals[:, 0] + rng.normal(size=200) > 0).astype(float)
        >>> labeled = np.arange(200) < 50
        >>> band = lace_profile_band(signals[:, 1], y, signals, labeled=labeled, at=[-0.5, 0.5], rng=0)
        >>> band.diagnostics['pointwise_level'] > 0.95
        True
    """
    check_options(target, interval, None, ridge)
    check_level(level)
    if draws < 100:
        raise ValueError(f"draws must be at least 100, got {draws}")
    generator = np.random.default_rng(rng)
    problem = pose_problem(
        z, y, signals, labeled, at, locality, inclusion_probabilities, clusters=clusters, sampling=sampling
    )
    fitted = fit_profile(
        problem, ridge=ridge, coefficient_locality=coefficient_locality, standardize=standardize, adapt=adapt,
        learner=learner, rng=generator if learner or ridge == "cv" else None, keep_influence=True,
    )  # fmt: skip
    assert fitted.influence is not None
    inner, critical = pointwise_level(fitted.influence, level, generator, draws)
    profile = fitted.profile(target, interval, inner)
    diagnostics: dict[str, Any] = {
        **profile.diagnostics, "simultaneous": True, "pointwise_level": inner, "critical_value": critical,
        "bootstrap_draws": draws,
    }  # fmt: skip
    return replace(profile, level=level, diagnostics=diagnostics)


def pointwise_level(
    influence: FloatArray, level: float, rng: np.random.Generator, draws: int = 2000
) -> tuple[float, float]:
    """The pointwise level whose normal intervals cover all points at once with probability ``level``.

    Args:
        influence: (G, n) influence values (sums over clusters). A point that has no variation (all its labels agree)
            is not in the simulation: it is paid for by Bonferroni. Points that are not finite have no interval.
        level: simultaneous coverage.
        rng: source of the multipliers.
        draws: bootstrap draws.

    Returns:
        (pointwise level in (0, 1), critical value).
    """
    scale = np.sqrt(np.vecdot(influence, influence))
    finite = np.isfinite(scale)
    used = finite & (scale > 1e-9 * scale[finite].max(initial=0.0))
    silent = int((finite & ~used).sum())
    if not used.any():
        alone = 1.0 - (1.0 - level) / max(silent, 1)
        return alone, -float(ndtri((1.0 - alone) / 2.0))
    standard: FloatArray = influence[used] / scale[used, None]
    largest = np.empty(draws)
    size = max(1, _BATCH // standard.shape[1])
    for start in range(0, draws, size):
        stop = min(start + size, draws)
        multipliers = rng.standard_normal((stop - start, standard.shape[1]))
        largest[start:stop] = np.abs(multipliers @ standard.T).max(axis=1)
    critical = float(np.quantile(largest, level))
    if silent:  # alone each would fail with 1 − level; together with the others all must fail with no more than that
        alpha, room = 2.0 * float(ndtr(-critical)), 1.0 - level
        critical = -float(ndtri(room / (silent + room / alpha) / 2.0))
    return min(max(float(2.0 * ndtr(critical) - 1.0), level), 1.0 - 1e-12), critical
