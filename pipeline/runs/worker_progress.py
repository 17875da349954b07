"""Progress of a distributed collection: all workers together on one line, and how many calls each has answered."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TextIO

from pipeline.models.gateway import GatewayStatus
from pipeline.runs.call_log import CallLog
from pipeline.runs.progress import PLAIN_EVERY_S, Progress

__all__ = ["WorkersProgress"]

_SHOWN = 8


class WorkersProgress:
    """One line on the client, rewritten on a terminal, a new one every few seconds elsewhere.

    Args:
        log: the run's, into which the workers' lines are merged.
        planned: stage → calls the plan expects.
        statuses: shard → what its gateway is doing, None where it has ended.
        answered: shard → calls that have ended there.
        quiet: show nothing.
        stream: where to; standard error by default.
    """

    def __init__(
        self,
        log: CallLog,
        planned: Mapping[str, int],
        statuses: Mapping[int, Mapping[str, Any] | None],
        answered: Mapping[int, int],
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        self._statuses, self._answered = statuses, answered
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._progress = Progress(log, planned, self, quiet=True)
        self._shown = time.monotonic()
        self._live: Any = None

    def __enter__(self) -> WorkersProgress:
        if not self._quiet and self._stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=self._stream), refresh_per_second=1, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def status(self) -> GatewayStatus:
        """What all workers' gateways are doing, added up; of pauses the longest."""
        there = [status for status in self._statuses.values() if status]
        reasons: Counter[str] = Counter()
        paused: dict[str, float] = {}
        for status in there:
            reasons.update(status["reasons"])
            for name, seconds in status["paused_s"].items():
                paused[name] = max(seconds, paused.get(name, 0.0))
        sums = {name: sum(status[name] for status in there) for name in ("in_flight", "waiting", "retrying")}
        return GatewayStatus(**sums, reasons=dict(reasons), paused_s=paused)

    def line(self) -> str:
        """Where the run is, in one line."""
        at_work = sum(status is not None for status in self._statuses.values())
        counts = [str(self._answered[number]) for number in sorted(self._answered)]
        more = f"+… ({len(counts)} shards)" if len(counts) > _SHOWN else ""
        return f"{self._progress.line()} · {at_work} workers: {'+'.join(counts[:_SHOWN])}{more}"

    def show(self) -> None:
        """Show the line if it is time to."""
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(self.line(), style="dim", overflow="ellipsis", no_wrap=True))
        elif not self._quiet and time.monotonic() - self._shown >= PLAIN_EVERY_S:
            self._shown = time.monotonic()
            with contextlib.suppress(OSError):
                print(f"auxeval: {self.line()}", file=self._stream, flush=True)
