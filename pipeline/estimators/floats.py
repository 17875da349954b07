"""Whatever holds numbers as float64: lists, pandas and polars columns, masked arrays; missing becomes NaN."""

from __future__ import annotations

from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]

_MISSING_TYPES = ("NAType", "NaTType")  # pandas' markers, known by name so that pandas need not be there


def is_missing(entry: Any) -> bool:
    """Whether one entry of an object array is None, NaN or pandas' NA."""
    return (
        entry is None
        or type(entry).__name__ in _MISSING_TYPES
        or (isinstance(entry, float | np.floating) and bool(entry != entry))
    )


def as_floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """``values`` as float64, masked and missing entries as NaN; not a copy where nothing had to be changed.

    Raises:
        TypeError: text or other things that are not numbers.
    """
    if np.ma.isMaskedArray(values):
        masked: Any = values
        return np.asarray(np.ma.filled(masked.astype(np.float64), np.nan))
    raw: NDArray[Any] = np.asarray(values)
    if raw.dtype.kind in "buif":
        return raw.astype(np.float64, copy=False)
    if raw.dtype.kind != "O":
        raise TypeError(f"{name} must hold numbers, got dtype {raw.dtype}")
    numbers = [_number(entry, name) for entry in raw.reshape(-1).tolist()]
    return np.array(numbers, dtype=np.float64).reshape(raw.shape)


def _number(entry: Any, name: str) -> float:
    if is_missing(entry):
        return np.nan
    if isinstance(entry, Real | np.bool_):
        return float(entry)
    if type(entry).__name__ == "Decimal":
        return float(entry)
    raise TypeError(f"{name} must hold numbers, got {entry!r:.40}")
