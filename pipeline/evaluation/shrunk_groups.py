"""Empirical-Bayes shrinkage of a categorical profile as a labeled option beside the unshrunk one."""

from __future__ import annotations

import numpy as np

from pipeline.estimators import Profile, shrink_profile

__all__ = ["SHRUNK", "SHRUNK_NOTE", "shrunk_beside"]

SHRUNK = "lace_profile_shrunk"
"""The name of the shrunk profile beside ``lace_profile``."""
SHRUNK_NOTE = (
    "shrunk: the same groups moved towards their common mean, the more the noisier each is (empirical Bayes). Its"
    " intervals are right on average over the groups, not for each one: an option for tiny groups, no replacement."
)
_LEAST = 4


def shrunk_beside(profile: Profile) -> Profile | None:
    """The shrunk profile; None where the groups overlap or fewer than 4 have an estimate with a variance."""
    kinds = profile.diagnostics.get("locality") or ()
    noisy = np.isfinite(profile.value) & np.isfinite(profile.variance) & (profile.variance > 0.0)
    if not kinds or any(kind != "categorical" for kind in kinds) or int(noisy.sum()) < _LEAST:
        return None
    return shrink_profile(profile)
