"""Agreement of two raters, and rates corrected for a rater's errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pipeline.estimators import naive_mean
from pipeline.estimators.raters import krippendorff_alpha, rater_agreement, rogan_gladen


def _by_pairs(a: np.ndarray, b: np.ndarray, nominal: bool) -> float:
    """α by its definition: disagreement within items over that between any two ratings."""

    def apart(x: float, y: float) -> float:
        return float(x != y) if nominal else (x - y) ** 2

    within = np.mean([apart(x, y) for x, y in zip(a, b, strict=True)])
    anyone = np.mean([apart(x, y) for x, y in itertools.permutations([*a, *b], 2)])
    return 1.0 - within / anyone


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", ["nominal", "interval"])
def test_alpha_is_its_definition(seed: int, scale: str) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 5, 14).astype(float)
    b = np.where(rng.random(14) < 0.6, a, rng.integers(1, 5, 14))
    assert krippendorff_alpha(a, b, scale=scale) == pytest.approx(_by_pairs(a, b, scale == "nominal"))  # type: ignore[arg-type]


def test_laws_of_agreement() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(1, 6, 40).astype(float), rng.integers(1, 6, 40).astype(float)
    found = rater_agreement(a, b)
    turned = rater_agreement(b, a)
    assert found.alpha.value == pytest.approx(turned.alpha.value)
    assert rater_agreement(10 * a + 3, 10 * b + 3).alpha.value == pytest.approx(found.alpha.value)
    assert rater_agreement(a, a).alpha.value == 1.0
    assert abs(found.alpha.value) < 0.4, "raters by chance agree as chance does"
    missing = np.where(np.arange(40) < 10, np.nan, a)
    assert rater_agreement(missing, b).n == 30


def test_everybody_says_the_same_is_agreement_without_an_exception() -> None:
    found = rater_agreement(np.ones(5), np.ones(5))
    assert (found.raw.value, found.alpha.value) == (1.0, 1.0)
    with pytest.raises(ValueError, match="at least 2 items that both rated, got 1"):
        rater_agreement([1.0, np.nan], [1.0, 0.0])
    with pytest.raises(ValueError, match="one shape"):
        rater_agreement([1.0], [1.0, 0.0])


def test_the_interval_of_alpha_covers() -> None:
    rng = np.random.default_rng(3)
    accuracy, covered, reps = 0.9, 0, 300
    a, b = _two_raters(rng, 200_000, accuracy)
    truth = krippendorff_alpha(a, b)
    for _ in range(reps):
        found = rater_agreement(*_two_raters(rng, 60, accuracy)).alpha
        covered += found.low <= truth <= found.high
    assert covered / reps >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / reps) - 0.02  # the jackknife of a ratio is a little short


def _two_raters(rng: np.random.Generator, n: int, accuracy: float) -> tuple[np.ndarray, np.ndarray]:
    truth = rng.random(n) < 0.6
    first, second = (np.where(rng.random(n) < accuracy, truth, ~truth).astype(float) for _ in range(2))
    return first, second


def test_a_rate_is_freed_from_the_raters_errors() -> None:
    rng = np.random.default_rng(5)
    truth, sensitivity, specificity, reps = 0.7, 0.9, 0.8, 400
    estimates = []
    for _ in range(reps):
        right = rng.random(200) < truth
        called = np.where(right, rng.random(200) < sensitivity, rng.random(200) >= specificity).astype(float)
        checked_right = rng.binomial(80, sensitivity) / 80
        checked_wrong = rng.binomial(40, specificity) / 40
        estimates.append(rogan_gladen(naive_mean(called), checked_right, checked_wrong, n_right=80, n_wrong=40))
    values = np.array([estimate.value for estimate in estimates])
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(reps) + 0.01
    covered = np.mean([estimate.low <= truth <= estimate.high for estimate in estimates])
    assert covered >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / reps)


def test_perfect_raters_change_nothing_and_hopeless_ones_are_refused() -> None:
    rate = naive_mean([1, 0, 1, 1, 0, 1, 1, 1])
    same = rogan_gladen(rate, 1.0, 1.0)
    assert (same.value, same.se) == (rate.value, rate.se)
    with pytest.raises(ValueError, match="no better than a coin"):
        rogan_gladen(rate, 0.5, 0.5)
    with pytest.raises(ValueError, match="sensitivity must be in"):
        rogan_gladen(rate, 1.2, 0.9)
