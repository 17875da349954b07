"""Reads the columns that are needed of a user's own table, and no others: large files are streamed."""

from __future__ import annotations

import contextlib
import csv
import difflib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import polars as pl

from pipeline.csv_guard import unguarded
from pipeline.errors import DataError
from pipeline.tables.compressed import open_bytes
from pipeline.tables.json_records import json_rows, nested_field
from pipeline.tables.table_source import TableSource, inspect_source

_TRANSCODE_LIMIT = 1 << 28
_ROW = "\0row"


@dataclass(frozen=True, slots=True)
class UserTable:
    """The requested columns of a table, in file order.

    Attributes:
        source: the file.
        frame: one column per requested name: text from CSV; text, numbers or booleans from JSON Lines and Parquet.
        rows: (M,) number of each row in the file, 1 for the first row below a header.
        notes: what was repaired or left out while reading, one line each.
        files: (M,) name of the file of each row, where there are several.
    """

    source: TableSource
    frame: pl.DataFrame
    rows: pl.Series
    notes: tuple[str, ...] = field(default=())
    files: pl.Series | None = None

    def place(self, index: int) -> str:
        """Where the row at ``index`` of the frame stands in the file, for messages."""
        row = int(self.rows[index])
        file = "" if self.files is None else f" of {self.files[index]}"
        if self.source.format == "csv":
            return f"row {row} (line {row + 1 + self.source.skip_lines}){file}"
        return f"row {row}{file}"

    def subset(self, keep: pl.Series) -> UserTable:
        """The rows where ``keep`` is true."""
        files = None if self.files is None else self.files.filter(keep)
        return UserTable(self.source, self.frame.filter(keep), self.rows.filter(keep), self.notes, files)


def frame_table(frame: pl.DataFrame, name: str = "the frame") -> UserTable:
    """A frame in memory as a table that was read; messages call it ``name``."""
    source = TableSource(Path(name), "parquet", "none", columns=tuple(frame.columns))
    return UserTable(source, frame, pl.int_range(1, frame.height + 1, eager=True))


def nearest_names(wanted: str, names: Sequence[str], count: int = 3) -> list[str]:
    """The names most like ``wanted``, best first, whatever the case."""
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(wanted.casefold(), list(folded), n=count, cutoff=0.5)
    inside = [low for low in folded if wanted.casefold() in low or (len(low) > 2 and low in wanted.casefold())]
    return [folded[name] for name in dict.fromkeys([*close, *inside])][:count]


def read_user_table(path: str | Path | TableSource, columns: Sequence[str]) -> UserTable:
    """Read ``columns`` of a CSV, JSON Lines, JSON or Parquet file; gzip, bz2, xz and Zstandard are undone.

    A nested field is named with dots (``scores.judge``). Rows of a CSV file that are empty in all of its columns are
    left out and counted in ``notes`` (spreadsheets leave such rows at the end).

    Raises:
        DataError: the file cannot be read, has no rows, or lacks a column (the nearest names are given).
    """
    source = path if isinstance(path, TableSource) else inspect_source(path)
    wanted = list(dict.fromkeys(columns))
    if not wanted:
        raise DataError(f"{source.path}: no columns were asked for; the table has {_listing(source.columns)}")
    reader = {"csv": _read_csv, "jsonl": _read_json, "json": _read_json, "parquet": _read_parquet}
    frame, rows, notes = reader[source.format](source, wanted)
    if frame.height == 0:
        raise DataError(
            f"{source.path} has a header but no rows" if source.format == "csv" else f"{source.path} has no rows"
        )
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    if blank.all():
        raise DataError(f"{source.path}: columns {', '.join(wanted)} are empty in every row")
    if source.format == "csv" and blank.any():
        blank &= _blank_lines(source)
        frame, rows = frame.filter(~blank), rows.filter(~blank)
        notes = [*notes, f"{int(blank.sum())} blank rows were left out"] if blank.any() else notes
    return UserTable(source, frame, rows, tuple(notes))


def _listing(names: Sequence[str], limit: int = 12) -> str:
    listed = ", ".join(names[:limit])
    return listed if len(names) <= limit else f"{listed}, … ({len(names)} columns)"


def _missing_column(source: TableSource, name: str, names: Sequence[str]) -> DataError:
    close = nearest_names(name, names)
    hint = f"did you mean {' or '.join(repr(entry) for entry in close)}?" if close else f"it has {_listing(names)}"
    if len(names) == 1 and source.format == "csv":
        hint += (
            "; only one column was found, so the delimiter may be an unusual one (comma, semicolon, tab and | are read)"
        )
    return DataError(f"{source.path} has no column {name!r}: {hint}")


# --- CSV ------------------------------------------------------------------------------------------------------------


