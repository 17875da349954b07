"""Planning: the formulas, their inverse, what cannot be reached, and simulations that reach the planned half-width."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.estimators import Profile, lace_mean
from pipeline.estimators.intervals import normal_quantile
from pipeline.estimators.labels.planning import (
    family_worth,
    half_width,
    inclusion_probabilities,
    labels_needed,
    neyman_allocation,
    plan_mean,
    plan_profile,
    residual_variance,
)


def test_the_formulas_at_the_normal_quantile() -> None:
    """Where n is large the t quantile is the normal one, and the closed forms hold."""
    z = normal_quantile(0.95)
    for pool in (50_000.0, None):
        closed = 0.04 / ((0.005 / z) ** 2 + (0.0 if pool is None else 0.04 / pool))
        plan = labels_needed(0.04, 0.005, pool=pool)
        assert plan.labels == pytest.approx(closed, rel=2e-3)
    closed = 0.04 / ((0.005 / z) ** 2 + (0.04 - 0.16) / 50_000)
    assert labels_needed(0.04, 0.005, pool=50_000, target="population", outcome_variance=0.16).labels == pytest.approx(
        closed, rel=2e-3
    )


@settings(deadline=None, max_examples=200)
@given(
    residual=st.floats(1e-4, 4.0),
    width=st.floats(0.01, 1.0),
    pool=st.one_of(st.none(), st.integers(5, 100_000)),
    extra=st.floats(1.0, 5.0),
    target=st.sampled_from(["pool", "population"]),
)
def test_the_planned_number_is_the_smallest_that_reaches_the_width(
    residual: float, width: float, pool: int | None, extra: float, target: Any
) -> None:
    spread = residual * extra
    plan = labels_needed(residual, width, pool=pool, target=target, outcome_variance=spread)
    options: dict[str, Any] = {"pool": pool, "target": target, "outcome_variance": spread}
    if plan.labels is None:
        assert pool is not None
        assert half_width(pool, residual, **options) > width
        assert plan.reason is not None
        return
    assert half_width(plan.labels, residual, **options) <= width * (1 + 1e-9)
    assert plan.expected_half_width <= width * (1 + 1e-9)
    if plan.labels > 3:
        assert half_width(plan.labels - 1, residual, **options) > width * (1 - 1e-9)


def test_not_reachable_is_said_with_the_best_that_is() -> None:
    plan = labels_needed(0.01, 0.02, pool=400, target="population", outcome_variance=0.25)
    assert plan.labels is None
    assert plan.expected_half_width == pytest.approx(1.966 * math.sqrt(0.25 / 400), rel=1e-3)
    assert "more items are needed" in str(plan.reason)
    assert labels_needed(0.01, 0.02, pool=400, target="pool").labels is not None


@pytest.mark.parametrize("target", ["pool", "population"])
@pytest.mark.parametrize(("rho", "wanted"), [(0.0, 0.2), (0.7, 0.15), (0.9, 0.12)])
def test_the_planned_number_reaches_the_half_width_in_simulation(target: Any, rho: float, wanted: float) -> None:
    """Pilot of 60 labels, plan, draw the planned number: the mean half-width is the wanted one within 10 %."""
    rng = np.random.default_rng(7)
    size, reps = 3000, 60
    widths, plans = [], []
    for _ in range(reps):
        signal = rng.standard_normal(size)
        truth = rho * signal + math.sqrt(1 - rho**2) * rng.standard_normal(size)

        def estimate(labels: int, aim: Any, truth: Any = truth, signal: Any = signal) -> Any:
            y = np.full(size, np.nan)
            chosen = rng.choice(size, labels, replace=False)
            y[chosen] = truth[chosen]
            return lace_mean(y, signal[:, None], adapt="average", learner=None, target=aim), np.var(y[chosen], ddof=1)

        pilot, spread = estimate(60, "pool")
        plan = plan_mean(pilot, size, wanted, outcome_variance=spread, target=target)
        assert plan.labels is not None
        plans.append(plan.labels)
        final, _ = estimate(plan.labels, target)
        widths.append(0.5 * (final.high - final.low))
    # The pilot's own s_R² has a relative sd of √(2/59) = 18 %, half of that on the width: over 60 replicates 1.2 %.
    assert np.mean(widths) == pytest.approx(wanted, rel=0.10)
    assert np.std(plans) > 0


def test_the_residual_variance_of_a_pilot() -> None:
    rng = np.random.default_rng(1)
    signal = rng.standard_normal(20_000)
    truth = 0.8 * signal + 0.6 * rng.standard_normal(20_000)
    y = np.where(np.arange(20_000) < 2000, truth, np.nan)
    pilot = lace_mean(y, signal, adapt="average", learner=None)
    # Sampling sd of a variance from 2000 labels: 3 % of 0.36.
    assert residual_variance(pilot, 20_000) == pytest.approx(0.36, rel=0.12)
    with pytest.raises(ValueError, match="smaller than the labels"):
        residual_variance(pilot, 100)


def profile_of(at: Any, variance: list[float], effective: list[float]) -> Profile:
    zeros = np.zeros(len(variance))
    return Profile(
        np.array(at), zeros, np.sqrt(variance), zeros, zeros, np.array(effective), zeros, np.array(variance), zeros,
        zeros, np.zeros((len(variance), 1)), "lace", "pool", 0.95,
    )  # fmt: skip


def test_the_worst_profile_point_decides() -> None:
    pilot = profile_of(["easy", "hard", "none"], [0.001, 0.004, np.nan], [40.0, 10.0, 0.0])
    plan = plan_profile(pilot, 50, 1000, 0.05)
    assert plan.at == "hard"
    alone = labels_needed(0.004 * 10 / 0.95, 0.05, pool=200.0)
    assert plan.labels == pytest.approx(alone.labels * 5, abs=5)
    with pytest.raises(ValueError, match="no profile point"):
        plan_profile(profile_of(["a"], [np.nan], [0.0]), 50, 1000, 0.05)


@settings(deadline=None, max_examples=200)
@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=8),
    seed=st.integers(0, 10_000),
    share=st.floats(0.0, 1.0),
)
def test_neyman_allocation_sums_and_stays_in_bounds(sizes: list[int], seed: int, share: float) -> None:
    deviations = np.random.default_rng(seed).choice([0.0, 0.1, 1.0, 3.0], len(sizes))
    least = sum(min(2, size) for size in sizes)
    total = least + round(share * (sum(sizes) - least))
    allocation = neyman_allocation(sizes, deviations, total)
    assert allocation.sum() == total
    assert (allocation <= sizes).all()
    assert (allocation >= np.minimum(2, sizes)).all()


def test_neyman_allocation_is_proportional_to_size_times_deviation() -> None:
    assert neyman_allocation([1000, 1000, 2000], [1.0, 3.0, 1.0], 120).tolist() == [20, 60, 40]
    assert neyman_allocation([1000, 3000], [0.0, 0.0], 40).tolist() == [10, 30]
    assert inclusion_probabilities([0, 1, 1], [1, 2], [1, 1]).tolist() == [1.0, 0.5, 0.5]
    with pytest.raises(ValueError, match="between 4 and 20"):
        neyman_allocation([10, 10], [1.0, 1.0], 3)


def test_neyman_allocation_has_less_variance_than_a_proportional_one() -> None:
    """Var = Σ (M_h/M)² σ_h² (1/n_h − 1/M_h) against n_h ∝ M_h."""
    sizes, deviations = np.array([500, 300, 200]), np.array([0.1, 0.4, 0.5])

    def variance(counts: Any) -> float:
        return float(np.sum((sizes / 1000) ** 2 * deviations**2 * (1 / counts - 1 / sizes)))

    assert variance(neyman_allocation(sizes, deviations, 60)) < variance(np.array([30, 18, 12]))


def test_family_worth_reads_as_a_sentence() -> None:
    worths = family_worth(
        95.0, {"pairwise comparisons": 50.0, "confidence": 90.0}, {"pairwise comparisons": 6.2, "judge": 3.8}
    )
    assert worths[0].sentence == "pairwise comparisons: 62 % of the money, 1.9× the labels"
    assert [worth.family for worth in worths] == ["pairwise comparisons", "confidence"]
    assert family_worth(10.0, {"a": 10.0})[0].sentence == "a: 1.0× the labels"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"residual": -1.0, "width": 0.1}, "residual variance"),
        ({"residual": 1.0, "width": 0.0}, "half-width must be positive"),
        ({"residual": 1.0, "width": 0.1, "share": 0.0}, "share"),
        ({"residual": 1.0, "width": 0.1, "level": 1.0}, "level"),
        ({"residual": 1.0, "width": 0.1, "pool": -5}, "positive"),
        ({"residual": 1.0, "width": 0.1, "target": "world"}, "target"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        labels_needed(**arguments)


def test_a_family_that_was_paid_for_and_adds_nothing_is_named() -> None:
    judge, pairs, free = family_worth(
        104.0, {"judge": 50.0, "pairs": 100.0, "free": 103.0}, {"judge": 2.0, "pairs": 3.1}
    )
    assert (judge.advice, free.advice) == ("", "")
    assert pairs.advice == "; adds 1.04× for $3.10: leave it out next time"
