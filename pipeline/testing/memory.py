"""MemoryCache: the gateway's cache without a disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline.models.cache import ReplyCache
from pipeline.models.entries import Entry

__all__ = ["MemoryCache"]


class MemoryCache(ReplyCache):
    """A cache that ends with the process: for simulations in which nothing is worth keeping."""

    def __init__(self) -> None:
        self.directory = Path("memory")
        self._entries: dict[str, Entry] = {}
        self._notes: dict[str, dict[str, Any]] = {}

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

    def add_many(self, entries: Sequence[Entry]) -> list[bool]:
        """Keep entries; False for those whose key was there before."""
        return [self._entries.setdefault(entry.key, entry) is entry for entry in entries]

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
