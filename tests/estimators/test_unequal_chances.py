"""Labels with unequal chances, and clusters, in profiles, gap profiles, comparators and one-step: unbiased, covered."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.estimators import (
    Categorical,
    Profile,
    Sampling,
    comparator_profile,
    lace_gap,
    lace_mean,
    lace_profile,
    lace_profile_band,
    mean_gap,
    naive_mean,
    one_step_mean,
)
from pipeline.estimators.comparators.profile import METHODS
from pipeline.estimators.lace.band import pointwise_level

FloatArray = NDArray[np.float64]

LEVELS = np.repeat([0.0, 1.0], 150)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def sigmoid(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-x))


def draw(rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(y of two models, signal, chances): hard items are labeled three times as often, whatever the level."""
    hard = rng.normal(size=300)
    y_a = (rng.random(300) < sigmoid(0.5 + LEVELS - 2.0 * hard)).astype(float)
    y_b = (rng.random(300) < sigmoid(0.5 - LEVELS - 1.0 * hard)).astype(float)
    return y_a, y_b, (-hard + 0.7 * rng.normal(size=300))[:, None], np.where(hard > 0, 0.5, 0.15)


def labels(y: FloatArray, chances: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.where(rng.random(300) < chances, y, np.nan)


def bias_of(run: Callable[[np.random.Generator], FloatArray], reps: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Mean error and its Monte Carlo standard error."""
    rng = np.random.default_rng(seed)
    errors = np.array([run(rng) for _ in range(reps)])
    return errors.mean(axis=0), errors.std(axis=0) / reps**0.5


def level_means(y: FloatArray) -> FloatArray:
    return np.array([y[level == LEVELS].mean() for level in (0.0, 1.0)])


UNBIASED = [name for name in METHODS if name not in ("plugin_judge", "plugin_multi", "lace_oracle", "residual_only")]


@pytest.mark.parametrize("method", UNBIASED)
def test_comparators_weigh_labels_by_their_chances(method: str) -> None:
    """Unweighted, every one of them is 7 to 12 points too low here."""
    ordered = method in ("local_ppi", "ppci", "strat_ppi")

    def error(rng: np.random.Generator, weighted: bool = True) -> FloatArray:
        y, _, signal, chances = draw(rng)
        options = {"strata": 2} if method == "strat_ppi" else {}
        profile = comparator_profile(
            method, LEVELS, labels(y, chances, rng), signal, locality=None if ordered else Categorical(), at=[0.0, 1.0],
            inclusion_probabilities=chances if weighted else None, standardize=True, **options,
        )  # fmt: skip
        return profile.value - level_means(y)

    mean, spread = bias_of(error, 60 if method in ("ppci", "local_ppi") else 150, 1)
    assert np.abs(mean).max() < max(4.0 * spread.max(), 0.02 if not ordered else 0.035)
    if method in ("naive", "per_signal_cv"):
        ignored, _ = bias_of(lambda rng: error(rng, False), 100, 2)
        assert ignored.max() < -0.02


@pytest.mark.parametrize("adapt", [None, "average"])
def test_gap_profiles_weigh_labels_by_their_chances(adapt: str | None) -> None:
    """True gap .364, printed .614 [.561, .666]."""
    hits = []

    def error(rng: np.random.Generator) -> FloatArray:
        y_a, y_b, signal, chances = draw(rng)
        seen = rng.random(300) < chances
        gap = lace_gap(
            LEVELS, y_a, y_b, signal, signal + rng.normal(size=(300, 1)), labeled=seen, locality=Categorical(),
            adapt=adapt, standardize=adapt is None, inclusion_probabilities=chances,
        )  # fmt: skip
        truth = level_means(y_a - y_b)
        hits.append((gap.low <= truth) & (truth <= gap.high))
        return gap.value - truth

    mean, spread = bias_of(error, 150, 3)
    assert np.abs(mean).max() < 4.0 * spread.max()
    assert np.mean(hits) > 0.92


def _coupled(rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    hard = rng.normal(size=300)
    chance_right = sigmoid(0.6 - 1.5 * hard)
    y = (rng.random(300) < chance_right).astype(float)
    fresh = (rng.random((300, 2)) < chance_right[:, None]).astype(float)
    tau = 0.5 * np.column_stack([y, fresh]) + 0.5 * chance_right[:, None]
    return y, tau, np.where(hard > 0, 0.6, 0.2), chance_right


@pytest.mark.parametrize("power", [0.5, "tuned", "loo", "cross-fit"])
@pytest.mark.parametrize("pool", [False, True])
def test_one_step_weighs_labels_by_their_chances(power: float | str, pool: bool) -> None:
    hits = []
    population = float(sigmoid(0.6 - 1.5 * np.random.default_rng(0).normal(size=500_000)).mean())

    def error(rng: np.random.Generator) -> FloatArray:
        y, tau, chances, _ = _coupled(rng)
        seen = rng.random(300) < chances
        fit = one_step_mean(
            y[seen], tau[seen], power=power, pool_tau=tau if pool else None, inclusion_probabilities=chances[seen],  # type: ignore[arg-type]
        )  # fmt: skip
        truth = y.mean() if pool else population
        hits.append(fit.low <= truth <= fit.high)
        return np.array([fit.value - truth])

    mean, spread = bias_of(error, 300, 4)
    assert abs(mean[0]) < 4.0 * spread[0]
    assert np.mean(hits) > 0.915  # 0.95 but for 3 Monte Carlo standard errors


def test_equal_chances_and_clusters_of_one_change_nothing_in_one_step() -> None:
    rng = np.random.default_rng(5)
    y, tau, _, _ = _coupled(rng)
    for options in ({}, {"pool_tau": tau}):
        plain = one_step_mean(y[:60], tau[:60], power="loo", **options)  # type: ignore[arg-type]
        equal = one_step_mean(y[:60], tau[:60], power="loo", inclusion_probabilities=np.full(60, 0.2), **options)  # type: ignore[arg-type]
        single = one_step_mean(y[:60], tau[:60], power="loo", clusters=np.arange(60), **options)  # type: ignore[arg-type]
        for other in (equal, single):
            assert (other.value, other.se) == (pytest.approx(plain.value), pytest.approx(plain.se))
    gap = mean_gap(y[:60], y[60:120], inclusion_probabilities=np.full(60, 0.2))
    assert gap.se == pytest.approx(mean_gap(y[:60], y[60:120]).se)


def test_one_step_about_a_population_adds_the_pools_own_variance() -> None:
    rng = np.random.default_rng(6)
    y, tau, _, _ = _coupled(rng)
    pool = one_step_mean(y[:60], tau[:60], pool_tau=tau, power="tuned")
    wide = one_step_mean(y[:60], tau[:60], pool_tau=tau, power="tuned", target="population")
    assert wide.se**2 == pytest.approx(pool.se**2 + y[:60].var(ddof=1) / 300)
    assert (pool.target, wide.target) == ("pool", "population")
    assert wide.naive_se == pytest.approx(naive_mean(y[:60]).se)
    whole = one_step_mean(y, tau, pool_tau=tau, target="population")
    assert (whole.value, whole.se) == (pytest.approx(y.mean()), pytest.approx(naive_mean(y).se))
    with pytest.raises(ValueError, match="needs the pool"):
        one_step_mean(y[:60], tau[:60], target="pool")
    with pytest.raises(ValueError, match="target must be"):
        one_step_mean(y[:60], tau[:60], pool_tau=tau, target="these")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="inclusion_probabilities"):
        one_step_mean(y[:60], tau[:60], inclusion_probabilities=np.full(60, 1.5))


def clustered(rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.intp]]:
    """(y, signal, level, groups): groups of 5 share what makes them hard and their level; a third is labeled, whole."""
    groups = np.arange(300) // 5
    hard = np.repeat(1.5 * rng.normal(size=60), 5)
    level = np.repeat(rng.integers(0, 2, 60), 5).astype(float)
    y = (rng.random(300) < sigmoid(0.5 + hard)).astype(float)
    return np.where(np.isin(groups, rng.choice(60, 30, replace=False)), y, np.nan), hard[:, None], level, groups


@pytest.mark.parametrize("adapt", [None, "average"])
def test_profiles_count_clusters(adapt: str | None) -> None:
    rng = np.random.default_rng(7)
    truth = float(sigmoid(0.5 + 1.5 * rng.normal(size=500_000)).mean())
    hits: dict[bool, list[NDArray[np.bool_]]] = {False: [], True: []}
    for _ in range(150):
        y, hard, level, groups = clustered(rng)
        for known in hits:
            profile = lace_profile(
                level, y, hard + rng.normal(size=(300, 1)), locality=Categorical(), adapt=adapt,
                standardize=adapt is None, target="population", clusters=groups if known else None,
            )  # fmt: skip
            hits[known].append((profile.low <= truth) & (truth <= profile.high))
    assert np.mean(hits[True]) > 0.9
    assert np.mean(hits[False]) < np.mean(hits[True]) - 0.05


def test_clusters_of_one_are_none_in_profiles() -> None:
    rng = np.random.default_rng(8)
    y, hard, level, _ = clustered(rng)
    for adapt in (None, "average"):
        plain, single = (
            lace_profile(level, y, hard, adapt=adapt, standardize=adapt is None, clusters=clusters)
            for clusters in (None, np.arange(300))
        )
        np.testing.assert_allclose(single.low, plain.low)
        np.testing.assert_allclose(single.se, plain.se)


def test_one_cluster_per_level_is_as_wide_as_one_mean() -> None:
    """With one category the profile's clustered variance is the mean's."""
    rng = np.random.default_rng(9)
    y, hard, _, groups = clustered(rng)
    profile = lace_profile(np.zeros(300), y, hard, locality=Categorical(), clusters=groups, standardize=True)
    mean = lace_mean(y, hard, clusters=groups, standardize=True)
    assert profile.value[0] == pytest.approx(mean.value)
    assert profile.se[0] == pytest.approx(mean.se, rel=1e-6)


def test_silent_groups_of_a_band_are_paid_for() -> None:
    """Groups whose labels all agree were left out of the maximum: band coverage .80."""
    rng = np.random.default_rng(10)
    influence = rng.normal(size=(4, 60))
    alone, critical = pointwise_level(influence, 0.95, np.random.default_rng(1))
    with_silent, higher = pointwise_level(np.vstack([influence, np.zeros((4, 60))]), 0.95, np.random.default_rng(1))
    assert with_silent > alone
    assert higher > critical
    assert 1.0 - with_silent == pytest.approx(0.05 / 8.0, rel=0.3)
    only, _ = pointwise_level(np.zeros((5, 60)), 0.95, rng)
    assert only == pytest.approx(0.99)


def test_bands_with_groups_that_agree_cover() -> None:
    rng = np.random.default_rng(11)
    shares = np.array([0.97, 0.96, 0.9, 0.7, 0.5, 0.98])
    level = np.arange(600) % 6
    hits = []
    for _ in range(80):
        y = (rng.random(600) < shares[level]).astype(float)
        seen = np.zeros(600, dtype=bool)
        seen[rng.choice(600, 150, replace=False)] = True
        band: Profile = lace_profile_band(
            level, np.where(seen, y, np.nan), rng.normal(size=(600, 1)), locality=Categorical(), adapt="average",
            rng=rng, draws=400, target="population",
        )  # fmt: skip
        hits.append(bool(np.all((band.low <= shares) & (shares <= band.high))))
    assert np.mean(hits) > 0.88


@pytest.mark.parametrize("method", [name for name in METHODS if name != "lace_oracle"])
def test_equal_chances_are_none_in_comparators(method: str) -> None:
    y, _, signal, _ = draw(np.random.default_rng(12))
    seen = np.random.default_rng(13).permutation(300) < 90
    plain, equal = (
        comparator_profile(
            method, LEVELS, y, signal, labeled=seen, at=[0.0, 1.0], standardize=True, inclusion_probabilities=chances
        )
        for chances in (None, np.full(300, 0.3))
    )
    for name in ("value", "se", "low", "high"):
        np.testing.assert_allclose(getattr(equal, name), getattr(plain, name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("adapt", [None, "average"])
def test_equal_chances_are_none_in_profiles(adapt: str | None) -> None:
    y, other, signal, _ = draw(np.random.default_rng(14))
    seen = np.random.default_rng(15).permutation(300) < 90
    options = {"labeled": seen, "adapt": adapt, "standardize": adapt is None, "target": "population"}
    for run in (
        lambda chances: lace_profile(LEVELS, y, signal, inclusion_probabilities=chances, **options),
        lambda chances: lace_gap(LEVELS, y, other, signal, signal, inclusion_probabilities=chances, **options),
    ):
        plain, equal = run(None), run(np.full(300, 0.3))
        for name in ("value", "se", "low", "high", "worth"):
            np.testing.assert_allclose(getattr(equal, name), getattr(plain, name), rtol=1e-9)


def in_strata(rng: np.random.Generator) -> tuple[FloatArray, FloatArray, Sampling, NDArray[np.bool_]]:
    """(y, signal, sampling, seen): two strata by what is hard, a fifth of one and a half of the other labeled."""
    y, _, signal, _ = draw(rng)
    strata = (signal[:, 0] > 0).astype(int)
    rows = [
        rng.choice(np.flatnonzero(strata == h), round(share * (strata == h).sum()), replace=False)
        for h, share in ((0, 0.2), (1, 0.5))
    ]
    return y, signal, Sampling.stratified(strata), np.isin(np.arange(300), np.concatenate(rows))


def test_profiles_have_the_variance_of_their_strata() -> None:
    y, signal, sampling, seen = in_strata(np.random.default_rng(16))
    one = lace_profile(
        np.zeros(300), y, signal, labeled=seen, locality=Categorical(), sampling=sampling, standardize=True
    )
    mean = lace_mean(y, signal, labeled=seen, sampling=sampling, standardize=True)
    assert one.value[0] == pytest.approx(mean.value)
    assert one.se[0] == pytest.approx(mean.se)
    by_chance = lace_profile(
        np.zeros(300), y, np.empty((300, 0)), labeled=seen, locality=Categorical(),
        inclusion_probabilities=sampling.chances(seen),
    )  # fmt: skip
    in_them = lace_profile(
        np.zeros(300), y, np.empty((300, 0)), labeled=seen, locality=Categorical(), sampling=sampling
    )
    assert in_them.value[0] == pytest.approx(by_chance.value[0])
    assert in_them.se[0] < 0.95 * by_chance.se[0]  # independent draws: up to a third too wide


@pytest.mark.parametrize("adapt", [None, "average"])
def test_levels_drawn_in_strata_cover(adapt: str | None) -> None:
    rng = np.random.default_rng(17)
    hits, error, variance = [], [], []
    for _ in range(150):
        y, signal, sampling, seen = in_strata(rng)
        profile = lace_profile(
            LEVELS, y, signal, labeled=seen, locality=Categorical(), adapt=adapt, standardize=adapt is None,
            sampling=sampling,
        )  # fmt: skip
        truth = level_means(y)
        hits.append((profile.low <= truth) & (truth <= profile.high))
        error.append(profile.value - truth)
        variance.append(profile.variance)
    assert np.mean(hits) > 0.92
    assert 0.8 < np.mean(variance) / np.mean(np.square(error)) < 1.3


def test_one_stratum_is_none_in_profiles() -> None:
    y, signal, _, seen = in_strata(np.random.default_rng(18))
    for adapt in (None, "average"):
        plain, single = (
            lace_profile(LEVELS, y, signal, labeled=seen, adapt=adapt, standardize=adapt is None, sampling=sampling)
            for sampling in (None, Sampling.stratified(np.zeros(300)))
        )
        np.testing.assert_allclose(single.low, plain.low)
        np.testing.assert_allclose(single.se, plain.se)
    with pytest.raises(ValueError, match="leave inclusion_probabilities out"):
        lace_profile(LEVELS, y, signal, labeled=seen, sampling=Sampling(), inclusion_probabilities=np.full(300, 0.5))
