"""MemoryCache: the gateway's cache without a disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pipeline.models.cache import ReplyCache
from pipeline.models.entries import Entry
from pipeline.models.store import Sql

T = TypeVar("T")


class MemoryCache(ReplyCache):
    """A cache that ends with the process: for simulations in which nothing is worth keeping."""

    def __init__(self) -> None:
        self.directory = Path("memory")
        self._entries: dict[str, Entry] = {}
        self._notes: dict[str, dict[str, Any]] = {}
        self._database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)

    @property
    def holders(self) -> None:
        """No other process sees this cache."""

    def __len__(self) -> int:
        return len(self._entries)

    def close(self) -> None:
        """Nothing to close."""

    def free_bytes(self) -> int:
        """As if there were no end of it."""
        return 2**62

    def get(self, key: str) -> Entry | None:
        """The entry of a request key, or None."""
        return self._entries.get(key)

    def put(self, entry: Entry) -> bool:
        """Keep an entry; False if its key was there before."""
        return self._entries.setdefault(entry.key, entry) is entry

    def transact(self, work: Callable[[Sql], T]) -> T:
        """What ``work`` returns; the gateway's journal is the only writer."""
        return work(self._database.execute)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement that only reads."""
        return self._database.execute(statement, values).fetchall()

    def note(self, name: str) -> dict[str, Any] | None:
        """A small document kept beside the entries, or None."""
        return self._notes.get(name)

    def set_note(self, name: str, document: dict[str, Any]) -> None:
        """Keep a small document, replacing the one before."""
        self._notes[name] = document

    def sync_fully(self) -> None:
        """Nothing to sync."""

    def entries(self) -> Iterator[Entry]:
        """Every entry in the order of writing."""
        yield from self._entries.values()
