"""Shrinkage of small groups towards each other: an option beside the unshrunk estimates."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.estimators import (
    Categorical,
    lace_profile,
    shrink_profile,
    standardize_signals,
)


class TestShrinkage:
    def make(self, seed: int, spread: float) -> tuple[object, np.ndarray]:
        rng = np.random.default_rng(seed)
        truth = np.clip(0.6 + spread * rng.normal(size=12), 0.05, 0.95)
        group = rng.integers(0, 12, 1200)
        y = (rng.random(1200) < truth[group]).astype(float)
        labeled = rng.random(1200) < 0.12
        profile = lace_profile(
            group, y, standardize_signals(rng.normal(size=(1200, 1)) + y[:, None]), labeled=labeled,
            locality=Categorical(), interval="t",
        )  # fmt: skip
        exact = np.array([y[group == level].mean() for level in range(12)])
        return profile, exact

    def test_lowers_the_error_of_small_groups(self) -> None:
        plain = shrunk = 0.0
        hits = []
        for seed in range(60):
            profile, exact = self.make(seed, 0.06)
            small = shrink_profile(profile)
            plain += np.mean((profile.value - exact) ** 2)
            shrunk += np.mean((small.value - exact) ** 2)
            hits.append(np.mean((small.low <= exact) & (exact <= small.high)))
        assert shrunk < 0.85 * plain
        assert np.mean(hits) > 0.92

    def test_keeps_the_unshrunk_interval_and_says_so(self) -> None:
        profile, _ = self.make(1, 0.2)
        small = shrink_profile(profile)
        assert small.method == "lace+shrunk"
        np.testing.assert_array_equal(small.diagnostics["unshrunk_low"], profile.low)
        assert small.value.std() < profile.value.std()
        assert small.se.mean() < profile.se.mean()

    def test_overlapping_neighbourhoods_are_refused(self) -> None:
        rng = np.random.default_rng(60)
        z, y = rng.uniform(0, 3, 200), (rng.random(200) < 0.6).astype(float)
        labeled = np.arange(200) < 70
        profile = lace_profile(z, y, rng.normal(size=(200, 2)), labeled=labeled)
        with pytest.raises(ValueError, match="disjoint"):
            shrink_profile(profile)
