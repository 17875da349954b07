"""How labels were drawn travels to every mean: equal draws are none, rounds and strata have their own variance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.estimators import Estimate, Sampling, fit_gap, labels_mean, lace_deployment, lace_mean, naive_mean
from pipeline.estimators.lace.near_census import near_census_interval

FloatArray = NDArray[np.float64]


def sigmoid(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-x))


def pool(rng: np.random.Generator, rows: int = 300, centre: float = 1.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    z = rng.normal(size=rows)
    return (
        z,
        (rng.random(rows) < sigmoid(centre + 1.5 * z)).astype(float),
        z[:, None] + 0.8 * rng.normal(size=(rows, 2)),
    )


def drawn(rng: np.random.Generator, rows: int, n: int) -> NDArray[np.bool_]:
    labeled = np.zeros(rows, dtype=bool)
    labeled[rng.choice(rows, n, replace=False)] = True
    return labeled


def same(first: Estimate, second: Estimate) -> None:
    for name in ("value", "se", "low", "high", "df"):
        assert getattr(first, name) == pytest.approx(getattr(second, name), rel=1e-10), name


Mean = Callable[..., Estimate]
MEANS: dict[str, Mean] = {
    "labels": lambda y, signals, **options: labels_mean(y, **options),
    "lace": lambda y, signals, **options: lace_mean(y, signals, standardize=True, **options),
    "average": lambda y, signals, **options: lace_mean(y, signals, adapt="average", **options),
    "deployment": lambda y, signals, **options: lace_deployment(
        y, signals, np.exp(0.2 * signals[:, 0]) / np.exp(0.2 * signals[:, 0]).mean(), adapt="average", **options
    ),
    "gap": lambda y, signals, **options: fit_gap(y - 0.5, signals, **options).estimate(),
}


@pytest.mark.parametrize("mean", MEANS.values(), ids=MEANS)
@pytest.mark.parametrize("target", ["pool", "population"])
def test_a_draw_that_is_a_simple_one_is_none(mean: Mean, target: str) -> None:
    rng = np.random.default_rng(1)
    _, y, signals = pool(rng)
    y = np.where(drawn(rng, 300, 60), y, np.nan)
    plain = mean(y, signals, target=target)
    same(mean(y, signals, target=target, inclusion_probabilities=np.full(300, 0.2)), plain)
    same(mean(y, signals, target=target, clusters=np.arange(300)), plain)
    same(mean(y, signals, target=target, sampling=Sampling.stratified(np.zeros(300))), plain)
    same(mean(y, signals, target=target, sampling=Sampling.staged(np.isfinite(y).astype(int), np.zeros(300))), plain)


def test_the_mean_of_labels_is_the_naive_mean_where_nothing_else_is_known() -> None:
    rng = np.random.default_rng(2)
    _, y, _ = pool(rng)
    labeled = drawn(rng, 300, 50)
    groups = np.arange(300) // 3
    same(labels_mean(np.where(labeled, y, np.nan)), naive_mean(y[labeled]))
    same(labels_mean(y, labeled=labeled, clusters=groups), naive_mean(y[labeled], clusters=groups[labeled]))


@pytest.mark.parametrize("name", ["labels", "average"])
def test_everything_labeled_the_population_interval_is_that_of_the_plain_mean(name: str) -> None:
    _, y, signals = pool(np.random.default_rng(3))
    groups = np.arange(300) // 3
    same(MEANS[name](y, signals, target="population"), naive_mean(y))
    same(MEANS[name](y, signals, target="population", clusters=groups), naive_mean(y, clusters=groups))


def test_population_variance_counts_clusters_in_both_parts() -> None:
    """V_pop = V_pool + (s²/M)·d, d the design effect of the plain mean; SE 2.26 was printed where 6.45 was right."""
    rng = np.random.default_rng(4)
    difficulty = np.repeat(rng.normal(size=75), 4) * 2.0
    y = (rng.random(300) < sigmoid(difficulty)).astype(float)
    signals = difficulty[:, None] + rng.normal(size=(300, 2))
    groups = np.arange(300) // 4
    labeled = np.isin(groups, rng.choice(75, 30, replace=False))
    options = {"labeled": labeled, "clusters": groups, "adapt": "average"}
    pool_fit = lace_mean(y, signals, target="pool", **options)  # type: ignore[arg-type]
    fit = lace_mean(y, signals, target="population", **options)  # type: ignore[arg-type]
    own = y[labeled]
    effect = naive_mean(own, clusters=groups[labeled]).se ** 2 / (own.var(ddof=1) / len(own))
    assert fit.design_effect == pytest.approx(effect)
    assert effect > 2.0
    assert fit.se**2 == pytest.approx(pool_fit.se**2 + own.var(ddof=1) / 300 * effect)
    assert fit.df <= 29.0
    gap = fit_gap(y - 0.5, signals, labeled=labeled, clusters=groups, target="population")
    bare = fit_gap(y - 0.5, signals, labeled=labeled, clusters=groups, target="pool")
    assert gap.variance == pytest.approx(bare.variance + own.var(ddof=1) / 300 * effect)


def test_repeats_under_one_id_change_nothing() -> None:
    rng = np.random.default_rng(5)
    _, y, _ = pool(rng, 80)
    once = labels_mean(y)
    often = labels_mean(np.repeat(y, 8), clusters=np.repeat(np.arange(80), 8))
    assert (often.value, often.se) == (pytest.approx(once.value), pytest.approx(once.se))


def two_rounds(
    rng: np.random.Generator, y: FloatArray, z: FloatArray, first: int, second: int
) -> tuple[FloatArray, Sampling]:
    """A simple pilot, then Neyman's allocation by what the pilot shows in strata of z."""
    rows = len(y)
    stage = np.zeros(rows, dtype=int)
    stage[rng.choice(rows, first, replace=False)] = 1
    strata = np.searchsorted([-0.7, 0.0, 0.7], z)
    spread = np.array([np.std(np.r_[y[(stage == 1) & (strata == h)], 0.0, 1.0]) for h in range(4)])
    size = np.bincount(strata[stage == 0], minlength=4)
    wish = np.maximum(2, np.floor(size * spread / (size @ spread) * second)).astype(int)
    wish[np.argmax(wish)] += second - wish.sum()
    for h, count in enumerate(wish):
        stage[rng.choice(np.flatnonzero((stage == 0) & (strata == h)), count, replace=False)] = 2
    return np.where(stage > 0, y, np.nan), Sampling.staged(stage, strata)


