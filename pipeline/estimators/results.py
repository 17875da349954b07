"""What estimators return: a number with its interval, or a profile of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Estimate", "Profile"]

FloatArray = NDArray[np.float64]


def _plain(value: Any) -> Any:
    """The value as strict JSON would hold it: arrays become lists, NaN and infinities become None."""
    if isinstance(value, np.ndarray):
        return [_plain(entry) for entry in value.tolist()]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value


@dataclass(frozen=True, slots=True)
class Estimate:
    """One estimated number.

    Attributes:
        value: point estimate, never clipped.
        se: standard error (same unit as ``value``).
        low: lower end of the two-sided interval at ``level``.
        high: upper end of the interval.
        level: nominal coverage in (0, 1).
        n: number of labeled items (or clusters' items) that carry the estimate.
        method: short name of the estimator.
        diagnostics: named facts about the fit; plain numbers, strings, lists and mappings.
    """

    value: float
    se: float
    low: float
    high: float
    level: float
    n: int
    method: str
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values; NaN is None."""
        return {entry.name: _plain(getattr(self, entry.name)) for entry in fields(self)}


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """An estimated curve: one value, interval and diagnosis per profile point.

    Attributes:
        at: (G,) or (G, q) points, or (G,) levels (numbers or strings).
        value: (G,) point estimates, NaN where there is no labeled item in reach.
        se: (G,) standard errors.
        low, high: (G,) pointwise interval ends.
        n_effective: (G,) effective number of labeled items, 1/Σw².
        df: (G,) degrees of freedom of the t interval.
        variance: (G,) estimated variance of ``value`` (se²).
        r2: (G,) adjusted local R² of the signals, floored at 0.
        gain: (G,) variance ratio against the naive local mean, 1/(1 − (1 − π)·r2).
        beta: (G, K) control-variate coefficients.
        method: short name of the estimator.
        target: "pool" or "population".
        level: nominal pointwise coverage.
        diagnostics: named facts about the fit.
    """

    at: NDArray[Any]
    value: FloatArray
    se: FloatArray
    low: FloatArray
    high: FloatArray
    n_effective: FloatArray
    df: FloatArray
    variance: FloatArray
    r2: FloatArray
    gain: FloatArray
    beta: FloatArray
    method: str
    target: str
    level: float
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values; arrays are lists, NaN is None."""
        return {entry.name: _plain(getattr(self, entry.name)) for entry in fields(self)}
