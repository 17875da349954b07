"""Pools too large for memory, or used many times: their moments once, then any number of estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import FloatArray, as_floats
from pipeline.estimators.intervals import check_level
from pipeline.estimators.lace.core import LabeledSample
from pipeline.estimators.lace.fixed import DEFAULT_RIDGE, check_options, check_ridge_number, fit_all_points
from pipeline.estimators.lace.interval import FittedProfile, Interval, Target, verdicts
from pipeline.estimators.lace.localities import Categorical, Locality, ProfileAxis, encode_like, resolve_axis
from pipeline.estimators.lace.pool import MomentAccumulator, PoolMoments, row_chunks
from pipeline.estimators.lace.scalar import ridge_scalar, scalar_estimate
from pipeline.estimators.results import Estimate, Profile
from pipeline.estimators.sampling import simple_draw
from pipeline.estimators.validation import check_signals, is_binary, warn_if_unscaled


@dataclass(frozen=True, slots=True, eq=False)
class ProfilePool:
    """The pool as LACE needs it: G points, their signal means and covariances, and nothing per item.

    Attributes:
        axis: points and localities; holds no pool rows.
        moments: profile moments of the signals.
    """

    axis: ProfileAxis
    moments: PoolMoments

    @classmethod
    def from_chunks(
        cls,
        chunks: Iterable[tuple[ArrayLike, ArrayLike]],
        *,
        at: ArrayLike,
        locality: Locality | Sequence[Locality],
    ) -> ProfilePool:
        """Accumulate moments in one pass, in memory that does not grow with the pool.

        Args:
            chunks: (z, signals) batches, z (m,) or (m, q) and signals (m, K), the same columns in each.
            at: (G,) or (G, q) profile points; for Categorical columns the levels wanted.
            locality: explicit, because the rule-of-thumb bandwidth would need the whole pool first.

        Raises:
            ValueError: no batch, batches of different width, missing or non-finite values.
        """
        axis = resolve_axis(np.asarray(at), at, locality)
        accumulator: MomentAccumulator | None = None
        for z, signals in chunks:
            values = check_signals(signals)
            if not len(values):
                continue
            coded = encode_like(axis, z)
            if len(coded) != len(values):
                raise ValueError(f"a batch has {len(coded)} profile values and {len(values)} rows of signals")
            if accumulator is None:
                accumulator = MomentAccumulator(axis, values.mean(axis=0))
            elif values.shape[1] != accumulator.signals:
                raise ValueError(f"batches must have {accumulator.signals} signals each, got {values.shape[1]}")
            for rows in row_chunks(len(values), accumulator.chunk_width):
                accumulator.add(coded[rows], values[rows])
        if accumulator is None:
            raise ValueError("there is no pool row: chunks are empty")
        return cls(axis, accumulator.finish())

    @classmethod
    def from_arrays(
        cls,
        z: ArrayLike,
        signals: ArrayLike,
        *,
        at: ArrayLike | None = None,
        locality: Locality | Sequence[Locality] | None = None,
    ) -> ProfilePool:
        """The pool of arrays in memory, with the defaults of ``lace_profile``."""
        axis = resolve_axis(z, at, locality)
        return cls.from_chunks([(z, signals)], at=axis.at, locality=axis.localities)


def lace_profile_from_pool(
    pool: ProfilePool,
    z: ArrayLike,
    y: ArrayLike,
    signals: ArrayLike,
    *,
    ridge: float = DEFAULT_RIDGE,
    standardize: bool = False,
    target: Target = "pool",
    interval: Interval = "auto",
    level: float = 0.95,
    inclusion_probabilities: ArrayLike | None = None,
) -> Profile:
    """``lace_profile`` by the paper's rule, from prepared moments and the labeled rows alone.

    Args:
        pool: moments of the whole pool, labeled rows included.
        z: (n,) or (n, q) profile values of the labeled items.
        y: (n,) their outcomes.
        signals: (n, K) their signals, on the scale the pool was given in.
        ridge, standardize, target, interval, level: as in ``lace_profile``.
        inclusion_probabilities: (n,) in (0, 1]; None means equal.

    Raises:
        ValueError: shapes that do not fit, missing values, more labels than pool rows.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 2.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> y = (signals[:, 0] + rng.normal(size=200) > 0).astype(float)
        >>> labeled = np.arange(200) < 50
        >>> pool = ProfilePool.from_arrays(signals[:, 1], signals, at=[-0.5, 0.5])
        >>> lace_profile_from_pool(pool, signals[:50, 1], y[:50], signals[:50]).value.round(2)
        array([0.52, 0.57])
    """
    check_options(target, interval, None, ridge)
    check_level(level)
    moments, scale = _scaled_moments(pool, standardize)
    sample = _labeled(pool, z, y, signals, moments, scale, inclusion_probabilities)
    penalty = check_ridge_number(ridge)
    summary, _ = fit_all_points(pool.axis, pool.axis, sample, moments, moments.gram, penalty, None)
    verdict = verdicts(summary.raw_r2, summary.r2, summary.n_effective, sample.signals.shape[1])
    diagnostics: dict[str, Any] = {"ridge": penalty, "standardized": standardize, "locality": pool.axis.names}
    fitted = FittedProfile(
        pool.axis.at, summary, sample, is_binary(sample.y), moments.square, summary.df, verdict, "lace", diagnostics
    )
    return fitted.profile(target, interval, level)


def lace_mean_from_pool(
    pool: ProfilePool,
    y: ArrayLike,
    signals: ArrayLike,
    *,
    ridge: float = DEFAULT_RIDGE,
    standardize: bool = False,
    target: Target = "pool",
    interval: Interval = "auto",
    level: float = 0.95,
) -> Estimate:
    """``lace_mean`` by the paper's rule, from the pool's overall moments and the labeled rows alone.

    Args:
        pool: moments of the whole pool; its profile points play no part.
        y: (n,) outcomes; signals: (n, K) signals of the labeled items.
        ridge, standardize, target, interval, level: as in ``lace_mean``.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 2 with one category.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> y = (signals[:, 0] + rng.normal(size=200) > 0).astype(float)
        >>> labeled = np.arange(200) < 50
        >>> pool = ProfilePool.from_arrays(np.zeros(200), signals, at=[0.0], locality=Categorical())
        >>> round(lace_mean_from_pool(pool, y[:50], signals[:50]).value, 3)
        0.558
    """
    check_options(target, interval, None, ridge)
    check_level(level)
    moments, scale = _scaled_moments(pool, standardize)
    values, own = _outcomes(y, signals, moments, scale)
    sample = LabeledSample(np.zeros((len(values), 1)), values, own, None, moments.rows)
    draw = simple_draw(len(values), moments.rows)
    mean, gram = moments.overall_mean[None], moments.overall_gram[None]
    scalar = ridge_scalar(sample, mean, gram, check_ridge_number(ridge), draw, {"standardized": standardize})
    return scalar_estimate(scalar, values, target, interval, level, "lace", wilson_form=False)


def _scaled_moments(pool: ProfilePool, standardize: bool) -> tuple[PoolMoments, FloatArray]:
    moments = pool.moments
    if not standardize:
        warn_if_unscaled(moments.spread)
        return moments, np.ones_like(moments.spread)
    floor = 1e-13 * (np.abs(moments.centre) + np.abs(moments.overall_mean))
    scale = np.where(moments.spread > floor, moments.spread, 1.0)
    return moments.rescaled(scale), scale


def _outcomes(
    y: ArrayLike, signals: ArrayLike, moments: PoolMoments, scale: FloatArray
) -> tuple[FloatArray, FloatArray]:
    values = as_floats(y, "y")
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(f"y must be the finite outcomes of the labeled items, shape (n,), got {values.shape}")
    own = check_signals(signals, len(values))
    if own.shape[1] != len(moments.centre):
        raise ValueError(f"signals must have shape ({len(values)}, {len(moments.centre)}), got {own.shape}")
    if len(values) > moments.rows:
        raise ValueError(f"{len(values)} labeled items, but the pool has {moments.rows} rows")
    return values, (own - moments.centre) / scale


def _labeled(
    pool: ProfilePool,
    z: ArrayLike,
    y: ArrayLike,
    signals: ArrayLike,
    moments: PoolMoments,
    scale: FloatArray,
    inclusion_probabilities: ArrayLike | None,
) -> LabeledSample:
    values, own = _outcomes(y, signals, moments, scale)
    coded = encode_like(pool.axis, z)
    if len(coded) != len(values):
        raise ValueError(f"z must have one row per labeled item ({len(values)}), got {len(coded)}")
    sample = LabeledSample(coded, values, own, None, moments.rows)
    if inclusion_probabilities is None:
        return sample
    chances = np.asarray(inclusion_probabilities, dtype=np.float64)
    if chances.shape != values.shape or not (np.all(chances > 0.0) and np.all(chances <= 1.0)):
        raise ValueError(f"inclusion_probabilities must have shape {values.shape} and lie in (0, 1]")
    return replace(sample, inclusion=chances)


def one_point_pool(chunks: Iterable[ArrayLike]) -> ProfilePool:
    """A pool for means only, from batches of signals (m, K)."""
    batches = ((np.zeros(len(np.asarray(signals))), signals) for signals in chunks)
    return ProfilePool.from_chunks(batches, at=[0.0], locality=Categorical())
