"""Means over prompts and paired differences: units are prompts, one prompt is refused, coverage holds."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.estimators import paired_difference, population_mean


def test_the_mean_and_its_interval_are_the_plain_formula() -> None:
    values = np.array([0.2, 0.9, 0.4, 0.4])
    estimate = population_mean(values)
    se = values.std(ddof=1) / 2
    assert (estimate.value, estimate.se, estimate.n) == (pytest.approx(values.mean()), pytest.approx(se), 4)
    assert estimate.high - estimate.value == pytest.approx(3.182446305284263 * se)
    narrower = population_mean(values, interval="z")
    assert narrower.high - narrower.value == pytest.approx(1.959963984540054 * se)


def test_shares_get_an_interval_with_width_inside_0_and_1() -> None:
    """Best of 2 on scores that are all 0 printed [0, 0], and rare successes an interval below 0."""
    nothing = population_mean(np.zeros(30), interval="wilson")
    assert (nothing.value, nothing.low, nothing.interval) == (0.0, 0.0, "wilson")
    assert 0.05 < nothing.high < 0.2
    rare = population_mean(np.r_[np.zeros(38), 0.5, 1.0], interval="wilson")
    assert 0.0 < rare.low < rare.value < rare.high < 1.0
    half = population_mean(np.r_[np.zeros(200), np.ones(200)], interval="wilson")
    plain = population_mean(np.r_[np.zeros(200), np.ones(200)])
    assert half.high - half.low == pytest.approx(plain.high - plain.low, rel=0.01)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        population_mean([0.0, 2.0], interval="wilson")


def test_equal_differences_of_shares_have_an_interval() -> None:
    """Two policies that agree on every prompt printed a gain of 0 [0, 0]."""
    same = paired_difference(np.zeros(30), np.zeros(30))
    assert (same.value, same.se, same.interval) == (0.0, 0.0, "agresti-min")
    assert -0.1 < same.low < -0.05
    assert same.high == -same.low
    always = paired_difference(np.ones(30), np.zeros(30))
    assert always.high == 1.0
    assert always.low < 0.95
    assert paired_difference(np.full(30, 7.0), np.full(30, 5.0)).interval == "t"  # no shares


def test_rare_successes_are_covered() -> None:
    rng = np.random.default_rng(8)
    shares = rng.binomial(2, 0.04, (2000, 40)) / 2
    wilson = [population_mean(row, interval="wilson") for row in shares]
    assert np.mean([estimate.low <= 0.04 <= estimate.high for estimate in wilson]) > 0.92


def test_pools_of_one_prompt_are_averaged_with_their_weights_first() -> None:
    values, prompts = [1.0, 3.0, 10.0, 4.0], ["a", "a", "b", "c"]
    plain = population_mean(values, clusters=prompts)
    assert plain.value == pytest.approx((2 + 10 + 4) / 3)
    assert plain.se == pytest.approx(np.std([2, 10, 4], ddof=1) / np.sqrt(3))
    weighted = population_mean(values, clusters=prompts, weights=[3, 1, 7, 7])
    assert weighted.value == pytest.approx((1.5 + 10 + 4) / 3)
    assert (weighted.n, weighted.diagnostics["pools"]) == (3, 4)


def test_copying_every_pool_changes_nothing_when_prompts_are_named() -> None:
    values = np.random.default_rng(0).normal(size=12)
    prompts = np.arange(12)
    once = population_mean(values, clusters=prompts)
    twice = population_mean(np.tile(values, 2), clusters=np.tile(prompts, 2))
    assert (twice.value, twice.se) == (pytest.approx(once.value), pytest.approx(once.se))


def test_weights_of_prompts_without_clusters() -> None:
    values = np.array([0.1, 0.5, 0.8])
    equal, plain = population_mean(values, weights=[2, 2, 2]), population_mean(values)
    assert (equal.value, equal.se) == (pytest.approx(plain.value), pytest.approx(plain.se))
    assert population_mean(values, weights=[1, 1, 2]).value == pytest.approx(0.55)


def test_paired_differences_cancel_what_prompts_share() -> None:
    rng = np.random.default_rng(1)
    prompt = rng.normal(0, 5, 200)
    a, b = prompt + rng.normal(0.3, 0.1, 200), prompt + rng.normal(0, 0.1, 200)
    estimate = paired_difference(a, b)
    assert estimate.value == pytest.approx(population_mean(a - b).value)
    assert estimate.se < population_mean(a).se / 20
    clustered = paired_difference(a, b, clusters=np.repeat(np.arange(50), 4))
    assert clustered.n == 50
    assert clustered.value == pytest.approx(estimate.value)


def test_intervals_cover() -> None:
    values = np.random.default_rng(7).exponential(size=(2000, 60))
    hits = [estimate.low <= 1.0 <= estimate.high for estimate in (population_mean(row, interval="t") for row in values)]
    assert np.mean(hits) == pytest.approx(0.94, abs=0.03)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: population_mean([1.0]), "2 prompts"),
        (lambda: population_mean([1.0, 2.0], clusters=["a", "a"]), "at least 2 clusters"),
        (lambda: population_mean([1.0, np.nan]), "finite"),
        (lambda: population_mean([]), "P ≥ 1"),
        (lambda: population_mean([1.0, 2.0], weights=[1.0, -1.0]), "nonnegative"),
        (lambda: population_mean([1.0, 2.0, 3.0], clusters=[0, 0, 1], weights=[0, 0, 1]), "positive sum"),
        (lambda: population_mean([1.0, 2.0], weights=[1.0]), r"shape \(2,\)"),
        (lambda: population_mean([1.0, 2.0], clusters=[0, 1, 2]), r"shape \(2,\)"),
        (lambda: population_mean([1.0, 2.0], level=1.0), "level"),
        (lambda: population_mean([1.0, 2.0], interval="wald"), "interval"),  # type: ignore[arg-type]
        (lambda: paired_difference([1.0, 2.0], [1.0]), "same shape"),
    ],
)
def test_refusals(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=words):
        call()
