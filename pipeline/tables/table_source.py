"""What a user's table file is: format, compression, encoding, delimiter and column names, from its first bytes."""

from __future__ import annotations

import csv
import io
import itertools
import lzma
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pipeline.csv_guard import unguard
from pipeline.errors import DataError
from pipeline.tables.compressed import (
    Compression,
    compression_of,
    decompress_zstd,
    open_bytes,
    refuse_bomb,
    refuse_wide_parquet,
)
from pipeline.tables.json_records import JsonFile, is_document, json_rows, leaf_names

__all__ = ["TableSource", "decompress_zstd", "inspect_source", "open_bytes"]

Format = Literal["csv", "jsonl", "json", "parquet"]

_HEAD_BYTES = 1 << 20
_SAMPLE_RECORDS = 100
_DELIMITERS = (",", ";", "\t", "|")
_UTF16 = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table file that can be read.

    Attributes:
        path: the file.
        format: csv (any delimiter), jsonl, json (one array of objects) or parquet.
        compression: how the whole file is compressed.
        delimiter: of a CSV file.
        encoding: of a text file, in Python's spelling.
        skip_lines: lines before a CSV header (Excel's ``sep=;``).
        columns: names as written; of JSON the dotted leaves of the first records.
        records: where the rows of a JSON document stand, as dotted steps; empty for a list at the top.
        explode: the list whose entries become rows; empty for none.
    """

    path: Path
    format: Format
    compression: Compression
    delimiter: str = ","
    encoding: str = "utf-8"
    skip_lines: int = 0
    columns: tuple[str, ...] = ()
    records: str = ""
    explode: str = ""

    @property
    def json(self) -> JsonFile:
        """The file as nested records."""
        return JsonFile(self.path, self.compression, self.encoding, self.format == "json", self.records, self.explode)


def inspect_source(
    path: str | Path, *, header_line: int | None = None, records: str = "", explode: str = ""
) -> TableSource:
    """Find out what a file is.

    Args:
        path: the file.
        header_line: line of a CSV file that holds the column names, from 1; None means the first that is not empty.
        records: dotted steps to the rows of a JSON document (``results.results``).
        explode: a nested list whose entries become rows.

    Raises:
        DataError: no such file, a folder, an empty file, a spreadsheet, or bytes that are no table.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; name one table file (CSV, JSON Lines or Parquet)")
    if not path.exists():
        raise DataError(f"no such file: {path}")
    with path.open("rb") as file:
        magic = file.read(8)
    if not magic:
        raise DataError(f"{path} is empty")
    if magic[:4] == b"PAR1":
        return TableSource(path, "parquet", "none", columns=_parquet_columns(path), explode=explode)
    compression = compression_of(magic)
    refuse_bomb(path, compression)
    head = _head(path, compression)
    if not head.strip():
        raise DataError(f"{path} is empty")
    _refuse_binary(path, head)
    encoding = _encoding(head)
    text = head.decode(encoding, errors="replace").lstrip("\ufeff")
    if _looks_json(path, text):
        # A file of one line is a row where its name says so, though a list of objects stands in it.
        named_lines = {".jsonl", ".ndjson"} & {suffix.lower() for suffix in path.suffixes}
        document = records or is_document(text, len(head) < _HEAD_BYTES, named_lines=bool(named_lines))
        form: Format = "json" if document else "jsonl"
        source = TableSource(path, form, compression, encoding=encoding, records=records, explode=explode)
        sample = itertools.islice(json_rows(source.json), _SAMPLE_RECORDS)
        return replace(source, columns=leaf_names(record for _, record in sample))
    if records or explode:
        raise DataError(f"{path} is no JSON: --records and --explode are for nested rows")
    return _csv_source(path, compression, encoding, text, header_line)


def _head(path: Path, compression: Compression) -> bytes:
    if compression == "zstd":
        return decompress_zstd(path.read_bytes())[:_HEAD_BYTES]
    try:
        with open_bytes(path, compression) as file:
            return file.read(_HEAD_BYTES)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"{path}: the {compression} data is damaged or cut off ({error})") from error


def _refuse_binary(path: Path, head: bytes) -> None:
    if head[:4] == b"PK\x03\x04":
        kind = "an Excel workbook" if path.suffix.lower() in {".xlsx", ".xlsm"} else "a zip archive"
        raise DataError(f"{path} is {kind}; save the sheet as CSV (UTF-8) and give that file")
    if head[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        raise DataError(f"{path} is an old Excel workbook; save the sheet as CSV (UTF-8) and give that file")
    if head[:4] == b"PAR1":
        raise DataError(f"{path} is a compressed Parquet file; decompress it first (Parquet compresses inside)")
    if b"\x00" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path} is not a text table (it holds zero bytes); CSV, JSON Lines and Parquet are read")


