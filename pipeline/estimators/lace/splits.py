"""LACE under many label draws on one pool, in one matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import BoolArray, FloatArray, as_floats
from pipeline.estimators.lace.core import ridge_inverse
from pipeline.estimators.lace.fixed import DEFAULT_RIDGE, check_ridge_number, coefficient_axis_of, unit_or_spread
from pipeline.estimators.lace.localities import Locality, ProfileAxis, normalise_log_kernel, resolve_axis
from pipeline.estimators.lace.pool import pool_moments
from pipeline.estimators.lace.profile import lace_profile
from pipeline.estimators.signals import prepare_signals
from pipeline.estimators.validation import check_signals, warn_if_unscaled

_BLOCK_VALUES = 8_000_000
_FAINT = 1e-150  # kernel mass of a label set, relative to the pool's largest weight, below which it is redone exactly


def lace_profile_splits(
    z: ArrayLike,
    y_full: ArrayLike,
    signals: ArrayLike,
    labeled_sets: ArrayLike,
    *,
    at: ArrayLike | None = None,
    locality: Locality | Sequence[Locality] | None = None,
    ridge: float = DEFAULT_RIDGE,
    coefficient_locality: Locality | Sequence[Locality] | None = None,
    standardize: bool = False,
    adapt: Literal["average"] | None = None,
    learner: Literal["logistic"] | None = None,
    rng: np.random.Generator | int | None = None,
) -> FloatArray:
    """θ̂ of ``lace_profile`` for B label sets on the same pool.

    The pool's moments and (Σ_SS + λI)⁻¹ are shared; the label sums of all draws and points are one product of the
    (B, M) membership matrix with the kernel-weighted columns of Y, S and SY. The adaptive rule shares nothing across
    draws and runs draw by draw.

    Args:
        z: (M,) or (M, q) profile values.
        y_full: (M,) outcomes; only those of each draw's labels are read for that draw.
        signals: (M, K) finite numbers.
        labeled_sets: (B, n) item indices without repetition within a row, or (B, M) booleans.
        at, locality, ridge, coefficient_locality, standardize, adapt, learner, rng: as in ``lace_profile``; the
            ridge is a number.

    Returns:
        (B, G) estimates; NaN where a draw has no label in reach.

    Raises:
        ValueError: shapes that do not fit, indices outside the pool, a draw with a missing outcome.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 2 and section 5.1.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> y = (signals[:, 0] + rng.normal(size=200) > 0).astype(float)
        >>> sets = np.stack([np.arange(200) % 4 == k for k in range(4)])
        >>> lace_profile_splits(signals[:, 1], y, signals, sets, at=[0.0]).shape
        (4, 1)
    """
    penalty = check_ridge_number(ridge)
    axis = resolve_axis(z, at, locality)
    rows = len(axis.z)
    values = check_signals(signals, rows)
    outcome = as_floats(y_full, "y_full")
    if outcome.shape != (rows,):
        raise ValueError(f"y_full must have shape ({rows},), got {outcome.shape}")
    member = label_matrix(labeled_sets, rows)
    if not np.isfinite(outcome[member.any(axis=0)]).all():
        raise ValueError("y_full is missing at items that some draw labels")
    if adapt is not None or learner is not None:
        if ridge is not DEFAULT_RIDGE or coefficient_locality is not None:
            raise ValueError("adapt='average' chooses its own ridge and coefficient_locality; leave them out")
        ready = prepare_signals(values)
        profiles = [
            lace_profile(
                z, outcome, ready, labeled=row, at=at, locality=locality, adapt=adapt, learner=learner, rng=rng
            )
            for row in member
        ]
        return np.stack([profile.value for profile in profiles])
    return _in_one_product(axis, values, outcome, member, penalty, coefficient_locality, standardize)


def label_matrix(labeled_sets: ArrayLike, rows: int) -> BoolArray:
    """(B, M) membership of index sets (B, n) or of boolean sets (B, M)."""
    sets = np.asarray(labeled_sets)
    if sets.ndim != 2 or 0 in sets.shape:
        raise ValueError(f"labeled_sets must have shape (B, n) or (B, {rows}), got {sets.shape}")
    if sets.dtype == np.bool_:
        if sets.shape[1] != rows:
            raise ValueError(f"boolean labeled_sets must have shape (B, {rows}), got {sets.shape}")
        if not sets.any(axis=1).all():
            raise ValueError("a labeled set is empty")
        return sets
    if sets.dtype.kind not in "iu":
        raise ValueError(f"labeled_sets must hold item indices or booleans, got dtype {sets.dtype}")
    if sets.min() < 0 or sets.max() >= rows:
        raise ValueError(f"labeled_sets must hold indices in 0..{rows - 1}, got {sets.min()}..{sets.max()}")
    member = np.zeros((len(sets), rows), dtype=bool)
    member[np.arange(len(sets))[:, None], sets] = True
    if np.any(member.sum(axis=1) != sets.shape[1]):
        raise ValueError("a labeled set names the same item twice")
    return member


def _in_one_product(
    axis: ProfileAxis,
    signals: FloatArray,
    outcome: FloatArray,
    member: BoolArray,
    ridge: float,
    coefficient_locality: Locality | Sequence[Locality] | None,
    standardize: bool,
) -> FloatArray:
    moments = pool_moments(axis, signals)
    scale = unit_or_spread(moments, standardize, signals)
    if standardize:
        moments = moments.rescaled(scale)
    else:
        warn_if_unscaled(moments.spread)
    same = coefficient_locality is None
    wider = axis if coefficient_locality is None else coefficient_axis_of(axis, coefficient_locality)
    gram = moments.gram if same else pool_moments(wider, signals).gram / np.outer(scale, scale)
    inverse, _ = ridge_inverse(gram, ridge)
    scaled = (signals - moments.centre) / scale
    used = np.flatnonzero(member.any(axis=0))
    inside = member[:, used].astype(np.float64)
    middle = float(outcome[used].mean())
    y = outcome[used] - middle
    own = scaled[used]
    columns = np.concatenate([np.ones((len(used), 1)), y[:, None], own, own * y[:, None]], axis=1)
    count = own.shape[1]
    result = np.empty((len(member), len(axis.points)))
    size = max(1, _BLOCK_VALUES // (len(used) * columns.shape[1]))
    for start in range(0, len(axis.points), size):
        block = slice(start, min(start + size, len(axis.points)))
        sums = _sums(axis, axis.z[used], axis.points[block], inside, columns)
        wide = sums if same else _sums(wider, axis.z[used], axis.points[block], inside, columns)
        cross = wide[..., 2 + count :] - wide[..., 2 : 2 + count] * wide[..., 1:2]
        gap = sums[..., 2 : 2 + count] - moments.mean[block]
        beta = np.einsum("bgk,gkl->bgl", cross, inverse[block])
        result[:, block] = middle + sums[..., 1] - np.vecdot(beta, gap)
    return result


def _sums(
    axis: ProfileAxis, values: FloatArray, points: FloatArray, inside: FloatArray, columns: FloatArray
) -> FloatArray:
    """Normalised label means (B, g, F) of the columns, all draws at once."""
    log_kernel = axis.log_kernel(values, points)
    top = log_kernel.max(axis=1, keepdims=True)
    kernel = np.exp(log_kernel - np.where(np.isfinite(top), top, 0.0))
    product = np.einsum("gi,if->igf", kernel, columns).reshape(len(values), -1)
    sums = (inside @ product).reshape(len(inside), len(points), -1)
    mass = sums[..., 0]
    means = sums / np.where(mass > 0.0, mass, np.nan)[..., None]
    for draw, point in np.argwhere(mass < _FAINT):  # all of its labels are far away: exact weights for that pair
        rows = inside[draw] > 0.0
        weights = normalise_log_kernel(log_kernel[point, rows])
        means[draw, point] = weights @ columns[rows] if weights.sum() > 0.0 else np.nan
    return np.asarray(means)
