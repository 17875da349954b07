"""Flights: identical calls in the air at once are one call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
Phase = Literal["waiting", "sending", "storing"]


@dataclass(slots=True, eq=False)
class Flight:
    """One call in the air.

    Attributes:
        model: name of the model entry.
        phase: ``waiting`` (budget, slot, back-off), ``sending`` or ``storing``.
        reason: what it waits for or after, for the progress line.
        interrupted: set before the flight is cancelled on purpose, to what its waiters are told.
    """

    model: str
    phase: Phase = "waiting"
    reason: str = "slot"
    waiters: int = 0
    interrupted: BaseException | None = None


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    """What the gateway is doing now: counts, and why calls wait (``"slot"``, ``"rate_limited 429"``, …).

    ``timed_out`` counts the attempts that were not answered in their time, since the start.
    """

    in_flight: int
    waiting: int
    retrying: int
    reasons: Mapping[str, int]
    paused_s: Mapping[str, float]
    timed_out: int = 0


class Flights(Generic[T]):
    """Key → call in the air. The last waiter gone cancels it, unless ``keep`` says that it must land."""

    def __init__(self) -> None:
        self._flying: dict[str, tuple[Flight, asyncio.Task[T]]] = {}
        self.keep = False

    def __len__(self) -> int:
        return len(self._flying)

    def __contains__(self, key: str) -> bool:
        return key in self._flying

    def all(self) -> list[Flight]:
        """Every flight."""
        return [flight for flight, _ in self._flying.values()]

    def status(self, paused_s: Mapping[str, float], timed_out: int = 0) -> GatewayStatus:
        """What all are doing, with the pauses and time-outs of their models."""
        flights = self.all()
        waiting = [flight for flight in flights if flight.phase == "waiting"]
        retrying = sum(flight.reason not in ("slot", "budget", "another run") for flight in waiting)
        return GatewayStatus(
            in_flight=len(flights) - len(waiting),
            waiting=len(waiting) - retrying,
            retrying=retrying,
            reasons=dict(Counter(flight.reason for flight in waiting)),
            paused_s=paused_s,
            timed_out=timed_out,
        )

    async def join(self, key: str, model: str, start: Callable[[Flight], Awaitable[T]]) -> tuple[T, bool]:
        """The result of the flight of ``key``, started if there is none; and whether this caller started it."""
        flying = self._flying.get(key)
        first = flying is None
        if flying is None:
            flight = Flight(model)
            task = asyncio.create_task(self._fly(key, flight, start))
            task.add_done_callback(_hear)
            flying = self._flying[key] = (flight, task)
        flight, task = flying
        flight.waiters += 1
        try:
            return await asyncio.shield(task), first
        except asyncio.CancelledError:
            if flight.waiters == 1 and not self.keep and flight.phase != "storing":
                task.cancel()
            raise
        finally:
            flight.waiters -= 1

    def interrupt(self, error: Callable[[], BaseException], *, waiting_only: bool) -> None:
        """Cancel flights; their waiters get ``error()``."""
        for flight, task in list(self._flying.values()):
            if flight.phase == "storing" or (waiting_only and flight.phase != "waiting"):
                continue
            flight.interrupted = error()
            task.cancel()

    async def landed(self, seconds: float) -> bool:
        """Wait at most ``seconds`` until none is left; whether none is."""
        tasks = [task for _, task in self._flying.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        return not self._flying

    async def _fly(self, key: str, flight: Flight, start: Callable[[Flight], Awaitable[T]]) -> T:
        try:
            return await start(flight)
        except asyncio.CancelledError:
            if flight.interrupted is not None:
                raise flight.interrupted from None
            raise
        finally:
            del self._flying[key]


def _hear(task: asyncio.Task[T]) -> None:
    """A flight that failed after its last waiter had gone is not news for the event loop's log."""
    if not task.cancelled():
        task.exception()
