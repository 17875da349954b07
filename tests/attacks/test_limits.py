"""Limits and hints of providers, slow servers with few slots, and what no waiting can mend."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fault_server import FaultServer

import pipeline
from pipeline.errors import StoppedEarly
from pipeline.models.faults import classify
from pipeline.models.limits import ModelLimits, Slot
from tests.attacks.conftest import one_target
from tests.attacks.test_money import run

LIMIT = {
    "error": {"message": "Request too large for gpt: Limit 30000, Requested 45000.", "code": "rate_limit_exceeded"}
}


def said(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, LIMIT, "bad_request"),
        (429, said("Rate limit reached: Limit 30,000, Used 12,000, Requested 31,000"), "bad_request"),
        (429, said("Rate limit reached: Limit 30000, Used 29000, Requested 1500"), "rate_limited"),
        (429, said("slow down"), "rate_limited"),
        (413, said("tokens per minute", "rate_limit_exceeded"), "bad_request"),
        (413, said("payload too large"), "context_too_long"),
        (400, said("/chat/completions: Invalid model name passed in model=nope"), "not_found"),
        (400, said("No connected db."), "auth"),
        (500, said("litellm.ContextWindowExceededError: too long"), "context_too_long"),
        (400, said("litellm.ContextWindowExceededError: too long"), "context_too_long"),
        (500, said("the engine fell over"), "server"),
    ],
)
def test_what_waiting_mends_and_what_it_does_not(status: int, body: Any, kind: str) -> None:
    assert classify(status, body, {}).kind == kind


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, said("Please retry after 4 seconds."), 4.0),
        ({}, said("Rate limit reached. Please try again in 6m0s."), 360.0),
        ({}, said("Please try again in 20ms."), 0.02),
        ({}, said("wait 1.5 minutes"), 90.0),
        ({}, said("slow down, model 3 serves 4 users"), None),
        ({}, {"error": {"message": "quota", "details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}}, 34.0),
        ({"retry-after": "7"}, said("retry after 4 seconds"), 7.0),
    ],
)
def test_hints_in_headers_and_in_the_body(headers: dict[str, str], body: Any, seconds: float | None) -> None:
    assert classify(429, body, headers).retry_after == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1)])
def test_dates_are_read_against_the_responses_own(ahead: timedelta) -> None:
    """Once, 'the provider asks to wait 3601 s' where it asked for two."""
    theirs = datetime.now(UTC) + ahead
    headers = {
        "date": format_datetime(theirs, usegmt=True),
        "retry-after": format_datetime(theirs + timedelta(seconds=2), usegmt=True),
    }
    assert classify(429, said("slow down"), headers).retry_after == pytest.approx(2, abs=1.01)


async def test_a_hint_of_zero_does_not_shorten_our_own_back_off() -> None:
    """Once, 106 requests in 12 s, nine a second to the deadline."""
    now = 0.0
    limits = ModelLimits(8, clock=lambda: now, sleep=asyncio.sleep, rng=random.Random(3))
    pauses = []
    for _ in range(6):
        now = limits.paused_until
        slot = await limits.acquire(0)
        limits.rate_limited(slot, 0.0)
        limits.release(slot)
        pauses.append(limits.paused_until - now)
    assert all(pause >= 0.5 * 2**k for k, pause in enumerate(pauses))
    now = limits.paused_until
    limits.rate_limited(await limits.acquire(0), 500.0)
    assert limits.paused_until - now >= 500  # and what is longer than our own is kept
    limits.close()


def test_a_request_above_its_limit_is_asked_once(transport: str, server: FaultServer, tmp_path: Path) -> None:
    server.fail("status", status=429, message="Request too large: Limit 30000, Requested 45000", times=9)
    with pytest.raises(StoppedEarly):  # every call of the target fails
        run(one_target(server.url, items=2, transport=transport, max_attempts=3), tmp_path)
    assert all(count == 1 for count in server.seen.by_body.values())


class OneSlot:
    """A server that answers one request at a time and throws away what nobody waits for any more."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.answered, self.url = seconds, 0, ""

    async def chat(self, request: web.Request) -> web.Response:
        async with self._slot:
            await asyncio.sleep(self.seconds)
        self.answered += 1
        choice = {"index": 0, "message": {"role": "assistant", "content": "Answer: 5"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        return web.json_response({"model": "smol-one", "choices": [choice], "usage": usage})

    async def __aenter__(self) -> OneSlot:
        self._slot = asyncio.Semaphore(1)
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.chat)
        self._runner = web.AppRunner(app, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"  # type: ignore[union-attr]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


@pytest.mark.parametrize("slots", [16, 1])
async def test_one_slot_and_sixteen_in_flight_end_with_none_failed(slots: int, tmp_path: Path) -> None:
    """Once, 9 of 12 calls died at a time-out that each alone would have met."""
    async with OneSlot(0.25) as server:
        config = one_target(
            server.url, items=12, max_attempts=3, attempt_timeout_s=1.0, entry={"max_concurrency": slots}
        )
        result = await pipeline.run_async(
            config, run_id="r", runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache", yes=True
        )
    assert result.state == "done"
    assert result.manifest["calls"]["failed"] == 0


async def test_a_time_out_lowers_the_concurrency_once_per_generation() -> None:
    limits = ModelLimits(16, clock=time.monotonic, sleep=asyncio.sleep)
    slots = [await limits.acquire(0) for _ in range(16)]
    for _ in range(6):
        limits.succeeded(slots[0], 0)
    assert limits.timed_out(slots[0])
    assert limits.limit == 3
    assert limits.timed_out(slots[1])  # the same overload
    assert limits.limit == 3
    alone = Slot(slots[0].generation + 1, 6)
    assert limits.timed_out(alone)
    assert limits.limit == 1
    assert not limits.timed_out(
        Slot(slots[0].generation + 2, 6)
    )  # alone, and still not in time: an attempt like any other
    limits.close()
