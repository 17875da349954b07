"""Progress of a collection: a live table on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from pipeline.runs.call_log import CallTotals

if TYPE_CHECKING:
    from pipeline.models.gateway import Gateway

__all__ = ["Progress"]

_PLAIN_EVERY_S = 10.0
_LIVE_EVERY_S = 0.25


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Progress:
    """Watches the call log and the gateway while a collection runs.

    Args:
        totals: the log's running totals.
        planned: stage → calls the plan expects.
        gateway: what is in flight, waiting and why.
        quiet: print nothing.
        stream: where to print; standard error by default.
    """

    def __init__(
        self,
        totals: CallTotals,
        planned: Mapping[str, int],
        gateway: Gateway,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        self._totals, self._planned, self._gateway = totals, planned, gateway
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._began = time.monotonic()
        self._done_before = self._done()
        self._cost_before = totals.cost_usd
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

    def _done(self) -> int:
        return sum(stage.calls for stage in self._totals.stages.values())

    def line(self) -> str:
        """Where the run is, in one line."""
        done, planned = self._done(), sum(self._planned.values())
        elapsed = time.monotonic() - self._began
        rate = (done - self._done_before) / elapsed if elapsed > 0 else 0.0
        left = max(planned - done, 0)
        status = self._gateway.status()
        failed = sum(stage.failed for stage in self._totals.stages.values())
        parts = [
            f"{done}/{planned} calls",
            f"{rate:.0f}/s",
            f"{self._totals.tokens} tokens",
            self._money(done, planned),
        ]
        parts.append(f"{status.in_flight} in flight")
        if failed:
            parts.append(f"{failed} failed")
        if status.retrying:
            why = ", ".join(f"{count} {reason}" for reason, count in sorted(status.reasons.items()) if reason != "slot")
            parts.append(f"{status.retrying} retrying ({why})")
        parts += [f"{name} paused {seconds:.0f} s" for name, seconds in status.paused_s.items()]
        if rate > 0 and left:
            parts.append(f"about {_duration(left / rate)} left")
        return " · ".join(part for part in parts if part)

    def _money(self, done: int, planned: int) -> str:
        spent = self._totals.cost_usd
        answered = done - self._done_before
        fresh = spent - self._cost_before
        if not spent and not fresh:
            return ""
        forecast = spent + fresh / answered * max(planned - done, 0) if answered > 0 else spent
        return f"${spent:.4f} of about ${forecast:.4f}"

    async def _plain(self) -> None:
        while True:
            await asyncio.sleep(_PLAIN_EVERY_S)
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
                    counted: Any = self._totals.stages.get(stage)
                    bars.update(task, completed=counted.calls if counted else 0)
                live.update(Group(bars, Text(self.line(), style="dim", overflow="ellipsis", no_wrap=True)))
                await asyncio.sleep(_LIVE_EVERY_S)
