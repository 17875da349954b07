"""Reads the pool of a table with named columns: outcomes, signals, profiles, weights, clusters of every target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.benchmark.axes import semantic_groups, tags_of, tags_text
from pipeline.errors import DataError
from pipeline.estimators import Sampling
from pipeline.estimators.floats import FloatArray
from pipeline.evaluation.items import items_of
from pipeline.evaluation.pool import Axis, Pool, TargetPool
from pipeline.evaluation.signal_families import FREE_FAMILIES
from pipeline.evaluation.uneven_signals import without_uneven
from pipeline.tables.cells import flag_column, label_column, number_column, shown_cells
from pipeline.tables.column_roles import ColumnRoles, ProfileKind, ProfileRole
from pipeline.tables.signal_checks import ALL, Notice, checked_signals
from pipeline.tables.table_source import inspect_source
from pipeline.tables.user_table import UserTable, read_user_table

MAX_ORDINAL_LEVELS = 12
MAX_LEVELS = 200


def read_pool(path: str | Path, roles: ColumnRoles) -> Pool:
    """Read a table file and assemble its targets.

    Raises:
        DataError: the file or a column cannot be used; one line that names rows or columns.
    """
    roles = roles.with_rounds(inspect_source(path).columns)
    return table_pool(read_user_table(path, roles.columns()), roles)


def table_pool(table: UserTable, roles: ColumnRoles) -> Pool:
    """The pool of a table that has been read: one row per item and target, items in the order of their names.

    Rows of one item of one target are averaged: labels, and what they are worth, count items.

    Raises:
        DataError: stray gold values, no labels, text where numbers belong, bad weights; rows are named.
    """
    if roles.answer is not None:
        # The readers of answers take 50 ms to import, a tenth of an estimate, and few tables hold answers.
        from pipeline.evaluation.answer_columns import with_answers

        table, roles = with_answers(table, roles)
    if len(roles.taus) == 1:
        raise DataError("--tau needs at least 2 columns: draw 0, then the independent draws")
    notices = [Notice("table", note) for note in table.notes]
    whole = _whole(table, roles, notices)
    models = _full_labels(table, roles.model, "model column") if roles.model else np.full(whole.size, ALL)
    made = {name for family in FREE_FAMILIES for name in roles.families.get(family, ())}
    targets = []
    present = dict.fromkeys(models.tolist())
    for name in dict.fromkeys([*(name for name in roles.targets if name in present), *present]):
        rows = np.flatnonzero(models == name)
        part = replace(whole.of(rows), name=str(name))
        if not part.n:
            if len(rows) == whole.size:
                raise DataError(
                    f"{table.source.path}: no row has a gold label in column {roles.gold!r}; label some rows"
                )
            notices.append(Notice("no_labels", f"target {name} has no gold label and was left out"))
            continue
        if len(rows) < whole.size and part.n < 2:
            notices.append(Notice("no_labels", f"target {name} has only 1 gold label and was left out"))
            continue
        part = items_of(part, notices)
        if part.clusters is not None and len(np.unique(part.clusters)) == part.size:
            part = replace(part, clusters=None)  # clusters of one are none
        kept = checked_signals(part.signals, roles.signals, part.y, part.labeled, part.name, notices, made)
        sampling = _sampling(part.sampling, part.labeled)
        drawn = "known" if roles.inclusion or roles.stage else roles.sampling or "unknown"
        part = replace(part, signals=kept.values, signal_names=kept.names, sampling=sampling, drawn=drawn)
        targets.append(without_uneven(part, notices))
    if not targets:
        raise DataError(f"{table.source.path}: no row has a gold label in column {roles.gold!r}; label some rows")
    return Pool(tuple(targets), tuple(notices), roles.families)


def _whole(table: UserTable, roles: ColumnRoles, notices: list[Notice]) -> TargetPool:
    """All rows as if they were one target's."""
    y, labeled = _outcomes(table, roles, notices)
    inclusion = _inclusion(table, roles.inclusion, labeled) if roles.inclusion else None
    clusters = _full_labels(table, roles.cluster, "cluster column") if roles.cluster else None
    if clusters is not None and len(np.unique(clusters)) < 2:
        raise DataError(f"cluster column {roles.cluster!r} holds one value only; one cluster gives no standard error")
    return TargetPool(
        ALL, y, labeled, _numbers(table, roles.signals, "signal", notices), roles.signals,
        tuple(_axis(table, profile, notices) for profile in roles.profiles),
        label_column(table, roles.id) if roles.id else None, clusters,
        _weights(table, roles.weights) if roles.weights else None, _whole_sampling(table, roles, inclusion),
        _numbers(table, roles.taus, "tau column", notices) if roles.taus else None,
        _numbers(table, roles.repeats, "column of repeats", notices) if roles.repeats else None,
        number_column(table, roles.truth, "truth column").values if roles.truth else None,
        ratings=_numbers(table, roles.rated, "rated column", notices) if roles.rated else None,
    )  # fmt: skip


