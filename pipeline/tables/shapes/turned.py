"""Turns a table that was read into one row per item and model: wide columns, rows per judge, words, arithmetic."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from pipeline.errors import DataError, InputError
from pipeline.tables.cells import MISSING_SPELLINGS, label_column, number_column
from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.shapes.shape import parse_arithmetic
from pipeline.tables.user_table import UserTable

MODEL = "model"
ROW = "row"
_RATER, _PLACE = "\0rater", "\0row"


def only_rows(table: UserTable, where: Sequence[tuple[str, str]]) -> UserTable:
    """The rows that hold every value.

    Raises:
        DataError: none does; the values of the column are given.
    """
    for column, value in where:
        labels = label_column(table, column)
        if not (labels == value).any():
            there = ", ".join(repr(str(name)) for name in np.unique(labels)[:8])
            raise DataError(f"{table.source.path}: no row has {column} = {value!r}; there are {there}")
        table = table.subset(pl.Series(labels == value))
    return table


def mapped(table: UserTable, maps: Mapping[str, Mapping[str, float]]) -> UserTable:
    """The columns of ``maps`` with their words as numbers; empty cells stay empty.

    Raises:
        DataError: a word without a number.
    """
    frame = table.frame
    for column, values in maps.items():
        if column not in frame.columns:
            continue
        words = pl.Series(label_column(table, column).tolist(), dtype=pl.String).str.to_lowercase()
        stray = sorted(set(words) - set(values) - MISSING_SPELLINGS - {""})
        if stray:
            index = int((words == stray[0]).arg_max() or 0)
            listed = ", ".join(repr(word) for word in stray[:5])
            raise DataError(
                f"--map {column}: {listed} has no number (first in {table.place(index)}); add it, or empty the cell"
            )
        numbers = [values.get(word) for word in words]
        frame = frame.with_columns(pl.Series(column, numbers, dtype=pl.Float64))
    return replace(table, frame=frame)


def computed_gold(gold: str, columns: Sequence[str]) -> tuple[str, tuple[str, float] | None]:
    """The column that ``--gold`` names, and what is done to it: ``preference-1`` unless a column is called so."""
    arithmetic = parse_arithmetic(gold) if gold not in columns else None
    if arithmetic is None or arithmetic[0] not in columns:
        return gold, None
    return arithmetic[0], arithmetic[1:]


def shifted(table: UserTable, column: str, operation: tuple[str, float], name: str) -> UserTable:
    """The table with the column minus or times a number, under a new name."""
    sign, number = operation
    values = number_column(table, column, "gold column").values
    values = values - number if sign == "-" else values * number
    frame = table.frame.with_columns(pl.Series(name, values).fill_nan(None))
    return replace(table, frame=frame)


def wide_columns(wide: Mapping[str, str], columns: Sequence[str], place: str) -> dict[str, dict[str, str]]:
    """Model → role → column, of the columns that the patterns match, models in the order of the columns.

    Raises:
        DataError: a pattern without a column, or a column that two patterns match for one model.
    """
    models: dict[str, dict[str, str]] = {}
    for role, pattern in wide.items():
        before, _, after = pattern.partition("*")
        expression = re.compile(re.escape(before) + "(.+)" + re.escape(after), re.DOTALL)
        names = {match[1]: column for column in columns if (match := expression.fullmatch(column))}
        if not names:
            raise DataError(f"{place}: --wide {role}={pattern} matches none of {', '.join(columns[:12])}")
        for model, column in names.items():
            models.setdefault(model, {})[role] = column
    return models


def long_by_model(
    table: UserTable, models: Mapping[str, Mapping[str, str]], roles: Sequence[str], kept: Sequence[str]
) -> UserTable:
    """One row per row and model: the models' columns under the names of their roles, ``kept`` repeated."""
    parts = []
    for model, columns in models.items():
        named = [
            (pl.col(columns[role]).cast(pl.String) if role in columns else pl.lit(None, pl.String)).alias(role)
            for role in roles
        ]
        parts.append(table.frame.select(*kept, pl.lit(model).alias(MODEL), *named))
    repeat = len(models)
    files = None if table.files is None else pl.concat([table.files] * repeat)
    return UserTable(table.source, pl.concat(parts), pl.concat([table.rows] * repeat), table.notes, files)