def test_two_rounds_are_unbiased_with_their_own_variance() -> None:
    """Pooled by n_h/M_h, a pilot and the round that looked at it lean to the extreme by .65 to .9 points."""
    rng = np.random.default_rng(6)
    error, variance, cover = [], [], []
    for _ in range(600):
        z, y, _ = pool(rng, 400, 3.0)
        labels, sampling = two_rounds(rng, y, z, 20, 40)
        estimate = labels_mean(labels, sampling=sampling, target="pool")
        error.append(estimate.value - y.mean())
        variance.append(estimate.se**2)
        cover.append(estimate.low <= y.mean() <= estimate.high)
    assert abs(np.mean(error)) < 3.0 * np.std(error) / 600**0.5
    assert np.mean(variance) / np.mean(np.square(error)) == pytest.approx(1.0, abs=0.2)
    assert np.mean(cover) > 0.93


def test_lace_takes_rounds_and_strata_where_it_takes_one_nth() -> None:
    rng = np.random.default_rng(7)
    error, variance, cover = [], [], []
    for _ in range(300):
        z, y, signals = pool(rng, 400, 1.0)
        labels, sampling = two_rounds(rng, y, z, 30, 40)
        fit = lace_mean(labels, signals, sampling=sampling, adapt="average", learner=None)
        error.append(fit.value - y.mean())
        variance.append(fit.se**2)
        cover.append(fit.low <= y.mean() <= fit.high)
    assert abs(np.mean(error)) < 3.0 * np.std(error) / 300**0.5
    assert 0.8 < np.mean(variance) / np.mean(np.square(error)) < 1.35
    assert np.mean(cover) > 0.92


