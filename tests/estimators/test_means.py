"""The plain mean, the repeated-decoding mean and their variance components."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.estimators import Estimate, naive_mean, one_step_mean, repeated_decoding_mean, variance_components


def test_naive_mean_is_the_students_t_interval_of_the_mean() -> None:
    phi = np.array([0.2, 0.5, 1.7, -0.3, 2.0])
    estimate = naive_mean(phi)
    low, high = stats.t.interval(0.95, 4, phi.mean(), stats.sem(phi))
    assert (estimate.value, estimate.se) == pytest.approx((phi.mean(), stats.sem(phi)), abs=1e-14)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-12)
    assert estimate.method == "naive"
    assert estimate.diagnostics["interval"] == "t"


def test_binary_outcomes_get_wilsons_interval() -> None:
    phi = np.array([1.0] * 12 + [0.0] * 3)
    estimate = naive_mean(phi, level=0.9)
    reference = stats.binomtest(12, 15).proportion_ci(0.9, method="wilson")
    assert (estimate.low, estimate.high) == pytest.approx((reference.low, reference.high), abs=1e-12)
    assert naive_mean(phi, interval="t").diagnostics["interval"] == "t"


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_an_all_equal_binary_sample_keeps_a_wide_interval_that_holds_the_point(share: float) -> None:
    estimate = naive_mean(np.full(15, share))
    assert estimate.low <= share <= estimate.high
    assert estimate.high - estimate.low > 0.15


def test_one_item_has_no_standard_error_but_a_wilson_interval() -> None:
    estimate = naive_mean([1])
    assert math.isnan(estimate.se)
    assert 0.0 < estimate.low < 0.3
    assert estimate.to_dict()["se"] is None
    general = naive_mean([0.4])
    assert math.isnan(general.low)
    assert math.isnan(general.high)


@pytest.mark.parametrize(
    ("phi", "error", "words"),
    [
        ([0.0, math.nan], ValueError, "1 missing"),
        ([[0.0], [1.0]], ValueError, r"got \(2, 1\)"),
        ([], ValueError, "N ≥ 1"),
        (["a", "b"], TypeError, "numbers"),
    ],
)
def test_bad_outcomes_are_refused_by_name(phi: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        naive_mean(phi)  # type: ignore[arg-type]


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="interval must be one of"):
        naive_mean([0, 1], interval="exact")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="outcomes in"):
        naive_mean([0.0, 3.0], interval="wilson")
    with pytest.raises(ValueError, match="level"):
        naive_mean([0, 1], level=95)
    with pytest.raises(ValueError, match="at least 2 clusters"):
        naive_mean([0, 1], clusters=["a", "a"])


def test_clusters_of_copies_count_once() -> None:
    rng = np.random.default_rng(3)
    phi = rng.normal(size=40)
    once, copied = naive_mean(phi), naive_mean(np.repeat(phi, 3), clusters=np.repeat(np.arange(40), 3))
    assert copied.se == pytest.approx(once.se, rel=1e-12)
    assert (copied.low, copied.high) == pytest.approx((once.low, once.high), abs=1e-12)
    assert copied.diagnostics["clusters"] == 40


def test_wilson_shrinks_to_the_effective_number_under_clusters() -> None:
    phi = np.repeat([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], 4)
    clustered = naive_mean(phi, clusters=np.repeat(np.arange(10), 4))
    assert clustered.diagnostics["n_effective"] < 12
    assert clustered.high - clustered.low > naive_mean(phi).high - naive_mean(phi).low


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_items_does_not_matter(values: list[float], random: object) -> None:
    shuffled = values[::-1]
    assert naive_mean(values).to_dict()["high"] == pytest.approx(naive_mean(shuffled).to_dict()["high"], abs=1e-12)


def test_repeated_decoding_averages_items_first() -> None:
    rng = np.random.default_rng(5)
    repeats = rng.normal(size=(30, 12)) + rng.normal(size=(30, 1))
    estimate, by_item = repeated_decoding_mean(repeats), naive_mean(repeats.mean(axis=1))
    assert (estimate.value, estimate.se) == pytest.approx((by_item.value, by_item.se), abs=1e-13)
    assert (estimate.n, estimate.method) == (30, "repeated_decoding")
    assert estimate.diagnostics["components"]["repeats"] == 12
    json.dumps(estimate.to_dict(), allow_nan=False)


def test_repeated_decoding_of_perfect_answers_keeps_room_for_doubt() -> None:
    estimate = repeated_decoding_mean(np.ones((15, 12)))
    assert estimate.se == 0.0
    assert (estimate.low, estimate.high) == pytest.approx((naive_mean(np.ones(15)).low, 1.0))


def test_variance_components_recover_their_truth() -> None:
    rng = np.random.default_rng(11)
    phi = 2.0 * rng.normal(size=(4000, 1)) + rng.normal(size=(4000, 5))
    parts = variance_components(phi)
    assert parts.item == pytest.approx(4.0, abs=4 * 0.1)
    assert parts.sampling == pytest.approx(1.0, abs=4 * 0.012)
    assert parts.item_share == pytest.approx(0.8, abs=0.03)
    assert parts.standard_error(items=4000, repeats=5) == pytest.approx(parts.se, rel=1e-10)
    assert parts.standard_error(items=4000, repeats=10**9) == pytest.approx(math.sqrt(parts.item / 4000))


def test_one_answer_per_item_leaves_the_components_unknown() -> None:
    parts = variance_components(np.array([[0.0], [1.0], [1.0]]))
    assert math.isnan(parts.item)
    assert parts.to_dict()["sampling"] is None
    with pytest.raises(ValueError, match="at least 2 items"):
        variance_components([[0.0, 1.0]])


def test_clusters_whose_means_agree_still_leave_room_for_doubt() -> None:
    outcome, clusters = np.tile([0.0, 1.0], 12), np.repeat(np.arange(6), 4)
    found = naive_mean(outcome, clusters=clusters)
    assert found.se < 1e-12
    assert found.low < 0.5 - 0.01
    assert found.high > 0.5 + 0.01


def test_the_parts_of_an_estimate_are_written_and_read_also_from_older_documents() -> None:
    rng = np.random.default_rng(2)
    phi = (rng.random((30, 3)) < 0.5).astype(float)
    repeated = repeated_decoding_mean(phi)
    corrected = one_step_mean(phi[:, 0], rng.random((30, 4)), power="tuned")
    for estimate, part in ((repeated, "components"), (corrected, "correction")):
        entry = estimate.to_dict()
        assert Estimate.from_dict(entry) == estimate
        del entry[part]  # as it was when the diagnostics alone held it
        assert getattr(Estimate.from_dict(entry), part) == getattr(estimate, part)
    assert Estimate.from_dict(naive_mean(phi[:, 0]).to_dict()).correction is None
