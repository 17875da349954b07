"""Worth and the fields that decisions and printing read: one formula, its noise, and the same number for the labels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline.estimators import (
    Estimate,
    Profile,
    comparator_profile,
    fit_gap,
    lace_deployment,
    lace_mean,
    lace_profile,
    mean_gap,
    naive_mean,
    one_step_mean,
)
from pipeline.estimators.worth import labels_worth, with_worth, worth_spread


def pool(seed: int, rows: int = 400, n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=rows)
    signals = z[:, None] + rng.normal(size=(rows, 3))
    y = (rng.random(rows) < 1.0 / (1.0 + np.exp(-1.3 - 1.5 * z))).astype(float)
    labeled = np.zeros(rows, dtype=bool)
    labeled[rng.choice(rows, n, replace=False)] = True
    return np.where(labeled, y, np.nan), signals, labeled


def test_the_plain_mean_is_worth_exactly_its_labels() -> None:
    y, _, labeled = pool(1)
    assert naive_mean(y[labeled]).worth == pytest.approx(60.0)
    assert naive_mean(y[labeled], clusters=np.arange(60) // 2).worth == pytest.approx(60.0)
    for target in ("pool", "population"):
        assert labels_worth(1.0, 60, target, 400) == pytest.approx(60.0)


def test_worth_is_the_plain_mean_with_the_same_standard_error() -> None:
    """Population: s²/worth = SE²; pool: s²(1/worth − 1/M) = SE²."""
    y, signals, labeled = pool(2)
    spread = float(np.var(y[labeled], ddof=1))
    about = lace_mean(y, signals, adapt="average", target="population")
    assert about.worth is not None
    assert spread / about.worth == pytest.approx(about.se**2)
    these = lace_mean(y, signals, adapt="average", target="pool")
    assert these.worth is not None
    assert spread * (1 / these.worth - 1 / 400) == pytest.approx(these.se**2)
    assert 60 < these.worth <= 400


def test_worth_never_exceeds_the_items_and_is_nothing_where_nothing_is_unknown() -> None:
    assert labels_worth(50.0, 60, "population", 400) == 400.0
    exact = Estimate(0.5, 0.0, 0.5, 0.5, 0.95, 40, "lace", target="pool", pool_size=40, naive_se=0.0)
    assert with_worth(exact, 0.1).worth is None
    single = Estimate(0.5, 0.1, 0.2, 0.8, 0.95, 1, "lace", naive_se=0.1)
    assert with_worth(single).worth is None


def test_the_range_of_worth_is_none_below_30_labels_and_holds_worth_above() -> None:
    y, signals, _ = pool(3, n=29)
    few = lace_mean(y, signals, adapt="average", target="population")
    assert few.worth is not None
    assert few.worth_low is None
    assert few.worth_high is None
    y, signals, _ = pool(3, n=60)
    more = lace_mean(y, signals, adapt="average", target="population")
    assert more.worth_low is not None
    assert more.worth is not None
    assert more.worth_high is not None
    assert more.worth_low < more.worth < more.worth_high


def test_the_range_of_worth_covers_the_variance_ratio() -> None:
    """Normal influence values with a true ratio of 2: the 95 % range of log ρ holds log 2."""
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(400):
        plain, rest = rng.normal(size=(2, 60))
        own = (0.5 * plain + 0.5 * rest) ** 2  # variance 1/2 of the plain one
        spread = worth_spread(own, plain**2)
        assert spread is not None
        hits += abs(math.log((plain**2).sum() / own.sum()) - math.log(2.0)) <= spread
    assert 0.92 <= hits / 400 <= 0.98


def test_the_range_from_refits_is_wider_and_the_same_in_any_order_of_rows() -> None:
    for n in (60, 120):
        y, signals, _ = pool(9, n=n)
        closed = lace_mean(y, signals, adapt="average", target="population")
        refits = lace_mean(y, signals, adapt="average", target="population", worth_range=True)
        assert refits.worth == closed.worth
        assert refits.worth_low is not None
        assert closed.worth_low is not None
        assert refits.worth_low < closed.worth_low
        order = np.random.default_rng(1).permutation(400)
        shuffled = lace_mean(y[order], signals[order], adapt="average", target="population", worth_range=True)
        assert shuffled.worth_low == pytest.approx(refits.worth_low)
    few = lace_mean(*pool(9, n=20)[:2], adapt="average", target="population", worth_range=True)
    assert few.worth_low is None


def test_the_range_from_refits_covers_what_signals_are_worth() -> None:
    rng = np.random.default_rng(10)
    worlds = []
    for _ in range(500):
        z = rng.normal(size=400)
        y = (rng.random(400) < 1.0 / (1.0 + np.exp(-1.3 - 1.5 * z))).astype(float)
        worlds.append((y, z[:, None] + rng.normal(size=(400, 3))))
    labels = np.arange(400) < 60
    plain, own = [], []
    for y, signals in worlds:
        fit = lace_mean(y, signals, labeled=labels, adapt="average", learner=None)
        plain.append((y[labels].mean() - y.mean()) ** 2)
        own.append((fit.value - y.mean()) ** 2)
    truth = labels_worth(float(np.mean(plain) / np.mean(own)), 60, "pool", 400)
    hits = []
    for y, signals in worlds[:40]:
        fit = lace_mean(y, signals, labeled=labels, adapt="average", learner=None, worth_range=True)
        assert fit.worth_low is not None
        assert fit.worth_high is not None
        hits.append(fit.worth_low <= truth <= fit.worth_high)
    assert np.mean(hits) >= 0.8


def test_noise_is_seldom_said_to_hurt() -> None:
    rng = np.random.default_rng(5)
    hurt = 0
    for _ in range(60):
        y = np.where(np.arange(400) < 50, (rng.random(400) < 0.6).astype(float), np.nan)
        fit = lace_mean(y, rng.normal(size=(400, 4)), adapt="average", learner=None, target="population")
        assert fit.worth_high is not None
        hurt += fit.verdict == "hurt"
        assert fit.verdict != "hurt" or fit.worth_high < 50
    assert hurt <= 6  # said in 60 to 80 % of such tables


def test_every_estimate_says_what_it_covers() -> None:
    y, signals, labeled = pool(6)
    phi, tau = y[labeled], signals[labeled]
    clusters = np.arange(400) // 2
    lace = lace_mean(y, signals, clusters=clusters, adapt="average", target="population")
    assert (lace.target, lace.pool_size, lace.n_items, lace.binary) == ("population", 400, 60, True)
    assert lace.naive_value == pytest.approx(phi.mean())
    assert lace.outcome_variance == pytest.approx(phi.var(ddof=1))
    assert lace.design_effect > 0.0
    assert lace.verdict in {"help", "neutral", "hurt"}
    assert lace.interval == "wilson"
    naive = naive_mean(phi, clusters=clusters[labeled])
    assert (naive.target, naive.pool_size, naive.df) == ("population", None, len(set(clusters[labeled])) - 1)
    assert naive.design_effect == pytest.approx(naive.se**2 / (phi.var(ddof=1) / 60))
    one_step = one_step_mean(phi, tau, pool_tau=signals)
    assert (one_step.target, one_step.pool_size, one_step.interval) == ("pool", 400, "wilson")
    assert mean_gap(phi, phi).interval == "agresti-min"
    assert lace_deployment(y, signals, np.ones(400)).target == "deployment"
    gap = fit_gap(y - np.roll(y, 0), signals, target="population").estimate()
    assert (gap.target, gap.pool_size, gap.naive_value) == ("population", 400, 0.0)


def test_every_profile_says_what_it_covers() -> None:
    y, signals, _ = pool(7)
    level = np.arange(400) % 3
    own = lace_profile(level.astype(str), y, signals, adapt="average", target="population")
    assert (own.smoothed, own.n, own.pool_size, own.localities) == (False, 60, 400, ("categorical",))
    assert len(own.interval) == len(own.verdict) == len(own.worth) == 3
    assert np.all(own.worth > 5)
    assert lace_profile(signals[:, 0], y, signals, adapt="average").smoothed
    bare = comparator_profile("plugin_judge", level.astype(float), y, signals)
    assert set(bare.interval) == {"none"}
    assert bare.n == 60
    assert np.isnan(bare.worth).all()


def test_documents_come_back_as_they_went() -> None:
    y, signals, _ = pool(8)
    estimate = lace_mean(y, signals, adapt="average", target="population")
    assert Estimate.from_dict(estimate.to_dict()).to_dict() == estimate.to_dict()
    profile = lace_profile(np.arange(400) % 3, y, signals)
    assert Profile.from_dict(profile.to_dict()).to_dict() == profile.to_dict()
    older = {name: estimate.to_dict()[name] for name in ("value", "se", "low", "high", "level", "n", "method")}
    assert Estimate.from_dict(older).n_items == 60