def one_row_per_item(table: UserTable, roles: ColumnRoles, rater: str) -> tuple[UserTable, ColumnRoles]:
    """Rows per judge become one signal per judge: its mean over its rows of an item and model.

    The other columns must say the same in all rows of an item and model, where they say anything. A gold that is no
    column names a rater: the person among the judges.

    Raises:
        InputError: no id or no signal is named, or a gold that is neither column nor rater.
        DataError: no judge named in a row, or rows that contradict each other (the first are named).
    """
    if roles.id is None:
        raise InputError("--rater needs --id COL: the rows of one item belong together")
    if not roles.signals:
        raise InputError(f"--rater {rater} needs --signals COL: the column of the judges' scores")
    raters = label_column(table, rater)
    if (empty := np.flatnonzero(raters == "")).size:
        raise DataError(f"rater column {rater!r} is empty in {table.place(int(empty[0]))}; name the judge of every row")
    names = list(dict.fromkeys(raters.tolist()))
    if len(names) > 200:
        raise DataError(f"rater column {rater!r} has {len(names)} different values; does it name judges?")
    key = [roles.id, *([roles.model] if roles.model else [])]
    by_person = roles.gold not in table.frame.columns
    if by_person and roles.gold not in names:
        raise InputError(f"there is no column {roles.gold!r}, and no {rater} of that name: {', '.join(names[:8])}")
    others = [name for name in roles.columns() if name not in {*key, *roles.signals}]
    others = [name for name in others if not (by_person and name == roles.gold)]
    frame = table.frame.select(
        *key, *others, pl.Series(_RATER, raters), pl.Series(_PLACE, np.arange(table.frame.height)),
        *(pl.Series(name, number_column(table, name, "signal").values).fill_nan(None) for name in roles.signals),
    )  # fmt: skip
    _refuse_contradictions(table, frame, key, others)
    columns = {
        (name if len(roles.signals) == 1 else f"{signal}_{name}"): pl.col(signal).filter(pl.col(_RATER) == name)
        for signal in roles.signals
        for name in names
    }
    clash = sorted(set(columns) & {*key, *others})
    columns = {(f"{rater}_{name}" if name in clash else name): cells for name, cells in columns.items()}
    grouped = frame.group_by(key, maintain_order=True).agg(
        pl.col(_PLACE).first(), *(pl.col(name).drop_nulls().first() for name in others),
        *(cells.mean().alias(name) for name, cells in columns.items()),
    )  # fmt: skip
    first = grouped[_PLACE]
    note = f"{frame.height} rows of {len(names)} raters ({', '.join(names[:6])}) became {grouped.height} rows"
    files = None if table.files is None else table.files.gather(first)
    turned = UserTable(
        table.source, grouped.drop(_PLACE), table.rows.gather(first), (*table.notes, note), files
    )  # fmt: skip
    if not by_person:
        return turned, replace(roles, signals=tuple(columns))
    if len(roles.signals) > 1 or roles.gold not in columns:
        raise InputError(f"--gold {roles.gold} is a {rater}: give one column of scores with --signals")
    return turned, replace(roles, signals=tuple(name for name in columns if name != roles.gold))


def _refuse_contradictions(table: UserTable, frame: pl.DataFrame, key: list[str], others: list[str]) -> None:
    for name in others:
        values = frame.group_by(key, maintain_order=True).agg(
            pl.col(name).drop_nulls().n_unique().alias("n"), pl.col(_PLACE).first()
        )
        wrong = values.filter(pl.col("n") > 1)
        if wrong.height:
            first = int(wrong[_PLACE][0])
            raise DataError(
                f"column {name!r} says different things in the rows of one item and model, first at "
                f"{table.place(first)} ({key[0]} {str(wrong[key[0]][0])[:40]!r}; {wrong.height} items); "
                "mend it, or leave it empty where it is not known"
            )
