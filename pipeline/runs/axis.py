"""The profile axis of a target: where items lie, where the curve is asked, by which weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.benchmark.items import jitter_profile
from pipeline.config import RunConfig
from pipeline.estimators import Categorical
from pipeline.runs.arrays import TargetArrays

__all__ = ["Axis", "profile_axis"]


@dataclass(frozen=True, slots=True)
class Axis:
    """The profile axis: where each item lies, where the curve is asked, and by which weights."""

    z: NDArray[Any]
    at: NDArray[Any] | None
    locality: Categorical | None


def profile_axis(arrays: TargetArrays, config: RunConfig) -> Axis | None:
    """An ordered axis is jittered and smoothed by a Gaussian kernel at its levels; a categorical one is exact."""
    profile = config.benchmark.profile
    if arrays.profile is None:
        return None
    if arrays.profile.dtype.kind in "US":
        return Axis(arrays.profile, None, Categorical())
    levels = np.unique(arrays.profile)
    ordered = profile.kind == "ordinal" if profile else len(levels) <= 20 and bool((levels % 1 == 0).all())
    if ordered and len(levels) > 1:
        return Axis(jitter_profile(arrays.profile, config.seed), levels, None)
    return Axis(arrays.profile, None, None) if len(levels) > 1 else None
