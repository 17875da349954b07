"""Exact targets against closed forms, brute force over all outcomes, simulation, and the published values."""

from __future__ import annotations

from itertools import combinations, product
from math import sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf, ndtr

from pipeline.estimators import (
    bernoulli_target,
    bounded_risk_bound,
    gaussian_pair_risk,
    gaussian_target,
    holdout_pair_risk,
    lattice_target,
)

PUBLISHED = {(2, 2, 2): 0.68, (2, 2, 4): 0.765248, (4, 2, 4): 0.6089067, (4, 4, 4): 0.6946996, (8, 4, 8): 0.6730678}


@pytest.mark.parametrize(("pool", "value"), PUBLISHED.items())
def test_bernoulli_pools_have_their_published_values(pool: tuple[int, int, int], value: float) -> None:
    m, n, k = pool
    assert bernoulli_target(np.linspace(0.2, 0.8, m), j=k - 1, n=n) == pytest.approx(value, abs=6e-8)


@pytest.mark.parametrize(("d", "j", "sigma"), [(0.0, 1, 1.0), (0.5, 3, 1.0), (-2.0, 7, 0.3), (8.0, 2, 1.0)])
def test_gaussian_pairs_have_the_closed_form(d: float, j: int, sigma: float) -> None:
    closed = d / 2 + d / 2 * erf(sqrt(j) * d / (2 * sigma))
    assert gaussian_target([d, 0.0], sigma, j, 2) == pytest.approx(closed, abs=1e-13)
    assert gaussian_target([d + 1e6, 1e6], sigma, j, 2) == pytest.approx(closed + 1e6, abs=1e-9)


def quadrature(mu: np.ndarray, scale: np.ndarray, n: int) -> float:
    """The winner chances by adaptive quadrature over every subset."""
    total = 0.0
    subsets = list(combinations(range(len(mu)), n))
    for subset in subsets:
        for m in subset:
            others = [other for other in subset if other != m]

            def integrand(z: float, m: int = m, others: list[int] = others) -> float:
                x = mu[m] + scale[m] * z
                beaten = np.prod([ndtr((x - mu[other]) / scale[other]) for other in others])
                return float(np.exp(-z * z / 2) / sqrt(2 * np.pi) * beaten)

            total += mu[m] * quad(integrand, -9, 9, epsabs=1e-12, limit=400, points=[-3, 0, 3])[0]
    return total / len(subsets)


@pytest.mark.parametrize("sigma", [1.0, np.array([1.0, 0.02, 0.3, 2.5, 1.0])])
@pytest.mark.parametrize("n", [2, 4, 5])
def test_gaussian_pools_match_adaptive_quadrature(sigma: object, n: int) -> None:
    mu = np.array([0.0, 0.3, -0.4, -1.0, 0.5])
    scale = np.broadcast_to(np.asarray(sigma, dtype=float), mu.shape) / sqrt(3)
    assert gaussian_target(mu, sigma, j=3, n=n) == pytest.approx(quadrature(mu, scale, n), abs=1e-9)  # type: ignore[arg-type]


def every_outcome(pmf: np.ndarray, values: np.ndarray, j: int, n: int) -> float:
    """Brute force: all score outcomes of all candidates, all subsets, ties split evenly."""
    m, levels = pmf.shape
    means = pmf @ values
    total = 0.0
    outcomes = list(product(range(levels), repeat=j))
    keys = [round(float(sum(values[o] for o in outcome)), 9) for outcome in outcomes]
    chances = np.array([[np.prod(row[list(outcome)]) for outcome in outcomes] for row in pmf])
    subsets = list(combinations(range(m), n))
    for draw in product(range(len(outcomes)), repeat=m):
        chance = np.prod([chances[c, o] for c, o in enumerate(draw)])
        if chance == 0.0:
            continue
        for subset in subsets:
            best = max(keys[draw[c]] for c in subset)
            winners = [c for c in subset if keys[draw[c]] == best]
            total += chance * float(np.mean(means[winners])) / len(subsets)
    return total


