"""Checks at the door of the estimators of means: shapes, finiteness, interval names."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import FloatArray, as_floats

Interval = Literal["auto", "t", "wilson"]
INTERVALS = ("auto", "t", "wilson")


def _floats(values: ArrayLike, name: str) -> FloatArray:
    return np.array(as_floats(values, name))


def _finite(array: FloatArray, name: str) -> FloatArray:
    bad = int(np.size(array) - np.isfinite(array).sum())
    if bad:
        raise ValueError(f"{name} has {bad} missing or infinite values; drop or fill those items first")
    return array


def check_vector(values: ArrayLike, name: str, *, length: int | None = None) -> FloatArray:
    """A float64 copy of shape (N,), N ≥ 1 (or ``length``), all finite.

    Raises:
        ValueError: wrong shape, no item, or a value that is not finite.
        TypeError: not numbers.
    """
    array = _floats(values, name)
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"{name} must have shape (N,) with N ≥ 1, got {array.shape}")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} must have shape ({length},), got {array.shape}")
    return _finite(array, name)


def check_matrix(values: ArrayLike, name: str, *, rows: int | None = None, min_columns: int = 1) -> FloatArray:
    """A float64 copy of shape (rows, ≥ min_columns), all finite; ValueError or TypeError otherwise."""
    array = _floats(values, name)
    expected = f"({'N' if rows is None else rows}, at least {min_columns})"
    if array.ndim != 2 or len(array) == 0 or array.shape[1] < min_columns or rows not in (None, len(array)):
        raise ValueError(f"{name} must have shape {expected}, got {array.shape}")
    return _finite(array, name)


def is_binary(phi: FloatArray) -> bool:
    """Whether every outcome is 0 or 1."""
    return bool(np.all((phi == 0.0) | (phi == 1.0)))


def check_interval(interval: str, phi: FloatArray) -> Literal["t", "wilson"]:
    """The interval to compute: ``auto`` is Wilson's where every outcome is 0 or 1, else Student's t.

    Raises:
        ValueError: an unknown name, or ``wilson`` for outcomes outside [0, 1].
    """
    if interval not in INTERVALS:
        raise ValueError(f"interval must be one of {', '.join(INTERVALS)}, got {interval!r}")
    if interval == "t" or (interval == "auto" and not is_binary(phi)):
        return "t"
    if phi.min() < 0.0 or phi.max() > 1.0:
        raise ValueError("interval 'wilson' needs outcomes in [0, 1]; use interval='t'")
    return "wilson"
