"""Rows of a benchmark file (JSONL, CSV, Parquet, gzipped or not) or of a dataset on the Hugging Face hub."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from pipeline.csv_guard import unguard
from pipeline.errors import DataError
from pipeline.foreign_json import read_json

_LONGEST_LINE = _CSV_FIELD_LIMIT = 2**26
_LEAST_BOMB_BYTES, _MOST_SHRUNK = 1 << 30, 200
"""What shrinks two hundredfold, and is larger than a gigabyte, was made to be unpacked by others."""
_LEAST_WIDE_ROWS, _MOST_ROWS_A_BYTE = 10_000_000, 64


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a source.

    Attributes:
        where: how an error message names it (``line 7``, ``row 7``).
        values: its fields.
    """

    where: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HubSource:
    """A split of a dataset on the Hugging Face hub."""

    dataset: str
    config: str | None
    split: str


def read_file(path: Path) -> Iterator[Row]:
    """Rows of a file, one at a time; the ending of its name says the format.

    Raises:
        DataError: no such file, an unknown ending, or bytes that are not what the ending says; names the line.
    """
    if not path.exists():
        raise DataError(f"{path}: no such benchmark file")
    if path.is_dir():
        raise DataError(f"{path}: is a folder; a benchmark is a JSONL, CSV or Parquet file")
    endings = [ending.lower() for ending in path.suffixes]
    packed = bool(endings) and endings[-1] == ".gz"
    kind = (endings[-2] if len(endings) > 1 else "") if packed else (endings[-1] if endings else "")
    if kind in (".jsonl", ".ndjson"):
        yield from _read_jsonl(path, packed)
    elif kind in (".csv", ".tsv"):
        yield from _read_csv(path, packed, "\t" if kind == ".tsv" else ",")
    elif kind in (".parquet", ".pq"):
        yield from _read_parquet(path, packed)
    else:
        raise DataError(f"{path}: the name must end in .jsonl, .csv, .tsv or .parquet, with .gz after it if gzipped")


@contextmanager
def _open(path: Path, packed: bool) -> Iterator[IO[bytes]]:
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            yield cast("IO[bytes]", file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _decoded(path: Path, file: IO[bytes]) -> Iterator[tuple[int, str]]:
    number = unpacked = 0
    most = max(_LEAST_BOMB_BYTES, _MOST_SHRUNK * path.stat().st_size)
    while line := file.readline(_LONGEST_LINE + 1):
        number, unpacked = number + 1, unpacked + len(line)
        if len(line) > _LONGEST_LINE:
            raise DataError(f"{path}: line {number} is longer than {_LONGEST_LINE >> 20} MiB")
        if unpacked > most:
            raise DataError(f"{path}: unpacks to more than {most >> 20:,} MiB; give the rows that are wanted")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}: line {number} is not UTF-8 text (byte {error.start + 1} of the line is"
                f" 0x{line[error.start]:02x}); save the file as UTF-8"
            ) from None
        yield number, text


def _read_jsonl(path: Path, packed: bool) -> Iterator[Row]:
    with _open(path, packed) as file:
        for number, text in _decoded(path, file):
            if not text.strip():
                continue
            try:
                values = read_json(text)
            except json.JSONDecodeError as error:
                raise DataError(
                    f"{path}: line {number} is not valid JSON: {error.msg} at column {error.colno}"
                ) from None
            if not isinstance(values, dict):
                raise DataError(f"{path}: line {number} is not a JSON object but {type(values).__name__}")
            yield Row(f"line {number}", values)


def _read_csv(path: Path, packed: bool, delimiter: str) -> Iterator[Row]:
    with _open(path, packed) as file, _long_csv_fields():
        lines = (text for _, text in _decoded(path, file))
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            header = [unguard(name) for name in next(reader, [])]
            if not header:
                raise DataError(f"{path}: is empty; the first line of a CSV file names its columns")
            if len(set(header)) < len(header):
                twice = next(name for name in header if header.count(name) > 1)
                raise DataError(f"{path}: column {twice!r} stands twice in the header")
            for record in reader:
                if not record:
                    continue
                if len(record) != len(header):
                    raise DataError(
                        f"{path}: line {reader.line_num} has {len(record)} fields, the header has {len(header)}"
                    )
                yield Row(f"line {reader.line_num}", dict(zip(header, map(unguard, record), strict=True)))
        except csv.Error as error:
            raise DataError(f"{path}: line {reader.line_num} is not valid CSV: {error}") from None


@contextmanager
def _long_csv_fields() -> Iterator[None]:
    before = csv.field_size_limit(_CSV_FIELD_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read_parquet(path: Path, packed: bool) -> Iterator[Row]:
    import polars

    size = path.stat().st_size
    try:
        source: Path | io.BytesIO = path
        if packed:
            most = max(_LEAST_BOMB_BYTES, _MOST_SHRUNK * size)
            with _open(path, packed) as file:
                data = file.read(most + 1)
            if len(data) > most:
                raise DataError(f"{path}: unpacks to more than {most >> 20:,} MiB; give the rows that are wanted")
            source, size = io.BytesIO(data), len(data)
        rows = int(polars.scan_parquet(source, glob=False).select(polars.len()).collect().item())
        if rows > max(_LEAST_WIDE_ROWS, _MOST_ROWS_A_BYTE * size):
            raise DataError(f"{path}: {size:,} bytes say that they hold {rows:,} rows; give those that are wanted")
        frame = polars.read_parquet(source)
    except DataError:
        raise
    except Exception as error:  # polars raises many classes, a Rust panic among them
        raise DataError(f"{path}: is not a readable Parquet file: {str(error).splitlines()[0]}") from None
    for number, values in enumerate(frame.iter_rows(named=True), start=1):
        yield Row(f"row {number}", values)


def read_hub(source: HubSource) -> Iterator[Row]:
    """Rows of a dataset on the Hugging Face hub; needs the extra ``hf`` and, once, the network.

    Raises:
        DataError: the extra is not installed, or the dataset cannot be had.
    """
    try:
        import datasets
    except ImportError:
        raise DataError(
            f"reading {source.dataset} from the Hugging Face hub needs the extra hf: pip install 'auxeval[hf]';"
            " or give benchmark.path, a local file"
        ) from None
    try:
        rows = datasets.load_dataset(source.dataset, source.config, split=source.split)
    except Exception as error:  # the hub client raises whatever its transport raises
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(f"dataset {source.dataset} cannot be read from the Hugging Face hub: {reason}") from None
    for number, values in enumerate(rows, start=1):
        yield Row(f"row {number}", values)
