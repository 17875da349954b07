"""Limits and the retry loop on a clock that the test turns."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.models.budget import Budget, BudgetExceeded, Cost
from pipeline.models.limits import ModelLimits, Slot
from pipeline.models.retries import CallTrace, send_with_retries
from pipeline.models.transport import RawReply, TransportError

REPLY = RawReply("fine", "stop", None)


class FakeTime:
    """Sleeps end in order when nothing else can run."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleeping: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleeping, (self.now + seconds, self._count, done))
        await done

    async def run(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        while not task.done():
            for _ in range(20):
                await asyncio.sleep(0)
            if not task.done() and self._sleeping:
                self.now, _, done = heapq.heappop(self._sleeping)
                if not done.done():
                    done.set_result(None)
        await task


def limits(time: FakeTime, size: int, **options: float) -> ModelLimits:
    return ModelLimits(size, clock=time.clock, sleep=time.sleep, rng=random.Random(1), **options)


@settings(max_examples=25, deadline=None)
@given(rpm=st.integers(1, 300), calls=st.integers(2, 60), size=st.integers(1, 40), seed=st.integers(0, 99))
def test_no_minute_holds_more_than_rpm(rpm: int, calls: int, size: int, seed: int) -> None:
    rng = random.Random(seed)
    started: list[float] = []

    async def main() -> None:
        time = FakeTime()
        limit = limits(time, size, rpm=rpm)

        async def one() -> None:
            slot = await limit.acquire(0)
            started.append(time.now)
            await time.sleep(rng.uniform(0, 5))
            limit.release(slot)

        async def all_of_them() -> None:
            await asyncio.gather(*[one() for _ in range(calls)])

        await time.run(all_of_them())

    asyncio.run(main())
    assert len(started) == calls
    for first in started:
        # A window that begins with a call; equal ends up to rounding belong to the next.
        assert sum(first <= other < first + 60 - 1e-6 for other in started) <= rpm


@settings(max_examples=25, deadline=None)
@given(tpm=st.integers(2_000, 20_000), calls=st.integers(2, 40), size=st.integers(1, 20), seed=st.integers(0, 99))
@example(tpm=2415, calls=34, size=3, seed=0)  # ends of attempts of one size, in another order than their starts
def test_no_minute_holds_more_than_tpm(tpm: int, calls: int, size: int, seed: int) -> None:
    """An attempt counts with what it reserved until it ends; some last longer than a minute."""
    rng = random.Random(seed)
    started: list[tuple[float, int]] = []

    async def main() -> None:
        time = FakeTime()
        limit = limits(time, size, tpm=tpm)

        async def one(reserved: int) -> None:
            slot = await limit.acquire(reserved)
            took = rng.randint(0, reserved)
            started.append((time.now, took))
            await time.sleep(rng.choice([rng.uniform(0, 5), rng.uniform(30, 90)]))
            if rng.random() < 0.8:
                limit.succeeded(slot, took)
                limit.release(slot, took)
            else:
                limit.release(slot, reserved)

        async def all_of_them() -> None:
            await asyncio.gather(*[one(rng.choice([500, 1000, rng.randint(1, 2000)])) for _ in range(calls)])

        await time.run(all_of_them())

    asyncio.run(main())
    assert len(started) == calls
    for first, _ in started:
        assert sum(took for at, took in started if first <= at < first + 60) <= tpm


async def test_a_429_halves_once_per_generation_and_successes_bring_it_back() -> None:
    time = FakeTime()
    limit = limits(time, 64)
    slots = [await limit.acquire(0) for _ in range(64)]
    for slot in slots[:30]:
        limit.rate_limited(slot, 2.0)
    assert limit.limit == 32
    assert limit.paused_for() == pytest.approx(2.05)
    fresh = Slot(slots[0].generation + 1, 0)
    limit.rate_limited(fresh, None)
    assert limit.limit == 16
    for slot in slots:
        limit.release(slot)
    rounds = 0
    while limit.limit < 64:
        for _ in range(int(limit.limit)):
            limit.succeeded(fresh, 0)
        rounds += 1
    assert rounds <= 16


async def test_nothing_starts_within_the_pause_and_a_cancelled_waiter_holds_no_slot() -> None:
    time = FakeTime()
    limit = limits(time, 2)
    slot = await limit.acquire(0)
    limit.rate_limited(slot, 10.0)
    limit.release(slot)
    started: list[float] = []

    async def one() -> None:
        own = await limit.acquire(0)
        started.append(time.now)
        limit.release(own)

    gone = asyncio.ensure_future(one())
    await asyncio.sleep(0)
    gone.cancel()
    await time.run(one())
    assert len(started) == 1
    assert started[0] >= 10.0
    assert (limit.in_flight, limit.waiting) == (0, 0)
    limit.close()


async def retry(
    outcomes: list[TransportError | None], *, max_attempts: int = 6, deadline: float = 1e9
) -> tuple[CallTrace, list[float], RawReply | TransportError]:
    trace, waits = CallTrace(deadline=deadline), []
    now = 0.0

    async def attempt() -> RawReply:
        trace.attempts += 1
        error = outcomes.pop(0) if outcomes else None
        if error is None:
            return REPLY
        trace.counted += error.kind != "rate_limited"
        raise error

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        waits.append(seconds)

    try:
        result: RawReply | TransportError = await send_with_retries(
            attempt, trace, max_attempts=max_attempts, clock=lambda: now, sleep=sleep, paused_for=lambda: 3.0,
            on_wait=lambda error, seconds: None, rng=random.Random(0),
        )  # fmt: skip
    except TransportError as error:
        result = error
    return trace, waits, result


def server(retry_after: float | None = None) -> TransportError:
    return TransportError("server", "503", status=503, retry_after=retry_after)


async def test_fails_twice_then_answers_in_three_attempts() -> None:
    trace, waits, result = await retry([server(), server()])
    assert (trace.attempts, result) == (3, REPLY)
    assert sum(waits) == pytest.approx(trace.waits_s)
    assert waits[0] <= 0.5
    assert waits[1] <= 1.0


async def test_retry_after_is_a_floor_of_the_wait() -> None:
    _, waits, _ = await retry([server(7.0)])
    assert waits == [7.0]


async def test_429_waits_for_the_models_pause_and_does_not_count() -> None:
    limited = [TransportError("rate_limited", "429", status=429) for _ in range(9)]
    trace, waits, result = await retry(list(limited), max_attempts=1)
    assert result == REPLY
    assert trace.attempts == 10
    assert all(3.0 <= wait <= 3.5 for wait in waits)


@pytest.mark.parametrize("attempts", [1, 2, 6])
async def test_attempts_are_bounded(attempts: int) -> None:
    trace, _, result = await retry([server() for _ in range(99)], max_attempts=attempts)
    assert isinstance(result, TransportError)
    assert trace.attempts == attempts


async def test_no_wait_passes_the_deadline() -> None:
    trace, waits, result = await retry([server(20.0) for _ in range(9)], deadline=50.0)
    assert isinstance(result, TransportError)
    assert trace.out_of_time
    assert waits == [20.0, 20.0]


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), ValueError("a defect")])
async def test_only_listed_errors_are_tried_again(error: BaseException) -> None:
    attempts = 0

    async def attempt() -> RawReply:
        nonlocal attempts
        attempts += 1
        raise error

    no_wait: Callable[[TransportError, float], None] = lambda error, seconds: None  # noqa: E731
    with pytest.raises(type(error)):
        await send_with_retries(
            attempt, CallTrace(), max_attempts=6, clock=lambda: 0.0, sleep=asyncio.sleep, paused_for=lambda: 0.0,
            on_wait=no_wait, rng=random.Random(0),
        )  # fmt: skip
    assert attempts == 1


@settings(max_examples=40, deadline=None)
@given(
    bound=st.floats(0.0, 3.0),
    calls=st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 1.0), st.booleans()), max_size=25),
    seed=st.integers(0, 99),
)
def test_the_budget_is_never_passed_in_any_order(
    bound: float, calls: list[tuple[float, float, bool]], seed: int
) -> None:
    rng = random.Random(seed)

    async def main() -> None:
        budget = Budget(usd=bound)

        async def one(worst: float, share: float, lost: bool) -> None:
            cost = Cost(1, worst)
            try:
                await budget.reserve(cost)
            except BudgetExceeded:
                return
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
            if lost:
                budget.write_off(cost)
            else:
                budget.settle(cost, Cost(1, worst * share))
            assert budget.spent.usd + budget.spent.possible_usd <= bound * (1 + 1e-9)

        await asyncio.wait_for(asyncio.gather(*[one(*call) for call in calls]), 5)

    asyncio.run(main())
