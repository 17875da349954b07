"""The collector: pulls items as fast as the models take them, and keeps no more than it must."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.benchmark.data_checks import question_key
from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Benchmark, Item
from pipeline.collection.calls import Caller, StageCount
from pipeline.collection.context import FlowContext
from pipeline.collection.examples import Examples
from pipeline.collection.form_watch import FormWatch
from pipeline.collection.item_flow import ItemFlow
from pipeline.collection.prompts import PromptSet
from pipeline.collection.rows import ResponseRow, Row
from pipeline.collection.stages import stage_plan
from pipeline.config import RunConfig
from pipeline.models.stopping import RunStopped
from pipeline.models.types import Asker

_LEAST_LIVE = 64
_LIVE_PER_SLOT = 1.5


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """What a finished collection did.

    Attributes:
        items: items seen through.
        rows: table → rows.
        stages: stage → what became of its calls.
    """

    items: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    stages: Mapping[str, StageCount] = field(default_factory=dict)


class Collector:
    """Collects all rows of a run.

    Work is pulled, not spawned: a new item is begun only while fewer calls are under way than half as many again as the
    models have slots, so that the number of tasks does not grow with the benchmark.

    Args:
        config: the run.
        benchmark: its items.
        labeled: ids of the labeled items.
        asker: the gateway.
        prompts: the prompts.
        sink: takes every row as soon as it exists, in no particular order.
        progress: told (items done, items in all) after each item.
        stop_on_failures: whether too many terminal failures of a stage stop the run; off in a replay, whose
            failures are those of a run that went through.
        watch: counts what became of replies, and stops the run where a model gives mostly none that can be used.
    """

    def __init__(
        self,
        config: RunConfig,
        benchmark: Benchmark,
        labeled: frozenset[str],
        asker: Asker,
        prompts: PromptSet,
        sink: Callable[[Row], None],
        progress: Callable[[int, int], None] | None = None,
        *,
        stop_on_failures: bool = True,
        watch: FormWatch | None = None,
    ) -> None:
        self._benchmark = benchmark
        self._progress = progress
        self._sink = sink
        self._rows: Counter[str] = Counter()
        self._done = 0
        self._error: BaseException | None = None
        self._wake = asyncio.Event()
        plan = stage_plan(config)
        self._caller = Caller(config, asker, prompts, stop_on_failures=stop_on_failures)
        self._caller.on_end = self._wake.set
        self._grader = Grader(benchmark.grading, tolerance=benchmark.tolerance)
        self._form = watch or FormWatch(config, stops=stop_on_failures)
        questions = {item.item_id: question_key(item.question) for item in benchmark.items} if plan.examples else {}
        pool = example_pool(config, labeled, questions)
        self._examples = Examples(pool, plan.targets, plan.examples, questions)
        self._context = FlowContext(
            config, plan, prompts, self._caller, self._grader, self._take, self._examples, benchmark.criteria
        )
        slots = sum(entry.max_concurrency for entry in config.model_entries.values())
        self._most_live = max(_LEAST_LIVE, round(_LIVE_PER_SLOT * slots))

    async def run(self) -> CollectionSummary:
        """Ask everything; every row has gone to the sink when it returns.

        Raises:
            RunStopped: no further calls may be made, or a stage failed too often; what was in flight has landed.
        """
        active: set[asyncio.Task[None]] = set()

        def ended(task: asyncio.Task[None]) -> None:
            active.discard(task)
            self._wake.set()

        room = 0
        try:
            for item in self._ordered():
                if room == 0:
                    room = await self._room(active)
                if self._stopped:
                    break
                task = asyncio.ensure_future(self._item(item))
                active.add(task)
                task.add_done_callback(ended)
                room -= 1
                if room == 0:
                    await _let_begin()
            if self._stopped:
                self._examples.abandon()
            while active:
                await asyncio.wait(active)
        except asyncio.CancelledError:
            for task in tuple(active):
                task.cancel()
            if active:
                await asyncio.wait(active)
            raise
        finally:
            self._grader.close()
        error = self._error or self._caller.stopped
        if error is not None:
            raise error
        return CollectionSummary(self._done, dict(self._rows), self._caller.counts)

    @property
    def _stopped(self) -> bool:
        return self._error is not None or self._caller.stopped is not None

    def _ordered(self) -> Iterator[Item]:
        """Items that serve as examples first: all others wait for them."""
        pool = set(self._examples.pool)
        yield from (item for item in self._benchmark.items if item.item_id in pool)
        yield from (item for item in self._benchmark.items if item.item_id not in pool)

    async def _room(self, active: set[asyncio.Task[Any]]) -> int:
        """Wait until there is room for another item; for how many, if each has all its calls under way at once."""
        most_items = self._most_live
        while not self._stopped and (self._caller.live >= self._most_live or len(active) >= most_items):
            self._wake.clear()
            await self._wake.wait()
        calls = self._most_live - self._caller.live
        return max(1, min(calls // self._context.plan.calls_at_once, most_items - len(active)))

    async def _item(self, item: Item) -> None:
        try:
            await ItemFlow(item, self._context).run()
        except asyncio.CancelledError:
            raise
        except RunStopped as stop:
            self._caller.stopped = self._caller.stopped or stop
        except Exception as error:  # kept, to go up once what is in flight has landed
            self._error = self._error or error
            self._caller.stopped = self._caller.stopped or RunStopped(str(error), "closed")
        else:
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, len(self._benchmark.items))

    def _take(self, row: Row) -> None:
        self._rows[row.table] += 1
        text = row.text if isinstance(row, ResponseRow) else self._caller.unusable.pop(_request_key(row), "")
        stop = self._form.take(row, text or "")
        if stop is not None:
            self._caller.stopped = self._caller.stopped or stop
        self._sink(row)


def _request_key(row: Row) -> str:
    return getattr(row, "request_key", None) or ""


async def _let_begin() -> None:
    """Three turns of the loop: the items' tasks, their first calls, and so the count of live calls, come to be."""
    for _ in range(3):
        await asyncio.sleep(0)


def example_pool(config: RunConfig, labeled: frozenset[str], questions: Mapping[str, str]) -> list[str]:
    """Labeled items shown to the regressor: one more than a prompt shows, so that each can do without itself.

    No two of them ask the same question, so that each can do without its copies too: 15 of 24 prompts once showed the
    very question they asked about, with its label.
    """
    plan = stage_plan(config)
    if not plan.examples:
        return []
    ids = list({questions.get(item_id, item_id): item_id for item_id in sorted(labeled, reverse=True)}.values())[::-1]
    return random.Random(f"examples {config.seed}").sample(ids, min(len(ids), plan.examples + 1))
