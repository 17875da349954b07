"""Store: the one SQLite file beneath a cache; keys and values go through diskcache, everything else through SQL here.

Nothing else in the package opens the file, but for its repair, which reads what SQLite itself would refuse.
"""

from __future__ import annotations

import contextlib
import shlex
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline.errors import AuxevalError, DataError

if TYPE_CHECKING:
    from diskcache import Cache

PAGE = 500
T = TypeVar("T")
Sql = Callable[..., sqlite3.Cursor]
"""``execute`` of a connection to the cache's database, inside a transaction."""


class CacheWriteError(AuxevalError):
    """A paid reply could not be stored: the disk is full, or the cache is locked or not writable."""


class Store:
    """Keys and bytes in one file, safe for many processes at once, with tables of others beside them.

    Args:
        directory: there already.
        timeout_s: seconds to wait for another process's lock.

    Raises:
        DataError: the file is damaged, or holds what this program never writes.
    """

    def __init__(self, directory: Path, timeout_s: float) -> None:
        self._directory, self._timeout_s = directory, timeout_s
        self._database = directory / "cache.db"
        self._lock = threading.Lock()
        _refuse_damage(self._database)
        _refuse_foreign_settings(self._database)
        self._cache = _opened(directory, timeout_s)

    def __len__(self) -> int:
        return len(self._cache)

    def close(self) -> None:
        """Close this thread's connection; safe to call twice."""
        self._cache.close()

    def get(self, key: str) -> bytes | None:
        """The value of a key.

        Raises:
            pipeline.models.entries.DamagedEntry: the row is none that this program writes.
            DataError: the file cannot be read.
        """
        with self._reading():
            value: bytes | None = self._cache.get(key)
            return value

    def add(self, key: str, value: bytes) -> bool:
        """Store a value inside a transaction under way; False if its key was there before."""
        return bool(self._cache.add(key, value))

    def set(self, key: str, value: bytes) -> None:
        """Store a value, replacing the one before."""
        with self._writing():
            self._cache.set(key, value)

    def delete(self, keys: Sequence[str]) -> int:
        """Delete keys; how many there were."""
        with self._writing():
            return sum(bool(self._cache.delete(key)) for key in keys)

    def transact(self, work: Callable[[Sql], T]) -> T:
        """What ``work`` returns, its changes in one durable transaction: all of them, or an error and none.

        Raises:
            CacheWriteError: the disk is full, or the file is locked or not writable.
        """
        with self._writing(), self._cache.transact(retry=False):
            return work(self._cache._sql)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement that only reads.

        Raises:
            DataError: the file cannot be read.
        """
        with self._reading():
            return list(self._cache._sql(statement, values).fetchall())

    def sync_fully(self) -> None:
        """Make this thread's commits survive a power cut, not only a killed process."""
        self._cache.reset("sqlite_synchronous", 2, update=False)

    def rows(self) -> Iterator[tuple[str, bytes, str | None]]:
        """(key, value, what is wrong with the row) in the order of writing: no row is ever unpickled."""
        query = "SELECT rowid, key, raw, mode, filename, value FROM Cache WHERE rowid > ? ORDER BY rowid LIMIT ?"
        with contextlib.closing(sqlite3.connect(self._database, timeout=self._timeout_s)) as connection:
            last = -(2**62)
            while True:
                try:
                    page = connection.execute(query, (last, PAGE)).fetchall()
                except sqlite3.DatabaseError as error:
                    yield "database", b"", str(error)
                    return
                for last, key, raw, mode, filename, value in page:  # noqa: B007
                    plain = raw == 1 and mode == 1 and filename is None and isinstance(key, str)
                    problem = None if plain and isinstance(value, bytes) else "a row this program never writes"
                    yield str(key), value, problem
                if len(page) < PAGE:
                    return

    def take_out(self, key: str) -> Any:
        """The value of a row, whatever it is, and the row gone; None where there is none, or it cannot be read."""
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(self._database, timeout=self._timeout_s)) as connection,
            connection,
        ):
            row = connection.execute("SELECT value FROM Cache WHERE key = ? AND raw = 1", (key,)).fetchone()
            connection.execute("DELETE FROM Cache WHERE key = ? AND raw = 1", (key,))
            return None if row is None else row[0]
        return None

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise _damaged(self._database, f"cannot be read ({error})") from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One writer of this process at a time; what SQLite says becomes one clear line."""
        from diskcache import Timeout

        try:
            with self._lock:
                yield
        except Timeout:
            raise CacheWriteError(
                f"{self._directory}: the cache could not be written for {self._timeout_s:g} s: locked by another"
                " process, not writable, or the disk is full; the last reply was not stored"
            ) from None
        except (sqlite3.DatabaseError, OSError) as error:
            raise CacheWriteError(
                f"{self._directory}: the cache cannot be written: {error}; free space and resume"
            ) from None


def only_read(directory: Path, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    """The rows of a statement over a store that must not be opened for writing; empty where it has no such table."""
    database = directory / "cache.db"
    if not database.is_file() or not database.stat().st_size:  # SQLite removes the log of an empty database
        return []
    try:
        with contextlib.closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute(statement, values).fetchall()
    except sqlite3.DatabaseError:
        return []


def _opened(directory: Path, timeout_s: float) -> Cache:
    """The diskcache underneath, with every setting given: they are sticky in the file."""
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
