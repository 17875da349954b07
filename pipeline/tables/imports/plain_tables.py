"""Reads a plain table into the form of an import: columns renamed, numbers read as people write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from pipeline.errors import DataError
from pipeline.tables.cells import label_column, number_column
from pipeline.tables.imports.imported import ImportedTable
from pipeline.tables.table_source import inspect_source
from pipeline.tables.user_table import UserTable, read_user_table


def read_plain_table(
    path: str | Path, *, columns: Sequence[str] = (), rename: Mapping[str, str] | None = None
) -> ImportedTable:
    """A CSV, JSON Lines or Parquet table with clean numbers.

    Args:
        path: the table.
        columns: the columns to keep, in this order; none means all that hold one value per row.
        rename: old name → new name.

    Raises:
        DataError: as :func:`read_user_table`; or two columns would have one name.
    """
    source = inspect_source(path)
    chosen = list(columns) or list(dict.fromkeys(name for name in source.columns if name))
    names = [(rename or {}).get(name, name) for name in chosen]
    for old in rename or {}:
        if old not in chosen:
            listed = ", ".join(chosen[:12])
            raise DataError(f"{source.path}: --rename names {old!r}, which is not among the columns {listed}")
    if len(set(names)) < len(names):
        raise DataError(f"{source.path}: after renaming, two columns have one name ({', '.join(names[:12])})")
    notes: list[str] = []
    table = read_user_table(path, chosen) if columns else _whole_table(path, chosen, notes)
    series: list[pl.Series] = []
    for old, new in zip(chosen, names, strict=True):
        if old not in table.frame.columns:
            continue
        try:
            numbers = number_column(table, old)
        except DataError:
            series.append(pl.Series(new, label_column(table, old).tolist(), dtype=pl.String).replace("", None))
            continue
        if numbers.note:
            notes.append(numbers.note)
        series.append(pl.Series(new, numbers.values).fill_nan(None))
    frame = pl.DataFrame(series)
    numeric = tuple(name for name in frame.columns if frame[name].dtype.is_numeric())
    return ImportedTable(frame, numeric, (*table.notes, *notes))


def _whole_table(path: str | Path, names: list[str], notes: list[str]) -> UserTable:
    """Every column that can be read; nested ones are left out with a note."""
    kept = list(names)
    while True:
        try:
            return read_user_table(path, kept)
        except DataError as error:
            nested = next((name for name in kept if f"column {name!r} " in str(error)), None)
            if nested is None or len(kept) == 1:
                raise
            notes.append(f"column {nested!r} has no single value per row and was left out")
            kept.remove(nested)
