"""Best-of-N estimators against enumeration in exact rationals: every subset, every selection set, ties split evenly."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest

from pipeline.estimators import (
    best_of_n,
    best_of_n_batch,
    best_of_n_complete,
    best_of_n_fixed_split,
    best_of_n_gold,
    best_of_n_plug_in,
    best_of_n_reuse,
    winner_weights,
)

Matrix = list[list[int]]


def exact_weights(keys: list[int], n: int) -> list[Fraction]:
    """Winner weights by listing every size-n subset."""
    weights = [Fraction(0)] * len(keys)
    subsets = list(combinations(range(len(keys)), n))
    for subset in subsets:
        best = max(keys[m] for m in subset)
        winners = [m for m in subset if keys[m] == best]
        for m in winners:
            weights[m] += Fraction(1, len(winners) * len(subsets))
    return weights


def exact_value(scores: Matrix, n: int, sets: list[tuple[int, ...]], evaluate: str = "held_out") -> Fraction:
    """Average over selection column sets of the winner-weighted evaluation means."""
    draws = range(len(scores[0]))
    total = Fraction(0)
    for chosen in sets:
        used = [k for k in draws if k not in chosen] if evaluate == "held_out" else list(chosen)
        weights = exact_weights([sum(row[k] for k in chosen) for row in scores], n)
        total += sum(q * Fraction(sum(row[k] for k in used), len(used)) for q, row in zip(weights, scores, strict=True))
    return total / len(sets)


def cyclic_sets(draws: int, depth: int) -> list[tuple[int, ...]]:
    return [tuple((start + step) % draws for step in range(depth)) for start in range(draws)]


CASES = [(m, n, k) for m in range(1, 8) for n in range(1, m + 1) for k in (2, 3, 4)]
LEVELS = 3


def matrix(m: int, n: int, k: int) -> Matrix:
    return np.random.default_rng([m, n, k]).integers(0, LEVELS, (m, k)).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("m", "n", "k"), CASES)
def test_every_estimator_equals_enumeration_with_ties(m: int, n: int, k: int) -> None:
    scores = matrix(m, n, k)
    for depth in range(1, k):
        cyclic = exact_value(scores, n, cyclic_sets(k, depth))
        complete = exact_value(scores, n, list(combinations(range(k), depth)))
        reuse = exact_value(scores, n, cyclic_sets(k, depth), "selection")
        fixed = exact_value(scores, n, [tuple(range(depth))])
        for step in (1, 3, 10):
            scaled = np.array(scores) / step
            assert best_of_n(scaled, n, depth) == pytest.approx(float(cyclic / step), abs=2e-15)
            assert best_of_n_complete(scaled, n, depth) == pytest.approx(float(complete / step), abs=2e-15)
            assert best_of_n_reuse(scaled, n, depth) == pytest.approx(float(reuse / step), abs=2e-15)
            assert best_of_n_fixed_split(scaled, n, depth) == pytest.approx(float(fixed / step), abs=2e-15)
    holdout = exact_value(scores, n, cyclic_sets(k, k - 1))
    assert best_of_n(scores, n=n) == pytest.approx(float(holdout), abs=2e-15)
    plug_in = exact_value(scores, n, [tuple(range(k))], "selection")
    assert best_of_n_plug_in(scores, n=n) == pytest.approx(float(plug_in), abs=2e-15)


@pytest.mark.parametrize(("m", "n", "k"), CASES)
def test_winner_weights_equal_enumeration_with_ties(m: int, n: int, k: int) -> None:
    keys = [row[0] for row in matrix(m, n, k)]
    exact = [float(weight) for weight in exact_weights(keys, n)]
    np.testing.assert_allclose(winner_weights(keys, n=n), exact, rtol=1e-15, atol=0)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gold_of_the_selected_candidate_equals_enumeration(depth: int) -> None:
    scores, gold = matrix(6, 3, 3), [1, 0, 0, 1, 0, 1]
    weights = [exact_weights([sum(row[k] for k in chosen) for row in scores], 3) for chosen in cyclic_sets(3, depth)]
    exact = sum(q * g for row in weights for q, g in zip(row, gold, strict=True)) / Fraction(3)
    assert best_of_n_gold(scores, gold, n=3, j=depth) == pytest.approx(float(exact), abs=1e-15)


@pytest.mark.parametrize("shape", [(7, 4), (200, 5), (40, 3)])
@pytest.mark.parametrize("levels", [2, 7, 1000, None])
def test_a_batch_equals_its_prompts_whatever_the_route(shape: tuple[int, int], levels: int | None) -> None:
    rng = np.random.default_rng(5)
    size = (9, *shape)
    scores = rng.standard_normal(size) if levels is None else rng.integers(0, levels, size) / 10
    singles = [best_of_n(matrix, 4, 2) for matrix in scores]
    np.testing.assert_array_equal(best_of_n_batch(scores, 4, 2), singles)
    ragged = [*scores, scores[0][:5], scores[1][:, :3]]
    expected = [*singles, best_of_n(scores[0][:5], 4, 2), best_of_n(scores[1][:, :3], 4, 2)]
    np.testing.assert_array_equal(best_of_n_batch(ragged, n=4, j=2), expected)


@pytest.mark.parametrize("n", [2, 50, 1500])
@pytest.mark.parametrize("levels", [3, 40, 30_000, 10**12, None])
def test_counting_partition_and_sorting_agree_on_large_pools(n: int, levels: int | None) -> None:
    """3,000 candidates: counting for few levels, partition for large N, sorting else; against the plain formula."""
    rng = np.random.default_rng(11)
    shape = (3000, 3)
    scores = rng.standard_normal(shape).round(4) if levels is None else rng.integers(0, levels, shape)
    expected = np.mean([winner_weights(scores[:, k], n) @ np.delete(scores, k, axis=1).mean(axis=1) for k in range(3)])
    assert best_of_n(scores, n, 1) == pytest.approx(float(expected), rel=1e-12)
    assert best_of_n(np.asarray(scores, dtype=float), n, 1, lattice=None) == pytest.approx(float(expected), rel=1e-12)


def test_weights_at_a_hundred_thousand_candidates_are_exact_to_rounding() -> None:
    m, n = 100_000, 40
    weights = winner_weights(np.arange(m), n)
    for rank in (m - 1, m - 2, m - 1000, m // 2, 1000):
        exact = Fraction(comb(rank, n - 1), comb(m, n))
        assert abs(Fraction(float(weights[rank])) / exact - 1) < Fraction(2, 10**15)
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)


def test_platforms_without_extended_precision_get_the_same_weights() -> None:
    from pipeline.estimators.best_of_n.weights import _decimal_recursion, _recursion

    np.testing.assert_allclose(
        _decimal_recursion(5000, 7), _recursion(5000, 7).astype(np.float64), rtol=5e-16, atol=1e-300
    )
