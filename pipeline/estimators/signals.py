"""Signals made ready: missing values filled with an indicator, and one scale for the ridge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import FloatArray, IntArray, as_floats
from pipeline.estimators.folds import mid_ranks

_CHUNK = 65_536  # rows whose deviations are squared at once


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What the curved bases of the averaging rule need of a pool: each basis has pool mean 0.

    Attributes:
        square_mean, square_scale: (2, 1, K) of the squares of standardised values and of standardised ranks.
        cube_mean, cube_scale: (K,) of the cubes of standardised ranks.
        cuts: (3, K) standardised ranks that part the pool in four quantile bins.
        bins: (4, K) share of the pool in each bin.
    """

    square_mean: FloatArray
    square_scale: FloatArray
    cube_mean: FloatArray
    cube_scale: FloatArray
    cuts: FloatArray
    bins: FloatArray

    def squares(self, both: FloatArray) -> FloatArray:
        """Standardised squares (2, n, K) of some rows on both scales (2, n, K)."""
        return np.asarray((both**2 - self.square_mean) / self.square_scale)

    def cubes(self, ranks: FloatArray) -> FloatArray:
        """Standardised cubes (n, K) of standardised ranks."""
        return np.asarray((ranks**3 - self.cube_mean) / self.cube_scale)

    def indicators(self, ranks: FloatArray) -> FloatArray:
        """(K, n, 4): in which quantile bin a row lies, less the pool's share of the bin."""
        code = (ranks >= self.cuts[:, None, :]).sum(axis=0)
        return np.asarray((code[:, :, None] == np.arange(4)).swapaxes(0, 1) - self.bins.T[:, None, :])


# Not slotted: the curves are kept once they are computed.
@dataclass(frozen=True, eq=False)
class PreparedSignals:
    """What the adaptive rules need of a pool's signals, computed once for any number of estimates on that pool.

    Attributes:
        signals: (M, K) finite numbers as given.
        centre, scale: (K,) pool mean and sd; the scale of a constant signal is infinite, so that it becomes 0.
        ranks: (M, K) pool mid-ranks, standardised over the pool.
    """

    signals: FloatArray
    centre: FloatArray
    scale: FloatArray
    ranks: FloatArray

    def __len__(self) -> int:
        return len(self.signals)

    def scales(self, rows: slice | IntArray) -> tuple[FloatArray, FloatArray]:
        """Some rows on both scales: standardised values and standardised ranks, (m, K) each."""
        return (self.signals[rows] - self.centre) / self.scale, self.ranks[rows]

    @cached_property
    def curves(self) -> Curves:
        """Pool moments of the curved bases, in little memory beside the signals."""
        count, rows = self.ranks.shape[1], len(self)
        chunks = [slice(start, start + _CHUNK) for start in range(0, rows, _CHUNK)]
        # Mid-ranks' spread is below (M² − 1)/12 where values are tied: the cuts are quartiles of the ranks' own range.
        quarters = [math.ceil(rows * part / 4.0) - 1 for part in (1, 2, 3)]
        cuts = np.partition(self.ranks.T, quarters, axis=1)[:, quarters].T + 1e-9
        square, fourth = np.zeros((2, 2, 1, count)), np.zeros((2, count))
        above = np.zeros((5, count))
        above[0] = rows
        for chunk in chunks:
            values = (np.ascontiguousarray(self.signals[chunk].T) - self.centre[:, None]) / self.scale[:, None]
            ranks = np.ascontiguousarray(self.ranks[chunk].T)
            for source, column in enumerate((values, ranks)):
                squares = column * column
                square[:, source, 0] += np.stack([squares.sum(axis=1), np.vecdot(squares, squares)])
            squares *= ranks
            fourth += np.stack([squares.sum(axis=1), np.vecdot(squares, squares)])
            above[1:4] += [(ranks >= cut[:, None]).sum(axis=1) for cut in cuts]
        bins = above[:-1] - above[1:]
        scale_of_squares, scale_of_cubes = _spread(square / rows), _spread(fourth / rows)
        return Curves(square[0] / rows, scale_of_squares, fourth[0] / rows, scale_of_cubes, cuts, bins / rows)


def prepare_signals(signals: ArrayLike) -> PreparedSignals:
    """Signals on both scales of the adaptive rules, to be passed to ``lace_mean`` or ``lace_profile`` as signals.

    Args:
        signals: (M, K) or (M,) finite numbers.

    Raises:
        ValueError: wrong shape or non-finite values (``fill_missing_signals`` first).

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            section 3.2.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> prepare_signals(signals).ranks.shape
        (200, 2)
    """
    values = _finite(signals)
    centre, scale = _centre_and_scale(values)
    ranks = mid_ranks(values)
    ranks -= 0.5 * (len(ranks) + 1)  # their mean, whatever is tied
    square = np.vecdot(ranks.T, ranks.T) / len(ranks)
    ranks /= np.where(square > 0.0, np.sqrt(square), np.inf)
    return PreparedSignals(values, centre, scale, ranks)


