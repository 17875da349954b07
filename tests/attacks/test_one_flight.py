"""Several processes on one cache ask each request once, and take over from one that dies."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from fault_server import FaultServer

from pipeline.models import Budget, Gateway, ModelSpec, ReplyCache
from pipeline.models.leases import Leases
from pipeline.models.types import Answered, CallLabel, CallRecord, Outcome
from pipeline.runs.call_log import read_calls
from tests.attacks.conftest import one_target, start

KEY = "0" * 63 + "1"


@pytest.mark.parametrize("processes", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_on_one_cache_ask_each_request_once(processes: int, tmp_path: Path) -> None:
    """Once, 596 replies for 210 requests."""
    with FaultServer(latency_s=0.1) as server:
        config = one_target(server.url, items=40)
        started = [start(config, tmp_path, f"r{k}") for k in range(processes)]
        for process in started:
            _, errors = process.communicate(timeout=150)
            assert process.returncode == 0, errors
        assert server.seen.requests == 40
        assert max(server.seen.by_body.values()) == 1
    states = [line["state"] for k in range(processes) for line in read_calls(tmp_path / "runs" / f"r{k}/calls.jsonl")]
    assert states.count("answered") == 40  # each reply is one run's
    assert states.count("cached") == 40 * (processes - 1)
    assert not list((tmp_path / "cache" / "holders").iterdir())


def test_what_a_killed_process_was_asking_is_taken_over(tmp_path: Path) -> None:
    with FaultServer(latency_s=1.0) as server:
        config = one_target(server.url, items=8)
        dying = start(config, tmp_path, "dying")
        while server.seen.requests < 8 and dying.poll() is None:
            time.sleep(0.01)
        waiting = start(config, tmp_path, "waiting")
        dying.kill()
        dying.wait()
        _, errors = waiting.communicate(timeout=100)
        assert waiting.returncode == 0, errors
        assert server.seen.requests <= 16  # what was in flight, asked once more


async def ask(cache: Path, url: str, records: list[CallRecord]) -> Outcome:
    spec = ModelSpec("m", "openai/m", api_base=url, api_key="none", transport="direct", params={"max_tokens": 50})
    with ReplyCache(cache) as opened:
        async with Gateway({"m": spec}, cache=opened, budget=Budget(calls=5), record=records.append) as gateway:
            label = CallLabel("answer", "item", "target")
            return await gateway.ask("m", [{"role": "user", "content": "2 + 2?"}], label=label)


async def test_two_gateways_in_one_process_share_a_flight(server: FaultServer, tmp_path: Path) -> None:
    server.latency_s = 0.2
    records: list[CallRecord] = []
    outcomes = await asyncio.gather(*[ask(tmp_path, server.url, records) for _ in range(3)])
    assert server.seen.requests == 1
    assert all(isinstance(outcome, Answered) for outcome in outcomes)
    assert sorted(record.state for record in records) == ["answered", "cached", "cached"]


async def test_a_call_that_fails_in_one_process_is_asked_by_the_next(server: FaultServer, tmp_path: Path) -> None:
    server.latency_s = 0.1
    server.fail("policy", times=1)
    records: list[CallRecord] = []
    await asyncio.gather(*[ask(tmp_path, server.url, records) for _ in range(2)])
    assert sorted(record.state for record in records) == ["answered", "failed"]
    assert server.seen.requests == 2


def test_a_lease_is_anothers_until_it_is_given_back_dies_or_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ReplyCache(tmp_path) as cache:
        first, second = Leases(cache), Leases(cache)
        assert cache.transact(lambda sql: first.take(sql, KEY)) == "mine"
        assert cache.transact(lambda sql: first.take(sql, KEY)) == "mine"
        assert cache.transact(lambda sql: second.take(sql, KEY)) == "held"
        cache.transact(lambda sql: first.drop(sql, KEY))
        assert cache.transact(lambda sql: second.take(sql, KEY)) == "mine"
        assert cache.transact(lambda sql: first.take(sql, KEY)) == "held"
        monkeypatch.setattr(time, "time", lambda: 0.0)  # a clock that is set back changes nothing
        assert cache.transact(lambda sql: first.take(sql, KEY)) == "held"
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 1000.0)  # it hangs: no heartbeat
        assert cache.transact(lambda sql: first.take(sql, KEY)) == "mine"
        for leases in (first, second):
            cache.transact(leases.close)
        assert list(cache.holders.iterdir()) == []  # type: ignore[union-attr]
