"""Rank agreement, simultaneous differences, equivalence and rank sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pipeline.estimators import (
    exact_match,
    kendall_tau,
    max_t_quantile,
    mean_gap,
    paired_differences,
    rank_sets,
)
from pipeline.estimators.gaps.simultaneous import holm


def test_agreement_with_a_reference() -> None:
    reference = [1.0, 2.0, 3.0]
    values = np.array([[1.0, 5.0, 9.0], [2.0, 1.0, 3.0], [3.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    assert exact_match(values, reference).tolist() == [True, False, False, False]
    assert kendall_tau(values, reference) == pytest.approx([1.0, 1 / 3, -1.0, 2 / 3])


def test_kendall_agrees_with_scipy_where_nothing_is_tied() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.normal(size=(2, 7))
        assert kendall_tau(a, b) == pytest.approx(stats.kendalltau(a, b).statistic)


def test_bad_rankings_are_refused() -> None:
    with pytest.raises(ValueError, match="L ≥ 2"):
        exact_match([1.0], [1.0])
    with pytest.raises(ValueError, match="different numbers"):
        kendall_tau([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="missing"):
        kendall_tau([1.0, math.nan], [1.0, 2.0])


def test_two_models_get_the_paired_t_interval() -> None:
    values = np.random.default_rng(1).normal(size=(25, 2))
    (row,) = paired_differences(values, names=["a", "b"])
    gap = mean_gap(values[:, 0], values[:, 1])
    assert (row.value, row.se, row.low, row.high) == pytest.approx((gap.value, gap.se, gap.low, gap.high))
    assert row.p == pytest.approx(stats.ttest_rel(values[:, 0], values[:, 1]).pvalue)
    assert row.p_adjusted == row.p


def test_the_joint_quantile_lies_between_one_interval_and_bonferroni() -> None:
    rng = np.random.default_rng(2)
    independent = max_t_quantile(np.eye(10), math.inf, 0.95, draws=200_000, rng=rng)
    exact = stats.norm.ppf(0.5 + 0.5 * 0.95 ** (1 / 10))
    assert independent == pytest.approx(exact, abs=0.02)
    same = max_t_quantile(np.ones((10, 10)), 20, 0.95, rng=rng)
    assert same == pytest.approx(stats.t.ppf(0.975, 20), abs=0.05)
    tukey = max_t_quantile(np.array([[2, 1, -1], [1, 2, 1], [-1, 1, 2]]) / 2.0, math.inf, 0.95, draws=200_000, rng=rng)
    assert tukey == pytest.approx(stats.studentized_range.ppf(0.95, 3, np.inf) / math.sqrt(2), abs=0.02)


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(holm([math.nan, 0.01])[0])


def test_equivalence_needs_the_whole_interval_inside_the_margin() -> None:
    rng = np.random.default_rng(3)
    common = rng.normal(size=(400, 1))
    values = common + 0.05 * rng.normal(size=(400, 3)) + np.array([0.0, 0.001, 0.5])
    near, far, _ = paired_differences(values, margin=0.02)
    assert near.equivalent
    assert not far.equivalent
    assert not paired_differences(values, margin=0.0005)[0].equivalent
    with pytest.raises(ValueError, match="margin"):
        paired_differences(values, margin=-1.0)


def test_models_that_agree_everywhere_are_not_proven_equal() -> None:
    column = (np.random.default_rng(4).random(30) < 0.7).astype(float)
    same, *_ = paired_differences(np.stack([column, column, 1 - column], axis=1), margin=0.01)
    assert (same.value, same.se) == (0.0, 0.0)
    assert same.low < 0.0 < same.high
    assert not same.equivalent
    general, *_ = paired_differences(np.stack([column * 3.0, column * 3.0], axis=1), margin=0.01)
    assert math.isnan(general.low)
    assert not general.equivalent
    assert general.to_dict()["p"] is None


def test_clusters_of_copies_count_once() -> None:
    values = np.random.default_rng(5).normal(size=(20, 3))
    once = paired_differences(values)
    copied = paired_differences(np.repeat(values, 4, axis=0), clusters=np.repeat(np.arange(20), 4))
    assert [row.se for row in copied] == pytest.approx([row.se for row in once])
    assert [row.high for row in copied] == pytest.approx([row.high for row in once])


def test_rank_sets_shrink_with_separation_and_follow_the_direction() -> None:
    rng = np.random.default_rng(6)
    values = rng.normal(size=(300, 1)) + 0.1 * rng.normal(size=(300, 4)) + np.array([0.0, 1.0, 1.0, 2.0])
    sets = rank_sets(values, names=["w", "x", "y", "z"])
    assert [(row.best, row.worst) for row in sets] == [(4, 4), (2, 3), (2, 3), (1, 1)]
    losses = rank_sets(values, names=["w", "x", "y", "z"], higher_is_better=False)
    assert [(row.best, row.worst) for row in losses] == [(1, 1), (2, 3), (2, 3), (4, 4)]
    assert losses[3].value == pytest.approx(values[:, 3].mean())
    assert sets == rank_sets(values, names=["w", "x", "y", "z"])


@pytest.mark.parametrize("items", [15, 60])
def test_joint_coverage_of_differences_and_ranks(items: int) -> None:
    rng = np.random.default_rng(items)
    truth = np.array([0.0, 0.1, 0.5, 1.2])
    first, second = np.triu_indices(4, k=1)
    reps, all_covered, all_ranked = 600, 0, 0
    for _ in range(reps):
        values = rng.normal(size=(items, 1)) + rng.normal(size=(items, 4)) * np.array([0.5, 1, 1, 1.5]) + truth
        rows = paired_differences(values, draws=3000, rng=rng)
        wanted = truth[first] - truth[second]
        all_covered += all(row.low <= gap <= row.high for row, gap in zip(rows, wanted, strict=True))
        sets = rank_sets(values, draws=3000, rng=rng)
        all_ranked += all(row.best <= rank <= row.worst for row, rank in zip(sets, (4, 3, 2, 1), strict=True))
    slack = 3 * math.sqrt(0.05 * 0.95 / reps)
    assert all_covered / reps > 0.95 - slack
    assert all_covered / reps < 0.985 + slack
    assert all_ranked / reps > 0.95 - slack


def test_bad_values_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 items"):
        paired_differences([[0.0, 1.0]])
    with pytest.raises(ValueError, match="different names"):
        paired_differences(np.eye(3), names=["a", "a", "b"])
    with pytest.raises(ValueError, match="missing"):
        paired_differences([[0.0, math.nan], [1.0, 0.0]])
    with pytest.raises(ValueError, match="fpc"):
        paired_differences(np.eye(3), fpc=2.0)
