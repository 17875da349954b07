"""What callers hold: masked arrays, object columns, pandas' NA, seeds of every form, clusters with gaps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from pipeline.estimators import (
    comparator_profile,
    cross_fit_tau,
    fill_missing_signals,
    lace_deployment,
    lace_gap,
    lace_gaps,
    lace_mean,
    lace_profile,
    mean_gap,
    naive_mean,
    one_step_mean,
    paired_differences,
    population_mean,
    rank_sets,
)


class NAType:
    """Stands for pandas.NA: comparing it gives no truth value."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    __ne__ = __eq__


NA = NAType()
RNG = np.random.default_rng(0)
M = 60
S, Z = RNG.normal(size=(M, 2)), RNG.normal(size=M)
Y = (RNG.random(M) < 0.6).astype(float)
LABELED = np.arange(M) % 2 == 0
Y_NAN = np.where(LABELED, Y, np.nan)
TAU = RNG.random((M, 4))


def _as_objects(missing: object, number: Callable[[float], Any] = float) -> np.ndarray[Any, Any]:
    return np.array([number(a) if known else missing for a, known in zip(Y, LABELED, strict=True)], dtype=object)


@pytest.mark.parametrize(
    "y",
    [
        np.ma.masked_array(Y, mask=~LABELED),
        _as_objects(None),
        _as_objects(NA),
        _as_objects(NA, bool),
        _as_objects(None, Decimal),
        Y_NAN.astype(np.float32),
        Y_NAN.tolist(),
    ],
    ids=["masked", "none", "na", "na-bool", "decimal", "float32", "list"],
)
def test_every_way_of_saying_unlabeled_is_read_alike(y: Any) -> None:
    expected = lace_mean(Y_NAN, S).to_dict()
    assert lace_mean(y, S).to_dict() == expected
    gap = lace_gap(Z, y, 1.0 - Y, S, S[:, ::-1], at=[0.0], standardize=True)
    assert gap.value == lace_gap(Z, Y_NAN, 1.0 - Y, S, S[:, ::-1], at=[0.0], standardize=True).value


