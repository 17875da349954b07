"""What a user's table file is: format, compression, encoding, delimiter and column names, from its first bytes."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from pipeline.errors import DataError

__all__ = ["TableSource", "decompress_zstd", "inspect_source", "open_bytes"]

Format = Literal["csv", "jsonl", "json", "parquet"]
Compression = Literal["none", "gzip", "bz2", "xz", "zstd"]

_HEAD_BYTES = 1 << 20
_MAGIC: tuple[tuple[bytes, Compression], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
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
        columns: names as written; of a JSON Lines file those of its first records.
    """

    path: Path
    format: Format
    compression: Compression
    delimiter: str = ","
    encoding: str = "utf-8"
    skip_lines: int = 0
    columns: tuple[str, ...] = ()


def decompress_zstd(data: bytes) -> bytes:
    """The text inside Zstandard frames, without a further dependency where the standard library has none.

    Before Python 3.14 the lines come through polars, which joins them with a newline at the end or not; texts that
    are read as JSON, JSON Lines or CSV do not notice.
    """
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        import polars as pl

        lines = pl.read_csv(
            io.BytesIO(data), has_header=False, separator="\x01", quote_char=None, infer_schema=False,
            new_columns=["line"], truncate_ragged_lines=True, encoding="utf8-lossy", raise_if_empty=False,
        )  # fmt: skip
        if lines.width == 0:
            return b""
        return "\n".join(line or "" for line in lines["line"].to_list()).encode()
    return bytes(zstd.decompress(data))


def open_bytes(path: Path, compression: Compression) -> IO[bytes]:
    """The file's decompressed bytes as a stream (Zstandard: in memory)."""
    if compression == "gzip":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if compression == "bz2":
        return bz2.open(path, "rb")
    if compression == "xz":
        return lzma.open(path, "rb")
    if compression == "zstd":
        return io.BytesIO(decompress_zstd(path.read_bytes()))
    return path.open("rb")


def inspect_source(path: str | Path) -> TableSource:
    """Find out what a file is.

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
        return TableSource(path, "parquet", "none", columns=_parquet_columns(path))
    compression: Compression = next((name for start, name in _MAGIC if magic.startswith(start)), "none")
    head = _head(path, compression)
    if not head.strip():
        raise DataError(f"{path} is empty")
    _refuse_binary(path, head)
    encoding = _encoding(head)
    text = head.decode(encoding, errors="replace").lstrip("\ufeff")
    if _looks_json(path, text):
        form: Format = "json" if text.lstrip().startswith("[") else "jsonl"
        return TableSource(path, form, compression, encoding=encoding, columns=_json_columns(text))
    return _csv_source(path, compression, encoding, text)


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


def _json_columns(text: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for line in text.splitlines()[:100]:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            names.update(dict.fromkeys(str(key) for key in record))
    return tuple(names)


def _csv_source(path: Path, compression: Compression, encoding: str, text: str) -> TableSource:
    lines = text.splitlines()
    skip = 0
    declared = None
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].lower().startswith("sep=") and len(lines[first].strip()) <= 5:
        declared = lines[first][4:5] or ","
        first += 1
    skip = first
    if first >= len(lines):
        raise DataError(f"{path} has no header line")
    delimiter = declared or _delimiter(path, lines[first : first + 20])
    header = next(csv.reader(io.StringIO("\n".join(lines[first:])), delimiter=delimiter))
    names = tuple(name.strip() for name in header)
    if sum(_is_number(name) for name in names) > len(names) / 2:
        raise DataError(
            f"{path}: the first line holds numbers, not column names ({', '.join(names[:3])}); add a header"
        )
    return TableSource(path, "csv", compression, delimiter, encoding, skip, names)


def _delimiter(path: Path, lines: list[str]) -> str:
    header = _outside_quotes(lines[0])
    counts = {mark: header.count(mark) for mark in _DELIMITERS}
    best = max(counts, key=lambda mark: counts[mark])
    if counts[best] == 0:
        return "\t" if path.suffix.lower() == ".tsv" else ","
    return best


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
