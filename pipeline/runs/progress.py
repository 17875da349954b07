"""Progress of a collection: a live table on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from pipeline.collection.stages import plan_calls
from pipeline.models.pricing import find_price, reply_cost
from pipeline.models.types import CallRecord, Usage
from pipeline.report.values import plain
from pipeline.runs.call_log import CallLog
from pipeline.runs.forecast import assumed_tokens
from pipeline.runs.pace import Pace, PlannedStage
from pipeline.runs.setup import Prepared

if TYPE_CHECKING:
    from pipeline.models.gateway import GatewayStatus

PLAIN_EVERY_S = 10.0
_LIVE_EVERY_S = 0.25
_SAMPLE_S = 0.05


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def planned_stages(prepared: Prepared) -> list[PlannedStage]:
    """What the plan expects of each stage and model, with the lengths of replies that a forecast assumes."""
    totals: dict[tuple[str, str], PlannedStage] = {}
    for planned in plan_calls(prepared.config, prepared.benchmark, prepared.prompts):
        tokens = assumed_tokens(planned.stage)
        price = find_price(prepared.specs[planned.model])
        usage = Usage(round(planned.prompt_tokens / max(planned.calls, 1)), round(tokens))
        cost = reply_cost(price.price if price else None, usage)
        where = planned.stage, planned.model
        before = totals[where].calls if where in totals else 0
        totals[where] = PlannedStage(*where, before + planned.calls, tokens, cost)
    return list(totals.values())


class Watched(Protocol):
    """What says what it is doing: a gateway, or those of several workers."""

    def status(self) -> GatewayStatus:
        """A snapshot."""
        ...


class Progress:
    """Watches the call log and the gateway while a collection runs.

    Args:
        log: counts what is done.
        planned: what is expected.
        gateway: what is in flight, waiting and why.
        at_hand: (stage, model) → calls that need not be asked; by default those that the log knows.
        replies: what became of replies that cannot be used; by default nothing is said of it.
        quiet: print nothing.
        stream: where to print; standard error by default.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        log: CallLog,
        planned: Sequence[PlannedStage],
        gateway: Watched,
        *,
        at_hand: Mapping[tuple[str, str], int] | None = None,
        replies: Callable[[], str] = str,
        quiet: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._gateway, self._clock = log, gateway, clock
        self._replies = replies
        self._planned: Counter[str] = Counter()
        for stage in planned:
            self._planned[stage.stage] += stage.calls
        self.pace = Pace(planned, log.at_hand if at_hand is None else at_hand)
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._task: asyncio.Task[None] | None = None
        self._sampled = -1e9
        if not quiet:
            log.watch = self._see

    async def __aenter__(self) -> Progress:
        if not self._quiet:
            self._task = asyncio.create_task(self._live() if self._stream.isatty() else self._plain())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _see(self, record: CallRecord) -> None:
        """A call has ended."""
        now = self._clock()
        if now - self._sampled >= _SAMPLE_S:
            self._sampled = now
            self.pace.sample(now, self._gateway.status().in_flight)
        self.pace.see(
            (record.label.stage, record.model),
            cached=record.state == "cached",
            repair=(record.label.part or "").endswith("repair"),
            busy_s=record.busy_s,
            cost_usd=record.cost_usd or 0.0,
        )

    def line(self) -> str:
        """Where the run is, in one line."""
        totals, now, status = self._log.totals, self._clock(), self._gateway.status()
        self.pace.sample(now, status.in_flight)
        done, planned = sum(self._log.seen.values()), sum(self._planned.values())
        failed = sum(stage.failed for stage in totals.stages.values())
        parts = [f"{done}/{max(planned, done)} calls", f"{self.pace.rate(now):.3g}/s", f"{totals.tokens} tokens"]
        parts += [self._money(), f"{status.in_flight} in flight"]
        if failed:
            parts.append(f"{failed} failed")
        if status.timed_out:
            parts.append(f"{status.timed_out} timed out")
        if status.retrying:
            why = ", ".join(f"{count} {reason}" for reason, count in sorted(status.reasons.items()) if reason != "slot")
            parts.append(f"{status.retrying} retrying ({why})")
        parts += [f"{name} paused {seconds:.0f} s" for name, seconds in status.paused_s.items()]
        seconds_left = self.pace.seconds_left()
        if seconds_left:
            parts.append(f"about {_duration(seconds_left)} left")
        return " · ".join(part for part in parts if part)

    def _money(self) -> str:
        """Money spent, and what it will have been if the calls left cost what asked ones of their stage did."""
        spent, left = self._log.totals.cost_usd, self.pace.usd_left()
        if not spent:
            return ""
        return f"${spent:.4f}" if left is None else f"${spent:.4f} of about ${spent + left:.4f}"

    async def _plain(self) -> None:
        while True:
            await asyncio.sleep(PLAIN_EVERY_S)
            print(f"auxeval: {self.line()}", file=self._stream, flush=True)
            if lost := plain(self._replies()):
                print(f"auxeval: not usable: {lost}", file=self._stream, flush=True)

    async def _live(self) -> None:
        from rich.console import Console, Group
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bars
        from rich.text import Text

        console = Console(file=self._stream)
        bars = Bars(TextColumn("{task.description:>16}"), BarColumn(), MofNCompleteColumn(), console=console)
        tasks = {stage: bars.add_task(stage, total=max(total, 1)) for stage, total in self._planned.items() if total}
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            while True:
                for stage, task in tasks.items():
                    bars.update(task, completed=self._log.seen[stage])
                line, lost = Text(self.line(), style="dim", overflow="ellipsis", no_wrap=True), plain(self._replies())
                live.update(Group(bars, line, *([Text(f"not usable: {lost}", style="yellow")] if lost else [])))
                await asyncio.sleep(_LIVE_EVERY_S)
