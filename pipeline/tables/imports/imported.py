"""The table that every import makes: one row per task, model, item and epoch; scores and signals as columns."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.csv_guard import guarded_frame
from pipeline.errors import DataError
from pipeline.tables.table_source import inspect_source

KEY = ("task", "model", "item_id", "epoch")
_LEADING = (*KEY, "cluster", "question", "target", "answer", "reason")
_TEXT = frozenset(_LEADING) - {"epoch"}


@dataclass(frozen=True, slots=True)
class ImportedTable:
    """A table made of another tool's files.

    Attributes:
        frame: sorted by task, model, item and epoch.
        scores: the columns that may serve as gold or as signals.
        notes: what was skipped, one line each.
    """

    frame: pl.DataFrame
    scores: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())


def tidy_name(text: str) -> str:
    """A column name that needs no quoting on a command line: letters, digits, ``_``, ``-`` and ``.``."""
    return "".join(c if c.isalnum() or c in "_-." else "_" for c in text).strip("_")


def frame_of_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[pl.DataFrame, int]:
    """Rows as a sorted frame with one type per column; of rows that share a key the last one stays.

    Columns that hold numbers and booleans alone are numbers, all others text.

    Returns:
        The frame and how many earlier rows a later one replaced.
    """
    latest: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    total = 0
    for row in rows:
        total += 1
        latest[tuple(row[name] for name in KEY)] = row
    names: dict[str, None] = dict.fromkeys(_LEADING)
    for row in latest.values():
        names.update(dict.fromkeys(row))
    columns = {name: [row.get(name) for row in latest.values()] for name in names}
    series = [_series(name, values) for name, values in columns.items()]
    return pl.DataFrame(series).sort(KEY), total - len(latest)


def _series(name: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if name == "epoch":
        return pl.Series(name, values, dtype=pl.Int64)
    if name not in _TEXT and kinds and kinds <= {int, float, bool}:
        return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    return pl.Series(name, [None if value is None else _text(value) for value in values], dtype=pl.String)


def _text(value: Any) -> str:
    text = str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text


def check_output(out: Path, inputs: Sequence[Path]) -> None:
    """A table is never written over what it is made of.

    Raises:
        DataError: the output is one of the inputs.
    """
    for path in inputs:
        if path.exists() and out.exists() and path.samefile(out):
            raise DataError(f"--out {out} is the input itself; give another name")


def _refuse_fewer_columns(frame: pl.DataFrame, path: Path) -> None:
    try:
        before = inspect_source(path).columns
    except DataError:
        raise DataError(f"{path} exists and is no table; give another name, or remove it first") from None
    lost = [name for name in before if name not in frame.columns]
    if lost:
        raise DataError(
            f"{path} exists and has {len(lost)} columns that the new table has not ({', '.join(lost[:4])}); give "
            "another name, or remove it first"
        )


def write_table(frame: pl.DataFrame, path: Path, *, overwrite: bool = False) -> None:
    """Write a frame as Parquet, CSV or JSON Lines, whichever the file's suffix says; in one rename.

    Args:
        frame: the table.
        path: the file.
        overwrite: whether a file there may be replaced by a table that lacks some of its columns.

    Raises:
        DataError: an unknown suffix, a file that would lose columns, or the file cannot be written.
    """
    writers = {".parquet": frame.write_parquet, ".csv": guarded_frame(frame).write_csv, ".jsonl": frame.write_ndjson}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise DataError(f"{path}: the table is written as .parquet, .csv or .jsonl; give --out such a name")
    if path.exists() and not overwrite:
        _refuse_fewer_columns(frame, path)
    draft = path.with_name(path.name + ".draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer(draft)  # type: ignore[operator]
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


def files_below(path: Path, patterns: Sequence[str]) -> list[Path]:
    """The file itself, or all files in a folder and below it whose name matches a pattern, sorted.

    Raises:
        DataError: nothing there.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"no such file or folder: {path}")
    files = sorted({file for pattern in patterns for file in path.rglob(pattern)})
    if not files:
        raise DataError(f"{path} holds no {' or '.join(patterns)}")
    return files
