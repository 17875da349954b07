"""What can be saved of a cache whose database is damaged: every whole reply and what is left of the ledger."""

from __future__ import annotations

import contextlib
import json
import mmap
import re
import shutil
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.enclosure import refuse_ways_out
from pipeline.errors import InputError
from pipeline.models.cache import ReplyCache
from pipeline.models.leases import living_holders
from pipeline.models.ledger import SALVAGED, Ledger
from pipeline.models.merging import merge_encoded

_FILES = ("cache.db", "cache.db-wal", "cache.db-shm")
_ENTRY = re.compile(rb"AX1[\s\S]{16}\x78\x01")
_HEAD = 19
_LARGEST_ON_A_PAGE = 1 << 16
_MOST_GAPS = 2_000_000
_PAGE = 500
_WAL_MAGIC = 0x377F0682
_LEDGER = "id, run, account, call, model, state, calls, tokens, usd, size, prompt, completion"


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair saved.

    Attributes:
        replies: whole ones, each verified; they are in the new database.
        ledger_rows: attempts of the ledger of money that could be read.
        kept: where the damaged files are now.
    """

    replies: int
    ledger_rows: int
    kept: Path


def repair_cache(directory: Path) -> Repair:
    """Build the database anew from all that can be read, and keep the damaged files beside it.

    Replies are read through SQLite where it still finds its way, row by row around what is destroyed; from the pages
    of the write-ahead log where the database itself is gone or empty; and straight from the bytes of both, for whole
    entries name their request and carry a checksum.

    Raises:
        InputError: there is nothing to repair, or a process is asking for this cache.
    """
    if not any((directory / name).exists() for name in _FILES):
        raise InputError(f"{directory}: no cache here; AUXEVAL_CACHE_DIR or --cache-dir names another place")
    refuse_ways_out(directory)
    if living_holders(directory / "holders"):
        raise InputError(f"{directory}: a process is asking for this cache; stop its run first")
    with tempfile.TemporaryDirectory(dir=directory, prefix="repair-") as scratch:
        place = Path(scratch)
        replies, rows = _rebuilt(directory, place)
        kept = directory / f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        kept.mkdir(mode=0o700)
        for name in _FILES:
            if (directory / name).exists():
                (directory / name).rename(kept / name)
        (place / "new" / "cache.db").rename(directory / "cache.db")
    return Repair(replies, rows, kept)


def _rebuilt(directory: Path, scratch: Path) -> tuple[int, int]:
    """Replies and rows of the ledger in a whole database under ``scratch/new``."""
    rows: list[Sequence[Any]] = []
    with ReplyCache(scratch / "new") as new:
        ledger = Ledger(new, "repair")
        with contextlib.suppress(sqlite3.DatabaseError), _opened(directory, scratch) as connection:
            page: list[tuple[str, bytes]] = []
            for key, value in _rows(connection, "Cache", "key, value"):
                if isinstance(key, str) and isinstance(value, bytes):
                    page.append((key, value))
                if len(page) >= _PAGE:
                    merge_encoded(page, new)
                    page = []
            merge_encoded(page, new)
            rows = list(_rows(connection, "Ledger", _LEDGER))
        for name in _FILES[:2]:
            if (directory / name).is_file():
                merge_encoded(_carved(directory / name), new)
        ledger.restore(rows)
        new.set_note(SALVAGED, {"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"})
        return len(new), len(rows)


@contextlib.contextmanager
def _opened(directory: Path, scratch: Path) -> Iterator[sqlite3.Connection]:
    """A copy of the database to read from; made of the log's pages where the database is empty or gone."""
    copy, database, log = scratch / "copy.db", directory / "cache.db", directory / "cache.db-wal"
    if database.is_file() and database.stat().st_size:
        shutil.copyfile(database, copy)
        if log.is_file():
            shutil.copyfile(log, scratch / "copy.db-wal")
    elif log.is_file():
        copy.write_bytes(_pages_of_log(log.read_bytes()))
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        yield connection


def _pages_of_log(log: bytes) -> bytes:
    """The database as far as committed frames of its write-ahead log hold it; absent pages are zeros.

    References:
        The SQLite authors, "Database File Format", section 4.1, "WAL File Format", https://sqlite.org/fileformat2.html.
    """
    if len(log) < 32:
        return b""
    magic, _, page_size, _, *salts = struct.unpack(">6I", log[:24])
    if magic & ~1 != _WAL_MAGIC or not 512 <= page_size <= 65_536:
        return b""
    pages: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    for start in range(32, len(log) - 24 - page_size + 1, 24 + page_size):
        number, commits, *own = struct.unpack(">4I", log[start : start + 16])
        if own != salts:
            break
        pending[number] = log[start + 24 : start + 24 + page_size]
        if commits:
            pages |= pending
            pending = {}
    return b"".join(pages.get(number, bytes(page_size)) for number in range(1, max(pages, default=0) + 1))


def _rows(connection: sqlite3.Connection, table: str, columns: str) -> Iterator[Sequence[Any]]:
    """Every row that can be read: found from either end of the table and of its indices, then read one by one."""
    query = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ?"
    ways = ["NOT INDEXED"]
    with contextlib.suppress(sqlite3.DatabaseError):
        ways += [f'INDEXED BY "{name}"' for (name,) in connection.execute(query, (table,)) if '"' not in name]
    numbers: set[int] = set()
    for way in ways:
        for order in ("ASC", "DESC"):
            by = f"ORDER BY rowid {order}" if way == "NOT INDEXED" else ""
            with contextlib.suppress(sqlite3.DatabaseError):
                for (number,) in connection.execute(f"SELECT rowid FROM {table} {way} {by}"):
                    numbers.add(number)
    if numbers and max(numbers) - min(numbers) < _MOST_GAPS:
        numbers.update(range(min(numbers), max(numbers)))
    for number in sorted(numbers):
        with contextlib.suppress(sqlite3.DatabaseError):
            row = connection.execute(f"SELECT {columns} FROM {table} WHERE rowid = ?", (number,)).fetchone()
            if row is not None:
                yield row


def _carved(file: Path) -> Iterator[tuple[str, bytes]]:
    """Entries that stand whole on one page, wherever they are in a file."""
    if not file.stat().st_size:
        return
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for match in _ENTRY.finditer(data):
            unpack = zlib.decompressobj()
            body = data[match.start() + _HEAD : match.start() + _HEAD + _LARGEST_ON_A_PAGE]
            with contextlib.suppress(zlib.error, ValueError, KeyError, TypeError, RecursionError):
                key = json.loads(unpack.decompress(body, 1 << 28))["key"]
                if unpack.eof and isinstance(key, str):
                    yield key, data[match.start() : match.start() + _HEAD + len(body) - len(unpack.unused_data)]
