"""Opens a file that may be compressed, whichever way its first bytes say."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import IO, Literal

__all__ = ["Compression", "compression_of", "decompress_zstd", "open_bytes"]

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
