"""Labeled examples for the regressor's in-context prompt, always of other items than the one predicted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Example:
    """What the regressor is shown of a labeled item, and whether the target was right on it."""

    question: str
    choices: tuple[str, ...] | None
    chain_a: str
    chain_b: str
    preference: str
    correct: bool

    def variables(self) -> Mapping[str, Any]:
        """Its values by the names that the prompt uses."""
        return {name: getattr(self, name) for name in self.__slots__}


class Examples:
    """A small pool of labeled items, from which every item takes the first ``count`` that are not itself.

    Args:
        pool: ids of ``count`` + 1 labeled items, in the order in which they are taken.
        targets: each target has its own outcomes.
        count: examples per prompt.
        questions: item id → its question as it is compared with others; a copy of an item's question is no example.
    """

    def __init__(
        self, pool: Sequence[str], targets: Sequence[str], count: int, questions: Mapping[str, str] | None = None
    ) -> None:
        self._questions = questions or {}
        self._pool = tuple(pool)
        self._targets = tuple(targets)
        self._count = count
        self._abandoned = False
        self._found: dict[tuple[str, str], asyncio.Future[Example | None]] = {}

    @property
    def pool(self) -> tuple[str, ...]:
        """Ids of the items that serve as examples."""
        return self._pool

    def wants(self, item_id: str) -> bool:
        """Whether an item is in the pool."""
        return item_id in self._pool

    def offer(self, item_id: str, target: str, example: Example | None) -> None:
        """The example an item gives for a target; None if it gives none."""
        future = self._future(item_id, target)
        if not future.done():
            future.set_result(example)

    def close(self, item_id: str) -> None:
        """The item has ended: what it has not offered by now it never will."""
        if self.wants(item_id):
            for target in self._targets:
                self.offer(item_id, target, None)

    def abandon(self) -> None:
        """The collection stops: nobody will offer anything any more."""
        self._abandoned = True
        for future in self._found.values():
            if not future.done():
                future.set_result(None)

    async def of_others(self, item_id: str, target: str) -> tuple[Example, ...]:
        """Examples for an item, none of them its own; waits until they are there."""
        others = [name for name in self._pool if name != item_id and not self._is_copy(name, item_id)][: self._count]
        if self._abandoned:
            return ()
        examples = [await asyncio.shield(self._future(name, target)) for name in others]
        return tuple(example for example in examples if example is not None)

    def _is_copy(self, name: str, item_id: str) -> bool:
        asked = self._questions.get(item_id)
        return asked is not None and self._questions.get(name) == asked

    def _future(self, item_id: str, target: str) -> asyncio.Future[Example | None]:
        key = (item_id, target)
        if key not in self._found:
            self._found[key] = asyncio.get_running_loop().create_future()
        return self._found[key]
