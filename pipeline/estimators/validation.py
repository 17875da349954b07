"""Arrays checked at the door: shapes, missing values and which labels may be read."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, kolmogorov

from pipeline.estimators.floats import BoolArray, FloatArray, as_floats
from pipeline.estimators.signals import PreparedSignals

_PACKAGE = "pipeline.estimators"
_COMPARED = 20_000


def check_signals(signals: ArrayLike | PreparedSignals, rows: int | None = None, name: str = "signals") -> FloatArray:
    """``signals`` as finite float64 (M, K); a vector is one signal.

    Raises:
        ValueError: wrong shape, or non-finite values (``fill_missing_signals`` is the stated way in).
    """
    if isinstance(signals, PreparedSignals):
        if rows is not None and len(signals) != rows:
            raise ValueError(f"{name} must have shape ({rows}, K), got {signals.signals.shape}")
        return signals.signals
    values = as_floats(signals, name)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or (rows is not None and len(values) != rows):
        expected = "(M, K)" if rows is None else f"({rows}, K)"
        raise ValueError(f"{name} must have shape {expected}, got {np.shape(signals)}")
    if not np.isfinite(values).all():
        column = int(np.argmin(np.isfinite(values).all(axis=0)))
        raise ValueError(f"{name} have non-finite values (column {column}); use fill_missing_signals first")
    return values


def check_labeled(labeled: ArrayLike | None, y: FloatArray) -> BoolArray:
    """The labeled set as (M,) booleans; None means where ``y`` is finite.

    Raises:
        ValueError: wrong shape, not boolean, or a labeled item whose ``y`` is not finite.
    """
    if labeled is None:
        return np.isfinite(y)
    mask: NDArray[Any] = np.asarray(labeled)
    if mask.shape != y.shape:
        raise ValueError(f"labeled must have shape {y.shape}, got {mask.shape}")
    if mask.dtype != np.bool_:
        if mask.dtype.kind not in "iufO" or not all(entry in (0, 1) for entry in mask.tolist()):
            raise ValueError(f"labeled must be boolean, got dtype {mask.dtype}")
        mask = mask.astype(np.bool_)
    if not np.isfinite(y[mask]).all():
        raise ValueError(f"y is missing at {int((~np.isfinite(y[mask])).sum())} labeled items")
    return mask


def check_outcome(y: ArrayLike, labeled: ArrayLike | None, rows: int | None = None) -> tuple[FloatArray, BoolArray]:
    """(y with NaN outside the labeled set, the labeled set); ``y`` outside ``labeled`` is never read.

    Raises:
        ValueError: wrong shapes, non-finite labels, or no label at all.
    """
    values = as_floats(y, "y")
    if values.ndim != 1 or (rows is not None and len(values) != rows):
        raise ValueError(f"y must have shape ({'M' if rows is None else rows},), got {values.shape}")
    mask = check_labeled(labeled, values)
    if not mask.any():
        raise ValueError("no labeled item: y has no finite value in the labeled set")
    return np.where(mask, values, np.nan), mask


def check_probabilities(probabilities: ArrayLike | None, rows: int) -> FloatArray | None:
    """Label inclusion probabilities (M,) in (0, 1], or None for equal ones."""
    if probabilities is None:
        return None
    values = as_floats(probabilities, "inclusion_probabilities")
    if values.shape != (rows,):
        raise ValueError(f"inclusion_probabilities must have shape ({rows},), got {values.shape}")
    if not (np.isfinite(values).all() and np.all(values > 0.0) and np.all(values <= 1.0)):
        raise ValueError("inclusion_probabilities must lie in (0, 1]")
    return values


def is_binary(y_labeled: FloatArray) -> bool:
    """Whether every label is 0 or 1."""
    return bool(np.all((y_labeled == 0.0) | (y_labeled == 1.0)))


def labels_differ_on_profile(z: FloatArray, labeled: BoolArray, categorical: tuple[bool, ...]) -> float:
    """Smallest p-value, over profile columns, of the hypothesis that L is a random part of T.

    Kolmogorov–Smirnov of L against T \\ L for numeric columns, χ² of the level counts for categorical ones;
    multiplied by the number of columns (Bonferroni). 1.0 where there is nothing to compare. Of a large pool a spread
    of 20,000 items stands for the rest.
    """
    n = int(np.count_nonzero(labeled))
    if min(n, len(labeled) - n) < 5:
        return 1.0
    if len(z) > _COMPARED:
        # Steps of the golden section visit the pool evenly whatever its order, with no period to fall in with.
        step = int(len(z) * 0.6180339887498949) | 1
        visited = (np.arange(_COMPARED, dtype=np.int64) * step) % len(z)
        kept = np.concatenate([np.flatnonzero(labeled), visited[~labeled[visited]]])
        z, labeled = z[kept], labeled[kept]
    tests = (
        _chi_square_p(z[labeled, column], z[~labeled, column])
        if discrete
        else _smirnov_p(z[labeled, column], z[~labeled, column])
        for column, discrete in enumerate(categorical)
    )
    return min(1.0, len(categorical) * min(tests))


def _smirnov_p(first: FloatArray, second: FloatArray) -> float:
    first, second = np.sort(first), np.sort(second)
    # The distance is attained at a point of the smaller sample, just before or at the jump.
    right = np.searchsorted(second, first, side="right") / len(second)
    left = np.searchsorted(second, first, side="left") / len(second)
    own_right = np.searchsorted(first, first, side="right") / len(first)
    own_left = np.searchsorted(first, first, side="left") / len(first)
    distance = float(max(np.abs(own_right - right).max(), np.abs(own_left - left).max()))
    size = len(first) * len(second) / (len(first) + len(second))
    return float(kolmogorov(np.sqrt(size) * distance))


def _chi_square_p(first: FloatArray, second: FloatArray) -> float:
    levels = int(max(first.max(), second.max())) + 1
    table = np.stack([np.bincount(part.astype(np.intp), minlength=levels) for part in (first, second)]).astype(float)
    table = table[:, table.sum(axis=0) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    small = expected[0] < 2.0
    if small.sum() > 1:  # levels too rare for the approximation are tested together
        table = np.concatenate([table[:, ~small], table[:, small].sum(axis=1, keepdims=True)], axis=1)
        expected = np.concatenate([expected[:, ~small], expected[:, small].sum(axis=1, keepdims=True)], axis=1)
    df = table.shape[1] - 1
    if df < 1:
        return 1.0
    return float(gammaincc(df / 2.0, ((table - expected) ** 2 / expected).sum() / 2.0))


def warn_caller(message: str) -> None:
    """A UserWarning that points at the first line outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


def warn_if_labels_not_random(p_value: float, threshold: float = 0.001) -> None:
    """Warn where the labeled items differ from the pool on the profile by more than chance."""
    if p_value < threshold:
        warn_caller(
            f"labels do not look drawn at random from the pool: labeled and unlabeled items differ on the profile "
            f"(p = {p_value:.1g}); pass inclusion_probabilities if the draw was unequal"
        )


def warn_if_unscaled(spread: FloatArray) -> None:
    """Warn where a pool sd is far from 1, because the ridge is on the standardised scale."""
    if spread.size and (spread.min() < 0.3 or spread.max() > 3.0):
        warn_caller(
            f"signals have pool standard deviations from {spread.min():.3g} to {spread.max():.3g}, and the ridge is on "
            "the scale of 1: pass standardize=True or use standardize_signals"
        )
