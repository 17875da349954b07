"""Leases: which process asks a request, so that several runs on one cache ask each request once."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from pipeline.models.cache import ReplyCache
from pipeline.models.store import Sql

HEARTBEAT_S = 20.0
_EXPIRY_S = 6 * HEARTBEAT_S
_BELIEVED_S = 1.0
Taken = Literal["mine", "stored", "held"]

_TABLE = "CREATE TABLE IF NOT EXISTS Lease (call TEXT PRIMARY KEY, holder TEXT NOT NULL, expires REAL NOT NULL)"


class Leases:
    """One process's leases in the database of a cache.

    A lease is taken before the first attempt of a call leaves and given back in the transaction that stores its reply.
    It falls to the next who wants it when its holder dies: a holder keeps a file locked for as long as it lives, and
    the system unlocks it whatever ends the process. Where a holder lives but hangs, its leases expire, on the
    monotonic clock that the processes of one machine share (people set the other one back).

    Args:
        cache: its database holds the leases, its folder the holders' files.
    """

    def __init__(self, cache: ReplyCache) -> None:
        self.holder = secrets.token_hex(12)
        self._folder = cache.holders
        self._lock: FileLock | None = None
        self._alive: dict[str, float] = {}
        cache.transact(lambda sql: sql(_TABLE))

    def take(self, sql: Sql, call: str) -> Taken:
        """Whether the call is this process's to make, answered already, or another's. Inside a transaction."""
        if self._folder is None:
            return "mine"
        row = sql("SELECT holder, expires FROM Lease WHERE call = ?", (call,)).fetchone()
        if row is not None and row[0] == self.holder:
            return "mine"
        if sql("SELECT 1 FROM Cache WHERE key = ? AND raw = 1", (call,)).fetchone() is not None:
            return "stored"
        if row is not None and row[1] > time.monotonic() and self._lives(row[0]):
            return "held"
        if self._lock is None:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._lock = FileLock(self._folder / self.holder, thread_local=False)
            self._lock.acquire()
        sql("INSERT OR REPLACE INTO Lease VALUES (?, ?, ?)", (call, self.holder, time.monotonic() + _EXPIRY_S))
        return "mine"

    def drop(self, sql: Sql, call: str) -> None:
        """The call has ended. Inside a transaction."""
        sql("DELETE FROM Lease WHERE call = ? AND holder = ?", (call, self.holder))

    def beat(self, sql: Sql) -> None:
        """This process still lives. Inside a transaction."""
        sql("UPDATE Lease SET expires = ? WHERE holder = ?", (time.monotonic() + _EXPIRY_S, self.holder))

    def close(self, sql: Sql) -> None:
        """Give every lease back. Inside a transaction."""
        sql("DELETE FROM Lease WHERE holder = ?", (self.holder,))
        if self._lock is not None and self._folder is not None:
            self._lock.release()
            (self._folder / self.holder).unlink(missing_ok=True)
            self._lock = None

    def _lives(self, holder: str) -> bool:
        """Whether a process has the holder's file locked; a yes is believed for a second."""
        if self._alive.get(holder, 0.0) > time.monotonic():
            return True
        assert self._folder is not None
        if _locked(self._folder / holder):
            self._alive[holder] = time.monotonic() + _BELIEVED_S
            return True
        return False


def living_holders(folder: Path) -> list[str]:
    """The processes that ask for a cache now, by their files in its folder of holders."""
    return [file.name for file in sorted(folder.glob("*")) if _locked(file)]


def _locked(file: Path) -> bool:
    """Whether a process has the file locked; one that none has is removed."""
    if not file.exists():
        return False
    try:
        with FileLock(file, timeout=0, thread_local=False):
            file.unlink(missing_ok=True)
            return False
    except Timeout:
        return True
