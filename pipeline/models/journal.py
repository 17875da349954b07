"""Journal: what must be on disk, made durable off the event loop, many changes per transaction and one sync for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pipeline.models.cache import ReplyCache
from pipeline.models.entries import Entry
from pipeline.models.store import Sql

_BATCH = 512
T = TypeVar("T")
Change = Callable[[Sql], Any]


class Journal:
    """Commits changes of one cache's database in batches, in one thread.

    While one batch is being synced to disk the next gathers, so that a sync of milliseconds is shared by all changes
    that arrive meanwhile, and the event loop never waits for the disk or for another process's lock.

    Args:
        cache: whose database; its reads need no journal.
    """

    def __init__(self, cache: ReplyCache) -> None:
        self.cache = cache
        self._waiting: list[tuple[Change, asyncio.Future[Any] | None]] = []
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")
        self._task: asyncio.Task[None] | None = None
        self._started = False

    async def do(self, change: Callable[[Sql], T]) -> T:
        """What ``change`` returns, once it is on disk. It runs in the journal's thread, inside a transaction.

        Raises:
            pipeline.models.cache.CacheWriteError: it could not be written; nothing of its batch was.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        self._wake()
        # Shielded: a caller that goes away must not take the others' batch with it.
        return await asyncio.shield(done)

    def post(self, change: Change) -> None:
        """Write a change that nobody waits for; it is on disk when the journal is closed, or with the next batches."""
        self._waiting.append((change, None))
        self._wake()

    async def add(self, entry: Entry) -> bool:
        """Store an entry; returns when it is on disk, False if its key was there before."""
        return await self.do(lambda sql: self.cache.put(entry))

    async def close(self) -> None:
        """Commit what waits, then end the thread and its connection."""
        if self._task is not None:
            await self._task
        if self._started:
            await asyncio.get_running_loop().run_in_executor(self._thread, self.cache.close)
        self._thread.shutdown(wait=True)

    def _wake(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._commit_all())

    async def _commit_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            try:
                results = await loop.run_in_executor(self._thread, self._commit, [change for change, _ in batch])
            except Exception as error:  # every waiter hears why its change is not on disk
                for _, done in batch:
                    if done is not None and not done.done():
                        done.set_exception(error)
                        done.exception()  # heard even if its caller has gone
            else:
                for (_, done), result in zip(batch, results, strict=True):
                    if done is not None and not done.done():
                        done.set_result(result)

    def _commit(self, changes: list[Change]) -> list[Any]:
        if not self._started:
            self._started = True
            self.cache.sync_fully()
        return self.cache.transact(lambda sql: [change(sql) for change in changes])
