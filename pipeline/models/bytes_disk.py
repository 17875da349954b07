"""BytesDisk: diskcache's serialisation cut down to str keys and bytes values, with no pickle on either side."""

from __future__ import annotations

import sqlite3
from typing import Any

from diskcache import Disk
from diskcache.core import MODE_RAW

from pipeline.models.entries import DamagedEntry


class BytesDisk(Disk):  # type: ignore[misc]
    """Refuses everything but str → bytes inside the database.

    diskcache's own ``Disk`` unpickles rows marked so, and opens files that a row names; a planted row then runs code
    when it is read (CVE-2025-69872). Here such a row is a damaged entry.
    """

    def put(self, key: Any) -> tuple[str, bool]:
        """The database key of ``key``."""
        if type(key) is not str:
            raise TypeError(f"cache keys are str, got {type(key).__name__}")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        """The key of a database row."""
        if not raw or type(key) is not str:
            raise DamagedEntry("a key this program never writes")
        return key

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, sqlite3.Binary]:
        """The columns of a value: always inside the database."""
        if read or type(value) is not bytes:
            raise TypeError(f"cache values are bytes, got {type(value).__name__}")
        return len(value), MODE_RAW, None, sqlite3.Binary(value)

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> bytes:
        """The value of a database row."""
        if read or mode != MODE_RAW or filename is not None or not isinstance(value, bytes | memoryview):
            raise DamagedEntry("a row this program never writes")
        return bytes(value)
