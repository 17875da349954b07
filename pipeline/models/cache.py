"""ReplyCache: paid replies on disk, first writer wins, nothing evicted, nothing unpickled."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline.enclosure import refuse_ways_out
from pipeline.errors import AuxevalError, DataError
from pipeline.models.entries import DamagedEntry, Entry, decode, encode, entry_from_json, entry_to_json

if TYPE_CHECKING:
    from diskcache import Cache

DEFAULT_CACHE_DIR = Path(".auxeval") / "cache"
_NOTE = "note:"
_PAGE = 500
_LOG = logging.getLogger(__name__)
T = TypeVar("T")
Sql = Callable[..., sqlite3.Cursor]
"""``execute`` of a connection to the cache's database, inside a transaction."""


def default_cache_dir() -> Path:
    """``AUXEVAL_CACHE_DIR``, else ``.auxeval/cache`` in the working directory."""
    return Path(os.environ.get("AUXEVAL_CACHE_DIR") or DEFAULT_CACHE_DIR)


class CacheWriteError(AuxevalError):
    """A paid reply could not be stored: the disk is full, or the cache is locked or not writable."""


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
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._damaged: dict[str, str] = {}
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            with contextlib.suppress(PermissionError):
                self.directory.chmod(0o700)
        except OSError as error:
            raise DataError(f"{self.directory}: cannot be used as the cache directory: {error.strerror}") from None
        refuse_ways_out(self.directory)
        _refuse_damage(self.directory / "cache.db")
        _refuse_foreign_settings(self.directory / "cache.db")
        self._store = _open_store(self.directory, timeout_s)

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
        except sqlite3.DatabaseError as error:
            raise _damaged(self.directory / "cache.db", f"cannot be read ({error})") from None
        return entry

    def stored(self, keys: Iterable[str]) -> set[str]:
        """Which of these keys have an entry; none is read."""
        wanted = list(keys)
        there: set[str] = set()
        for start in range(0, len(wanted), _PAGE):
            part = wanted[start : start + _PAGE]
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
        return bool(self._store.add(entry.key, encode(entry.key, entry_to_json(entry))))

    def transact(self, work: Callable[[Sql], T]) -> T:
        """What ``work`` returns, its changes in one durable transaction: all of them, or an error and none.

        Raises:
            CacheWriteError: the disk is full, or the cache is locked or not writable.
        """
        with self._lock, _write_errors(self.directory, self._timeout_s), self._store.transact(retry=False):
            return work(self._store._sql)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement that only reads.

        Raises:
            DataError: the database cannot be read.
        """
        try:
            return list(self._store._sql(statement, values).fetchall())
        except sqlite3.DatabaseError as error:
            raise _damaged(self.directory / "cache.db", f"cannot be read ({error})") from None

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
        with self._lock, _write_errors(self.directory, self._timeout_s):
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
        for key, value, problem in self._rows():
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
        with self._lock, _write_errors(self.directory, self._timeout_s):
            return sum(bool(self._store.delete(key)) for key in keys)

    def sync_fully(self) -> None:
        """Make this thread's commits survive a power cut, not only a killed process."""
        self._store.reset("sqlite_synchronous", 2, update=False)

    def _note_count(self) -> int:
        query = "SELECT count(*) FROM Cache WHERE key >= ? AND key < ?"
        return int(self.query(query, (_NOTE, _NOTE[:-1] + chr(ord(_NOTE[-1]) + 1)))[0][0])

    def _rows(self) -> Iterator[tuple[str, bytes, str | None]]:
        """(key, value, what is wrong with the row) straight from the database: no row is ever unpickled."""
        database = self.directory / "cache.db"
        query = "SELECT rowid, key, raw, mode, filename, value FROM Cache WHERE rowid > ? ORDER BY rowid LIMIT ?"
        with contextlib.closing(sqlite3.connect(database, timeout=self._timeout_s)) as connection:
            last = -(2**62)
            while True:
                try:
                    page = connection.execute(query, (last, _PAGE)).fetchall()
                except sqlite3.DatabaseError as error:
                    yield "database", b"", str(error)
                    return
                for last, key, raw, mode, filename, value in page:  # noqa: B007
                    plain = raw == 1 and mode == 1 and filename is None and isinstance(key, str)
                    problem = None if plain and isinstance(value, bytes) else "a row this program never writes"
                    yield str(key), value, problem
                if len(page) < _PAGE:
                    return

    def _set_aside(self, key: str, problem: str) -> None:
        """Report a damaged entry, keep its bytes in quarantine and delete it, so that it is a miss."""
        self._damaged[key] = problem
        _LOG.warning("cache entry %.16s… is damaged (%s); moved to %s", key, problem, self.quarantine)
        database = self.directory / "cache.db"
        with contextlib.suppress(OSError, sqlite3.Error):
            self.quarantine.mkdir(mode=0o700, exist_ok=True)
            with contextlib.closing(sqlite3.connect(database, timeout=self._timeout_s)) as connection, connection:
                row = connection.execute("SELECT value FROM Cache WHERE key = ? AND raw = 1", (key,)).fetchone()
                if row is not None:
                    value = row[0] if isinstance(row[0], bytes) else repr(row[0]).encode("ascii", "backslashreplace")
                    name = "".join(c if c.isalnum() else "_" for c in key[:80])
                    (self.quarantine / f"{name}.bin").write_bytes(value)
                connection.execute("DELETE FROM Cache WHERE key = ? AND raw = 1", (key,))


