"""Opens a file that may be compressed, whichever way its first bytes say."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO, Literal

from pipeline.errors import DataError

_LEAST_BOMB_BYTES, _MOST_SHRUNK, _PART_BYTES = 1 << 30, 200, 1 << 20
_LEAST_WIDE_ROWS, _MOST_ROWS_A_BYTE = 10_000_000, 64
_GZIP_SHRINKS_AT_MOST = 1_032
"""Deflate's own bound: a small gzip needs no look inside."""
Compression = Literal["none", "gzip", "bz2", "xz", "zstd"]

_MAGIC: tuple[tuple[bytes, Compression], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)


def compression_of(magic: bytes) -> Compression:
    """What a file that begins with these bytes is compressed with."""
    return next((name for start, name in _MAGIC if magic.startswith(start)), "none")


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


def refuse_bomb(path: Path, compression: Compression) -> None:
    """Refuse a file that unpacks to far more than tables do, before anything is read into memory.

    A gzip of five megabytes unpacked to five gigabytes of one letter. Text of tables shrinks ten- to fiftyfold; what
    shrinks two hundredfold, and is larger than a gigabyte, was made to be unpacked by others.

    Raises:
        DataError: it is such a file, or is damaged or cut off.
    """
    packed = path.stat().st_size
    most = max(_LEAST_BOMB_BYTES, _MOST_SHRUNK * packed)
    if compression == "none" or (compression == "gzip" and packed * _GZIP_SHRINKS_AT_MOST <= most):
        return
    unpacked = _stated_size(path) if compression == "zstd" else _counted(path, compression, most)
    if unpacked > most:
        raise DataError(
            f"{path}: {packed:,} bytes of {compression} unpack to more than {most >> 20:,} MiB; unpack it yourself, and"
            " give the rows that are wanted"
        )


def refuse_wide_parquet(path: Path) -> None:
    """Refuse a Parquet file of kilobytes that says it holds billions of rows, before they are made in memory.

    Raises:
        DataError: it holds more rows than its bytes can tell apart, or cannot be read.
    """
    import polars as pl

    try:
        rows = int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    except Exception as error:  # polars raises several kinds for a damaged file
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise DataError(f"{path}: the Parquet file is damaged ({reason})") from None
    if rows > max(_LEAST_WIDE_ROWS, _MOST_ROWS_A_BYTE * path.stat().st_size):
        raise DataError(f"{path}: {path.stat().st_size:,} bytes say that they hold {rows:,} rows; give those wanted")


def _counted(path: Path, compression: Compression, most: int) -> int:
    unpacked = 0
    try:
        with open_bytes(path, compression) as file:
            while unpacked <= most and (part := file.read(_PART_BYTES)):
                unpacked += len(part)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path}: the {compression} data is damaged or cut off ({error})") from error
    return unpacked


def _stated_size(path: Path) -> int:
    """What the first Zstandard frame says it unpacks to; 0 where it does not say."""
    with path.open("rb") as file:
        head = file.read(18)
    if len(head) < 6:
        return 0
    descriptor = head[4]
    flag, single = descriptor >> 6, bool(descriptor & 0x20)
    start = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3]
    length = (1 if single else 0, 2, 4, 8)[flag]
    size = int.from_bytes(head[start : start + length], "little")
    return size + 256 if length == 2 else size


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
