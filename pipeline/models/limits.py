"""ModelLimits: when the next attempt of a model may start (concurrency, rpm, tpm, pauses)."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_BACKOFF_S = 1.0
_LONGEST_BACKOFF_S = 60.0
_STEPS_TO_RECOVER = 16
_WINDOW_S = 61.0  # the second more is for requests that overtake each other on their way


@dataclass(slots=True, eq=False)
class _Taken:
    at: float
    tokens: int
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Slot:
    """What an attempt holds from its grant to its end.

    Attributes:
        generation: number of overloads before it.
        answered: attempts that were answered before it.
        reserved: the most tokens that it may take.
        taken: its entry in the minute of tokens; None without a limit on them.
    """

    generation: int
    answered: int
    reserved: int = 0
    taken: _Taken | None = None


class ModelLimits:
    """Grants slots to the attempts of one model, first come first served.

    A slot is granted when fewer attempts than the limit are in flight, the model is not paused, and rpm and tpm allow
    it; nothing is held while waiting. The limit follows AIMD: halved by a 429 (once per generation of attempts, as one
    overload answers many of them), raised by about a sixteenth of the maximum per round of successes. A time-out lowers
    it too, to half of what the model has answered meanwhile, and it rises half as fast after each: a server with one
    slot and 16 requests in flight once threw 9 of 12 away, each of which alone would have met its time.

    rpm and tpm are paced evenly, so that no window of a minute holds more than its share; an attempt counts with the
    most tokens that it may take until it is answered.

    Args:
        max_concurrency: attempts in flight at most.
        rpm, tpm: requests and tokens per minute, or None.
        clock: seconds, monotonic.
        sleep: awaits seconds.
    """

    def __init__(
        self,
        max_concurrency: int,
        *,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        rng: random.Random | None = None,
    ) -> None:
        self.maximum = max_concurrency
        self.limit = float(max_concurrency)
        self.in_flight = 0
        self.paused_until = 0.0
        self._rpm, self._tpm = rpm, tpm
        self._clock, self._sleep = clock, sleep
        self._rng = rng or random.Random()
        self._next_request = self._next_tokens = 0.0
        self._window = None if tpm is None else TokenWindow(tpm)
        self._waiting: deque[tuple[int, asyncio.Future[Slot]]] = deque()
        self._timer: asyncio.Task[None] | None = None
        self._timer_at = 0.0
        self._generation = 0
        self._answered = 0
        self._caution = 1.0
        self._rate_limited_in_a_row = 0
        self._backoff = 0.0

    @property
    def waiting(self) -> int:
        """Attempts that wait for a slot."""
        return sum(not granted.done() for _, granted in self._waiting)

    def paused_for(self) -> float:
        """Seconds until the model may be asked again; 0 when it is not paused."""
        return max(0.0, self.paused_until - self._clock())

    async def acquire(self, tokens: int) -> Slot:
        """Wait for a slot for an attempt that may take so many tokens."""
        if not self._waiting and self._ready_at(tokens) <= self._clock() and self.in_flight < int(self.limit):
            return self._take(tokens)
        granted: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        self._waiting.append((tokens, granted))
        self._pump()
        try:
            return await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release(granted.result(), 0)
            raise

    def release(self, slot: Slot, tokens: int = 0) -> None:
        """Give the slot back; ``tokens`` is what the attempt took of those it reserved, as far as is known."""
        self.in_flight -= 1
        if self._window is not None and slot.taken is not None:
            self._window.correct(slot.taken, tokens)
        self._pump()

    def cancel(self, slot: Slot) -> None:
        """Give a slot back that was not used: nothing was sent, and no pace is lost."""
        now = self._clock()
        if self._rpm is not None:
            self._next_request = max(now, self._next_request - 60.0 / self._rpm)
        if self._tpm is not None:
            self._next_tokens = max(now, self._next_tokens - slot.reserved * 60.0 / self._tpm)
        self.release(slot)

    def succeeded(self, slot: Slot, tokens: int) -> None:
        """An attempt was answered: raise the limit, correct the tokens counted against tpm."""
        self._rate_limited_in_a_row = 0
        self._answered += 1
        self._caution = max(1.0, self._caution * 0.99)
        if self.limit < self.maximum:
            step = max(1.0, self.maximum / _STEPS_TO_RECOVER) / max(self.limit, 1.0) / self._caution
            self.limit = min(float(self.maximum), self.limit + step)
        if self._tpm is not None:
            self._next_tokens -= (slot.reserved - tokens) * 60.0 / self._tpm

    def rate_limited(self, slot: Slot, retry_after: float | None) -> None:
        """A 429: pause the whole model, and halve the limit unless an attempt of the same generation did."""
        now = self._clock()
        fresh = slot.generation == self._generation
        if fresh:
            self._generation += 1
            self._rate_limited_in_a_row += 1
            self.limit = max(1.0, self.limit / 2)
            backoff = min(_LONGEST_BACKOFF_S, _BACKOFF_S * 2.0 ** (self._rate_limited_in_a_row - 1))
            self._backoff = backoff * self._rng.uniform(0.5, 1.0)
        # The provider's word is a floor, and so is our own back-off: a hint of zero, under which a model was asked nine
        # times a second until the deadline, does not shorten it. A little more keeps clocks that differ out of the way.
        if fresh or retry_after is not None:
            hint = 0.0 if retry_after is None else retry_after + 0.05
            self.paused_until = max(self.paused_until, now + max(hint, self._backoff))

    def timed_out(self, slot: Slot) -> bool:
        """The attempt of this slot was not answered in its time; whether others in flight may be why."""
        if slot.generation != self._generation:
            return True
        if self.limit <= 1:
            return False
        self._generation += 1
        self._caution *= 2.0
        self.limit = max(1.0, min(self.limit / 2, (self._answered - slot.answered) / 2))
        return True

    def close(self) -> None:
        """End the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _ready_at(self, tokens: int) -> float:
        """When pauses, rpm and tpm next allow an attempt of so many tokens."""
        ready = max(self.paused_until, self._next_request, self._next_tokens)
        return ready if self._window is None else max(ready, self._window.free_at(tokens, self._clock()))

    def _take(self, tokens: int) -> Slot:
        self.in_flight += 1
        now = self._clock()
        if self._rpm is not None:
            self._next_request = max(now, self._next_request) + 60.0 / self._rpm
        taken = None
        if self._tpm is not None and self._window is not None:
            self._next_tokens = max(now, self._next_tokens) + tokens * 60.0 / self._tpm
            taken = self._window.take(tokens, now)
        return Slot(self._generation, self._answered, tokens, taken)

    def _pump(self) -> None:
        """Grant what can be granted; set a timer where only time is missing."""
        while self._waiting:
            tokens, granted = self._waiting[0]
            if granted.done():
                self._waiting.popleft()
                continue
            if self.in_flight >= int(self.limit):
                return
            ready = self._ready_at(tokens)
            if ready > self._clock():
                self._wake_at(ready)
                return
            self._waiting.popleft()
            granted.set_result(self._take(tokens))

    def _wake_at(self, when: float) -> None:
        if self._timer is not None and not self._timer.done():
            if self._timer_at <= when:
                return
            self._timer.cancel()
        self._timer_at = when
        self._timer = asyncio.create_task(self._wake(when))

    async def _wake(self, when: float) -> None:
        await self._sleep(max(0.0, when - self._clock()))
        self._timer = None
        self._pump()


