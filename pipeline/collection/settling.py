"""Concurrent work of which every part is let to its end, so that what is paid for lands, before an error goes up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")


async def settle(parts: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Results of coroutines run side by side; see :func:`settled`."""
    return await settled([asyncio.ensure_future(part) for part in parts])


async def settled(tasks: list[asyncio.Task[_T]]) -> list[_T]:
    """Results of tasks, once all have ended; then the first error, if any.

    Unlike a task group, a failing part cancels nobody. If the waiter is cancelled, all parts are, and are waited for.
    """
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()
        raise
    errors = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
    if errors:
        raise errors[0]
    return [task.result() for task in tasks]
