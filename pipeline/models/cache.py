"""ReplyCache: paid replies on disk, first writer wins, nothing evicted, nothing unpickled."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from pipeline.enclosure import refuse_ways_out
from pipeline.errors import DataError
from pipeline.models.entries import DamagedEntry, Entry, decode, encode, entry_from_json, entry_to_json
from pipeline.models.store import PAGE, Sql, Store

DEFAULT_CACHE_DIR = Path(".auxeval") / "cache"
_NOTE = "note:"
_LOG = logging.getLogger(__name__)
T = TypeVar("T")


def default_cache_dir() -> Path:
    """``AUXEVAL_CACHE_DIR``, else ``.auxeval/cache`` in the working directory."""
    return Path(os.environ.get("AUXEVAL_CACHE_DIR") or DEFAULT_CACHE_DIR)


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache holds; ``cost_usd`` sums the entries whose cost is known."""

    entries: int
    bytes_on_disk: int
    damaged: int
    by_model: dict[str, int]
    cost_usd: float
    oldest: str | None
    newest: str | None


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Entries read and the damaged ones, as (key, what is wrong)."""

    entries: int
    damaged: tuple[tuple[str, str], ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether every entry is whole."""
        return not self.damaged


class ReplyCache:
    """The store of replies under one directory, safe for many processes at once.

    Every method is synchronous: a read takes microseconds; the gateway writes through a ``Journal``, off its loop.

    Raises:
        DataError: the directory cannot be made, or holds something that is not a cache of this program.
    """

    def __init__(self, directory: str | Path, *, timeout_s: float = 60.0) -> None:
        self.directory = Path(directory)
        self._damaged: dict[str, str] = {}
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            with contextlib.suppress(PermissionError):
                self.directory.chmod(0o700)
        except OSError as error:
            raise DataError(f"{self.directory}: cannot be used as the cache directory: {error.strerror}") from None
        refuse_ways_out(self.directory)
        self._store = Store(self.directory, timeout_s)

    def __enter__(self) -> ReplyCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close this thread's connection; safe to call twice."""
        self._store.close()

    def __len__(self) -> int:
        return len(self._store) - self._note_count()

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    @property
    def damaged(self) -> dict[str, str]:
        """Key → what was wrong, of entries found damaged (and quarantined) since opening."""
        return dict(self._damaged)

    @property
    def quarantine(self) -> Path:
        """Where damaged entries are kept."""
        return self.directory / "quarantine"

    @property
    def holders(self) -> Path | None:
        """Where the processes that ask for this cache keep a locked file each; None where there can be only one."""
        return self.directory / "holders"

    def free_bytes(self) -> int:
        """Free space of the cache's file system."""
        return shutil.disk_usage(self.directory).free

    def get(self, key: str) -> Entry | None:
        """The entry of a request key, or None; a damaged entry is reported, quarantined and a miss."""
        try:
            value = self._store.get(key)
            if value is None:
                return None
            entry = entry_from_json(decode(key, value))
            if entry.key != key:
                raise DamagedEntry("stored under the key of another request")
        except DamagedEntry as error:
            self._set_aside(key, str(error))
            return None
        return entry

    def stored(self, keys: Iterable[str]) -> set[str]:
        """Which of these keys have an entry; none is read."""
        wanted = list(keys)
        there: set[str] = set()
        for start in range(0, len(wanted), PAGE):
            part = wanted[start : start + PAGE]
            query = f"SELECT key FROM Cache WHERE raw = 1 AND key IN ({', '.join('?' * len(part))})"
            there.update(str(key) for (key,) in self.query(query, part))
        return there

    def add(self, entry: Entry) -> bool:
        """Store one entry durably; False if its key was stored before (the first writer wins)."""
        return self.add_many([entry])[0]

    def add_many(self, entries: Sequence[Entry]) -> list[bool]:
        """Store entries in one durable transaction: all of them, or an error and none.

        Raises:
            CacheWriteError: the disk is full, or the cache is locked or not writable.
        """
        return self.transact(lambda sql: [self.put(entry) for entry in entries])

    def put(self, entry: Entry) -> bool:
        """Store one entry inside a transaction under way; False if its key was there before."""
        return self._store.add(entry.key, encode(entry.key, entry_to_json(entry)))

    def transact(self, work: Callable[[Sql], T]) -> T:
        """What ``work`` returns, its changes in one durable transaction: all of them, or an error and none.

        Raises:
            CacheWriteError: the disk is full, or the cache is locked or not writable.
        """
        return self._store.transact(work)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement that only reads.

        Raises:
            DataError: the database cannot be read.
        """
        return self._store.query(statement, values)

    def note(self, name: str) -> dict[str, Any] | None:
        """A small document kept beside the entries (which reply format a model takes, say), or None."""
        key = _NOTE + name
        try:
            value = self._store.get(key)
            reply = None if value is None else decode(key, value)
        except DamagedEntry as error:
            self._set_aside(key, str(error))
            return None
        return reply if isinstance(reply, dict) else None

    def set_note(self, name: str, document: dict[str, Any]) -> None:
        """Keep a small document, replacing the one before."""
        key = _NOTE + name
        self._store.set(key, encode(key, document))

    def entries(self) -> Iterator[Entry]:
        """Every whole entry in the order of writing; damaged ones are left out and counted in ``damaged``."""
        for key, entry, problem in self._checked():
            if problem is not None:
                self._damaged[key] = problem
            elif entry is not None:
                yield entry

    def verify(self) -> VerifyReport:
        """Read every entry, compare checksum, key and request; changes nothing."""
        read = [(key, problem) for key, _, problem in self._checked(check_key=True)]
        damaged = tuple((key, problem) for key, problem in read if problem is not None)
        return VerifyReport(sum(not key.startswith(_NOTE) for key, _ in read), damaged)

    def _checked(self, *, check_key: bool = False) -> Iterator[tuple[str, Entry | None, str | None]]:
        """Every row: its key, its entry (None for a note), and what is wrong with it."""
        for key, value, problem in self._store.rows():
            try:
                if problem is not None:
                    raise DamagedEntry(problem)
                document = decode(key, value)
                entry = None if key.startswith(_NOTE) else entry_from_json(document, check_key=check_key)
                if entry is not None and entry.key != key:
                    raise DamagedEntry("stored under the key of another request")
            except DamagedEntry as error:
                yield key, None, str(error)
            else:
                yield key, entry, None

    def stats(self) -> CacheStats:
        """Counts, size, models and the span of time."""
        models: Counter[str] = Counter()
        cost = 0.0
        times: list[str] = []
        before = len(self._damaged)
        for entry in self.entries():
            models[entry.request.model] += 1
            cost += entry.reply.cost_usd or 0.0
            times = [min(times[0], entry.reply.at), max(times[1], entry.reply.at)] if times else [entry.reply.at] * 2
        size = sum(file.stat().st_size for file in self.directory.rglob("*") if file.is_file())
        oldest, newest = (times[0], times[1]) if times else (None, None)
        count = sum(models.values())
        return CacheStats(count, size, len(self._damaged) - before, dict(sorted(models.items())), cost, oldest, newest)

    def remove(self, keys: Iterable[str]) -> int:
        """Delete entries by key (only ever because the user asked); how many there were."""
        return self._store.delete(list(keys))

    def sync_fully(self) -> None:
        """Make this thread's commits survive a power cut, not only a killed process."""
        self._store.sync_fully()

    def _note_count(self) -> int:
        query = "SELECT count(*) FROM Cache WHERE key >= ? AND key < ?"
        return int(self.query(query, (_NOTE, _NOTE[:-1] + chr(ord(_NOTE[-1]) + 1)))[0][0])

    def _set_aside(self, key: str, problem: str) -> None:
        """Report a damaged entry, keep its bytes in quarantine and delete it, so that it is a miss."""
        self._damaged[key] = problem
        _LOG.warning("cache entry %.16s… is damaged (%s); moved to %s", key, problem, self.quarantine)
        value = self._store.take_out(key)
        if value is not None:
            data = value if isinstance(value, bytes) else repr(value).encode("ascii", "backslashreplace")
            name = "".join(c if c.isalnum() else "_" for c in key[:80])
            with contextlib.suppress(OSError):
                self.quarantine.mkdir(mode=0o700, exist_ok=True)
                (self.quarantine / f"{name}.bin").write_bytes(data)
