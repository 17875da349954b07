"""All paired gaps of many models on one pool, from one set of pool moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import FloatArray, as_floats
from pipeline.estimators.intervals import check_level
from pipeline.estimators.lace.core import LabeledSample
from pipeline.estimators.lace.fixed import DEFAULT_RIDGE, check_options, check_ridge_number, fit_all_points
from pipeline.estimators.lace.gap import unless_all_agree
from pipeline.estimators.lace.interval import FittedProfile, Interval, Target, verdicts
from pipeline.estimators.lace.localities import Locality, ProfileAxis, resolve_axis
from pipeline.estimators.lace.pool import PoolMoments, row_chunks
from pipeline.estimators.results import Profile
from pipeline.estimators.signals import standardize_signals
from pipeline.estimators.validation import check_signals, warn_if_unscaled

_CHUNK_DOUBLES = 4_000_000


def lace_gaps(
    z: ArrayLike,
    outcomes: ArrayLike,
    signals: ArrayLike,
    *,
    pairs: Sequence[tuple[int, int]] | None = None,
    at: ArrayLike | None = None,
    locality: Locality | Sequence[Locality] | None = None,
    ridge: float = DEFAULT_RIDGE,
    standardize: bool = False,
    target: Target = "pool",
    interval: Interval = "auto",
    level: float = 0.95,
) -> Iterator[tuple[tuple[int, int], Profile]]:
    """``lace_gap`` by the paper's rule for every pair of m models, without a pass over the pool per pair.

    The moments of all m·K signals are computed once; the moments of H = (S_a, S_b, S_a − S_b) are a linear map of a
    block of them. Signals are standardised before the difference is taken (each model's own columns), so with
    ``standardize=True`` the third block is the difference of standardised signals.

    Args:
        z: (M,) or (M, q) profile values.
        outcomes: (M, m) outcomes, NaN where not labeled; a pair's labels are where both are finite.
        signals: (M, m, K) finite numbers.
        pairs: (a, b) model numbers; None means all a < b.
        at, locality, ridge, standardize, target, level: as in ``lace_gap``.
        interval: "auto" or "t".

    Yields:
        ((a, b), Profile) in the order of ``pairs``.

    Raises:
        ValueError: shapes that do not fit, non-finite signals, a pair without a common label.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 3.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> z = rng.choice(['easy', 'hard'], 200)
        >>> y = np.where(np.arange(200)[:, None] < 80, signals + rng.normal(size=(200, 2)) > [0.0, 0.5], np.nan)
        >>> [(pair, profile.value.round(2).tolist()) for pair, profile in lace_gaps(z, y, signals[:, :, None])]
        [((0, 1), [0.05, 0.18])]
    """
    check_options(target, interval, None, ridge)
    check_level(level)
    penalty = check_ridge_number(ridge)
    if interval == "wilson":
        raise ValueError("interval='wilson' is for shares; a gap takes 'auto' or 't'")
    axis = resolve_axis(z, at, locality)
    rows = len(axis.z)
    y, cube = as_floats(outcomes, "outcomes"), as_floats(signals, "signals")
    if y.ndim != 2 or len(y) != rows:
        raise ValueError(f"outcomes must have shape ({rows}, m), got {y.shape}")
    models = y.shape[1]
    if cube.ndim != 3 or cube.shape[:2] != (rows, models):
        raise ValueError(f"signals must have shape ({rows}, {models}, K), got {cube.shape}")
    count = cube.shape[2]
    flat = check_signals(cube.reshape(rows, models * count))
    flat = standardize_signals(flat) if standardize else flat - flat.mean(axis=0)
    if not standardize:
        warn_if_unscaled(flat.std(axis=0))
    wanted = list(combinations(range(models), 2)) if pairs is None else [(int(a), int(b)) for a, b in pairs]
    for a, b in wanted:
        if not (0 <= a < models and 0 <= b < models) or a == b:
            raise ValueError(f"pairs must name two different models of 0..{models - 1}, got {(a, b)}")
        if not np.isfinite(y[:, a] + y[:, b]).any():
            raise ValueError(f"models {a} and {b} share no labeled item")
    return _each_pair(axis, y, flat, count, wanted, penalty, standardize, target, interval, level)


def _each_pair(
    axis: ProfileAxis,
    y: FloatArray,
    flat: FloatArray,
    count: int,
    pairs: list[tuple[int, int]],
    ridge: float,
    standardize: bool,
    target: Target,
    interval: Interval,
    level: float,
) -> Iterator[tuple[tuple[int, int], Profile]]:
    joint = joint_moments(axis, flat)
    one, zero = np.eye(count), np.zeros((count, count))
    to_pair = np.concatenate([np.concatenate([one, zero, one]), np.concatenate([zero, one, -one])], axis=1).T
    for a, b in pairs:
        columns = np.r_[a * count : (a + 1) * count, b * count : (b + 1) * count]
        difference = y[:, a] - y[:, b]
        finite = np.isfinite(difference)
        own = flat[np.ix_(finite, columns)] @ to_pair
        gram = to_pair.T @ joint.gram[:, columns[:, None], columns] @ to_pair
        moments = replace(joint, mean=joint.mean[:, columns] @ to_pair, gram=gram)
        sample = LabeledSample(axis.z[finite], difference[finite], own, None, len(y))
        summary, _ = fit_all_points(axis, axis, sample, moments, gram, ridge, None)
        verdict = verdicts(summary.raw_r2, summary.r2, summary.n_effective, own.shape[1])
        diagnostics: dict[str, Any] = {
            "ridge": ridge, "standardized": standardize, "locality": axis.names, "contrast": "a - b",
        }  # fmt: skip
        fitted = FittedProfile(axis.at, summary, sample, False, joint.square, summary.df, verdict, "lace", diagnostics)
        profile = fitted.profile(target, interval, level)
        if interval == "auto":
            profile = unless_all_agree(profile, y[finite, a], y[finite, b], len(y))
        yield (a, b), profile


def joint_moments(axis: ProfileAxis, signals: FloatArray) -> PoolMoments:
    """Moments of many signals at once: a weighted product per point instead of a table of pairwise products.

    Args:
        axis: the profile with its pool.
        signals: (M, P) centred signals, P in the hundreds.
    """
    points, (rows, width) = len(axis.points), signals.shape
    mass, square = np.zeros(points), np.zeros(points)
    mean, gram = np.zeros((points, width)), np.zeros((points, width, width))
    top = np.full(points, -np.inf)
    for chunk in row_chunks(rows, points):  # the largest exponent first, so that no weight underflows
        top = np.maximum(top, axis.log_kernel(axis.z[chunk]).max(axis=1))
    shift = np.where(np.isfinite(top), top, 0.0)
    size = max(256, _CHUNK_DOUBLES // max(width, 1))
    for start in range(0, rows, size):
        chunk = slice(start, min(start + size, rows))
        weights = np.exp(axis.log_kernel(axis.z[chunk]) - shift[:, None])
        values = signals[chunk]
        mass += weights.sum(axis=1)
        square += np.vecdot(weights, weights)
        mean += weights @ values
        for point, row in enumerate(weights):
            inside = np.flatnonzero(row) if axis.categorical else slice(None)
            picked, share = values[inside], row[inside]
            scaled = picked * np.sqrt(share)[:, None]
            gram[point] += scaled.T @ scaled
    total = np.where(mass > 0.0, mass, np.nan)
    mean /= total[:, None]
    gram /= total[:, None, None]
    gram -= mean[:, :, None] * mean[:, None, :]
    zeros = np.zeros(width)
    return PoolMoments(rows, mean, gram, square / total**2, zeros, zeros, np.zeros((width, width)))