class TokenWindow:
    """Tokens of the attempts of the last minute: the most that each may take, then what it took.

    Every attempt is corrected once, when it ends, and by its own entry: a correction that went to the oldest attempt of
    the same size gave the tokens of a later one to a minute that was over, and the provider counted more than tpm.

    Args:
        limit: tokens a minute.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._taken: deque[_Taken] = deque()
        self._total = 0

    def take(self, tokens: int, now: float) -> _Taken:
        """An attempt starts that may take so many; its entry."""
        self._forget(now)
        taken = _Taken(now, tokens)
        self._taken.append(taken)
        self._total += tokens
        return taken

    def correct(self, taken: _Taken, tokens: int) -> None:
        """The attempt of this entry has taken so many."""
        if taken.counted:
            self._total += tokens - taken.tokens
        taken.tokens = tokens

    def free_at(self, tokens: int, now: float) -> float:
        """When so many more fit; what is larger than the limit fits into an empty minute."""
        self._forget(now)
        total, ready = self._total, now
        for taken in self._taken:
            if total + tokens <= self._limit:
                break
            total -= taken.tokens
            ready = taken.at + _WINDOW_S
        return ready

    def _forget(self, now: float) -> None:
        while self._taken and self._taken[0].at + _WINDOW_S <= now:
            taken = self._taken.popleft()
            taken.counted = False
            self._total -= taken.tokens
