"""Quantiles and the two intervals that every estimator shares: Student's t and Wilson's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from pipeline.estimators.floats import FloatArray

_ROUNDING = 1e-12


def check_level(level: float) -> float:
    """``level`` as a float; ValueError unless 0 < level < 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}")
    return float(level)


def normal_quantile(level: float) -> float:
    """Two-sided standard normal quantile: 1.96 at level 0.95."""
    return float(ndtri(0.5 + check_level(level) / 2.0))


def t_quantile(df: ArrayLike, level: float) -> FloatArray:
    """Two-sided Student t quantile, element by element; the normal quantile where ``df`` is infinite."""
    probability = 0.5 + check_level(level) / 2.0
    single: bool = isinstance(df, int)
    if single:
        return np.asarray(stdtrit(df, probability))
    degrees = np.asarray(df, dtype=np.float64)
    finite = np.isfinite(degrees)
    quantile = stdtrit(np.where(finite, degrees, 1.0), probability)
    return np.asarray(np.where(finite | np.isnan(degrees), quantile, ndtri(probability)), dtype=np.float64)


def t_interval(value: ArrayLike, se: ArrayLike, df: ArrayLike, level: float) -> tuple[FloatArray, FloatArray]:
    """value ± t_df · se, element by element."""
    centre = np.asarray(value, dtype=np.float64)
    half = t_quantile(df, level) * np.asarray(se, dtype=np.float64)
    return np.asarray(centre - half), np.asarray(centre + half)


def wilson_interval(p: ArrayLike, n: ArrayLike, quantile: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Wilson's score interval of a proportion, element by element.

    Args:
        p: proportion in [0, 1].
        n: (effective) number of trials, > 0; need not be an integer.
        quantile: two-sided critical value (1.96, or a t quantile).

    Returns:
        (low, high), both inside [0, 1].
    """
    share, count = _numbers(p), _numbers(n)
    square = _numbers(quantile) ** 2
    denominator = 1.0 + square / count
    centre = (share + square / (2.0 * count)) / denominator
    half = np.sqrt(square) * np.sqrt(share * (1.0 - share) / count + square / (4.0 * count**2)) / denominator
    low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
    # Exact at the ends: an upper end of 0.9999999999999998 counted a true 1.0 as missed.
    return np.where(share <= _ROUNDING, 0.0, low), np.where(share >= 1.0 - _ROUNDING, 1.0, high)


def _numbers(values: ArrayLike) -> Any:
    """Values as float64; a single one as a NumPy scalar, whose arithmetic costs less than an array's."""
    return np.float64(values) if isinstance(values, float) else np.asarray(values, dtype=np.float64)
