"""Every estimator of the battery against every law it claims."""

from __future__ import annotations

from dataclasses import replace

import battery
import numpy as np
import pytest
from battery import LAWS, SUBJECTS, Subject, make_case, quiet
from scipy.special import stdtrit

LEVEL = 0.95
SEEDS = (0, 1)


def claims(law: str) -> list[object]:
    return [pytest.param(subject, id=subject.name) for subject in SUBJECTS if law in subject.laws]


def run(subject: Subject, case: battery.Case, level: float = LEVEL) -> battery.Outcome:
    return quiet(lambda: subject.run(case, level))


def close(first: np.ndarray, second: np.ndarray, scale: float = 1.0) -> None:
    np.testing.assert_allclose(first, second, rtol=1e-8, atol=1e-8 * scale)


def test_every_law_is_known_and_claimed() -> None:
    assert {law for subject in SUBJECTS for law in subject.laws} == set(LAWS)
    assert len({(subject.name, subject.laws) for subject in SUBJECTS}) == len(SUBJECTS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("subject", claims("shift"))
def test_shift(subject: Subject, seed: int) -> None:
    case = make_case(seed)
    before, after = run(subject, case), run(subject, battery.shifted(case, 5.0))
    close(after.value, before.value + 5.0 * subject.weight)
    if before.se is not None:
        close(after.se, before.se)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("subject", claims("scale"))
def test_scale(subject: Subject, seed: int) -> None:
    case = make_case(seed)
    before, after = run(subject, case), run(subject, battery.scaled(case, 2.5))
    close(after.value, 2.5 * before.value)
    if before.low is not None:
        close(after.low, 2.5 * before.low)
        close(after.high, 2.5 * before.high)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("subject", claims("permutation"))
def test_permutation(subject: Subject, seed: int) -> None:
    case = make_case(seed, binary=subject.binary)
    order = np.random.default_rng(99).permutation(len(case.y))
    before, after = run(subject, case), run(subject, case.permuted(order))
    close(after.value, before.value)
    if before.low is not None:
        close(after.low, before.low)
        close(after.high, before.high)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("subject", claims("signal_affine"))
def test_units_of_signals_do_not_matter(subject: Subject, seed: int) -> None:
    case = make_case(seed, binary=subject.binary)
    moved = case.signals * np.array([100.0, -3.0, 0.01]) + np.array([1e4, 0.0, -7.0])
    before = run(subject, case)
    after = run(subject, replace(case, signals=moved, expensive=case.expensive * 20.0 - 3.0))
    close(after.value, before.value)
    if before.low is not None:
        close(after.low, before.low)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("subject", claims("nan_refused"))
def test_signals_that_are_not_finite_are_refused(subject: Subject, value: float) -> None:
    case = make_case(0, binary=subject.binary)
    spoiled = case.signals.copy()
    spoiled[np.flatnonzero(~case.labeled)[0], 0] = value
    with pytest.raises(ValueError, match=r"finite|missing|NaN"):
        run(subject, replace(case, signals=spoiled))


@pytest.mark.parametrize("value", [np.nan, 1e9])
@pytest.mark.parametrize("subject", claims("unread"))
def test_outcomes_outside_the_labeled_set_are_never_read(subject: Subject, value: float) -> None:
    case = make_case(1, binary=subject.binary)
    hidden = np.where(case.labeled, case.y, value)
    before = run(subject, case)
    after = run(subject, replace(case, y=hidden, other=np.where(case.labeled, case.other, value)))
    np.testing.assert_array_equal(after.value, before.value)


@pytest.mark.parametrize("subject", claims("complete"))
def test_with_every_label_there_is_nothing_to_estimate(subject: Subject) -> None:
    case = make_case(2, binary=subject.binary)
    case = replace(case, labeled=np.ones_like(case.labeled))
    assert subject.plain is not None
    outcome = run(subject, case)
    np.testing.assert_allclose(outcome.value, quiet(lambda: subject.plain(case)), rtol=1e-12)
    np.testing.assert_array_equal(outcome.se, 0.0)
    np.testing.assert_array_equal(outcome.low, outcome.high)


@pytest.mark.parametrize("subject", claims("constant_signals"))
def test_constant_signals_change_nothing(subject: Subject) -> None:
    case = make_case(3, binary=subject.binary)
    constant = np.broadcast_to(np.array([2.0, 0.0, 1e8]), case.signals.shape)
    assert subject.plain is not None
    outcome = run(subject, replace(case, signals=constant))
    close(outcome.value, quiet(lambda: subject.plain(case)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("subject", claims("one_sided"))
def test_a_two_sided_interval_at_90_is_a_pair_of_one_sided_bounds_at_95(subject: Subject, seed: int) -> None:
    case = make_case(seed)
    outcome = run(subject, case, 0.90)
    df = np.where(np.isfinite(outcome.df), outcome.df, 1e12)
    bound = stdtrit(df, 0.95) * outcome.se
    close(outcome.high, outcome.value + bound)
    close(outcome.low, outcome.value - bound)


@pytest.mark.parametrize("subject", claims("untouched"))
def test_arrays_are_never_modified(subject: Subject) -> None:
    case = make_case(4, binary=subject.binary)
    copies = {name: getattr(case, name).copy() for name in case.__dataclass_fields__}
    for name in case.__dataclass_fields__:
        getattr(case, name).setflags(write=False)
    run(subject, case)
    for name, copy in copies.items():
        np.testing.assert_array_equal(getattr(case, name), copy)