@contextlib.contextmanager
def _write_errors(directory: Path, timeout_s: float) -> Iterator[None]:
    from diskcache import Timeout

    try:
        yield
    except Timeout:
        raise CacheWriteError(
            f"{directory}: the cache could not be written for {timeout_s:g} s: locked by another process, not writable,"
            " or the disk is full; the last reply was not stored"
        ) from None
    except (sqlite3.DatabaseError, OSError) as error:
        raise CacheWriteError(f"{directory}: the cache cannot be written: {error}; free space and resume") from None


def _open_store(directory: Path, timeout_s: float) -> Cache:
    """The diskcache underneath, with every setting given: they are sticky in the database."""
    from diskcache import Cache, Timeout

    from pipeline.models.bytes_disk import BytesDisk

    try:
        return Cache(
            str(directory),
            timeout=timeout_s,
            disk=BytesDisk,
            disk_min_file_size=2**30,
            disk_pickle_protocol=0,
            eviction_policy="none",
            size_limit=2**62,
            cull_limit=0,
            statistics=0,
            tag_index=0,
            sqlite_auto_vacuum=1,
            sqlite_cache_size=8192,
            sqlite_journal_mode="wal",
            sqlite_mmap_size=2**26,
            sqlite_synchronous=1,
        )
    except (sqlite3.DatabaseError, Timeout, OSError) as error:
        raise _damaged(directory / "cache.db", f"cannot be opened ({error})") from None


def _damaged(database: Path, problem: str) -> DataError:
    """One line: what is wrong, what can be saved, and the command that saves it."""
    return DataError(
        f"{database}: {problem}; nothing was asked or changed; every reply that can still be read is saved, and the"
        f" damaged file kept, by: auxeval cache repair --cache-dir {shlex.quote(str(database.parent))}"
    )


def _refuse_damage(database: Path) -> None:
    """Refuse what SQLite would open and lose more of: it deletes the log of an empty database, with replies in it."""
    log = database.with_name(database.name + "-wal")
    logged = log.stat().st_size if log.is_file() else 0
    if database.exists() and not database.is_file():
        raise _damaged(database, "is a folder")
    size = database.stat().st_size if database.exists() else 0
    if size == 0:
        if logged:
            raise _damaged(database, f"is {'empty' if database.exists() else 'gone'}, and its log {log.name} is not")
        return
    with database.open("rb") as file:
        head = file.read(100)
    if not head.startswith(b"SQLite format 3\x00") or len(head) < 100:
        raise _damaged(database, "is no database")
    page_size, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    whole = pages * (65_536 if page_size == 1 else page_size)
    if size < whole and not logged:
        raise _damaged(database, f"is cut off: {size:,} bytes of {whole:,}")


def _refuse_foreign_settings(database: Path) -> None:
    """diskcache applies whatever settings the database holds; a planted one is refused before it is read."""
    if not database.exists():
        return
    from diskcache.core import DEFAULT_SETTINGS, METADATA

    ours = {*DEFAULT_SETTINGS, *METADATA}
    try:
        with contextlib.closing(sqlite3.connect(database, timeout=60.0)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            rows = connection.execute("SELECT key FROM Settings").fetchall() if "Settings" in tables else []
    except sqlite3.DatabaseError as error:
        raise _damaged(database, f"cannot be read as a database ({error})") from None
    foreign = [str(key) for (key,) in rows if key not in ours]
    if foreign:
        raise DataError(f"{database}: holds a setting that this program never writes: {foreign[0]!r:.60}")
