"""Writes a user's table again with new cells in a column or two: every other column, row and type stays as it was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.errors import DataError
from pipeline.foreign_json import read_json
from pipeline.tables.imports.imported import write_table
from pipeline.tables.table_source import TableSource, inspect_source, open_bytes
from pipeline.tables.user_table import whole_csv


def relabeled(path: Path, out: Path, columns: Mapping[str, Sequence[str | float | None]], rows: Sequence[int]) -> None:
    """Write the table at ``path`` to ``out`` with these columns; one rename, so that ``out`` may be ``path``.

    Args:
        path: the table.
        out: where to; its suffix says the format, as for every table that is written.
        columns: column → cells, one for each of ``rows``; a column that is not there becomes the last.
        rows: numbers of the table's rows, 1 for the first below a header.

    Raises:
        DataError: an unknown suffix, or it cannot be written.
    """
    source = inspect_source(path)
    if source.format in ("jsonl", "json") and out.suffix.lower() == ".jsonl":
        _write_lines(out, _records(source), columns, rows)
        return
    frame = _whole(source)
    write_table(frame.with_columns([_filled(frame, name, cells, rows) for name, cells in columns.items()]), out)


def _whole(source: TableSource) -> pl.DataFrame:
    if source.format == "csv":
        return whole_csv(source)
    if source.format == "parquet":
        return pl.read_parquet(source.path, glob=False)
    return pl.DataFrame([record for _, record in _records(source)], infer_schema_length=None)


def _filled(frame: pl.DataFrame, name: str, cells: Sequence[str | float | None], rows: Sequence[int]) -> pl.Series:
    old = frame[name] if name in frame.columns else pl.Series(name, [None] * frame.height, dtype=pl.String)
    values: list[Any] = old.to_list()
    for row, cell in zip(rows, cells, strict=True):
        values[row - 1] = cell
    if old.dtype.is_numeric() or old.dtype == pl.Boolean:
        return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)


def _records(source: TableSource) -> list[tuple[int, dict[str, Any]]]:
    """(row number, record) of a JSON file, numbered as ``read_user_table`` numbers them."""
    with open_bytes(source.path, source.compression) as raw:
        text = raw.read().decode(source.encoding, errors="replace").lstrip("\ufeff")
    if source.format == "json":
        return list(enumerate(read_json(text), 1))
    lines = text.split("\n")
    return [(number, read_json(line)) for number, line in enumerate(lines, 1) if line.strip()]


def _write_lines(
    out: Path,
    records: list[tuple[int, dict[str, Any]]],
    columns: Mapping[str, Sequence[str | float | None]],
    rows: Sequence[int],
) -> None:
    place = {row: k for k, row in enumerate(rows)}
    draft = out.with_name(out.name + ".draft")
    try:
        with draft.open("w", encoding="utf-8") as file:
            for number, record in records:
                if number in place:
                    fresh = {name: _number(cells[place[number]]) for name, cells in columns.items()}
                    record = {**record, **fresh}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(out)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise DataError(f"{out} cannot be written: {error.strerror or error}") from error


def _number(cell: str | float | None) -> Any:
    """A number where the text is one, as JSON tables hold them."""
    if cell is None or not isinstance(cell, str):
        return cell
    try:
        value = float(cell)
    except ValueError:
        return cell
    return int(value) if value.is_integer() else value
