"""Design comparison and sensitivity to dependence against simulation of the designs themselves."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.estimators import (
    best_of_n_batch,
    best_of_n_fixed_split,
    best_of_n_reuse,
    compare_designs,
    dependence_sensitivity,
    winner_weights,
)


def pools(seed: int, prompts: int, m: int, k: int, sigma: float = 0.6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.2, 0.8, (prompts, m))[:, :, None] + sigma * rng.standard_normal((prompts, m, k))


def fresh_winner_variance(j: int, n: int, s: int, m: int, sigma: float = 0.6) -> float:
    """Variance of the design itself: draw N candidates, select on J scores, score the winner s more times."""
    rng = np.random.default_rng(99)
    prompts = 200_000
    means = rng.uniform(0.2, 0.8, (prompts, n))  # candidates are exchangeable: the first N are a random subset
    winner = np.argmax(means + sigma / np.sqrt(j) * rng.standard_normal((prompts, n)), axis=1)
    values = means[np.arange(prompts), winner] + sigma / np.sqrt(s) * rng.standard_normal(prompts)
    return float(values.var(ddof=1))


@pytest.mark.parametrize(("n", "j"), [(8, 1), (4, 2), (3, 3)])
def test_variances_of_designs_are_those_of_the_designs(n: int, j: int) -> None:
    designs = compare_designs(pools(1, 4000, 8, 4), n, j, budget=1e6)
    for design in designs:
        if design.name != "cyclic":
            assert design.variance == pytest.approx(fresh_winner_variance(j, n, design.s, 8), rel=0.06)
            assert design.cost == n * j + design.s
    cyclic = next(design for design in designs if design.name == "cyclic")
    assert cyclic.cost == 32
    assert cyclic.variance == pytest.approx(best_of_n_batch(pools(2, 4000, 8, 4), n, j).var(ddof=1), rel=0.1)
    products = [design.cost_variance for design in designs]
    assert products == sorted(products)
    assert all(design.cost_variance == pytest.approx(design.cost * design.variance) for design in designs)


def test_fixed_split_is_the_estimator_of_that_name() -> None:
    scores = pools(3, 6000, 8, 4)
    split = next(design for design in compare_designs(scores, 8, 1, 1e6) if design.name == "fixed_split")
    values = [best_of_n_fixed_split(matrix, 8, 1) for matrix in scores]
    assert split.s == 3
    assert split.variance == pytest.approx(np.var(values, ddof=1), rel=0.06)


def test_costs_budget_and_the_deepest_policy() -> None:
    scores = pools(4, 200, 6, 3)
    priced = compare_designs(scores, 4, 1, 1e6, score_cost=2.0, generation_cost=5.0)
    costs = {(design.name, design.s): design.cost for design in priced}
    assert costs["cyclic", 2] == 6 * (3 * 2 + 5)
    assert costs["fixed_split", 2] == 4 * (2 + 5) + 2 * 2
    tight = compare_designs(scores, 4, 1, budget=10.0)
    affordable = [design.cost <= 10.0 for design in tight]
    assert affordable == sorted(affordable, reverse=True)
    assert not affordable[-1]
    deepest = compare_designs(scores, 4, 3, 1e6)
    assert {design.name for design in deepest} == {"fresh_winner"}
    assert {1, 2} <= {design.s for design in deepest}
    ragged = compare_designs([*scores[:50], *scores[50:, :5]], 4, 1, 1e6)
    assert {design.name for design in ragged} == {"cyclic", "fixed_split", "fresh_winner"}


def dependent(rho: float, prompts: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(17)
    means = rng.beta(2, 2, (prompts, 16))
    shared, own = rng.standard_normal((prompts, 16, 1)), rng.standard_normal((prompts, 16, 8))
    return means, means[:, :, None] + 0.4 * (np.sqrt(rho) * shared + np.sqrt(1 - rho) * own)


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.4, 0.8])
def test_the_bias_of_dependent_scores_is_predicted_from_the_scores_alone(rho: float) -> None:
    """Equicorrelated scores: estimate − value of the realised selections, against the prediction at the true ρ."""
    prompts, j = 1500, 7
    means, scores = dependent(rho, prompts)
    actual = np.array(
        [
            np.mean([winner_weights(np.delete(matrix, k, 1).sum(axis=1), 4) @ mean for k in range(8)])
            for mean, matrix in zip(means, scores, strict=True)
        ]
    )
    bias = best_of_n_batch(scores, 4) - actual
    predicted = dependence_sensitivity(scores, 4, j, [rho])[0]
    assert predicted.rho == rho
    noise = 4 * bias.std(ddof=1) / np.sqrt(prompts)
    assert predicted.bias == pytest.approx(bias.mean(), abs=noise + 0.25 * predicted.bias)
    # The published equation, with the actual value known.
    fraction = j * rho / (1 + (j - 1) * rho)
    reuse = np.mean([best_of_n_reuse(matrix, 4) for matrix in scores])
    assert fraction * (reuse - actual.mean()) == pytest.approx(bias.mean(), abs=noise)


def test_one_matrix_gives_one_sensitivity_per_rho() -> None:
    scores = pools(5, 1, 8, 4)[0]
    curve = dependence_sensitivity(scores, n=4, j=3, rhos=[0.0, 0.2, 0.5])
    assert [point.rho for point in curve] == [0.0, 0.2, 0.5]
    assert curve[0].bias == 0.0
    assert 0.0 < curve[1].bias < curve[2].bias


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: compare_designs(s[:1], 2, 1, 10), "2 prompts"),
        (lambda s: compare_designs(s, 2, 5, 10), "1..K"),
        (lambda s: compare_designs(s, 9, 1, 10), "1..M"),
        (lambda s: compare_designs(s, 2, 1, 0.0), "budget"),
        (lambda s: compare_designs(s, 2, 1, 10, score_cost=0.0), "score_cost"),
        (lambda s: compare_designs(s, 2, 1, 10, generation_cost=-1.0), "generation_cost"),
        (lambda s: dependence_sensitivity(s[0], 2, 1, [1.0]), "rhos"),
        (lambda s: dependence_sensitivity(s[0], 2, 4, [0.5]), "no unbiased estimator"),
    ],
)
def test_refusals(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=words):
        call(pools(6, 5, 8, 4))
