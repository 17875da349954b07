"""Rows of a file as they are, one at a time: what a benchmark is made of, by the reader that tables are read by."""

from __future__ import annotations

import csv
import lzma
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.tables.compressed import open_bytes
from pipeline.tables.json_records import json_rows, nested_field
from pipeline.tables.shapes.files import plain_files
from pipeline.tables.table_source import TableSource, inspect_source
from pipeline.tables.user_table import read_user_table, whole_parquet

_LONGEST_LINE = 1 << 26


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a source.

    Attributes:
        where: how an error message names it (``line 7``, ``row 6 (line 7)``).
        values: its fields.
    """

    where: str
    values: Mapping[str, Any]


class _Nested(Mapping[str, Any]):
    """A record whose nested fields have dotted names too, as the columns of a table have (``input.text``)."""

    def __init__(self, record: dict[str, Any]) -> None:
        self._record = record

    def __getitem__(self, name: str) -> Any:
        there, value = nested_field(self._record, name)
        if not there:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._record)

    def __len__(self) -> int:
        return len(self._record)


def file_rows(path: Path) -> Iterator[Row]:
    """Rows of any file that tables are read from; lists and objects stay what they are.

    A benchmark's questions are text that models are asked: bytes that are not UTF-8 and rows with too few cells, which
    a table of numbers forgives, are refused.

    Raises:
        DataError: no such file, or it cannot be read; names the line.
    """
    with plain_files([path]) as (file,):
        try:
            source = inspect_source(file.path)
            if source.format != "parquet":
                _refuse_doubtful_text(source)
            yield from _rows(source)
        except DataError as error:
            raise DataError(str(error).replace(str(file.path), file.name)) from None


def _rows(source: TableSource) -> Iterator[Row]:
    if source.format in ("jsonl", "json"):
        word = "line" if source.format == "jsonl" else "row"
        for number, record in json_rows(source.json):
            yield Row(f"{word} {number}", _Nested(record))
    elif source.format == "parquet":
        for number, values in enumerate(whole_parquet(source).iter_rows(named=True), 1):
            yield Row(f"row {number}", _Nested(values))
    else:
        table = read_user_table(source, source.columns)
        for index, values in enumerate(table.frame.iter_rows(named=True)):
            yield Row(table.place(index), values)


def _refuse_doubtful_text(source: TableSource) -> None:
    lines = _decoded(source)
    if source.format != "csv":
        for _ in lines:
            pass
        return
    with _long_csv_fields():
        for _ in range(source.skip_lines):
            next(lines, None)
        reader = csv.reader(lines, delimiter=source.delimiter, strict=True)
        try:
            for record in reader:
                if record and len(record) != len(source.columns):
                    raise DataError(
                        f"{source.path}: line {source.skip_lines + reader.line_num} has {len(record)} fields, the"
                        f" header has {len(source.columns)}"
                    )
        except csv.Error as error:
            line = source.skip_lines + reader.line_num
            raise DataError(f"{source.path}: line {line} is not valid CSV: {error}") from None


@contextmanager
def _long_csv_fields() -> Iterator[None]:
    before = csv.field_size_limit(_LONGEST_LINE)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _decoded(source: TableSource) -> Iterator[str]:
    """The lines; of UTF-16, which has no bytes that end a line, nothing is to be doubted here."""
    if source.encoding == "utf-16":
        with open_bytes(source.path, source.compression) as file:
            yield from file.read().decode("utf-16", errors="replace").splitlines(keepends=True)
        return
    number = 0
    with open_bytes(source.path, source.compression) as file:
        while line := _line(source, file):
            number += 1
            if len(line) > _LONGEST_LINE:
                raise DataError(f"{source.path}: line {number} is longer than {_LONGEST_LINE >> 20} MiB")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{source.path}: line {number} is not UTF-8 text (byte {error.start + 1} of the line is"
                    f" 0x{line[error.start]:02x}); save the file as UTF-8"
                ) from None
            yield text


def _line(source: TableSource, file: Any) -> bytes:
    try:
        return bytes(file.readline(_LONGEST_LINE + 1))
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{source.path}: the {source.compression} data is damaged or cut off ({error})") from None