def _read_csv(source: TableSource, wanted: list[str]) -> tuple[pl.DataFrame, pl.Series, list[str]]:
    for name in wanted:
        hits = source.columns.count(name)
        if hits == 0:
            raise _missing_column(source, name, source.columns)
        if hits > 1:
            raise DataError(f"{source.path}: {hits} columns are called {name!r}; rename all but one")
    notes = []
    data, repair = _csv_input(source)
    if repair:
        notes.append(repair)
    indices = [source.columns.index(name) for name in wanted]
    try:
        lazy, actual = _scan(source, data)
        cells = [_clean_text(pl.col(actual[index])).alias(name) for index, name in zip(indices, wanted, strict=True)]
        frame = lazy.select(cells).collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{source.path}: {_csv_damage(source, error)}") from error
    return frame, pl.int_range(1, frame.height + 1, eager=True), notes


def _scan(source: TableSource, data: Any) -> tuple[pl.LazyFrame, list[str]]:
    """The whole CSV file as lazy text columns, and the names that polars gives them."""
    lazy = pl.scan_csv(
        data, separator=source.delimiter, infer_schema=False, encoding="utf8-lossy", skip_lines=source.skip_lines,
         raise_if_empty=False, low_memory=True, glob=False,
    )  # fmt: skip
    return lazy, lazy.collect_schema().names()


def whole_csv(source: TableSource) -> pl.DataFrame:
    """Every cell of a CSV file as the text that it is, under the names of its header."""
    try:
        lazy, names = _scan(source, _csv_input(source)[0])
        whole = lazy.with_columns(unguarded(pl.col(pl.String)).name.keep()).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{source.path}: {_csv_damage(source, error)}") from error
    named = {old: new for old, new in zip(names, source.columns, strict=True) if old != new}
    return whole.rename(named)


def _blank_lines(source: TableSource) -> pl.Series:
    """(rows,) true where every cell of a CSV row is empty."""
    try:
        lazy, names = _scan(source, _csv_input(source)[0])
        cells = [_clean_text(pl.col(name)).is_null() for name in names]
        return lazy.select(pl.all_horizontal(cells)).collect(engine="streaming").to_series()
    except (pl.exceptions.PolarsError, OSError) as error:  # a row that only the other columns damage
        raise DataError(f"{source.path}: {_csv_damage(source, error)}") from error


def _clean_text(column: pl.Expr, *, csv_cells: bool = True) -> pl.Expr:
    text = column.str.strip_chars(" \t\r\n\u00a0\u202f\u2009")
    # Excel keeps text as ="…"; a lone leading apostrophe marks text too.
    plain = text.str.replace(r'^="(.*)"$', "$1").str.replace(r"^'(\S*)$", "$1")
    text = unguarded(text, plain) if csv_cells else plain
    return pl.when(text.str.len_bytes() == 0).then(None).otherwise(text)


def _csv_input(source: TableSource) -> tuple[Any, str | None]:
    """What polars reads: the path where it can, else the text as UTF-8 bytes; and a note when bytes were guessed at."""
    old_mac = _has_lone_returns(source)
    if source.encoding.startswith("utf-8") and source.compression in {"none", "gzip", "zstd"} and not old_mac:
        return source.path, None
    with open_bytes(source.path, source.compression) as file:
        data = file.read()
    if source.encoding == "cp1252" and len(data) > _TRANSCODE_LIMIT:
        return data, "the text is not UTF-8; letters with accents were replaced (save it as UTF-8 to keep them)"
    text = data.decode(source.encoding, errors="replace").lstrip("\ufeff")
    if old_mac:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    note = "the text is not UTF-8 and was read as Windows-1252" if source.encoding == "cp1252" else None
    return text.encode(), note


def _has_lone_returns(source: TableSource) -> bool:
    with open_bytes(source.path, source.compression) as file:
        head = file.read(1 << 16)
    return b"\r" in head and b"\n" not in head


def _csv_damage(source: TableSource, error: Exception) -> str:
    """One line about a CSV file that polars refuses: the row with too many fields where that is the reason."""
    message = str(error).strip()
    width = len(source.columns)
    if "more fields" in message or "could not parse" in message:
        with open_bytes(source.path, source.compression) as raw:
            text = io.TextIOWrapper(raw, encoding=source.encoding, errors="replace", newline="")
            for _ in range(source.skip_lines):
                text.readline()
            for row, cells in enumerate(csv.reader(_bounded(text), delimiter=source.delimiter)):
                if len(cells) > width:
                    return (
                        f"row {row} (line {row + 1 + source.skip_lines}) has {len(cells)} fields where the header has "
                        f"{width}; put text that holds {source.delimiter!r} in double quotes"
                    )
        return "a double quote is opened and never closed; look for a stray quotation mark"
    return message.splitlines()[0] if message else type(error).__name__


def _bounded(lines: IO[str], limit: int = 5_000_000) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number >= limit:
            return
        yield line[:100_000]


# --- JSON -----------------------------------------------------------------------------------------------------------


