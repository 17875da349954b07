"""From named columns to outcomes, signals, profiles, weights and clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from pipeline.errors import DataError
from pipeline.evaluation.pool import Pool
from pipeline.evaluation.table_pool import read_pool
from pipeline.tables.column_roles import ColumnRoles, ProfileRole
from pipeline.tables.signal_checks import Notice, checked_signals, merged_notices


def inputs(tmp_path: Path, data: dict[str, Any], roles: ColumnRoles) -> Pool:
    path = tmp_path / "t.csv"
    pl.DataFrame(data).write_csv(path)
    return read_pool(path, roles)


BASE: dict[str, Any] = {"y": ["1", "0", None, "1", "0", None], "s": [0.1, 0.4, 0.3, None, 0.9, 0.2]}


def test_rows_keep_their_order_and_gaps_stay_gaps(tmp_path: Path) -> None:
    target = inputs(tmp_path, BASE, ColumnRoles("y", ("s",))).targets[0]
    assert target.name == "all"
    assert_array_equal(target.y, [1, 0, np.nan, 1, 0, np.nan])
    assert_array_equal(target.labeled, [True, True, False, True, True, False])
    assert_array_equal(target.signals[:, 0], [0.1, 0.4, 0.3, np.nan, 0.9, 0.2])
    assert target.binary


def test_models_split_every_column(tmp_path: Path) -> None:
    data = {**BASE, "m": list("abcabc"), "w": range(6), "i": list("xxyyzz"), "p": ["u", "v"] * 3}
    roles = ColumnRoles("y", ("s",), id="i", model="m", weights="w", profiles=(ProfileRole("p"),))
    found = inputs(tmp_path, data, roles)
    assert [target.name for target in found.targets] == ["a", "b"]
    second = found.targets[1]
    assert second.weights is not None
    assert second.ids is not None
    assert (second.weights.tolist(), second.ids.tolist()) == ([1.0, 4.0], ["x", "z"])
    assert second.profiles[0].values.tolist() == ["v", "u"]
    assert [notice.code for notice in found.notices if notice.code == "no_labels"] == ["no_labels"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b", "c"] * 2, "categorical"),
        ([True, False] * 3, "categorical"),
        ([1, 2, 3] * 2, "ordinal"),
        ([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], "continuous"),
        (["1", "2", "x"] * 2, "categorical"),
    ],
)
def test_profile_kinds_are_detected(tmp_path: Path, values: list[Any], kind: str) -> None:
    found = inputs(tmp_path, {**BASE, "p": values}, ColumnRoles("y", ("s",), profiles=(ProfileRole("p"),)))
    assert found.targets[0].profiles[0].kind == kind


def test_many_whole_numbers_are_continuous(tmp_path: Path) -> None:
    data = {"y": ["1"] * 13, "s": range(13), "p": range(13)}
    found = inputs(tmp_path, data, ColumnRoles("y", ("s",), profiles=(ProfileRole("p"),)))
    assert found.targets[0].profiles[0].kind == "continuous"


@pytest.mark.parametrize(
    ("column", "values", "roles", "message"),
    [
        ("w", [1, 2, -1, 1, 1, 1], {"weights": "w"}, r"'-1' in row 3 \(line 4\)"),
        ("w", [0] * 6, {"weights": "w"}, "is 0 in every row"),
        ("c", ["a", "", "b", "a", "b", "a"], {"cluster": "c"}, r"'c' is empty in 1 rows: row 2"),
        ("c", ["a"] * 6, {"cluster": "c"}, "one cluster gives no standard error"),
        ("m", ["a", "", "b", "a", "b", "a"], {"model": "m"}, r"'m' is empty in 1 rows"),
        ("l", ["yes", "no", "yes", "no", "no", "no"], {"labeled": "l"}, r"is empty where 'l' says labeled: row 3"),
        ("l", ["2", "0", "1", "0", "0", "0"], {"labeled": "l"}, "must hold yes or no"),
        ("p", [0.5, 0.5, 0.5, 0.0, 0.5, 0.5], {"inclusion": "p"}, r"'0.0' in row 4"),
    ],
)
def test_bad_columns_name_their_rows(
    tmp_path: Path, column: str, values: list[Any], roles: dict[str, str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        inputs(tmp_path, {**BASE, column: values}, ColumnRoles("y", ("s",), **roles))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gold", "stray"),
    [
        (["1", "0"] * 6 + ["2"], True),
        (["1", "0"] * 6 + ["-1"], True),
        (["1", "0"] * 6 + ["0.5"], False),
        (["1", "2", "3", "4", "5"] * 3, False),
        (["0.25", "0.5", "7"], False),
    ],
)
def test_stray_gold_in_a_column_of_zeros_and_ones(tmp_path: Path, gold: list[str], stray: bool) -> None:
    data = {"y": gold, "s": range(len(gold))}
    if stray:
        with pytest.raises(DataError, match=r"do not fit a column of 0 and 1: .* in row 13"):
            inputs(tmp_path, data, ColumnRoles("y", ("s",)))
    assert inputs(tmp_path, data, ColumnRoles("y", ("s",), gold_range=(-10, 10))).targets[0].labeled.all()


def check(signals: Any, y: Any) -> tuple[tuple[str, ...], dict[str, str]]:
    values = np.asarray(signals, dtype=float)
    outcome = np.asarray(y, dtype=float)
    notices: list[Notice] = []
    names = [f"s{k}" for k in range(values.shape[1])]
    kept = checked_signals(values, names, outcome, np.isfinite(outcome), "all", notices)
    return kept.names, {notice.message.split("'")[1]: notice.code for notice in notices}


def test_signals_that_say_nothing_are_left_out() -> None:
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) < 12, rng.integers(0, 2, 40), np.nan)
    good = rng.normal(size=40)
    columns = [good, np.ones(40), np.full(40, np.nan), 3 - 2 * good, np.where(np.isfinite(y), good, np.nan)]
    names, codes = check(np.stack(columns, axis=1), y)
    assert names == ("s0",)
    assert codes == {
        "s1": "constant_signal", "s2": "empty_signal", "s3": "duplicated_signal", "s4": "leaking_signal",
    }  # fmt: skip


def test_a_leak_is_left_out_but_a_good_judge_is_not() -> None:
    rng = np.random.default_rng(1)
    labeled = np.arange(60) < 20
    binary, real = rng.integers(0, 2, 60).astype(float), rng.normal(size=60)
    filled_with_zero = np.where(labeled, binary, 0.0)
    names, codes = check(np.stack([filled_with_zero, binary], axis=1), np.where(labeled, binary, np.nan))
    assert names == ("s1",)
    assert codes == {"s0": "leaking_signal", "s1": "leaking_signal"}
    assert check(real[:, None], np.where(labeled, real, np.nan))[0] == ()


def test_one_notice_about_many_targets_is_one_line() -> None:
    notices = [Notice("c", "text", name) for name in "abcdef"] + [Notice("c", "text2")]
    assert [entry.message for entry in merged_notices(notices)] == ["a, b, c, d and 2 more: text", "text2"]
    assert merged_notices([Notice("c", "text", "all")])[0].message == "text"
