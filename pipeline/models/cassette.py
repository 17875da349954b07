"""Cassette: recorded requests and replies as one portable, compressed JSONL file, checked line by line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, get_args

from pipeline.errors import DataError
from pipeline.foreign_json import read_json
from pipeline.giving_way import refuse_to_replace
from pipeline.models.cache import ReplyCache
from pipeline.models.entries import DamagedEntry, Entry, entry_from_json, entry_to_json
from pipeline.models.types import Failed, FailureKind

CASSETTE_SCHEMA = 1
_MAX_LINE = 256 * 2**20
_BATCH = 256


@dataclass(frozen=True, slots=True)
class CassetteHead:
    """The first line: what was recorded, as the run wrote it."""

    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did: replies added, replies that were known, failures that were recorded."""

    added: int
    known: int
    failures: Mapping[str, Failed]
    head: CassetteHead


def write_cassette(
    path: Path, head: Mapping[str, Any], entries: Iterable[Entry], failures: Iterable[Failed] = ()
) -> int:
    """Write a cassette in one step; the same content gives the same bytes.

    Args:
        path: the file, by convention ``*.jsonl.gz``.
        head: the header: run configuration, prompts, benchmark and whatever the run needs to be replayed.
        entries: the replies, in the order they shall stand.
        failures: calls that ended without a reply, so that a replay ends them the same way.

    Returns:
        Number of replies written.

    Raises:
        DataError: another file than a cassette is there.
    """
    refuse_to_replace(path, _is_cassette, "cassette")
    draft = path.with_name(path.name + ".draft")
    count = 0
    with draft.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        file.write(_line({"schema": CASSETTE_SCHEMA, "kind": "auxeval cassette", **head}))
        for entry in entries:
            file.write(_line(entry_to_json(entry)))
            count += 1
        for failed in failures:
            error = {"kind": failed.kind, "message": failed.message, "status": failed.status}
            file.write(_line({"key": failed.key, "failed": error}))
    draft.replace(path)
    return count


def _is_cassette(beginning: bytes) -> bool:
    try:
        return b'"kind":"auxeval cassette"' in zlib.decompressobj(wbits=31).decompress(beginning, 200)
    except zlib.error:
        return False


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    try:
        with path.open("rb") as raw:
            compressed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if not compressed:
                yield raw
                return
            with gzip.GzipFile(fileobj=raw) as file:
                yield file
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read as a cassette: {error}") from None


def read_cassette(path: Path) -> Iterator[CassetteHead | Entry | Failed]:
    """The head, then every reply and failure; each line is checked before it is yielded.

    Raises:
        DataError: no cassette, a newer schema, or a damaged line; names the line.
    """
    with _opened(path) as file:
        number = 0
        while line := file.readline(_MAX_LINE + 1):
            number += 1
            try:
                if len(line) > _MAX_LINE:
                    raise ValueError("longer than 256 MiB")
                document = _parsed(line, path, first=number == 1)
                if not isinstance(document, dict):
                    raise ValueError("not a JSON object")
                yield _head(document, path) if number == 1 else _recorded(document)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise DataError(f"{path}: line {number}: {_why(error)}") from None
        if number == 0:
            raise DataError(f"{path}: is empty; a cassette starts with a header line")


def _parsed(line: bytes, path: Path, *, first: bool) -> Any:
    try:
        return read_json(line)
    except ValueError:
        if first:
            raise DataError(f"{path}: is no cassette of auxeval (auxeval export RUN FILE makes one)") from None
        raise


def _why(error: Exception) -> str:
    return f"{error}" if isinstance(error, ValueError) else f"a field is missing or of the wrong type ({error})"


def _head(document: dict[str, Any], path: Path) -> CassetteHead:
    if document.get("kind") != "auxeval cassette":
        raise DataError(f"{path}: is no cassette of auxeval (auxeval export RUN FILE makes one)")
    schema = document.get("schema")
    if not isinstance(schema, int) or schema > CASSETTE_SCHEMA:
        raise DataError(
            f"{path}: schema {schema} is newer than this program reads ({CASSETTE_SCHEMA}); upgrade auxeval"
        )
    return CassetteHead(document)


def _recorded(document: dict[str, Any]) -> Entry | Failed:
    if "failed" not in document:
        return entry_from_json(document, check_key=True)
    error, key = document["failed"], document["key"]
    kind: Literal[FailureKind] = error["kind"]
    if kind not in get_args(FailureKind) or not isinstance(key, str):
        raise DamagedEntry("not a recorded failure")
    status = error.get("status")
    return Failed(key, kind, str(error["message"]), status if isinstance(status, int) else None)


def import_cassette(path: Path, cache: ReplyCache) -> ImportReport:
    """Add every reply of a cassette to a cache; replies that are there already stay as they are.

    Raises:
        DataError: as :func:`read_cassette`; what came before the damaged line has been added.
    """
    head: CassetteHead | None = None
    failures: dict[str, Failed] = {}
    added = there_before = 0
    batch: list[Entry] = []

    def flush() -> None:
        nonlocal added, there_before
        if batch:
            fresh = sum(cache.add_many(batch))
            added, there_before = added + fresh, there_before + len(batch) - fresh
            batch.clear()

    try:
        for recorded in read_cassette(path):
            if isinstance(recorded, CassetteHead):
                head = recorded
            elif isinstance(recorded, Failed):
                failures[recorded.key] = recorded
            else:
                batch.append(recorded)
                if len(batch) >= _BATCH:
                    flush()
    finally:
        flush()
    assert head is not None
    return ImportReport(added, there_before, failures, head)
