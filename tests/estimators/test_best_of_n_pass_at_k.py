"""pass@k: the counting identity in exact rationals, rare successes, intervals over items."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from pipeline.estimators import pass_at_k, pass_at_k_mean


def test_every_small_case_is_the_counting_identity() -> None:
    for n in range(1, 9):
        for k in range(1, n + 1):
            for c in range(n + 1):
                exact = 1 - Fraction(comb(n - c, k), comb(n, k))
                assert pass_at_k(c, n, k) == pytest.approx(float(exact), rel=1e-15, abs=0)


def test_ends_are_exact_and_rare_successes_keep_their_digits() -> None:
    assert pass_at_k(correct=0, n=200, k=100) == 0.0
    assert pass_at_k(200, 200, 1) == 1.0
    assert pass_at_k(101, 200, 100) == 1.0
    assert pass_at_k(1, 10**6, 3) == pytest.approx(3e-6, rel=1e-15)
    exact = 1 - Fraction(comb(9990, 7), comb(10_000, 7))
    assert pass_at_k(10, 10_000, 7) == pytest.approx(float(exact), rel=1e-14)


def test_the_mean_is_over_items_with_their_own_sample_sizes() -> None:
    correct, samples = np.array([0, 3, 10, 2]), np.array([10, 10, 10, 5])
    values = [pass_at_k(int(c), int(n), 3) for c, n in zip(correct, samples, strict=True)]
    estimate = pass_at_k_mean(correct, samples, k=3)
    assert estimate.value == pytest.approx(np.mean(values))
    assert estimate.se == pytest.approx(np.std(values, ddof=1) / 2)
    assert 0.0 <= estimate.low < estimate.value < estimate.high <= 1.0
    clustered = pass_at_k_mean(correct, samples, 3, clusters=["a", "a", "b", "c"])
    assert clustered.n == 3


@pytest.mark.parametrize("count", [0, 4, 10])
def test_items_that_all_agree_do_not_give_an_empty_interval(count: int) -> None:
    estimate = pass_at_k_mean([count] * 20, 10, 2)
    assert estimate.high - estimate.low > 0.1
    assert estimate.low <= estimate.value <= estimate.high


def test_intervals_cover_the_population_value() -> None:
    rng = np.random.default_rng(3)
    replicates, items, n, k = 2000, 40, 10, 3
    truth = 1 - np.mean((1 - (np.arange(1, 20001) - 0.5) / 20000 * 0.6) ** k)
    hits = 0
    for _ in range(replicates):
        counts = rng.binomial(n, rng.uniform(0, 0.6, items))
        estimate = pass_at_k_mean(counts, n, k)
        hits += estimate.low <= truth <= estimate.high
    assert hits / replicates == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: pass_at_k(3, 2, 1), ValueError, r"0..n"),
        (lambda: pass_at_k(-1, 2, 1), ValueError, r"0..n"),
        (lambda: pass_at_k(1, 2, 3), ValueError, "k samples"),
        (lambda: pass_at_k(1, 0, 1), ValueError, "at least 1"),
        (lambda: pass_at_k(0.5, 2, 1), TypeError, "integer"),
        (lambda: pass_at_k_mean([1, 2], 10, 11), ValueError, "k samples"),
        (lambda: pass_at_k_mean([1, 11], 10, 2), ValueError, "every item"),
        (lambda: pass_at_k_mean([1, 2], [10, 10, 10], 2), ValueError, "shape"),
        (lambda: pass_at_k_mean([0.5, 2], 10, 2), TypeError, "integers"),
        (lambda: pass_at_k_mean([3], 10, 2), ValueError, "2 prompts"),
        (lambda: pass_at_k_mean([3, 4], 10, 2, clusters=[1, 1]), ValueError, "2 clusters"),
    ],
)
def test_refusals(call, error: type[Exception], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        call()