def _outcomes(table: UserTable, roles: ColumnRoles, notices: list[Notice]) -> tuple[FloatArray, NDArray[np.bool_]]:
    if roles.labeled is not None:
        labeled = flag_column(table, roles.labeled)
        # Gold outside the labeled rows is not read at all, not even to complain about it.
        hidden = pl.Series(~labeled)
        frame = table.frame.with_columns(pl.when(hidden).then(None).otherwise(pl.col(roles.gold)).alias(roles.gold))
        table = UserTable(table.source, frame, table.rows, table.notes)
    numbers = number_column(table, roles.gold, "gold column")
    if numbers.note:
        notices.append(Notice("spelling", numbers.note))
    y = numbers.values
    if roles.labeled is None:
        labeled = np.isfinite(y)
    elif (lost := np.flatnonzero(labeled & ~np.isfinite(y))).size:
        raise DataError(
            f"gold column {roles.gold!r} is empty where {roles.labeled!r} says labeled: "
            f"{', '.join(table.place(int(row)) for row in lost[:5])}"
        )
    _refuse_stray_gold(table, roles, y)
    return y, labeled


def _refuse_stray_gold(table: UserTable, roles: ColumnRoles, y: FloatArray) -> None:
    """Values outside the declared range, or a few that do not fit a 0/1 column."""
    finite = np.isfinite(y)
    if roles.gold_range is not None:
        low, high = roles.gold_range
        stray = np.flatnonzero(finite & ((y < low) | (y > high)))
        kind = f"outside [{low:g}, {high:g}]"
    else:
        outside = finite & ((y < 0.0) | (y > 1.0))
        binary = np.isin(y, (0.0, 1.0)).sum()
        stray = (
            np.flatnonzero(outside) if binary >= 0.9 * finite.sum() and outside.sum() < binary else np.array([], int)
        )
        kind = "that do not fit a column of 0 and 1"
    if len(stray):
        cells = shown_cells(table, roles.gold, stray)
        raise DataError(
            f"gold column {roles.gold!r} has {len(stray)} values {kind}: {cells}; mend them, or leave them empty if "
            "unknown, or give --gold-range LOW,HIGH if they are right"
        )


def _numbers(table: UserTable, names: Sequence[str], role: str, notices: list[Notice]) -> FloatArray:
    columns = []
    for name in names:
        numbers = number_column(table, name, role)
        if numbers.note:
            notices.append(Notice("spelling", numbers.note))
        columns.append(numbers.values)
    return np.stack(columns, axis=1) if columns else np.empty((table.frame.height, 0))


def _weights(table: UserTable, name: str) -> FloatArray:
    weights = number_column(table, name, "weights column").values
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0.0))
    if len(bad):
        cells = shown_cells(table, name, bad)
        raise DataError(f"weights column {name!r} must hold a number of at least 0 in every row; see {cells}")
    if not weights.any():
        raise DataError(f"weights column {name!r} is 0 in every row")
    return weights


def _inclusion(table: UserTable, name: str, labeled: NDArray[np.bool_]) -> FloatArray:
    chances = number_column(table, name, "inclusion column").values
    bad = np.flatnonzero(labeled & ~((chances > 0.0) & (chances <= 1.0)))
    if len(bad):
        cells = shown_cells(table, name, bad)
        raise DataError(f"inclusion column {name!r} must hold probabilities in (0, 1] on labeled rows; see {cells}")
    return chances