def test_known_strata_have_the_stratified_variance() -> None:
    rng = np.random.default_rng(8)
    z, y, _ = pool(rng)
    strata = np.where(z < 0, "easy", "hard")
    labeled = np.zeros(300, dtype=bool)
    for name, count in (("easy", 20), ("hard", 40)):
        labeled[rng.choice(np.flatnonzero(strata == name), count, replace=False)] = True
    estimate = labels_mean(y, labeled=labeled, sampling=Sampling.stratified(strata), target="pool")
    value = variance = 0.0
    for name in ("easy", "hard"):
        size, own = (strata == name).sum(), y[labeled & (strata == name)]
        value += size / 300 * own.mean()
        variance += (size / 300) ** 2 * (1 / len(own) - 1 / size) * own.var(ddof=1)
    assert estimate.value == pytest.approx(value)
    assert estimate.se**2 == pytest.approx(variance)
    assert estimate.df == 58.0


def test_the_rounds_are_combined_by_counts() -> None:
    """w_i = a/n₁ + (1 − a)/M in the first round, (1 − a)R_h/(M n_2h) in stratum h of the second."""
    stage = np.r_[np.ones(20), np.full(10, 2), np.full(15, 2), np.zeros(55)].astype(int)
    strata = np.r_[np.zeros(10), np.ones(10), np.zeros(10), np.ones(15), np.zeros(25), np.ones(30)]
    y = np.where(stage > 0, np.random.default_rng(9).normal(size=100), np.nan)
    p1, p2 = 20 / (1 - 20 / 100), (100 / 80) ** 2 * 25 / (1 - 25 / 80)
    a = p1 / (p1 + p2)
    weights = np.where(stage == 1, a / 20 + (1 - a) / 100, 0.0)
    for h, (size, count) in enumerate(((35, 10), (45, 15))):
        weights[(stage == 2) & (strata == h)] = (1 - a) * size / (100 * count)
    estimate = labels_mean(y, sampling=Sampling.staged(stage, strata), target="pool")
    assert weights.sum() == pytest.approx(1.0)
    assert estimate.value == pytest.approx(weights @ np.nan_to_num(y))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y: labels_mean(y, sampling=Sampling(), inclusion_probabilities=np.full(40, 0.5)), "leave inclusion"),
        (lambda y: labels_mean(y, sampling=Sampling.stratified(np.arange(40) // 20)), "no label in round 1"),
        (lambda y: labels_mean(y, sampling=Sampling.staged(np.ones(30), np.ones(30))), "30 rows, the pool has 40"),
        (
            lambda y: labels_mean(y, sampling=Sampling.staged(np.r_[1, np.zeros(39)], np.zeros(40))),
            "belong to no round",
        ),
        (lambda y: Sampling.staged(np.r_[1, 3, np.zeros(38)].astype(int), np.zeros(40)), "round 2 has no row"),
        (lambda y: labels_mean(y, inclusion_probabilities=np.ones(40)), "inclusion probability 1"),
        (lambda y: labels_mean(y, target="these"), "target must be"),
        (lambda y: labels_mean(y, ratio=-np.ones(40)), "ratio must be"),
    ],
)
def test_a_draw_that_cannot_be_is_refused(call: Callable[[FloatArray], object], message: str) -> None:
    y = np.where(np.arange(40) < 15, np.arange(40) % 3, np.nan)
    with pytest.raises(ValueError, match=message):
        call(y)


def test_unequal_chances_are_unbiased_and_cover() -> None:
    rng = np.random.default_rng(10)
    error: dict[str, list[float]] = {"labels": [], "average": []}
    cover: dict[str, list[bool]] = {"labels": [], "average": []}
    truth = float(sigmoid(1.0 + 1.5 * rng.normal(size=1_000_000)).mean())
    for _ in range(300):
        z, y, signals = pool(rng, 400)
        chance = np.clip(0.3 * np.exp(-0.6 * z), 0.05, 0.9)
        labels = np.where(rng.random(400) < chance, y, np.nan)
        for name in error:
            estimate = MEANS[name](labels, signals, inclusion_probabilities=chance, target="population")
            error[name].append(estimate.value - truth)
            cover[name].append(estimate.low <= truth <= estimate.high)
    for name in error:
        assert abs(np.mean(error[name])) < 3.5 * np.std(error[name]) / 300**0.5
        assert 0.92 <= np.mean(cover[name]) <= 0.99


def test_deployment_weights_that_go_with_difficulty_are_not_half_again_too_wide() -> None:
    rng = np.random.default_rng(11)
    z = rng.normal(size=1_000_000)
    truth = float(np.average(sigmoid(1.3 - 1.5 * z), weights=np.exp(z)))
    error, variance = [], []
    for _ in range(200):
        z = rng.normal(size=400)
        y = np.where(drawn(rng, 400, 100), rng.random(400) < sigmoid(1.3 - 1.5 * z), np.nan)
        ratio = np.exp(z) / np.exp(z).mean()
        fit = lace_deployment(y, z[:, None] + rng.normal(size=(400, 2)), ratio, adapt="average", target="population")
        error.append(fit.value - truth)
        variance.append(fit.se**2)
    assert np.mean(variance) / np.var(error) < 1.35


def test_deployment_counts_clusters() -> None:
    rng = np.random.default_rng(12)
    z = np.repeat(rng.normal(size=60), 5)
    y = np.where(np.arange(300) < 150, rng.random(300) < sigmoid(2 * z), np.nan)
    noise, ratio = rng.normal(size=(300, 1)), np.exp(0.3 * z) / np.exp(0.3 * z).mean()
    options = {"adapt": "average", "target": "population"}
    alone = lace_deployment(y, noise, ratio, **options)  # type: ignore[arg-type]
    together = lace_deployment(y, noise, ratio, clusters=np.arange(300) // 5, **options)  # type: ignore[arg-type]
    assert together.se > 1.2 * alone.se
    assert together.df <= 29.0


@pytest.mark.parametrize(("rows", "n", "accuracy"), [(25, 20, 0.98), (100, 80, 0.98), (100, 60, 0.95)])
def test_near_a_census_the_pool_share_is_covered(rows: int, n: int, accuracy: float) -> None:
    rng = np.random.default_rng(13)
    hits = []
    for _ in range(400):
        y = (rng.random(rows) < accuracy).astype(float)
        ends = near_census_interval(y[:n], rows, float(y[:n].mean()), 0.95)
        if ends is not None:
            hits.append(ends[0] - 1e-12 <= y.mean() <= ends[1] + 1e-12)
    assert len(hits) > 100
    assert np.mean(hits) > 0.93


def test_near_a_census_means_take_the_exact_interval() -> None:
    rng = np.random.default_rng(14)
    y = np.where(np.arange(100) < 80, 1.0, np.nan)
    y[3] = 0.0
    for estimate in (labels_mean(y, target="pool"), lace_mean(y, rng.normal(size=(100, 2)), adapt="average")):
        assert estimate.interval == "hypergeometric"
        assert estimate.high == 0.99  # one wrong answer was seen, so that 99 right ones are possible
        assert estimate.low <= 0.97
    assert labels_mean(y, target="population").interval == "wilson"
    assert near_census_interval(np.ones(20), 100, 1.0, 0.95) is None


def test_equal_labels_give_exact_ends_or_no_interval() -> None:
    """No spread seen is not certainty: shares have Wilson's interval, ratings none."""
    rng = np.random.default_rng(15)
    signals = rng.normal(size=(60, 3))
    right = np.where(np.arange(60) < 20, 1.0, np.nan)
    for estimate in (labels_mean(right), lace_mean(right, signals, adapt="average", target="population")):
        assert (estimate.value, estimate.high) == (1.0, 1.0)
        assert estimate.low < 0.9
    for ratings in (np.where(np.arange(60) < 2, 5.0, np.nan), np.where(np.arange(60) < 30, 5.0, np.nan)):
        for estimate in (labels_mean(ratings), lace_mean(ratings, signals, adapt="average")):
            assert estimate.value == 5.0
            assert np.isnan(estimate.se)
            assert np.isnan(estimate.low)
            assert estimate.interval == "none"
    gap = fit_gap(ratings, signals, target="population").estimate()
    assert np.isnan(gap.low)
    assert labels_mean(np.full(60, 5.0), target="pool").high == 5.0
