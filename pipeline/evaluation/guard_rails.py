"""Guard rails before a table is estimated: what the columns that nobody named say about the rows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.errors import DataError, InputError
from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.signal_checks import Notice
from pipeline.tables.table_source import TableSource
from pipeline.tables.user_table import UserTable, read_user_table

MOST_MODELS = 50
_ID = re.compile(r"(^|[^a-z])(u?id|item|question|prompt|example|instance|key)s?([^a-z]|$)", re.IGNORECASE)
_REPEAT = re.compile(r"^(epoch|repeat|draw|sample|seed|fold|trial|attempt|repetition|replicate)", re.IGNORECASE)
_JUDGE = re.compile(r"judge|rater|grader|annotator|reviewer|labell?er", re.IGNORECASE)
_CROSSED, _ONCE = 0.8, 0.95
"""Share of all (item, value) pairs that must be there, and of rows that must be pairs of their own, for a column to
repeat every item once per value."""
_MOST_ROWS, _MOST_COLUMNS, _MOST_BYTES = 2_000_000, 60, 500_000_000
"""Beyond these nothing is read only to look at it."""

Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as codes of its values, and what it looks like."""

    name: str
    codes: Codes
    values: tuple[str, ...]

    @property
    def repeats(self) -> bool:
        """Whether it numbers repeats of an item."""
        if _REPEAT.match(self.name):
            return True
        try:
            numbers = sorted(float(value) for value in self.values)
        except ValueError:
            return False
        return bool(np.array_equal(np.diff(numbers), np.ones(len(numbers) - 1)))

    @property
    def judges(self) -> bool:
        """Whether it names who judged."""
        return bool(_JUDGE.search(self.name))


def guarded(
    table: UserTable, roles: ColumnRoles, *, frame: pl.DataFrame | None = None, pool_models: bool = False
) -> tuple[ColumnRoles, list[Notice]]:
    """The roles, mended where rows are repeats of an item that only ``--cluster`` names, and what must be said.

    Args:
        table: the columns in use.
        roles: of them.
        frame: all columns, where the table comes from memory; else they are read from its file.
        pool_models: whether rows of several models are to be taken for repeats of one item all the same.

    Raises:
        InputError: every item stands once for each value of a column that nobody named, as it does for each of several
            models; the line to add is given.
    """
    if not 4 <= table.frame.height <= _MOST_ROWS:
        return roles, []
    fixed = [_column(table.frame[name]) for name in (roles.model,) if name is not None]
    if roles.id is not None and _pairs([_column(table.frame[roles.id]), *fixed]) == table.frame.height:
        return roles, []
    others = list(_unnamed(table, roles, frame))
    factors = [column for column in others if column.repeats or column.judges]
    notices: list[Notice] = []
    item = _item(table, roles, others)
    if item is None:
        if _identified(others) and (copies := _copies(table, others)):
            text = f"{copies} rows are exact copies of others and count as labels of their own; give --id, or drop them"
            notices.append(Notice("duplicate_rows", text))
        return roles, notices
    for column in others:
        if column is item or not 2 <= len(column.values) <= MOST_MODELS:
            continue
        beside = [factor for factor in factors if factor is not column]
        if not any(_repeats(item, column, [*fixed, *more]) for more in ([], beside)):
            continue
        if column.repeats:
            if roles.id is None and roles.cluster == item.name:
                roles = replace(roles, id=roles.cluster)
            text = f"rows of one item are numbered by {column.name!r}: they are repeats, and labels count items"
            notices.append(Notice("repeats", text))
        elif column.judges:
            text = f"one row per value of {column.name!r}: give --rater {column.name} to make each a signal of its own"
            notices.append(Notice("rater_rows", text))
        elif roles.model is None and not pool_models:
            examples = ", ".join(column.values[:4]) + (", …" if len(column.values) > 4 else "")
            raise InputError(
                f"{table.source.path}: every {item.name!r} stands once for each of {len(column.values)} values of"
                f" {column.name!r} ({examples}): add --model {_quoted(column.name)} (or --pool-models to take them for"
                " repeats of one item)"
            )
    return roles, notices


def _quoted(name: str) -> str:
    return f"'{name}'" if re.search(r"[^A-Za-z0-9_.-]", name) else name


def _unnamed(table: UserTable, roles: ColumnRoles, frame: pl.DataFrame | None) -> Iterator[_Column]:
    """The columns that have no role, row by row as those in use; none where the table was turned while reading."""
    named = set(roles.columns())
    path = Path(table.source.path)
    names: Sequence[str] = ()
    if frame is not None:
        names = frame.columns
    elif path.is_file():
        names = table.source.columns
    wanted = [name for name in names if name not in named][:_MOST_COLUMNS]
    for column in _series(table.source, wanted) if frame is None else (frame[name] for name in wanted):
        if len(column) == table.frame.height and not column.dtype.is_nested():
            yield _column(column)


def _series(source: TableSource, names: Sequence[str]) -> Iterator[pl.Series]:
    """Columns of a file: all at once where that is possible, else those that can be read by themselves."""
    if not names or source.path.stat().st_size > _MOST_BYTES:
        return
    try:
        yield from read_user_table(source, names).frame
    except DataError:  # a nested or empty column among them
        for name in names:
            with contextlib.suppress(DataError):
                yield from read_user_table(source, [name]).frame


def _column(column: pl.Series) -> _Column:
    text = column.cast(pl.String, strict=False).fill_null("").to_numpy().astype(np.str_)
    values, codes = np.unique(text, return_inverse=True)
    return _Column(column.name, codes.astype(np.intp), tuple(values.tolist()))


def _item(table: UserTable, roles: ColumnRoles, others: Sequence[_Column]) -> _Column | None:
    """The column that names items: the one that was given, else the clusters, else one that is called so."""
    given = roles.id or roles.cluster
    if given is not None:
        return _column(table.frame[given])
    rows = table.frame.height
    named = [column for column in others if _ID.search(column.name) and MOST_MODELS / 5 < len(column.values) < rows]
    return max(named, key=lambda column: len(column.values), default=None)


def _pairs(columns: Sequence[_Column]) -> int:
    """Different combinations of values."""
    return len(np.unique(np.stack([column.codes for column in columns], axis=1), axis=0))


def _repeats(item: _Column, column: _Column, beside: Sequence[_Column]) -> bool:
    """Whether every item (within what stands beside) occurs about once for each value of the column."""
    rows, units = len(item.codes), _pairs([item, *beside])
    if units >= rows:
        return False
    crossed = rows >= _CROSSED * units * len(column.values)
    return crossed and _pairs([item, *beside, column]) >= _ONCE * rows


def _identified(others: Sequence[_Column]) -> bool:
    """Whether some column tells most rows apart, so that equal rows are copies and no coincidence."""
    return any(len(column.values) > 0.5 * len(column.codes) for column in others)


def _copies(table: UserTable, others: Sequence[_Column]) -> int:
    columns: Mapping[str, _Column] = {name: _column(table.frame[name]) for name in table.frame.columns}
    return table.frame.height - _pairs([*columns.values(), *others])
