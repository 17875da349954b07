"""Retries: one loop around one attempt, bounded by attempts and by time, for errors on an allow-list."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from pipeline.models.transport import TransportError

T = TypeVar("T")
_BASE_S = 0.5
_LONGEST_S = 60.0


@dataclass(slots=True)
class CallTrace:
    """What happened to one call so far.

    Attributes:
        attempts: attempts made.
        counted: attempts that count towards the limit (those answered 429 do not).
        waits_s: seconds waited between attempts.
        busy_s: seconds that attempts held a slot.
        deadline: when the call must end; set when its first slot is granted.
        least_s: an attempt that would have fewer seconds than this before the deadline is not made.
        last: the error of the last attempt.
        out_of_time: whether the deadline, not the error, ended it.
    """

    attempts: int = 0
    counted: int = 0
    waits_s: float = 0.0
    busy_s: float = 0.0
    deadline: float | None = None
    least_s: float = 0.0
    last: TransportError | None = None
    out_of_time: bool = False

    def too_late(self, start: float) -> bool:
        """Whether an attempt started then could only be cut off (and billed); remembered in ``out_of_time``."""
        if self.deadline is not None and start + self.least_s >= self.deadline:
            self.out_of_time = True
        return self.out_of_time


def _may_retry(error: BaseException) -> bool:
    """An allow-list: cancellation, interrupts and unknown errors are never retried."""
    return isinstance(error, TransportError) and error.retryable


async def send_with_retries(
    attempt: Callable[[], Awaitable[T]],
    trace: CallTrace,
    *,
    max_attempts: int,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
    paused_for: Callable[[], float],
    on_wait: Callable[[TransportError, float], None],
    rng: random.Random,
) -> T:
    """Attempt until answered, refused, out of attempts or out of time.

    Waits follow exponential backoff with full jitter, uniform on (0, min(60, 0.5·2^k)) seconds, and never less than
    the provider asked for. After a 429 the wait is the model's pause and the attempt does not count.

    Args:
        attempt: makes one attempt and keeps ``trace`` up to date.
        trace: of this call.
        max_attempts: counted attempts at most.
        clock, sleep: time.
        paused_for: seconds until the model may be asked again.
        on_wait: told the error and the seconds before each wait.
        rng: jitter.

    Raises:
        TransportError: the last one.
    """

    def error_of(state: RetryCallState) -> TransportError:
        error = state.outcome.exception() if state.outcome is not None else None
        assert isinstance(error, TransportError)
        return error

    def wait(state: RetryCallState) -> float:
        error = error_of(state)
        if error.kind == "rate_limited":
            pause = paused_for()
            return pause + rng.uniform(0.0, 0.1 + pause / 10)
        jittered = rng.uniform(0.0, min(_LONGEST_S, _BASE_S * 2.0 ** max(0, trace.counted - 1)))
        return max(jittered, error.retry_after or 0.0)

    def stop(state: RetryCallState) -> bool:
        return trace.too_late(clock() + state.upcoming_sleep) or trace.counted >= max_attempts

    def before_sleep(state: RetryCallState) -> None:
        trace.waits_s += state.upcoming_sleep
        on_wait(error_of(state), state.upcoming_sleep)

    retrying = AsyncRetrying(
        sleep=sleep,
        stop=stop,
        wait=wait,
        retry=retry_if_exception(_may_retry),
        before_sleep=before_sleep,
        reraise=True,
    )
    return await retrying(attempt)