def fill_missing_signals(signals: ArrayLike, *, min_share: float = 0.01) -> tuple[FloatArray, IntArray]:
    """Fill non-finite signals with their pool mean and append 0/1 indicators of where they were missing.

    No row is dropped: dropping would change the target.

    Args:
        signals: (M, K) or (M,) numbers; NaN or infinite where missing.
        min_share: an indicator column is appended for a signal missing in at least this share of the pool, in [0, 1]
            (and never for a signal that is complete).

    Returns:
        filled: (M, K + J) finite numbers, the J indicators last.
        indicator_index: (J,) for each indicator the column of the signal it belongs to.

    Raises:
        ValueError: wrong shape, ``min_share`` outside [0, 1], or a signal without a single finite value.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            section 3.2.

    Example:
        >>> fill_missing_signals([[1.0], [np.nan], [3.0]])[0]
        array([[1., 0.],
               [2., 1.],
               [3., 0.]])
    """
    if not 0.0 <= min_share <= 1.0:
        raise ValueError(f"min_share must lie in [0, 1], got {min_share!r}")
    values = np.array(as_floats(signals, "signals"))
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) == 0:
        raise ValueError(f"signals must have shape (M, K) with M >= 1, got {np.shape(signals)}")
    missing = ~np.isfinite(values)
    share = missing.mean(axis=0)
    if np.any(share == 1.0):
        raise ValueError(f"signal column {int(np.argmax(share == 1.0))} has no finite value; leave it out")
    values[missing] = 0.0
    with np.errstate(over="ignore"):
        shift = values.sum(axis=0) / (~missing).sum(axis=0)
    values[missing] = np.broadcast_to(shift, values.shape)[missing]
    index = np.flatnonzero((share > 0.0) & (share >= min_share))
    return np.concatenate([values, missing[:, index].astype(np.float64)], axis=1), index


def _spread(moments: FloatArray) -> FloatArray:
    """sd from a mean and a mean square; infinite where it is 0 up to rounding, so that the column becomes 0."""
    variance = moments[1] - moments[0] ** 2
    return np.asarray(np.where(variance > 1e-12 * np.maximum(moments[1], 1e-300), np.sqrt(np.abs(variance)), np.inf))


def scale_of(signals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pool mean and population sd (K,) of each signal; an sd of 0, up to rounding, becomes 1."""
    centre, scale = _centre_and_scale(signals)
    return centre, np.where(np.isfinite(scale), scale, 1.0)


def _centre_and_scale(signals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pool mean and population sd (K,); infinite where a signal is constant. Little memory beside the signals."""
    rows, count = signals.shape
    centre, square = np.zeros(count), np.zeros(count)
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    # Sums along a column in one piece of memory take a quarter of the time of sums down rows of six.
    for start in range(0, rows, _CHUNK):
        columns = np.ascontiguousarray(signals[start : start + _CHUNK].T)
        centre += columns.sum(axis=1)
        low, high = np.minimum(low, columns.min(axis=1)), np.maximum(high, columns.max(axis=1))
    centre /= rows
    for start in range(0, rows, _CHUNK):
        deviations = signals[start : start + _CHUNK].T - centre[:, None]
        square += np.vecdot(deviations, deviations)
    spread = np.sqrt(square / rows)
    # A constant column leaves a rounding residue of the size of its offset: it must not be blown up to unit sd.
    rounding = 1e-13 * np.maximum(np.abs(high), np.abs(low))
    return centre, np.where((spread > rounding) & (high > low), spread, np.inf)


def _finite(signals: ArrayLike) -> FloatArray:
    values = as_floats(signals, "signals")
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) == 0:
        raise ValueError(f"signals must have shape (M, K) with M >= 1, got {np.shape(signals)}")
    if not np.isfinite(values).all():
        raise ValueError("signals have non-finite values; use fill_missing_signals first")
    return values


def standardize_signals(signals: ArrayLike) -> FloatArray:
    """(S − pool mean)/pool sd, column by column; a constant column becomes 0.

    Args:
        signals: (M, K) or (M,) finite numbers.

    Returns:
        (M, K).

    Raises:
        ValueError: wrong shape or non-finite values (``fill_missing_signals`` first).

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            section 3.3.

    Example:
        >>> standardize_signals([[1.0], [3.0]])
        array([[-1.],
               [ 1.]])
    """
    values = _finite(signals)
    centre, scale = _centre_and_scale(values)
    scaled = values - centre
    scaled /= scale
    return scaled
