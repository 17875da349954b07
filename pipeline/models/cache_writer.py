"""CacheWriter: replies made durable off the event loop, many per transaction."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from pipeline.models.cache import ReplyCache
from pipeline.models.entries import Entry

__all__ = ["CacheWriter"]

_BATCH = 512


class CacheWriter:
    """Commits entries in batches, in one thread.

    While one batch is being synced to disk the next gathers, so that a sync of milliseconds is shared by all replies
    that arrive meanwhile, and the event loop never waits for the disk or for another process's lock.
    """

    def __init__(self, cache: ReplyCache) -> None:
        self._cache = cache
        self._waiting: list[tuple[Entry, asyncio.Future[bool]]] = []
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cache-writer")
        self._task: asyncio.Task[None] | None = None
        self._started = False

    async def add(self, entry: Entry) -> bool:
        """Store an entry; returns when it is on disk, False if its key was there before.

        Raises:
            pipeline.models.cache.CacheWriteError: it could not be stored.
        """
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._commit_all())
        # Shielded: a caller that goes away must not take the others' batch with it.
        return await asyncio.shield(done)

    async def close(self) -> None:
        """Commit what waits, then end the thread and its connection."""
        if self._task is not None:
            await self._task
        if self._started:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._cache.close)
        self._thread.shutdown(wait=True)

    async def _commit_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            try:
                added = await loop.run_in_executor(self._thread, self._commit, [entry for entry, _ in batch])
            except Exception as error:  # every waiter hears why its reply is not stored
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                        done.exception()  # heard even if its caller has gone
            else:
                for (_, done), was_added in zip(batch, added, strict=True):
                    if not done.done():
                        done.set_result(was_added)

    def _commit(self, entries: list[Entry]) -> list[bool]:
        if not self._started:
            self._started = True
            self._cache.sync_fully()
        return self._cache.add_many(entries)