def _encoding(head: bytes) -> str:
    for mark, name in _UTF16:
        if head.startswith(mark):
            return name
    if head.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character cut in two at the end of the sample is no sign of another encoding.
        if error.start < len(head) - 4:
            return "cp1252"
    return "utf-8"


def _looks_json(path: Path, text: str) -> bool:
    names = [suffix.lower() for suffix in path.suffixes]
    if any(name in {".csv", ".tsv"} for name in names):
        return False
    start = text.lstrip()[:1]
    return start == "{" or (start == "[" and not text.lstrip().startswith("[["))


def _csv_source(path: Path, compression: Compression, encoding: str, text: str, header_line: int | None) -> TableSource:
    lines = text.splitlines()
    declared = None
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    mark = lines[first].strip().strip('"').lower()
    if mark.startswith("sep=") and len(mark) <= 5:
        declared = mark[4:5] or ","
        first += 1
    if header_line is not None:
        first = header_line - 1
    if not 0 <= first < len(lines):
        raise DataError(f"{path} has no header line" + (f" {header_line}" if header_line is not None else ""))
    delimiter = declared or _delimiter(path, lines[first : first + 20])
    try:
        header = [*map(unguard, next(csv.reader(io.StringIO("\n".join(lines[first:])), delimiter=delimiter)))]
    except csv.Error as error:
        raise DataError(f"{path}: line {first + 1} is no header ({error})") from error
    names = tuple(name.strip() for name in header)
    if header_line is None:
        _refuse_title(path, lines, first, delimiter)
    if sum(_is_number(name) for name in names) > len(names) / 2:
        raise DataError(
            f"{path}: the first line holds numbers, not column names ({', '.join(names[:3])}); add a header"
        )
    return TableSource(path, "csv", compression, delimiter, encoding, first, names)


def _refuse_title(path: Path, lines: list[str], first: int, delimiter: str) -> None:
    """A title or a comment above the column names: where they seem to stand is proposed, never guessed.

    A title is a comment, one filled cell, or a shorter line half as full, above a line of three names or more that
    differ and are no numbers, from which on all lines are as wide.
    """
    cells = [[cell.strip() for cell in line] for line in _split(lines[first : first + 30], delimiter)]
    comment = lines[first].lstrip().startswith(("#", "//"))
    filled = sum(map(bool, cells[0]))
    for below in range(1, len(cells) - 1):
        names = [name for name in cells[below] if name]
        widths = {len(line) for line in cells[below:] if any(line)}
        headed = len(names) >= 3 and len(set(names)) == len(names) and not any(map(_is_number, names))
        shorter = len(cells[0]) != len(cells[below]) and (comment or 2 * filled <= len(names))
        title = shorter or (filled <= 1 and not comment)
        if headed and title and len(widths) == 1 and 2 * len(names) > len(cells[below]) and names[0][0] != "#":
            raise DataError(
                f"{path}: line {first + 1} looks like a title ({lines[first].strip(delimiter + ' ')[:40]!r}) and the "
                f"column names ({', '.join(names[:3])}, …) seem to stand in line {first + below + 1}; add "
                f"--header-line {first + below + 1} (or --header-line {first + 1} if line {first + 1} is right)"
            )


def _split(lines: list[str], delimiter: str) -> list[list[str]]:
    """Cells line by line; a quoted cell over several lines ends the look."""
    rows = []
    for line in lines:
        try:
            rows.append(next(csv.reader([line], delimiter=delimiter), []))
        except csv.Error:
            break
    return rows


def _delimiter(path: Path, lines: list[str]) -> str:
    """The mark that the header holds most of; below a title without any, the one that every line holds as often."""
    counts = {mark: _outside_quotes(lines[0]).count(mark) for mark in _DELIMITERS}
    best = max(counts, key=lambda mark: counts[mark])
    if counts[best]:
        return best
    for mark in _DELIMITERS:
        marks = {_outside_quotes(line).count(mark) for line in lines[1:] if line.strip()}
        if len(marks) == 1 and marks != {0}:
            return mark
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parquet_columns(path: Path) -> tuple[str, ...]:
    import polars as pl

    try:
        schema = pl.read_parquet_schema(path)
    except Exception as error:  # polars raises several kinds for a damaged file
        raise DataError(f"{path}: the Parquet file is damaged ({_first_line(error)})") from error
    refuse_wide_parquet(path)
    names: list[str] = []
    for name, dtype in schema.items():
        names.extend(_leaves(name, dtype))
    return tuple(names)


def _leaves(name: str, dtype: Any) -> list[str]:
    import polars as pl

    if isinstance(dtype, pl.Struct):
        return [leaf for field in dtype.fields for leaf in _leaves(f"{name}.{field.name}", field.dtype)]
    return [name]


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
