"""What breaks control variates on real data: each trap of the method, shut."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from pipeline.estimators import (
    Categorical,
    Gaussian,
    Ordinal,
    fill_missing_signals,
    lace_deployment,
    lace_mean,
    lace_profile,
    rule_of_thumb_bandwidth,
    standardize_signals,
)


def pool(seed: int, rows: int = 600, count: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.uniform(size=rows)
    y = (rng.random(rows) < 0.5 + 0.3 * np.sin(6 * z)).astype(float)
    signals = rng.normal(size=(rows, count)) + y[:, None]
    return z, y, signals


def draw(rng: np.random.Generator, rows: int, labels: int) -> np.ndarray:
    labeled = np.zeros(rows, dtype=bool)
    labeled[rng.choice(rows, labels, replace=False)] = True
    return labeled


def efficiency(z: np.ndarray, y: np.ndarray, signals: np.ndarray, labels: int, draws: int = 60) -> float:
    """MSE of the plain local mean over that of the adaptive profile, against the pool profile."""
    rng = np.random.default_rng(5)
    truth = lace_profile(z, y, np.empty((len(y), 0))).value
    plain = adaptive = 0.0
    for _ in range(draws):
        labeled = draw(rng, len(y), labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain += np.mean((lace_profile(z, y, np.empty((len(y), 0)), labeled=labeled).value - truth) ** 2)
            found = lace_profile(z, y, signals, labeled=labeled, adapt="average")
        adaptive += np.mean((found.value - truth) ** 2)
    return plain / adaptive


def test_heavy_tailed_and_near_constant_signals_do_no_harm() -> None:
    # A coefficient divided by the labeled rows' own variance explodes on both: relative efficiency near 0.
    z, y, _ = pool(0)
    rng = np.random.default_rng(1)
    heavy = rng.standard_t(1.1, size=len(y)) ** 3
    nearly_constant = (rng.random(len(y)) < 0.005).astype(float)
    assert efficiency(z, y, np.stack([heavy, nearly_constant], axis=1), 30) > 0.85


def test_a_useful_signal_among_heavy_tails_is_still_used() -> None:
    z, y, signals = pool(0)
    heavy = np.random.default_rng(1).standard_t(1.1, size=len(y)) ** 3
    assert efficiency(z, y, np.column_stack([signals, heavy]), 50) > 1.3


def test_logistic_intercepts_cancel_across_folds() -> None:
    # Without centring each fold's predictor on its own pool mean, a pure-noise signal costs most of the precision.
    rng = np.random.default_rng(3)
    y = (rng.random(400) < 0.5).astype(float)
    noise = rng.normal(size=(400, 2))
    plain, adaptive = [], []
    for _ in range(80):
        labeled = draw(rng, 400, 30)
        adaptive.append(lace_mean(y, noise, labeled=labeled, adapt="average").value - y.mean())
        plain.append(y[labeled].mean() - y.mean())
    assert np.var(adaptive) < 1.25 * np.var(plain)


@pytest.mark.parametrize("adapt", [None, "average"])
def test_duplicated_collinear_and_constant_signals(adapt: str | None) -> None:
    z, y, signals = pool(1)
    labeled = draw(np.random.default_rng(0), len(y), 60)
    bad = np.column_stack([signals, signals[:, 0], signals @ np.ones(4), np.full(len(y), 3.0)])
    options = {"adapt": adapt} if adapt else {"standardize": True}
    found = lace_profile(z, y, bad, labeled=labeled, **options)
    assert np.isfinite(found.value).all()
    assert np.isfinite(found.se).all()
    alone = lace_profile(z, y, signals, labeled=labeled, **options)
    assert np.abs(found.value - alone.value).max() < 0.5 * alone.se.max()


@pytest.mark.parametrize("adapt", [None, "average"])
def test_more_signals_than_labels(adapt: str | None) -> None:
    z, y, signals = pool(2, count=40)
    labeled = draw(np.random.default_rng(0), len(y), 15)
    options = {"adapt": adapt} if adapt else {"standardize": True}
    found = lace_profile(z, y, signals, labeled=labeled, **options)
    mean = lace_mean(y, signals, labeled=labeled, **options)
    assert np.isfinite(found.value).all()
    assert np.isfinite([mean.value, mean.se, mean.low, mean.high]).all()


@pytest.mark.parametrize("same", [0.0, 1.0])
def test_labels_of_one_class(same: float) -> None:
    z, y, signals = pool(3)
    labeled = draw(np.random.default_rng(0), len(y), 25)
    y = np.where(labeled, same, y)
    for options in ({}, {"adapt": "average"}, {"adapt": "average", "learner": "logistic"}):
        found = lace_profile(z, y, standardize_signals(signals), labeled=labeled, **options)
        np.testing.assert_allclose(found.value, same, atol=1e-12)
        assert (found.high - found.low > 0.05).all()  # one class in 25 labels is no certainty
        assert set(found.diagnostics["interval"]) == {"wilson"}
    mean = lace_mean(y, signals, labeled=labeled, adapt="average")
    assert mean.high - mean.low > 0.05


def test_a_fold_with_one_class_predicts_that_class() -> None:
    _, y, signals = pool(4)
    labeled = draw(np.random.default_rng(0), len(y), 30)
    rare = np.zeros(len(y))
    rare[np.flatnonzero(labeled)[0]] = 1.0  # four of five training folds see it, one does not
    found = lace_mean(rare, signals, labeled=labeled, adapt="average")
    assert np.isfinite([found.value, found.se]).all()


@pytest.mark.parametrize("adapt", [None, "average"])
def test_repeated_profile_values(adapt: str | None) -> None:
    z, y, signals = pool(5)
    z = np.round(z * 3) / 3
    labeled = draw(np.random.default_rng(0), len(y), 50)
    options = {"adapt": adapt} if adapt else {"standardize": True}
    found = lace_profile(z, y, signals, labeled=labeled, **options)
    assert np.isfinite(found.value).all()


def test_a_constant_profile_is_refused() -> None:
    with pytest.raises(ValueError, match="constant"):
        rule_of_thumb_bandwidth(np.full(10, 2.0))


@pytest.mark.parametrize("adapt", [None, "average"])
def test_a_level_without_labels_is_nan_with_a_reason(adapt: str | None) -> None:
    rng = np.random.default_rng(6)
    level = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)]
    y = (rng.random(300) < 0.6).astype(float)
    signals = standardize_signals(rng.normal(size=(300, 2)) + y[:, None])
    labeled = draw(rng, 300, 60) & (level != "c")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = lace_profile(level, y, signals, labeled=labeled, adapt=adapt)
        pooled = lace_profile(level, y, signals, labeled=labeled, adapt=adapt, empty="pooled")
    assert list(found.at) == ["a", "b", "c"]
    assert np.isnan(found.value[2])
    assert np.isnan(found.low[2])
    assert found.n_effective[2] == 0.0
    assert found.diagnostics["reason"] == [None, None, "no labeled item in reach"]
    np.testing.assert_array_equal(pooled.value[:2], found.value[:2])
    assert np.isfinite(pooled.value[2])
    assert pooled.diagnostics["synthetic"] == [False, False, True]
    spread = y[labeled].var()
    assert pooled.variance[2] > spread / np.sum(level == "c")
    if adapt is None:
        assert pooled.value[2] == pytest.approx(y[labeled].mean())


@pytest.mark.parametrize("adapt", [None, "average"])
def test_an_offset_of_1e8_changes_nothing(adapt: str | None) -> None:
    z, y, signals = pool(7)
    signals = np.round(signals * 64) / 64  # so that adding 1e8 is exact
    labeled = draw(np.random.default_rng(0), len(y), 60)
    options = {"adapt": adapt} if adapt else {"standardize": True}
    near = lace_profile(z, y, signals, labeled=labeled, **options)
    far = lace_profile(z, y, signals + 1e8, labeled=labeled, **options)
    np.testing.assert_allclose(far.value, near.value, atol=1e-7)
    np.testing.assert_allclose(far.se, near.se, atol=1e-7)


def test_points_far_from_every_item_follow_the_nearest() -> None:
    z, y, signals = pool(8)
    labeled = draw(np.random.default_rng(0), len(y), 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = lace_profile(z, y, signals, labeled=labeled, at=[1e3, 1e6], locality=Gaussian(0.05))
    nearest = np.flatnonzero(labeled)[np.argmax(z[labeled])]
    # 38 bandwidths away the plain exponential is 0: shifted weights still say which item is nearest.
    assert found.n_effective[1] == pytest.approx(1.0)
    assert np.isfinite(found.value).all()
    assert found.diagnostics["interval"] == ["wilson", "wilson"]
    assert found.low[1] <= y[nearest] <= found.high[1]


@pytest.mark.parametrize("call", [lace_mean, lambda y, s, **k: lace_profile(np.arange(len(y)), y, s, **k)])
def test_non_finite_signals_are_refused_and_can_be_filled(call) -> None:
    _, y, signals = pool(9)
    signals[3, 1] = np.nan
    with pytest.raises(ValueError, match="fill_missing_signals"):
        call(y, signals)
    filled, index = fill_missing_signals(signals, min_share=0.0)
    assert list(index) == [1]
    assert filled[3, 1] == pytest.approx(np.nanmean(signals[:, 1]))
    assert filled[3, -1] == 1.0
    assert filled[:, -1].sum() == 1.0


def test_labels_picked_by_their_profile_are_noticed() -> None:
    z, y, signals = pool(10)
    easy = z < 0.3
    with pytest.warns(UserWarning, match="do not look drawn at random"):
        found = lace_profile(z, np.where(easy, y, np.nan), signals)
    assert found.diagnostics["label_draw_p"] < 1e-6
    with pytest.warns(UserWarning, match="do not look drawn at random"):
        lace_profile((z * 4).astype(int), np.where(easy, y, np.nan), signals, locality=Categorical())


def test_random_labels_are_not_accused() -> None:
    z, y, signals = pool(11)
    rng = np.random.default_rng(0)
    p_values = []
    for axis, locality in ((z, None), (np.floor(z * 5), Ordinal(2)), (np.floor(z * 5), Categorical())):
        for _ in range(100):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = lace_profile(axis, y, signals, labeled=draw(rng, len(y), 60), locality=locality)
            p_values.append(found.diagnostics["label_draw_p"])
    # Ties make the test conservative; at 5 % and 300 draws more than 9 % would be 3 standard errors off.
    assert np.mean(np.array(p_values) < 0.05) < 0.09


def test_unscaled_signals_are_pointed_out_once() -> None:
    z, y, signals = pool(12)
    with pytest.warns(UserWarning, match="standardize") as caught:
        lace_profile(z, y, signals * np.array([1.0, 50.0, 0.01, 1.0]))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lace_profile(z, y, signals * 50.0, standardize=True)
        lace_profile(z, y, signals * 50.0, adapt="average")


def test_what_adapt_chooses_cannot_be_given() -> None:
    z, y, signals = pool(13)
    for chosen in (
        {"ridge": float("0.3")},
        {"ridge": "cv"},
        {"coefficient_locality": Gaussian(1.0)},
        {"coefficients": np.zeros((20, 4))},
    ):
        with pytest.raises(ValueError, match="adapt"):
            lace_profile(z, y, signals, adapt="average", **chosen)
    with pytest.raises(ValueError, match="adapt"):
        lace_mean(y, signals, adapt="average", ridge=float("0.3"))
    with pytest.raises(ValueError, match="adapt"):
        lace_profile(z, y, signals, adapt="best")
    with pytest.raises(ValueError, match="learner"):
        lace_profile(z, y, signals, learner="logistic")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(3)}, r"y must have shape \(600,\), got \(3,\)"),
        ({"signals": np.zeros((5, 2))}, r"signals must have shape \(600, K\), got \(5, 2\)"),
        ({"labeled": np.ones(4, dtype=bool)}, r"labeled must have shape \(600,\), got \(4,\)"),
        ({"z": np.zeros((2, 2, 2))}, r"z must have shape"),
        ({"y": np.full(600, np.nan)}, "no labeled item"),
        ({"at": [["a"]]}, "at"),
        ({"level": 1.0}, "level"),
        ({"target": "sample"}, "target"),
        ({"interval": "bootstrap"}, "interval"),
        ({"ridge": -1.0}, "ridge"),
        ({"inclusion_probabilities": np.zeros(600)}, "inclusion_probabilities"),
        ({"coefficients": np.zeros((20, 3))}, r"coefficients must have shape \(20, 4\), got \(20, 3\)"),
    ],
)
def test_refusals_name_the_argument(change: dict[str, object], message: str) -> None:
    z, y, signals = pool(14)
    with pytest.raises(ValueError, match=message):
        lace_profile(**{"z": z, "y": y, "signals": signals, **change})


def test_wilson_is_for_shares_only() -> None:
    z, y, signals = pool(15)
    half = np.where(np.arange(600) < 300, y + 0.5, np.nan)
    with pytest.raises(ValueError, match="wilson"):
        lace_profile(z, half, signals, interval="wilson", labeled=np.arange(600) < 300)
    with pytest.raises(ValueError, match="wilson"):
        lace_mean(half, signals, interval="wilson")


def test_inclusion_probabilities_undo_an_unequal_draw() -> None:
    rng = np.random.default_rng(16)
    y = (rng.random(2000) < 0.5).astype(float)
    signal = (y + rng.normal(size=2000))[:, None]
    chance = np.where(signal[:, 0] > 0.5, 0.10, 0.02)
    values, unweighted, covered = [], [], []
    for _ in range(200):
        labeled = rng.random(2000) < chance
        found = lace_mean(y, signal, labeled=labeled, inclusion_probabilities=chance)
        values.append(found.value)
        covered.append(found.low <= y.mean() <= found.high)
        unweighted.append(y[labeled].mean())
    error = np.std(values) / np.sqrt(200)
    assert abs(np.mean(values) - y.mean()) < 3.5 * error + 0.01
    assert np.mean(unweighted) - y.mean() > 0.1
    assert np.mean(covered) > 0.90
    with pytest.raises(ValueError, match="inclusion probability 1"):
        lace_mean(y, signal, labeled=rng.random(2000) < chance, inclusion_probabilities=np.ones(2000))


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(17)
    group = np.repeat(np.arange(60), 5)
    y = np.repeat((rng.random(60) < 0.5).astype(float), 5)
    signal = rng.normal(size=(300, 1))
    labeled = group < 40
    for options in ({}, {"adapt": "average"}):
        alone = lace_mean(y, signal, labeled=labeled, **options)
        grouped = lace_mean(y, signal, labeled=labeled, clusters=group, **options)
        assert grouped.value == pytest.approx(alone.value, abs=0.05)
        assert 1.8 * alone.se < grouped.se < 3.0 * alone.se  # √5 = 2.24 for wholly dependent fives
        assert grouped.high - grouped.low > 1.5 * (alone.high - alone.low)
        assert grouped.diagnostics["n_clusters"] == 40


def test_a_deployment_without_labeled_support_is_refused() -> None:
    _, y, signals = pool(18)
    labeled = np.arange(600) < 100
    with pytest.raises(ValueError, match="positive ratio"):
        lace_deployment(y, signals, np.where(labeled, 0.0, 1.2), labeled=labeled)


@pytest.mark.parametrize("labels", [1, 2, 3, 5])
@pytest.mark.parametrize("adapt", [None, "average"])
@pytest.mark.parametrize("binary", [True, False])
def test_a_handful_of_labels(labels: int, adapt: str | None, binary: bool) -> None:
    rng = np.random.default_rng(20)
    z, signals = rng.integers(0, 3, 40), rng.normal(size=(40, 3))
    y = (rng.random(40) < 0.5).astype(float) if binary else rng.normal(size=40)
    labeled = draw(rng, 40, labels)
    for locality in (Gaussian(1.0), Ordinal(2), Categorical()):
        found = lace_profile(z, y, signals, labeled=labeled, locality=locality, adapt=adapt)
        reached = found.n_effective > 0
        for entry in (found.value, found.low, found.high, found.se):
            assert np.isfinite(entry[reached]).all()
            assert np.isnan(entry[~reached]).all()
    mean = lace_mean(y, signals, labeled=labeled, adapt=adapt)
    assert np.isfinite(mean.value)
    assert np.isfinite([mean.low, mean.high]).all() == (binary or labels > 1)  # one number shows no spread


def test_the_cross_validated_ridge_follows_the_signal() -> None:
    rng = np.random.default_rng(21)
    chosen: dict[str, list[float]] = {"strong": [], "useless": []}
    for _ in range(25):
        z, y = rng.uniform(size=400), rng.normal(size=400)
        labeled = draw(rng, 400, 60)
        kinds = {"strong": (y + 0.3 * rng.normal(size=400))[:, None], "useless": rng.normal(size=(400, 5))}
        for kind, signals in kinds.items():
            found = lace_profile(z, y, signals, labeled=labeled, ridge="cv")
            chosen[kind].append(np.log(found.diagnostics["ridge"]))
            scores = found.diagnostics["ridge_scores"]
            assert scores[str(found.diagnostics["ridge"])] == min(scores.values())
    spread = np.sqrt((np.var(chosen["strong"]) + np.var(chosen["useless"])) / 25)
    assert np.mean(chosen["useless"]) - np.mean(chosen["strong"]) > 2 * spread


def test_verdicts_say_where_signals_help() -> None:
    z, y, signals = pool(22)
    labeled = draw(np.random.default_rng(0), 600, 150)
    helpful = np.column_stack([signals, y + 0.3 * np.random.default_rng(1).normal(size=600)])
    for options in ({"standardize": True}, {"adapt": "average"}):
        good = lace_profile(z, y, helpful, labeled=labeled, **options)
        assert set(good.diagnostics["verdict"]) == {"help"}
        assert (good.gain > 1.7).all()
    rng, said = np.random.default_rng(2), []
    for _ in range(20):
        noise = lace_profile(z, y, rng.normal(size=(600, 6)), labeled=draw(rng, 600, 150))
        said += noise.diagnostics["verdict"]
    assert said.count("help") < 0.25 * len(said)
    assert said.count("hurt") > 0.5 * len(said)