@pytest.mark.parametrize("values", [[0.0, 1.0, 2.0], [-1.0, 0.1, 0.2], [0.0, np.sqrt(2), np.pi]])
@pytest.mark.parametrize(("j", "n"), [(1, 2), (2, 2), (2, 3), (1, 3)])
def test_lattice_targets_match_brute_force(values: list[float], j: int, n: int) -> None:
    pmf = np.array([[0.2, 0.3, 0.5], [0.5, 0.5, 0.0], [0.1, 0.8, 0.1]])
    assert lattice_target(pmf, values, j=j, n=n) == pytest.approx(every_outcome(pmf, np.array(values), j, n), abs=1e-12)


def test_deeper_selection_can_lower_the_value() -> None:
    pmf, values = [[0.5, 0.0, 0.5, 0.0], [0.0, 0.5, 0.0, 0.5]], [-1.0, -0.5, 1.0, 1.5]
    assert lattice_target(pmf, values, 1, 2) == pytest.approx(0.375, abs=1e-15)
    assert lattice_target(pmf, values, 2, 2) == pytest.approx(11 / 32, abs=1e-15)


def test_one_candidate_and_equal_means_give_the_mean() -> None:
    assert gaussian_target([0.1, 0.5, 0.9], 1.0, 3, 1) == pytest.approx(0.5, abs=1e-14)
    assert gaussian_target([0.7] * 6, 2.0, 3, 4) == pytest.approx(0.7, abs=1e-14)
    assert bernoulli_target([0.3] * 5, 2, 5) == pytest.approx(0.3, abs=1e-14)


def test_gaussian_pair_risks_match_quadrature() -> None:
    """Var of the minimum-variance estimator at equal means, integrated over the difference of row means."""
    k, sigma = 9, 1.4
    tau = sigma * sqrt(2 / k)
    for j in (1, 4, 8):
        slope = sqrt(j / (2 * (k - j)))

        def squared(z: float, slope: float = slope) -> float:
            t = tau * (z / 2 * erf(slope * z) - slope * np.exp(-((slope * z) ** 2)) / sqrt(np.pi))
            return float(t * t * np.exp(-z * z / 2) / sqrt(2 * np.pi))

        expected = sigma**2 / (2 * k) + quad(squared, -10, 10, epsabs=1e-13)[0]
        assert gaussian_pair_risk(j=j, k=k, sigma=sigma) == pytest.approx(expected, rel=1e-9)
    assert holdout_pair_risk(k=k, sigma=sigma) > gaussian_pair_risk(8, k, sigma)
    assert holdout_pair_risk(2, 1.0) == pytest.approx(0.5 + 1 / (2 * np.pi), abs=1e-15)


def test_bounds_for_bounded_scores() -> None:
    assert bounded_risk_bound(j=2, k=10, width=2.0) == pytest.approx(0.3)
    assert bounded_risk_bound(j=2, k=10, width=2.0, kind="cyclic") == pytest.approx(0.9)
    assert bounded_risk_bound(j=5, k=10, width=2.0, kind="cyclic") == 1.0
    assert bounded_risk_bound(j=2, k=10, width=2.0, kind="lower", m=4) == pytest.approx(0.025)
    with pytest.raises(ValueError, match="needs m"):
        bounded_risk_bound(j=2, k=10, width=2.0, kind="lower")
    with pytest.raises(ValueError, match="kind"):
        bounded_risk_bound(j=2, k=10, width=2.0, kind="upper")  # type: ignore[arg-type]
    for bad in ({"j": 10, "k": 10}, {"j": 0, "k": 10}, {"j": 1, "k": 1}):
        with pytest.raises(ValueError, match="must"):
            bounded_risk_bound(width=1.0, **bad)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gaussian_target([0.0, 1.0], 0.0, 1, 2), "sigma"),
        (lambda: gaussian_target([0.0, 1.0], [1.0, 1.0, 1.0], 1, 2), "sigma"),
        (lambda: gaussian_target([0.0, 1.0], 1.0, 0, 2), "j must"),
        (lambda: gaussian_target([0.0, 1.0], 1.0, 1, 3), "1..M"),
        (lambda: lattice_target([[0.5, 0.4]], [0, 1], 1, 1), "sum to one"),
        (lambda: lattice_target([[0.5, 0.5]], [0, 1, 2], 1, 1), "shape"),
        (lambda: lattice_target([[0.5, 0.5]], [1, 1], 1, 1), "distinct"),
        (lambda: bernoulli_target([1.2], 1, 1), r"\[0, 1\]"),
    ],
)
def test_targets_refuse_what_is_no_law(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=words):
        call()
