"""Laws of the one-step mean: invariance, unbiasedness, coverage, closed forms, the negative control."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtri

from pipeline.estimators import naive_mean, one_step_mean, one_step_values

FloatArray = NDArray[np.float64]


def coupled(
    rng: np.random.Generator, n: int, accuracy: float, *, coupling: bool = True, draws: int = 10
) -> tuple[FloatArray, FloatArray]:
    """Outcomes with E φ = accuracy, and predictions that see the state of their own episode."""
    ease, state = rng.normal(size=(n, 1)), rng.normal(size=(n, draws + 1))
    own = state[:, 0] if coupling else rng.normal(size=n)
    phi = (ease[:, 0] + own > -ndtri(accuracy) * math.sqrt(2.0)).astype(float)
    return phi, 1.0 / (1.0 + np.exp(-(1.5 + ease + 1.2 * state)))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    shift=st.floats(-10, 10),
    scale=st.floats(0.05, 20).flatmap(lambda size: st.sampled_from([size, -size])),
    rule=st.sampled_from(["tuned", "cross-fit", "pooled"]),
    pool=st.booleans(),
)
def test_fitted_powers_absorb_any_linear_change_of_tau(
    seed: int, shift: float, scale: float, rule: str, pool: bool
) -> None:
    rng = np.random.default_rng(seed)
    phi, tau = coupled(rng, 30, 0.7, draws=4)
    others = [coupled(rng, 30, 0.6, draws=4) for _ in range(3)]
    more = coupled(rng, 60, 0.7, draws=4)[1]

    def estimate(change: bool) -> tuple[float, ...]:
        def moved(values: FloatArray) -> FloatArray:
            return shift + scale * values if change else values

        result = one_step_mean(
            phi,
            moved(tau),
            power=rule,  # type: ignore[arg-type]
            power_from=[(outcome, moved(draws)) for outcome, draws in others],
            pool_tau=moved(np.concatenate([tau, more])) if pool else None,
        )
        facts = result.diagnostics
        return (
            result.value, result.se, result.low, result.high,
            facts["variance_reduction"], facts["variance_reduction_low"], facts["within_item_test_p"],
        )  # fmt: skip

    assert estimate(True) == pytest.approx(estimate(False), abs=1e-10)


@pytest.mark.parametrize("rule", [1.0, "loo", "cross-fit", "pooled"])
def test_rules_that_do_not_see_the_item_are_unbiased(rule: object) -> None:
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(3000):
        data = [coupled(rng, 15, 0.7, draws=5) for _ in range(3)]
        phi, tau = data[0]
        errors.append(one_step_values(phi, tau, power=rule, power_from=data[1:], rng=rng).mean() - 0.7)  # type: ignore[arg-type]
    assert abs(np.mean(errors)) < 4 * np.std(errors) / math.sqrt(len(errors))


@pytest.mark.slow
@pytest.mark.parametrize("rule", [None, 1.0, "tuned", "loo", "pooled"])
def test_default_interval_covers_at_15_items_and_accuracy_86(rule: object) -> None:
    rng = np.random.default_rng(86)
    reps, hits = 1500, 0
    for _ in range(reps):
        data = [coupled(rng, 15, 0.86) for _ in range(4)]
        phi, tau = data[0]
        result = naive_mean(phi) if rule is None else one_step_mean(phi, tau, power=rule, power_from=data[1:])  # type: ignore[arg-type]
        hits += result.low <= 0.86 <= result.high
    slack = 2 * math.sqrt(0.05 * 0.95 / reps)
    assert 0.92 - slack <= hits / reps <= 0.97 + slack


def test_independent_draws_raise_the_variance_at_power_one_and_the_diagnostics_say_so() -> None:
    rng = np.random.default_rng(7)
    phi, tau = coupled(rng, 4000, 0.7, coupling=False)
    raised = one_step_mean(phi, tau)
    assert raised.diagnostics["variance_reduction_high"] < 0.0
    assert raised.diagnostics["variance_reduction"] == pytest.approx(
        -(1 + 1 / 10) * raised.diagnostics["tau_within_variance"] / raised.diagnostics["phi_variance"], abs=0.04
    )
    assert raised.diagnostics["within_item_test_p"] > 0.001
    assert one_step_mean(phi, tau, power="tuned").diagnostics["variance_reduction"] > -0.01
    shared = one_step_mean(*coupled(rng, 4000, 0.7))
    assert shared.diagnostics["variance_reduction_low"] > 0.1


def test_standard_errors_match_the_spread_of_estimates() -> None:
    rng = np.random.default_rng(8)
    values, variances = [], []
    for _ in range(1500):
        phi, tau = coupled(rng, 50, 0.7)
        psi = one_step_values(phi, tau)
        values.append(psi.mean())
        variances.append(psi.var(ddof=1) / 50)
    assert np.mean(variances) / np.var(values) == pytest.approx(1.0, abs=4 * math.sqrt(2 / 1500))


@pytest.mark.parametrize("variance", [0.5, 2.0])
def test_the_papers_design_reaches_its_closed_form_reduction(variance: float) -> None:
    """Section 5.1 with one auxiliary response: VR = (R²)² for fresh draws."""
    rng = np.random.default_rng(int(10 * variance))
    n, draws, rho, noise = 20_000, 60, 0.8, 0.6
    slope = rho * variance / (rho**2 * variance + noise**2)
    epsilon = math.sqrt(variance) * rng.normal(size=(n, draws + 1))
    signal = rho * epsilon + noise * rng.normal(size=(n, draws + 1))
    result = one_step_mean(epsilon[:, 0] ** 2, slope**2 * signal**2, level=0.999)
    closed = (rho**2 * variance / (rho**2 * variance + noise**2)) ** 2
    expected = closed - closed / draws
    assert result.diagnostics["variance_reduction_low"] < expected < result.diagnostics["variance_reduction_high"]
    assert result.diagnostics["variance_reduction"] == pytest.approx(expected, abs=0.04)
