"""Progress of a collection: a live table on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TextIO

from pipeline.collection.stages import plan_calls
from pipeline.runs.call_log import CallLog
from pipeline.runs.setup import Prepared

if TYPE_CHECKING:
    from pipeline.models.gateway import GatewayStatus

PLAIN_EVERY_S = 10.0
_LIVE_EVERY_S = 0.25


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def planned_calls(prepared: Prepared) -> dict[str, int]:
    """Stage → calls that the plan expects."""
    totals: dict[str, int] = {}
    for planned in plan_calls(prepared.config, prepared.benchmark):
        totals[planned.stage] = totals.get(planned.stage, 0) + planned.calls
    return totals


class Watched(Protocol):
    """What says what it is doing: a gateway, or those of several workers."""

    def status(self) -> GatewayStatus:
        """A snapshot."""
        ...


class Progress:
    """Watches the call log and the gateway while a collection runs.

    Args:
        log: counts what is done.
        planned: stage → calls the plan expects.
        gateway: what is in flight, waiting and why.
        quiet: print nothing.
        stream: where to print; standard error by default.
    """

    def __init__(
        self,
        log: CallLog,
        planned: Mapping[str, int],
        gateway: Watched,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        self._log, self._planned, self._gateway = log, planned, gateway
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._began = time.monotonic()
        self._cost_before = log.totals.cost_usd
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Progress:
        if not self._quiet:
            self._task = asyncio.create_task(self._live() if self._stream.isatty() else self._plain())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def line(self) -> str:
        """Where the run is, in one line."""
        totals = self._log.totals
        done, planned = sum(self._log.seen.values()), sum(self._planned.values())
        elapsed = time.monotonic() - self._began
        rate = done / elapsed if elapsed > 0 else 0.0
        left = max(planned - done, 0)
        status = self._gateway.status()
        failed = sum(stage.failed for stage in totals.stages.values())
        parts = [f"{done}/{max(planned, done)} calls", f"{rate:.0f}/s", f"{totals.tokens} tokens"]
        parts += [self._money(done, left), f"{status.in_flight} in flight"]
        if failed:
            parts.append(f"{failed} failed")
        if status.retrying:
            why = ", ".join(f"{count} {reason}" for reason, count in sorted(status.reasons.items()) if reason != "slot")
            parts.append(f"{status.retrying} retrying ({why})")
        parts += [f"{name} paused {seconds:.0f} s" for name, seconds in status.paused_s.items()]
        if rate > 0 and left:
            parts.append(f"about {_duration(left / rate)} left")
        return " · ".join(part for part in parts if part)

    def _money(self, done: int, left: int) -> str:
        """Money spent, and the forecast if the rest costs as much a call as this session's calls did."""
        spent = self._log.totals.cost_usd
        if not spent:
            return ""
        fresh = spent - self._cost_before
        forecast = spent + (fresh / done * left if done else 0.0)
        return f"${spent:.4f} of about ${forecast:.4f}"

    async def _plain(self) -> None:
        while True:
            await asyncio.sleep(PLAIN_EVERY_S)
            print(f"auxeval: {self.line()}", file=self._stream, flush=True)

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
                live.update(Group(bars, Text(self.line(), style="dim", overflow="ellipsis", no_wrap=True)))
                await asyncio.sleep(_LIVE_EVERY_S)
