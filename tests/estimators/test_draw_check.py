"""The joint test of how labels were drawn: its level under every draw, and what it notices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.estimators import DrawCheck, Sampling, check_draw

FloatArray = NDArray[np.float64]
ROWS, LABELS = 400, 80


def world(rng: np.random.Generator, groups: int = ROWS) -> tuple[FloatArray, FloatArray]:
    """(difficulty, columns): three signals, one of no tails' end, two that say the same, one constant."""
    hard = np.repeat(rng.normal(size=groups), ROWS // groups)
    signals = hard[:, None] + rng.normal(size=(ROWS, 3))
    return hard, np.column_stack([signals, signals[:, 0] * 2.0, rng.standard_cauchy(ROWS), np.ones(ROWS)])


def chosen(rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    mask = np.zeros(ROWS, dtype=bool)
    mask[rows] = True
    return mask


def simple(rng: np.random.Generator) -> DrawCheck:
    return check_draw(world(rng)[1], chosen(rng.choice(ROWS, LABELS, replace=False)))


def by_chance(rng: np.random.Generator) -> DrawCheck:
    hard, columns = world(rng)
    chance = np.clip(0.2 * np.exp(0.5 * hard), 0.02, 0.9)
    return check_draw(columns, rng.random(ROWS) < chance, inclusion_probabilities=chance)


def in_strata(rng: np.random.Generator) -> DrawCheck:
    _, columns = world(rng)
    strata = (columns[:, 0] > 0).astype(int)
    rows = [rng.choice(np.flatnonzero(strata == h), count, replace=False) for h, count in ((0, 25), (1, 55))]
    return check_draw(columns, chosen(np.concatenate(rows)), sampling=Sampling.stratified(strata))


def whole_groups(rng: np.random.Generator) -> DrawCheck:
    _, columns = world(rng, 80)
    groups = np.arange(ROWS) // 5
    return check_draw(columns, np.isin(groups, rng.choice(80, 16, replace=False)), clusters=groups)


@pytest.mark.parametrize("draw", [simple, by_chance, in_strata, whole_groups])
def test_the_level_holds_under_the_draw_that_was_said(draw: Callable[[np.random.Generator], DrawCheck]) -> None:
    rng = np.random.default_rng(1)
    p = np.array([draw(rng).p for _ in range(300)])
    assert 0.01 < np.mean(p < 0.05) < 0.1
    assert np.mean(p < 0.001) <= 0.01


def test_labels_drawn_by_difficulty_are_noticed() -> None:
    rng = np.random.default_rng(2)
    p = []
    for _ in range(100):
        hard, columns = world(rng)
        share = np.exp(0.4 * hard)
        p.append(check_draw(columns, chosen(rng.choice(ROWS, 160, replace=False, p=share / share.sum()))).p)
    assert np.mean(np.array(p) < 0.05) > 0.8  # column by column: 23 %
    assert np.mean(np.array(p) < 0.001) > 0.4


def test_groups_drawn_whole_are_no_alarm_only_where_they_are_named() -> None:
    rng = np.random.default_rng(3)
    alarms = {True: 0, False: 0}
    for _ in range(100):
        _, columns = world(rng, 80)
        groups = np.arange(ROWS) // 5
        mask = np.isin(groups, rng.choice(80, 16, replace=False))
        for named in alarms:
            alarms[named] += check_draw(columns, mask, clusters=groups if named else None).p < 0.05
    assert alarms[True] <= 12
    assert alarms[False] >= 20


def test_the_statistic_counts_directions_once_and_names_the_column() -> None:
    rng = np.random.default_rng(4)
    hard, columns = world(rng)
    check = check_draw(columns, hard > np.quantile(hard, 0.8))
    assert check.df == 4  # the copied column and the constant one add nothing
    assert check.p < 1e-6
    assert check.column in (0, 1, 2, 3)
    assert check.z[5] == 0.0


def test_there_is_nothing_to_compare_where_all_or_none_are_labeled() -> None:
    _, columns = world(np.random.default_rng(5))
    assert check_draw(columns, np.ones(ROWS, dtype=bool)).p == 1.0
    assert check_draw(columns[:, :0], np.arange(ROWS) < 50).column is None
    with pytest.raises(ValueError, match="labeled must have shape"):
        check_draw(columns, np.ones(3, dtype=bool))