def test_masked_or_missing_signals_and_outcomes_are_refused_not_read() -> None:
    holes = np.ma.masked_array(S, mask=S > 1.0)
    with pytest.raises(ValueError, match="fill_missing_signals"):
        lace_mean(Y_NAN, holes)
    with pytest.raises(ValueError, match="missing"):
        naive_mean(np.ma.masked_array([1.0, 0.0, 1.0], mask=[False, True, False]))
    with pytest.raises(ValueError, match="missing"):
        lace_profile(np.ma.masked_array(Z, mask=Z > 1.0), Y_NAN, S)
    with pytest.raises(ValueError, match="missing"):
        lace_profile(np.array(["a", NA] * (M // 2), dtype=object), Y_NAN, S)
    filled, index = fill_missing_signals(holes)
    assert (filled.shape, index.tolist()) == ((M, 4), [0, 1])


def test_object_columns_of_numbers_are_numbers_and_text_is_not() -> None:
    assert naive_mean(np.array([1, 0, True], dtype=object)).value == pytest.approx(2 / 3)
    assert lace_mean(Y_NAN, S, labeled=LABELED.astype(object)).value == lace_mean(Y_NAN, S).value
    for text in (["1.0", "0.0"], np.array(["x", 1.0], dtype=object)):
        with pytest.raises(TypeError, match="numbers"):
            naive_mean(text)


@pytest.mark.parametrize("labels", [[None, "a"] * 30, [np.nan, 1.0] * 30, [NA, "a"] * 30])
def test_a_missing_cluster_label_is_refused(labels: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"clusters has 30 missing labels"):
        naive_mean(Y, clusters=np.array(labels, dtype=object))


def test_cluster_labels_of_mixed_kinds_work() -> None:
    mixed = np.array([i // 6 if i % 12 < 6 else f"c{i // 6}" for i in range(M)], dtype=object)
    assert naive_mean(Y, clusters=mixed).se == naive_mean(Y, clusters=np.arange(M) // 6).se


def test_a_seed_is_as_good_as_its_generator() -> None:
    def both(estimate: Callable[[Any], Any]) -> tuple[Any, Any]:
        return estimate(3), estimate(np.random.default_rng(3))

    calls: list[Callable[[Any], Any]] = [
        lambda rng: one_step_mean(Y, TAU, power="cross-fit", rng=rng).to_dict(),
        lambda rng: mean_gap(Y, 1 - Y, TAU, TAU, power="cross-fit", rng=rng).to_dict(),
        lambda rng: cross_fit_tau(Y, RNG.permutation(1) + TAU[:, :, None], rng=rng).tolist(),
        lambda rng: [row.to_dict() for row in paired_differences(TAU, rng=rng)],
        lambda rng: [row.to_dict() for row in rank_sets(TAU, rng=rng)],
        lambda rng: comparator_profile("aug_plugin", Z, Y_NAN, S, at=[0.0], rng=rng).to_dict(),
    ]
    for call in calls:
        seeded, generated = both(call)
        assert seeded == generated


def test_the_power_is_reported_as_given() -> None:
    assert one_step_mean(Y, TAU, power=0.3).diagnostics["power"] == 0.3


def test_a_prompt_without_weight_is_no_evidence() -> None:
    values, weights = [1.0, 2.0, 5.0, 9.0], [1.0, 1.0, 0.0, 0.0]
    padded, plain = population_mean(values, weights=weights), population_mean(values[:2])
    assert (padded.value, padded.se, padded.n) == (plain.value, pytest.approx(plain.se), 2)
    with pytest.raises(ValueError, match="at least 2 prompts with a positive weight"):
        population_mean([1.0, 2.0], weights=[1.0, 0.0])


def test_equal_values_far_from_zero_have_no_spread() -> None:
    assert population_mean([0.1] * 20).se == 0.0
    shifted = population_mean(np.array([0.0, 1.0, 2.0]) + 1e12, weights=[1.0, 2.0, 1.0])
    assert shifted.se == pytest.approx(population_mean([0.0, 1.0, 2.0], weights=[1.0, 2.0, 1.0]).se)


@pytest.mark.parametrize("adapt", [None, "average"])
def test_a_wholly_labeled_pool_is_still_a_sample_of_its_population(adapt: Any) -> None:
    every = lace_mean(np.ones(20), S[:20], adapt=adapt, target="population", standardize=True)
    assert every.low < 0.9
    half = lace_mean(np.where(np.arange(40) < 20, 1.0, np.nan), S[:40], adapt=adapt, target="population")
    assert half.low < 0.88  # n = 20 right answers, not the 40 items of the pool


@pytest.mark.parametrize("adapt", [None, "average"])
def test_one_continuous_label_has_no_standard_error(adapt: Any) -> None:
    found = lace_mean(np.r_[1.5, np.full(19, np.nan)], S[:20], adapt=adapt, standardize=True)
    assert np.isnan([found.se, found.low, found.high]).all()
    assert "one label" in found.diagnostics["reason"]


def test_the_rule_is_named_even_where_every_item_is_labeled() -> None:
    (only,) = lace_profile(Z, Y, S, at=[0.0], adapt="average").diagnostics["rule"]
    assert only == {"source": "none", "signals": "none", "ridge": None, "weight": 1.0}


@pytest.mark.parametrize("adapt", [None, "average"])
def test_two_models_that_agree_on_every_label_are_not_shown_to_be_equal(adapt: Any) -> None:
    def gap(y: Any, **options: Any) -> Any:
        return lace_gap(Z, y, y, S, S[:, ::-1], at=[-1.0, 0.0], standardize=True, adapt=adapt, **options)

    found = gap(Y_NAN)
    assert (found.value == 0.0).all()
    assert (found.low < -0.02).all()
    assert (found.high > 0.02).all()
    assert (gap(Y_NAN, target="population").high > found.high).all()
    assert (gap(Y).high == 0.0).all()  # every item of the pool was compared
    if adapt is None:
        cube = np.stack([S, S[:, ::-1]], axis=1)
        ((_, same),) = lace_gaps(Z, np.stack([Y_NAN, Y_NAN], axis=1), cube, at=[-1.0, 0.0], standardize=True)
        np.testing.assert_allclose(same.high, found.high, rtol=0.01)


def test_folds_do_not_depend_on_the_order_of_signals_or_items() -> None:
    rng = np.random.default_rng(5)
    signals = rng.normal(size=(120, 3))
    y = np.where(np.arange(120) < 60, (rng.random(120) < expit(2 * signals[:, 0])) * 1.0, np.nan)
    base = lace_mean(y, signals, adapt="average")
    shuffled = rng.permutation(120)
    for other in (
        lace_mean(y, signals[:, [2, 0, 1]], adapt="average"),
        lace_mean(y, signals[:, [1, 0, 2]] * [-3.0, 1e6, 0.2] + 5.0, adapt="average"),
        lace_mean(y[shuffled], signals[shuffled], adapt="average"),
    ):
        assert other.value == pytest.approx(base.value, abs=1e-10)
        assert other.high == pytest.approx(base.high, abs=1e-10)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_adaptive_rules_do_not_depend_on_the_unit_of_the_outcome(scale: float) -> None:
    y = np.where(LABELED, S[:, 0] + 0.3 * Z, np.nan)
    mean, other = (lace_mean(outcome, S, adapt="average") for outcome in (y, y * scale))
    assert (other.value / scale, other.se / scale) == (pytest.approx(mean.value), pytest.approx(mean.se))
    profile, scaled = (lace_profile(Z, outcome, S, at=[0.0], adapt="average") for outcome in (y, y * scale))
    assert scaled.value / scale == pytest.approx(profile.value)
    assert scaled.se / scale == pytest.approx(profile.se)


def test_a_deployment_mean_takes_the_learner() -> None:
    rng = np.random.default_rng(6)
    signals = rng.normal(size=(300, 2))
    ratio = np.exp(0.4 * signals[:, 1])
    outcome = (rng.random(300) < expit(3 * signals[:, 0])) * 1.0
    y = np.where(np.arange(300) < 120, outcome, np.nan)
    options: dict[str, Any] = {"adapt": "average", "learner": "logistic", "rng": 1}
    found = lace_deployment(y, signals, ratio / ratio.mean(), **options)
    plain = lace_deployment(y, signals, ratio / ratio.mean(), adapt="average")
    assert found.value != plain.value
    assert any(entry["source"] == "logistic" for entry in found.diagnostics["rule"])
    truth = float(ratio @ outcome / ratio.sum())
    assert found.low < truth < found.high
    every = lace_deployment(outcome, signals, ratio / ratio.mean(), **options)
    assert every.value == pytest.approx(truth)
    for refused in ({"learner": "logistic"}, {"adapt": "average", "learner": "forest"}):
        with pytest.raises(ValueError, match="learner"):
            lace_deployment(y, signals, ratio / ratio.mean(), **refused)  # type: ignore[arg-type]


def test_a_gap_takes_the_interval_by_name() -> None:
    assert mean_gap(Y, Y, interval="t").high == 0.0
    with pytest.raises(ValueError, match="interval"):
        mean_gap(Y, Y, interval="wilson")  # type: ignore[arg-type]


def test_a_function_is_never_hidden_by_the_family_of_its_name() -> None:
    code = (
        "import importlib, pipeline.estimators as e\n"
        "for module in ('best_of_n.estimators', 'gaps.all_gaps', 'gaps.mean_gap', 'comparators.profile'):\n"
        "    importlib.import_module(f'pipeline.estimators.{module}')\n"
        "hidden = [n for n in dir(e) if not callable(getattr(e, n)) and n not in ('looks', 'free_signals')]\n"
        "assert not hidden, hidden\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
