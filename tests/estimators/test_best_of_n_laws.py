"""Laws of Best-of-N: shifts, scales, agreement, unbiasedness, and a tie-break that fails the same test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.estimators import (
    bernoulli_target,
    best_of_n,
    best_of_n_batch,
    best_of_n_complete,
    best_of_n_reuse,
    two_candidate_umvu,
    winner_weights,
)

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, m=st.integers(2, 7), k=st.integers(2, 6), discrete=st.booleans())
def test_adding_b_k_to_column_k_adds_the_mean_of_b(seed: int, m: int, k: int, discrete: bool) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (m, k)) / 10 if discrete else rng.standard_normal((m, k))
    shift = rng.normal(0, 3, k)
    n, j = int(rng.integers(1, m + 1)), int(rng.integers(1, k))
    for estimate in (best_of_n, best_of_n_complete):
        assert estimate(scores + shift, n, j) == pytest.approx(estimate(scores, n, j) + shift.mean(), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, m=st.integers(2, 6), k=st.integers(2, 6), discrete=st.booleans())
def test_complete_equals_cyclic_at_the_shallowest_and_deepest_selector(
    seed: int, m: int, k: int, discrete: bool
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (m, k)) if discrete else rng.standard_normal((m, k))
    n = int(rng.integers(1, m + 1))
    for j in (1, k - 1):
        assert best_of_n_complete(scores, n, j) == pytest.approx(best_of_n(scores, n, j), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, factor=st.floats(0.1, 50.0))
def test_scaling_scores_scales_the_estimate(seed: int, factor: float) -> None:
    scores = np.random.default_rng(seed).standard_normal((6, 4))
    assert best_of_n(scores * factor, 3, 2) == pytest.approx(best_of_n(scores, 3, 2) * factor, rel=1e-10, abs=1e-12)


def test_one_candidate_subsets_give_the_pool_mean() -> None:
    scores = np.random.default_rng(0).standard_normal((7, 3))
    for estimate in (best_of_n, best_of_n_reuse):
        assert estimate(scores, 1, 2) == pytest.approx(scores.mean(), abs=1e-15)
    assert best_of_n_complete(scores, 1, 2) == pytest.approx(scores.mean(), abs=1e-15)


def test_scores_are_not_modified() -> None:
    scores = np.random.default_rng(0).integers(0, 5, (7, 4)) / 10
    before = scores.copy()
    best_of_n(scores, 3)
    best_of_n_batch([scores, scores], 3, 2)
    best_of_n_complete(scores, 3, 2)
    np.testing.assert_array_equal(scores, before)


def test_zero_one_keys_give_pass_at_k() -> None:
    from math import comb

    keys = np.array([1, 0, 0, 1, 0, 0, 0, 1, 0])
    weights = winner_weights(keys, 4)
    assert weights[keys == 1].sum() == pytest.approx(1 - comb(6, 4) / comb(9, 4), abs=1e-15)


POOLS = [(2, 2, 2), (2, 2, 4), (4, 2, 4), (4, 4, 4), (8, 4, 8)]
REPLICATES = 20_000


def bernoulli_errors(m: int, n: int, k: int, *, first_index: bool) -> np.ndarray:
    """Errors of Holdout on seeded Bernoulli pools; with ``first_index`` ties go to the candidate listed first."""
    rng = np.random.default_rng([20, m, n, k])
    p = np.linspace(0.2, 0.8, m)
    scores = (rng.random((REPLICATES, m, k)) < p[None, :, None]).astype(np.int64)
    target = bernoulli_target(p, j=k - 1, n=n)
    if not first_index:
        return best_of_n_batch(scores, n) - target
    values = np.zeros(REPLICATES)
    tie_break = np.arange(m)[None, :] / (2.0 * m)
    for held_out in range(k):
        keys = scores.sum(axis=2) - scores[:, :, held_out] - tie_break
        order = np.argsort(keys, axis=1)
        weights = winner_weights(np.arange(m), n)
        values += np.take_along_axis(scores[:, :, held_out], order, axis=1) @ weights
    return np.asarray(values / k - target)


@pytest.mark.parametrize(("m", "n", "k"), POOLS)
def test_holdout_is_unbiased_on_bernoulli_pools(m: int, n: int, k: int) -> None:
    errors = bernoulli_errors(m, n, k, first_index=False)
    assert abs(errors.mean()) < 4 * errors.std(ddof=1) / np.sqrt(REPLICATES)


@pytest.mark.parametrize(("m", "n", "k"), POOLS)
def test_first_index_tie_breaking_fails_the_same_test(m: int, n: int, k: int) -> None:
    errors = bernoulli_errors(m, n, k, first_index=True)
    assert errors.mean() < -4 * errors.std(ddof=1) / np.sqrt(REPLICATES)
    assert -0.12 < errors.mean() < -0.015


@pytest.mark.parametrize("j", [1, 3, 5])
def test_minimum_variance_estimator_is_unbiased_and_beats_cyclic(j: int) -> None:
    from pipeline.estimators import gaussian_pair_risk, gaussian_target

    rng = np.random.default_rng(j)
    replicates, k, sigma = 20_000, 6, 1.3
    noise = sigma * rng.standard_normal((replicates, 2, k))
    for d in (0.0, 0.7):
        scores = noise + np.array([d, 0.0])[None, :, None]
        target = gaussian_target([d, 0.0], sigma, j, 2)
        errors = np.array([two_candidate_umvu(matrix, j, sigma) for matrix in scores]) - target
        assert abs(errors.mean()) < 4 * errors.std(ddof=1) / np.sqrt(replicates)
        cyclic = best_of_n_batch(scores, 2, j) - target
        gap = cyclic**2 - errors**2
        assert gap.mean() > -4 * gap.std(ddof=1) / np.sqrt(replicates)
        if d == 0.0:
            risk, noise_of_risk = (errors**2).mean(), (errors**2).std(ddof=1) / np.sqrt(replicates)
            assert risk == pytest.approx(gaussian_pair_risk(j, k, sigma), abs=4 * noise_of_risk)