def _whole_sampling(table: UserTable, roles: ColumnRoles, chances: FloatArray | None) -> Sampling:
    """The draw of all rows: their rounds and strata where the table says them, else their chances."""
    if roles.stage is None or roles.stratum is None:
        return Sampling(probabilities=chances)
    stage = number_column(table, roles.stage, "stage column").values
    try:
        return Sampling.staged(np.nan_to_num(stage).astype(np.intp), label_column(table, roles.stratum))
    except ValueError as error:
        raise DataError(f"columns {roles.stage!r} and {roles.stratum!r}: {error}") from None


def _sampling(sampling: Sampling, labeled: NDArray[np.bool_]) -> Sampling:
    """The draw of one target: the rounds that drew of it, or its chances, a number everywhere: where none is given, the
    labeled share."""
    chances = sampling.probabilities
    if sampling.rounds:
        return Sampling(tuple(entry for entry in sampling.rounds if entry.drawn.any()))
    if chances is None:
        return Sampling()
    share = max(float(labeled.mean()), 1e-12)
    filled = np.where(np.isfinite(chances), chances, min(share, 1.0 - 1e-9))
    # Certain inclusion of a row without a label would contradict itself.
    return Sampling(probabilities=np.where(~labeled & (filled >= 1.0), 1.0 - 1e-9, filled))


def _full_labels(table: UserTable, name: str, role: str) -> NDArray[np.str_]:
    labels = label_column(table, name)
    empty = np.flatnonzero(labels == "")
    if len(empty):
        places = ", ".join(table.place(int(row)) for row in empty[:5])
        raise DataError(f"{role} {name!r} is empty in {len(empty)} rows: {places}; fill them or remove these rows")
    return labels


def _axis(table: UserTable, role: ProfileRole, notices: list[Notice]) -> Axis:
    column = table.frame[role.column]
    numbers: FloatArray | None = None
    words = column.dtype == pl.String and not column.drop_nulls().str.contains(r"\d").any()
    if role.kind == "semantic":
        texts = label_column(table, role.column).tolist()
        return Axis(role.column, "categorical", np.array(semantic_groups(texts, role.column)))
    if role.kind == "tags":
        return Axis(role.column, "tags", _tagged(table, role.column))
    if role.kind != "categorical" and column.dtype != pl.Boolean and (role.kind is not None or not words):
        try:
            numbers = number_column(table, role.column, f"{role.kind or 'profile'} profile column").values
        except DataError:
            if role.kind is not None:
                raise
    kind = role.kind or _detected_kind(numbers)
    if kind == "categorical" or numbers is None:
        labels = label_column(table, role.column, missing="(missing)")
        _check_levels(role.column, labels)
        return Axis(role.column, "categorical", labels)
    missing = int(np.isnan(numbers).sum())
    if missing:
        notices.append(
            Notice(
                "profile_missing",
                f"profile column {role.column!r} is empty in {missing} rows; its profile is over the others",
            )
        )
    return Axis(role.column, kind, numbers)


def _tagged(table: UserTable, name: str) -> NDArray[np.str_]:
    """(M,) the tags of every row, as one canonical text."""
    column = table.frame[name]
    cells = column.to_list() if column.dtype.is_nested() else label_column(table, name).tolist()
    texts = np.array([tags_text(cell) for cell in cells], dtype=np.str_)
    count = len(tags_of(texts))
    if not count:
        raise DataError(f"profile column {name!r} holds no tags; write them as a; b or as a list")
    if count > MAX_LEVELS:
        raise DataError(f"profile column {name!r} has {count} different tags; each needs labels of its own: give fewer")
    return texts


def _detected_kind(numbers: FloatArray | None) -> ProfileKind:
    if numbers is None:
        return "categorical"
    distinct = np.unique(numbers[np.isfinite(numbers)])
    whole = bool(np.all(distinct == np.round(distinct)))
    return "ordinal" if whole and len(distinct) <= MAX_ORDINAL_LEVELS else "continuous"


def _check_levels(name: str, labels: NDArray[np.str_]) -> None:
    levels = Counter(labels.tolist())
    if len(levels) > MAX_LEVELS:
        raise DataError(
            f"profile column {name!r} has {len(levels)} different values; as categories each needs labels of its own. "
            "Choose a coarser column (or declare it continuous if it holds numbers)"
        )
