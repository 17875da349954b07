"""Budget: what a run may spend, reserved before each attempt and settled after it."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """What one attempt costs, or may cost at most; ``usd`` None where no price is known."""

    tokens: int
    usd: float | None


@dataclass(slots=True)
class Spent:
    """What was spent: replies, and attempts that ended without one but may have been charged (``possible_*``).

    ``calls`` counts attempts answered or possibly charged (``possible_calls`` of them); those a provider refused (429
    and other 4xx) are free.
    """

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    possible_tokens: int = 0
    possible_usd: float = 0.0
    possible_calls: int = 0


class BudgetExceeded(Exception):
    """The next attempt could pass a bound; the message says which."""


class Budget:
    """Bounds on money, calls and tokens that cannot be passed, however many calls are in flight.

    Before an attempt its largest possible cost is reserved; it starts only if everything spent and everything reserved
    still fits. An attempt that does not fit waits for those in flight to settle (they mostly cost less than reserved),
    and is refused once nothing in flight is left to wait for.

    Args:
        usd, calls, tokens: bounds, or None.
        spent: what earlier sessions of the same run spent.
    """

    def __init__(
        self,
        *,
        usd: float | None = None,
        calls: int | None = None,
        tokens: int | None = None,
        spent: Spent | None = None,
    ) -> None:
        self.usd, self.calls, self.tokens = usd, calls, tokens
        self.spent = spent or Spent()
        self._reserved_usd = 0.0
        self._reserved_tokens = 0
        self._outstanding = 0
        self._waiting: deque[tuple[Cost, asyncio.Future[None]]] = deque()
        self._sent = 0
        self._ended: asyncio.Future[None] | None = None

    @property
    def bounded(self) -> bool:
        """Whether any bound is set."""
        return not (self.usd is None and self.calls is None and self.tokens is None)

    async def reserve(self, worst: Cost) -> None:
        """Set the largest possible cost of one attempt aside, waiting for others to settle if need be.

        Raises:
            BudgetExceeded: it cannot fit.
        """
        if not self._waiting and self._exceeded(worst) is None:
            self._take(worst)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((worst, granted))
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self.release(worst)
            raise

    def release(self, worst: Cost, *, sent: bool = False) -> None:
        """The attempt was not made, or (``sent``) was refused free of charge."""
        self._give_back(worst)
        if sent:
            self._land()
        self._grant()

    def settle(self, worst: Cost, actual: Cost) -> None:
        """The attempt was answered: replace the reservation by what it cost."""
        self._give_back(worst)
        self._land()
        self.spent.calls += 1
        self.spent.tokens += actual.tokens
        self.spent.usd += actual.usd or 0.0
        self._grant()

    def write_off(self, worst: Cost) -> None:
        """The attempt ended without a reply but may be charged: its largest cost counts against the bounds."""
        self._give_back(worst)
        self._land()
        self.spent.calls += 1
        self.spent.possible_calls += 1
        self.spent.possible_tokens += worst.tokens
        self.spent.possible_usd += worst.usd or 0.0
        self._grant()

    def passed(self, calls: int, tokens: int, usd: float) -> bool:
        """Whether so much would pass a bound."""
        return (
            (self.calls is not None and calls > self.calls)
            or (self.tokens is not None and tokens > self.tokens)
            or (self.usd is not None and usd > self.usd * (1 + 1e-12))
        )

    def depart(self) -> None:
        """An attempt whose reservation was taken is about to be sent."""
        self._sent += 1

    async def landed(self) -> bool:
        """Wait until one of the attempts that were sent has ended; False where there is none."""
        if not self._sent:
            return False
        self._ended = self._ended or asyncio.get_running_loop().create_future()
        await asyncio.shield(self._ended)
        return True

    def _land(self) -> None:
        self._sent = max(0, self._sent - 1)
        if self._ended is not None:
            self._ended.set_result(None)
            self._ended = None

    def _take(self, worst: Cost) -> None:
        self._outstanding += 1
        self._reserved_tokens += worst.tokens
        self._reserved_usd += worst.usd or 0.0

    def _give_back(self, worst: Cost) -> None:
        self._outstanding -= 1
        self._reserved_tokens -= worst.tokens
        self._reserved_usd = self._reserved_usd - (worst.usd or 0.0) if self._outstanding else 0.0

    def _grant(self) -> None:
        """Let waiting attempts go, first come first served, or refuse them all when nothing is left to wait for."""
        while self._waiting:
            worst, granted = self._waiting[0]
            if granted.done():
                self._waiting.popleft()
                continue
            problem = self._exceeded(worst)
            if problem is None:
                self._waiting.popleft()
                self._take(worst)
                granted.set_result(None)
            elif self._outstanding == 0:
                self._waiting.popleft()
                granted.set_exception(BudgetExceeded(problem))
            else:
                return

    def _exceeded(self, worst: Cost) -> str | None:
        """Which bound the attempt could pass, if any."""
        spent = self.spent
        if self.calls is not None and spent.calls + self._outstanding + 1 > self.calls:
            return f"budget.calls = {self.calls}: {spent.calls} spent"
        tokens = spent.tokens + spent.possible_tokens
        if self.tokens is not None and tokens + self._reserved_tokens + worst.tokens > self.tokens:
            return f"budget.tokens = {self.tokens}: {tokens} spent, the next call may take {worst.tokens}"
        usd = spent.usd + spent.possible_usd
        if self.usd is not None and usd + self._reserved_usd + (worst.usd or 0.0) > self.usd * (1 + 1e-12):
            return f"budget.usd = {self.usd:g}: ${usd:.4f} spent, the next call may cost ${worst.usd or 0.0:.4f}"
        return None
