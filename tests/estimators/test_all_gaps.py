"""Gaps from all labels: paired where labels are shared, covered where they are not, all pairs of 60 models at once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.estimators import ModelLabels, Sampling, all_gaps, fit_gap, gap_of, joint_gaps

FloatArray = NDArray[np.float64]


def sigmoid(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-x))


def two_models(rng: np.random.Generator, rows: int = 400) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    z = rng.normal(size=rows)
    first, second = 1.0 + 1.5 * z + rng.normal(size=rows), 0.5 + 1.5 * z + rng.normal(size=rows)
    y_a, y_b = ((rng.random(rows) < sigmoid(score)).astype(float) for score in (first, second))
    signals_a, signals_b = (score[:, None] + rng.normal(size=(rows, 2)) for score in (first, second))
    return y_a, y_b, signals_a, signals_b


def hidden(y: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
    labels = np.full(len(y), np.nan)
    labels[rows] = y[rows]
    return labels


def test_the_same_labels_give_the_paired_fit() -> None:
    rng = np.random.default_rng(1)
    y_a, y_b, s_a, s_b = two_models(rng)
    rows = rng.choice(400, 60, replace=False)
    gap = gap_of(ModelLabels(hidden(y_a, rows), s_a), ModelLabels(hidden(y_b, rows), s_b))
    paired = fit_gap(hidden(y_a - y_b, rows), np.column_stack([s_a, s_b, s_a - s_b]), target="population")
    assert (gap.value, gap.variance, gap.df) == (paired.value, paired.variance, paired.df)


def test_items_are_joined_by_name_in_any_order() -> None:
    rng = np.random.default_rng(2)
    y_a, y_b, s_a, s_b = two_models(rng)
    rows = rng.choice(400, 60, replace=False)
    names = np.array([f"q{k}" for k in range(400)])
    order = rng.permutation(400)
    a = ModelLabels(hidden(y_a, rows), s_a, items=names)
    b = hidden(y_b, rows)
    straight = gap_of(a, ModelLabels(b, s_b, items=names))
    shuffled = gap_of(a, ModelLabels(b[order], s_b[order], items=names[order]))
    assert shuffled.value == pytest.approx(straight.value, abs=1e-12)
    assert shuffled.variance == pytest.approx(straight.variance, rel=1e-10)


def test_the_reverse_gap_is_the_negative_one() -> None:
    rng = np.random.default_rng(3)
    y_a, y_b, s_a, s_b = two_models(rng)
    order = rng.permutation(400)
    a, b = ModelLabels(hidden(y_a, order[:50]), s_a), ModelLabels(hidden(y_b, order[30:100]), s_b)
    for target in ("pool", "population"):
        there, back = gap_of(a, b, target=target), gap_of(b, a, target=target)  # type: ignore[arg-type]
        assert there.value == pytest.approx(-back.value)
        assert there.variance == pytest.approx(back.variance)


@pytest.mark.parametrize("shared", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("target", ["pool", "population"])
def test_partly_shared_labels_cover(shared: float, target: str) -> None:
    rng = np.random.default_rng(4)
    normal = np.sqrt(1.5**2 + 1.0) * np.random.default_rng(0).normal(size=1_000_000)
    population = float((sigmoid(1.0 + normal) - sigmoid(0.5 + normal)).mean())
    error, variance, cover = [], [], []
    for _ in range(200):
        y_a, y_b, s_a, s_b = two_models(rng)
        order, kept = rng.permutation(400), round(60 * shared)
        rows_b = np.r_[order[:kept], order[60 : 120 - kept]]
        a, b = ModelLabels(hidden(y_a, order[:60]), s_a), ModelLabels(hidden(y_b, rows_b), s_b)
        fit = gap_of(a, b, target=target)  # type: ignore[arg-type]
        estimate = fit.estimate()
        truth = float((y_a - y_b).mean()) if target == "pool" else population
        error.append(fit.value - truth)
        variance.append(fit.variance)
        cover.append(estimate.low <= truth <= estimate.high)
    assert abs(np.mean(error)) < 3.5 * np.std(error) / 200**0.5
    assert 0.75 < np.mean(variance) / np.mean(np.square(error)) < 1.45
    assert np.mean(cover) > 0.915


def test_labels_drawn_apart_are_all_used() -> None:
    """100 labels each of which 25 are shared: the present estimator kept only those."""
    rng = np.random.default_rng(5)
    all_labels, shared_alone = [], []
    for _ in range(120):
        y_a, y_b, s_a, s_b = two_models(rng)
        order = rng.permutation(400)
        rows_a, rows_b = order[:100], order[75:175]
        truth = float((y_a - y_b).mean())
        fit = gap_of(ModelLabels(hidden(y_a, rows_a), s_a), ModelLabels(hidden(y_b, rows_b), s_b), target="pool")
        all_labels.append(fit.value - truth)
        both = order[75:100]
        only = fit_gap(hidden(y_a - y_b, both), np.column_stack([s_a, s_b, s_a - s_b]))
        shared_alone.append(only.value - truth)
    assert np.mean(np.square(all_labels)) < 0.45 * np.mean(np.square(shared_alone))


def test_rounds_and_chances_reach_the_gap() -> None:
    rng = np.random.default_rng(6)
    error_chance, error_strata = [], []
    for _ in range(150):
        y_a, y_b, s_a, s_b = two_models(rng)
        chance = np.clip(0.25 * np.exp(0.4 * s_a[:, 0]), 0.05, 0.9)
        seen_a, seen_b = (np.flatnonzero(rng.random(400) < chance) for _ in range(2))
        a = ModelLabels(hidden(y_a, seen_a), s_a, inclusion_probabilities=chance)
        b = ModelLabels(hidden(y_b, seen_b), s_b, inclusion_probabilities=chance)
        truth = float((y_a - y_b).mean())
        error_chance.append(gap_of(a, b, target="pool").value - truth)
        strata = (s_a[:, 0] > 1).astype(int)
        rows = np.concatenate([rng.choice(np.flatnonzero(strata == h), 30, replace=False) for h in (0, 1)])
        sampling = Sampling.stratified(strata)
        pair = [ModelLabels(hidden(y, rows), s, sampling=sampling) for y, s in ((y_a, s_a), (y_b, s_b))]
        error_strata.append(gap_of(*pair, target="pool").value - truth)
    for error in (error_chance, error_strata):
        assert abs(np.mean(error)) < 3.5 * np.std(error) / 150**0.5


def test_clusters_widen_gaps_of_labels_drawn_apart() -> None:
    rng = np.random.default_rng(7)
    hard = np.repeat(rng.normal(size=100), 4)
    y_a, y_b = ((rng.random(400) < sigmoid(2.0 * sign * hard)).astype(float) for sign in (1.0, -1.0))
    groups, noise = np.arange(400) // 4, rng.normal(size=(400, 1))
    rows_a, rows_b = np.flatnonzero(groups < 30), np.flatnonzero(groups >= 70)
    alone, together = (
        gap_of(
            ModelLabels(hidden(y_a, rows_a), noise, clusters=clusters),
            ModelLabels(hidden(y_b, rows_b), noise, clusters=clusters),
        )
        for clusters in (None, groups)
    )
    assert together.value == pytest.approx(alone.value)
    assert together.variance > 1.5 * alone.variance


def test_models_that_are_always_right_have_a_gap_with_width() -> None:
    right = np.where(np.arange(100) < 30, 1.0, np.nan)
    gap = gap_of(ModelLabels(right, np.empty((100, 0))), ModelLabels(right[::-1], np.empty((100, 0)))).estimate()
    assert gap.value == 0.0
    assert -0.2 < gap.low < -0.03
    assert 0.03 < gap.high < 0.2


def test_all_pairs_of_60_models_are_decided_together() -> None:
    rng = np.random.default_rng(8)
    z = rng.normal(size=200)
    rows = rng.choice(200, 50, replace=False)
    models = {}
    for k in range(60):
        score = 1.0 + z + rng.normal(size=200)
        y = (rng.random(200) < sigmoid(score)).astype(float)
        models[f"m{k}"] = ModelLabels(hidden(y, rows), score[:, None] + rng.normal(size=(200, 1)))
    fits = all_gaps(models)
    assert len(fits) == 1770
    decided = joint_gaps(fits, draws=4000)
    better = sum(pair.low > 0.0 or pair.high < 0.0 for pair in decided)
    assert better == 0  # equally good models: nothing is decided, all 1,770 comparisons together


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": np.zeros(400)}, "b: items must be 400 distinct names"),
        ({"names": ("one",)}, "b: names must be 2"),
        ({"clusters": np.zeros(3)}, "b: clusters must have shape"),
        ({"y": np.where(np.arange(400) < 1, 1.0, np.nan)}, "b: a gap needs at least 2 labels"),
    ],
)
def test_models_that_do_not_fit_are_named(change: dict[str, object], message: str) -> None:
    y_a, y_b, s_a, s_b = two_models(np.random.default_rng(9))
    labels = hidden(y_a, np.arange(40))
    b = {"y": hidden(y_b, np.arange(20, 60)), "signals": s_b, **change}
    with pytest.raises(ValueError, match=message):
        gap_of(ModelLabels(labels, s_a), ModelLabels(**b))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 2 models"):
        all_gaps({"a": ModelLabels(labels, s_a)})
