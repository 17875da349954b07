"""HTTP bodies under one rule for every transport: inflated piece by piece, bounded, and parsed leniently."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from pipeline.models.transport import TransportError

LONGEST_BODY = 64 * 2**20
"""Bytes of a body after inflation. 307 kB of gzip once became 655 MB of memory, and again at the retry."""

ENCODINGS = "gzip, deflate"
"""What is asked for: zlib inflates in bounded steps, the other decoders of the HTTP libraries do not."""

_PIECE = 2**18
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_DEEPEST = 60
_LONGEST_INTEGER = 300
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.S)


async def read_bounded(chunks: AsyncIterator[bytes], encoding: str) -> bytes:
    """The whole body behind its content encoding, at most 64 MiB of it.

    Args:
        chunks: the bytes as they come.
        encoding: the Content-Encoding header; empty where there is none.

    Raises:
        TransportError: too large (final), an encoding that was not asked for, or bytes that do not inflate.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        inflate: _Inflation | None = None
    elif name in ("gzip", "x-gzip", "deflate"):
        inflate = _Inflation()
    else:
        raise TransportError(
            "bad_request", f"the response is encoded as {name[:40]!r}, which was not asked for", maybe_billed=True
        )
    pieces: list[bytes] = []
    size = 0
    async for chunk in chunks:
        for piece in (chunk,) if inflate is None else inflate(chunk):
            size += len(piece)
            if size > LONGEST_BODY:
                raise TransportError("bad_request", "the response is larger than 64 MiB, unpacked", maybe_billed=True)
            pieces.append(piece)
    if inflate is not None and not inflate.whole:
        raise TransportError("invalid_body", "the compressed body is cut off", status=200, maybe_billed=True)
    return b"".join(pieces)


class _Inflation:
    """Gzip, zlib or bare deflate, a quarter of a mebibyte at a time."""

    def __init__(self) -> None:
        self._unpack = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._begun = False

    @property
    def whole(self) -> bool:
        """Whether the stream came to its end; nothing at all is whole too."""
        return self._unpack.eof or not self._begun

    def __call__(self, chunk: bytes) -> Iterator[bytes]:
        """The next pieces."""
        while chunk and not self._unpack.eof:
            try:
                piece = self._unpack.decompress(chunk, _PIECE)
            except zlib.error as error:
                if self._begun:
                    raise _not_packed(error) from None
                self._unpack = zlib.decompressobj(-zlib.MAX_WBITS)  # "deflate" without its zlib head
                try:
                    piece = self._unpack.decompress(chunk, _PIECE)
                except zlib.error:
                    raise _not_packed(error) from None
            self._begun = True
            chunk = self._unpack.unconsumed_tail
            if self._unpack.eof and self._unpack.unused_data:
                chunk = self._unpack.unused_data
                self._unpack = zlib.decompressobj(_GZIP_OR_ZLIB)  # a gzip file may have several members
                self._begun = False
            yield piece


def _not_packed(error: zlib.error) -> TransportError:
    return TransportError("invalid_body", f"the body does not inflate: {error}", status=200, maybe_billed=True)


def refuse_redirect(status: int, headers: Mapping[str, str]) -> None:
    """Refuse a 3xx: a key never goes where a server points to.

    Raises:
        TransportError: final for the model; names the new address without its query.
    """
    if not 300 <= status < 400:
        return
    given = next((value for name, value in headers.items() if name.lower() == "location"), "")
    try:
        parts = urlsplit(given)
        address = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
        address = address if parts.scheme and parts.hostname else parts.path
    except ValueError:
        address = ""
    where = f" to {address[:200]!r}" if address else ""
    raise TransportError(
        "not_found",
        f"the server redirects{where} ({status}), and redirects are not followed, so that no key goes to another"
        " host; if the address is right, make it the entry's api_base",
        status=status,
    )


def tolerant_json(raw: bytes) -> Any:
    """The JSON of a paid reply: what no one reads must not throw it away.

    Bytes that are no UTF-8 become replacement characters, whole numbers of more than 300 digits null, and what is
    nested more than 60 deep is null.

    Raises:
        ValueError: it is not JSON all the same.
    """
    try:
        return json.loads(raw)  # a byte-order mark is no hindrance to bytes
    except (ValueError, RecursionError):
        pass
    text = raw.decode("utf-8-sig", "replace")
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        pass
    try:
        return json.loads(_shallow(text), parse_int=_integer)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else None


def _shallow(text: str) -> str:
    """The document with null in place of what lies deeper than 60."""
    kept: list[str] = []
    depth, place = 0, 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "[{":
            depth += 1
            if depth == _DEEPEST + 1:
                kept += (text[place : match.start()], "null")
        elif token in "]}":
            depth -= 1
            if depth == _DEEPEST:
                place = match.end()
    if depth <= _DEEPEST:
        kept.append(text[place:])
    return "".join(kept)