def _read_json(source: TableSource, wanted: list[str]) -> tuple[pl.DataFrame, pl.Series, list[str]]:
    values: dict[str, list[Any]] = {name: [] for name in wanted}
    seen: set[str] = set()
    rows: list[int] = []
    for number, record in json_rows(source.json):
        rows.append(number)
        for name in wanted:
            there, value = nested_field(record, name)
            if there:
                seen.add(name)
            if isinstance(value, dict | list):
                raise DataError(_nested_message(source, name, number, value))
            values[name].append(value)
    for name in wanted:
        if rows and name not in seen:
            raise _missing_column(source, name, source.columns)
    frame = pl.DataFrame([_json_series(name, values[name]) for name in wanted])
    return frame, pl.Series(rows, dtype=pl.Int64), []


def _nested_message(source: TableSource, name: str, number: int, value: Any) -> str:
    if isinstance(value, dict) and value:
        field_name = f"{name}.{next(iter(value))}"
        return f"{source.path}: column {name!r} is nested (row {number}); name one field, e.g. {field_name!r}"
    mend = f"name one entry ({name}.0), or add --explode {name} for a row per entry"
    return f"{source.path}: column {name!r} holds a list (row {number}); a column needs one value per row: {mend}"


def _json_series(name: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds == {int} and all(value is None or -(1 << 63) <= value < 1 << 63 for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if float in kinds and kinds <= {int, float}:
        with contextlib.suppress(OverflowError):
            return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    texts = [None if value is None else _json_text(value) for value in values]
    return (
        pl.Series(name, texts, dtype=pl.String)
        .to_frame()
        .select(_clean_text(pl.col(name), csv_cells=False).alias(name))
        .to_series()
    )


def _json_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = str(value)
    # A lone surrogate cannot be stored as UTF-8.
    return re.sub(r"[\ud800-\udfff]", "\ufffd", text)


# --- Parquet --------------------------------------------------------------------------------------------------------


def _read_parquet(source: TableSource, wanted: list[str]) -> tuple[pl.DataFrame, pl.Series, list[str]]:
    lazy = pl.scan_parquet(source.path, glob=False).with_row_index(_ROW, offset=1)
    if source.explode:
        if not isinstance(lazy.collect_schema().get(source.explode), pl.List | pl.Array):
            raise DataError(f"{source.path}: --explode {source.explode}: there is no such column of lists")
        lazy = lazy.explode(source.explode)
    schema = lazy.collect_schema()
    selected = [_parquet_column(source, schema, name) for name in wanted]
    try:
        frame = lazy.select(*selected, pl.col(_ROW).cast(pl.Int64)).collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{source.path}: the Parquet file is damaged ({str(error).splitlines()[0]})") from error
    return frame.drop(_ROW), frame[_ROW], []


def whole_parquet(source: TableSource) -> pl.DataFrame:
    """Every column of a Parquet file; lists and structs as they are.

    Raises:
        DataError: the file is damaged.
    """
    lazy = pl.scan_parquet(source.path, glob=False)
    try:
        schema = lazy.collect_schema()
        columns = [
            pl.col(name) if dtype.is_nested() else _scalar(source, name, pl.col(name), dtype).alias(name)
            for name, dtype in schema.items()
        ]
        return lazy.select(columns).collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{source.path}: the Parquet file is damaged ({str(error).splitlines()[0]})") from error


def _parquet_column(source: TableSource, schema: pl.Schema, name: str) -> pl.Expr:
    dtype: pl.DataType
    if name in schema:
        expression, dtype = pl.col(name), schema[name]
    else:
        steps = name.split(".")
        if steps[0] not in schema:
            raise _missing_column(source, name, source.columns)
        expression, dtype = pl.col(steps[0]), schema[steps[0]]
        for step in steps[1:]:
            if isinstance(dtype, pl.List) and step.isdigit():
                expression, dtype = expression.list.get(int(step), null_on_oob=True), dtype.inner  # type: ignore[assignment]
                continue
            fields: dict[str, Any] = dict(dtype.to_schema()) if isinstance(dtype, pl.Struct) else {}
            if step not in fields:
                raise _missing_column(source, name, source.columns)
            expression, dtype = expression.struct.field(step), fields[step]
    return _scalar(source, name, expression, dtype).alias(name)


def _scalar(source: TableSource, name: str, expression: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if isinstance(dtype, pl.Struct) and dtype.fields:
        raise DataError(
            f"{source.path}: column {name!r} is nested; name one field, e.g. '{name}.{dtype.fields[0].name}'"
        )
    if dtype.is_nested():
        raise DataError(
            f"{source.path}: column {name!r} holds lists; a column needs one value per row: name one entry ({name}.0), "
            f"or add --explode {name} for a row per entry"
        )
    if dtype == pl.Boolean:
        return expression
    if dtype.is_integer():
        return expression
    if dtype.is_numeric():
        return expression.cast(pl.Float64).fill_nan(None)
    if dtype in (pl.Binary, pl.Object):
        raise DataError(f"{source.path}: column {name!r} holds raw bytes; numbers or text are needed")
    return _clean_text(expression.cast(pl.String))
