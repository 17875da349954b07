"""Signals made ready: missing values filled with an indicator, and one scale for the ridge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["PreparedSignals", "fill_missing_signals", "prepare_signals", "scale_of", "standardize_signals"]

from pipeline.estimators.floats import as_floats
from pipeline.estimators.folds import mid_ranks

FloatArray: TypeAlias = NDArray[np.float64]


_CHUNK = 65_536  # rows whose deviations are squared at once


@dataclass(frozen=True, slots=True, eq=False)
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

    def scales(self, rows: slice | NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Some rows on both scales: standardised values and standardised ranks, (m, K) each."""
        return (self.signals[rows] - self.centre) / self.scale, self.ranks[rows]


def prepare_signals(signals: ArrayLike) -> PreparedSignals:
    """Signals on both scales of the adaptive rules, to be passed to ``lace_mean`` or ``lace_profile`` as signals.

    Args:
        signals: (M, K) or (M,) finite numbers.

    Raises:
        ValueError: wrong shape or non-finite values (``fill_missing_signals`` first).
    """
    values = _finite(signals)
    centre, scale = _centre_and_scale(values)
    ranks = mid_ranks(values)
    ranks -= 0.5 * (len(ranks) + 1)
    ranks /= _centre_and_scale(ranks)[1]
    return PreparedSignals(values, centre, scale, ranks)


def fill_missing_signals(signals: ArrayLike, *, min_share: float = 0.01) -> tuple[FloatArray, NDArray[np.intp]]:
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


def scale_of(signals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pool mean and population sd (K,) of each signal; an sd of 0, up to rounding, becomes 1."""
    centre, scale = _centre_and_scale(signals)
    return centre, np.where(np.isfinite(scale), scale, 1.0)


def _centre_and_scale(signals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pool mean and population sd (K,); infinite where a signal is constant. Little memory beside the signals."""
    rows, count = signals.shape
    chunks = [slice(start, start + _CHUNK) for start in range(0, rows, _CHUNK)]
    centre = sum((signals[chunk].sum(axis=0) for chunk in chunks), np.zeros(count)) / rows
    square = sum((((signals[chunk] - centre) ** 2).sum(axis=0) for chunk in chunks), np.zeros(count))
    spread = np.sqrt(square / rows)
    if not count:
        return centre, spread
    # A constant column leaves a rounding residue of the size of its offset: it must not be blown up to unit sd.
    high, low = signals.max(axis=0), signals.min(axis=0)
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
    """
    values = _finite(signals)
    centre, scale = _centre_and_scale(values)
    scaled = values - centre
    scaled /= scale
    return scaled
