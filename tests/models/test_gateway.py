"""The gateway's own promises: one call per request, budgets, limits, stopping, secrets, offline."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer

from pipeline.errors import ConfigError
from pipeline.models import Budget, ModelSpec, RunStopped, Spent
from pipeline.models.embeddings import EMBEDDING_PARAMS, read_vector
from pipeline.models.types import Answered, CallLabel, Failed, Price

Open = Callable[..., Any]
KEY = "sk-test-0123456789abcdef"
PRICE = Price(input=1.0, output=10.0)


async def test_two_models_do_not_share_replies(open_desk: Open, server: FaultServer) -> None:
    specs = {
        name: ModelSpec(name, f"openai/{name}", api_base=server.url, api_key=KEY, transport="direct") for name in "ab"
    }
    async with open_desk(specs=specs) as desk:
        a, b = await desk.ask("the same", "a"), await desk.ask("the same", "b")
    assert a.reply.text != b.reply.text
    assert server.seen.by_model == {"a": 1, "b": 1}


async def test_two_entries_that_ask_the_same_share_a_reply(open_desk: Open, server: FaultServer) -> None:
    specs = {
        name: ModelSpec(name, "openai/x", api_base=server.url, api_key=key, transport="direct", max_concurrency=size)
        for name, key, size in (("a", "k-1111", 1), ("b", "k-2222", 9))
    }
    async with open_desk(specs=specs) as desk:
        a, b = await desk.ask("same", "a"), await desk.ask("same", "b")
    assert (a.reply, a.cached, b.cached) == (b.reply, False, True)
    assert server.seen.requests == 1


@pytest.mark.parametrize(
    "change", [{"params": {"temperature": 0.8}}, {"params": {"top_p": 0.5}}, {"params": {"reasoning_effort": "low"}}]
)
async def test_another_parameter_is_another_call(open_desk: Open, server: FaultServer, change: dict[str, Any]) -> None:
    async with open_desk() as desk:
        await desk.ask("x")
        await desk.ask("x", **change)
    assert server.seen.requests == 2


async def test_only_a_changed_system_message_is_another_call(open_desk: Open, server: FaultServer) -> None:
    async with open_desk() as desk:
        for system in ("be brief", "be long", "be brief"):
            messages = [{"role": "system", "content": system}, {"role": "user", "content": "x"}]
            await desk.gateway.ask("m", messages, label=CallLabel("answer", system, "target"))
    assert server.seen.requests == 2


async def test_identical_calls_in_the_air_cost_one(open_desk: Open, server: FaultServer) -> None:
    server.latency_s = 0.05
    async with open_desk(max_concurrency=64) as desk:
        outcomes = await asyncio.gather(*[desk.ask("x") for _ in range(50)])
    assert server.seen.requests == 1
    assert len({outcome.reply.text for outcome in outcomes}) == 1
    assert sorted(record.state for record in desk.records) == ["answered"] + ["cached"] * 49


async def test_a_failing_shared_call_fails_for_all_and_is_not_stored(open_desk: Open, server: FaultServer) -> None:
    server.latency_s = 0.02
    server.fail("status", status=500)
    async with open_desk(hurry=200, max_attempts=2) as desk:
        outcomes = await asyncio.gather(*[desk.ask("x") for _ in range(50)])
        assert all(isinstance(outcome, Failed) for outcome in outcomes)
        assert server.seen.requests == 2
        server.reset()
        assert isinstance(await desk.ask("x"), Answered)


async def test_a_waiter_that_leaves_does_not_cancel_the_others(open_desk: Open, server: FaultServer) -> None:
    server.latency_s = 0.2
    async with open_desk() as desk:
        tasks = [asyncio.create_task(desk.ask("x")) for _ in range(3)]
        await asyncio.sleep(0.05)
        tasks[0].cancel()
        rest = await asyncio.gather(*tasks[1:])
    assert all(isinstance(outcome, Answered) for outcome in rest)
    assert server.seen.requests == 1


@pytest.mark.parametrize("concurrency", [1, 64])
async def test_a_money_budget_is_never_passed(open_desk: Open, server: FaultServer, concurrency: int) -> None:
    server.latency_s = 0.005
    budget = Budget(usd=0.02)
    async with open_desk(budget=budget, price=PRICE, max_concurrency=concurrency) as desk:
        results = await asyncio.gather(*[desk.ask(f"q {i} Answer:") for i in range(200)], return_exceptions=True)
    real = (server.seen.prompt_tokens * PRICE.input + server.seen.completion_tokens * PRICE.output) / 1e6
    stopped = [result for result in results if isinstance(result, RunStopped)]
    assert stopped
    assert stopped[0].kind == "budget"
    assert real <= 0.02
    assert real == pytest.approx(budget.spent.usd)
    # The largest possible cost of a call is 0.2 cents of its 200 tokens: the bound is used to within one call.
    assert real >= 0.02 - 0.0025


@pytest.mark.parametrize("bound", [{"calls": 10}, {"tokens": 3000}])
async def test_bounds_on_calls_and_tokens_are_never_passed(
    open_desk: Open, server: FaultServer, bound: dict[str, int]
) -> None:
    budget = Budget(**bound)
    async with open_desk(budget=budget, max_concurrency=64) as desk:
        results = await asyncio.gather(*[desk.ask(f"q {i} Answer:") for i in range(300)], return_exceptions=True)
    assert any(isinstance(result, RunStopped) for result in results)
    assert server.seen.requests <= bound.get("calls", 10**9)
    assert server.seen.prompt_tokens + server.seen.completion_tokens <= bound.get("tokens", 10**9)
    if "calls" in bound:
        assert server.seen.requests == 10


async def test_cached_replies_cost_nothing_again(open_desk: Open, server: FaultServer) -> None:
    async with open_desk(price=PRICE) as desk:
        first = await desk.ask("x")
    async with open_desk(price=PRICE, budget=Budget(usd=0.0, calls=0)) as desk:
        again = await desk.ask("x")
        assert desk.gateway.spent == Spent()
        assert desk.records[0].cost_usd == first.reply.cost_usd > 0
        assert desk.records[0].latency_s == first.reply.latency_s
    assert again.cached


async def test_possible_charges_of_lost_attempts_count_against_the_budget(open_desk: Open, server: FaultServer) -> None:
    server.fail("cut", times=1)
    async with open_desk(budget=Budget(usd=1.0), price=PRICE, hurry=100) as desk:
        await desk.ask("x")
        spent = desk.gateway.spent
    assert spent.calls == 2
    assert spent.possible_usd >= 200 * PRICE.output / 1e6
    assert spent.usd > 0


async def test_an_unknown_price_under_a_money_budget_is_refused(open_desk: Open, server: FaultServer) -> None:
    with pytest.raises(ConfigError, match=r"models\.m: .*price: \{input_per_million"):
        async with open_desk(budget=Budget(usd=1.0)):
            pass
    assert server.seen.requests == 0


async def test_litellms_price_list_is_the_fallback_and_costs_no_import(open_desk: Open) -> None:
    async with open_desk("litellm", model="openai/gpt-4o-mini", budget=Budget(usd=1.0)) as desk:
        price = desk.gateway.describe()["m"]["price"]
    assert price["source"] == "litellm"
    assert 0 < price["input_per_million"] < price["output_per_million"]


async def test_a_missing_key_variable_is_found_before_the_first_call(open_desk: Open, server: FaultServer) -> None:
    with pytest.raises(ConfigError, match=r"models\.m: .*MY_KEY"):
        async with open_desk(api_key=None, api_key_env="MY_KEY"):
            pass
    assert server.seen.requests == 0


async def test_a_missing_standard_key_is_named(open_desk: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        async with open_desk("litellm", model="anthropic/claude", api_base=None, api_key=None):
            pass


async def test_an_unknown_provider_is_a_clear_error(open_desk: Open, server: FaultServer) -> None:
    async with open_desk("litellm", model="nosuchprovider/x", api_base=None) as desk:
        with pytest.raises(ConfigError, match="nosuchprovider/x"):
            await desk.ask("x")
        assert desk.gateway.spent.calls == 0


async def test_rpm_is_kept(open_desk: Open, server: FaultServer) -> None:
    async with open_desk(rpm=600, max_concurrency=64) as desk:
        await asyncio.gather(*[desk.ask(f"q {i}") for i in range(15)])
    gaps = [b - a for a, b in zip(server.seen.times, server.seen.times[1:], strict=False)]
    assert server.seen.times[-1] - server.seen.times[0] >= 14 * 0.1 - 0.1
    assert max(gaps) < 0.5


async def test_tpm_is_kept(open_desk: Open, server: FaultServer) -> None:
    async with open_desk(tpm=60_000, max_concurrency=64, params={"max_tokens": 100}) as desk:
        began = time.monotonic()
        await asyncio.gather(*[desk.ask(f"q {i} Answer:") for i in range(20)])
        tokens = desk.gateway.spent.tokens
    assert time.monotonic() - began >= 0.8 * (tokens - 200) / 1000


@pytest.mark.parametrize("concurrency", [1, 7, 64])
async def test_concurrency_is_reached_and_not_passed(open_desk: Open, server: FaultServer, concurrency: int) -> None:
    server.latency_s = 0.1
    async with open_desk(max_concurrency=concurrency) as desk:
        await asyncio.gather(*[desk.ask(f"q {i}") for i in range(2 * concurrency + 2)])
    assert server.seen.peak_in_flight == concurrency


async def test_stop_ends_waiting_calls_at_once_and_lets_the_others_land(open_desk: Open, server: FaultServer) -> None:
    server.latency_s = 0.3
    server.fail("status", status=503, text="flaky")
    async with open_desk(max_concurrency=12) as desk:
        tasks = [asyncio.create_task(desk.ask(f"q {i}")) for i in range(40)]
        flaky = asyncio.create_task(desk.ask("flaky"))
        await asyncio.sleep(0.15)
        status = desk.gateway.status()
        assert status.in_flight == 12
        assert status.waiting >= 28
        desk.gateway.stop("enough", "interrupted")
        began = time.monotonic()
        assert await desk.gateway.drain(5)
        assert time.monotonic() - began < 2
        results = await asyncio.gather(*tasks, return_exceptions=True)
        landed = sum(isinstance(result, Answered) for result in results)
        assert landed == 12 == len(desk.cache)
        assert all(isinstance(r, Answered | RunStopped) for r in results)
        with pytest.raises(RunStopped, match="enough"):
            await flaky
        with pytest.raises(RunStopped, match="enough"):
            await desk.ask("another")
    assert server.seen.requests == 12


async def test_a_reply_stored_before_its_call_has_ended_is_first_of_all_that_calls(
    open_desk: Open, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, may_end = asyncio.Event(), asyncio.Event()
    async with open_desk() as desk:
        do = desk.gateway._journal.do

        async def do_then_wait(change: Any) -> Any:
            done = await do(change)
            if len(desk.cache):
                stored.set()
                await may_end.wait()
            return done

        monkeypatch.setattr(desk.gateway._journal, "do", do_then_wait)
        first = asyncio.create_task(desk.ask("x"))
        await stored.wait()
        second = asyncio.create_task(desk.ask("x"))
        await asyncio.sleep(0.05)
        may_end.set()
        await asyncio.gather(first, second)
    assert [record.state for record in desk.records] == ["answered", "cached"]
    assert server.seen.requests == 1


async def test_drain_gives_up_when_time_is_over(open_desk: Open, server: FaultServer) -> None:
    server.latency_s = 30
    async with open_desk() as desk:
        task = asyncio.create_task(desk.ask("x"))
        await asyncio.sleep(0.1)
        assert not await desk.gateway.drain(0.2)
        with pytest.raises(RunStopped):  # told now, not when the attempt's own time is over
            await asyncio.wait_for(task, 10)


async def test_a_caller_gone_after_stop_does_not_lose_its_reply(open_desk: Open, server: FaultServer) -> None:
    server.latency_s = 0.3
    async with open_desk() as desk:
        task = asyncio.create_task(desk.ask("x"))
        await asyncio.sleep(0.1)
        desk.gateway.stop("enough")
        task.cancel()
        assert await desk.gateway.drain(5)
        assert len(desk.cache) == 1
        assert [record.state for record in desk.records] == ["answered"]


async def test_status_says_why_calls_wait(open_desk: Open, server: FaultServer) -> None:
    server.fail("rate_limit", seconds=0.4, form="ms", times=1)
    async with open_desk() as desk:
        task = asyncio.create_task(desk.ask("x"))
        await asyncio.sleep(0.2)
        status = desk.gateway.status()
        assert (status.retrying, dict(status.reasons)) == (1, {"rate_limited 429": 1})
        assert status.paused_s["m"] > 0
        await task


async def test_offline_answers_from_the_cache_alone(open_desk: Open, server: FaultServer) -> None:
    async with open_desk() as desk:
        known = await desk.ask("known")
        server.fail("context", text="failed")
        failed = await desk.ask("failed")
    server.reset()
    offline = {"offline": True, "recorded_failures": {failed.key: failed}}
    async with open_desk(gateway=offline) as desk:
        assert (await desk.ask("known")).reply == known.reply
        assert await desk.ask("failed") == failed
        missing = await desk.ask("missing", label=CallLabel("tau", "item-9", "regressor"))
        assert isinstance(missing, Failed)
        assert missing.kind == "not_recorded"
        (miss,) = desk.gateway.misses
        assert (miss.label.stage, miss.label.item, miss.model, miss.key) == ("tau", "item-9", "m", missing.key)
    assert server.seen.requests == 0


async def test_a_full_disk_is_found_before_the_next_call_is_paid_for(
    open_desk: Open, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk() as desk:
        await desk.ask("x")
        monkeypatch.setattr(type(desk.cache), "free_bytes", lambda self: 1000)
        await asyncio.sleep(0.25)
        with pytest.raises(RunStopped, match="left on the disk") as caught:
            await desk.ask("y")
        assert caught.value.kind == "disk_full"
    assert server.seen.requests == 1


async def test_a_reply_that_cannot_be_stored_stops_the_run(
    open_desk: Open, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    def full(*_: object, **__: object) -> bool:
        raise sqlite3.OperationalError("database or disk is full")

    async with open_desk(max_concurrency=2) as desk:
        monkeypatch.setattr(desk.cache._store, "add", full)
        results = await asyncio.gather(*[desk.ask(f"q {i}") for i in range(30)], return_exceptions=True)
    assert all(isinstance(result, RunStopped) and "disk is full" in result.reason for result in results)
    assert server.seen.requests <= 4


@pytest.mark.parametrize("fault", [None, "status", "reset", "quota", "bad_json"])
async def test_no_secret_in_logs_errors_records_or_files(
    open_desk: Open, server: FaultServer, transport: str, fault: str | None,
    caplog: pytest.LogCaptureFixture, tmp_path: Path,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    if fault == "status":
        server.fail("status", status=401, message=f"Incorrect API key provided: {KEY}")
    elif fault:
        server.fail(fault)
    said = ""
    async with open_desk(transport, hurry=200, max_attempts=2) as desk:
        try:
            said = repr(await desk.ask("x"))
        except RunStopped as error:
            said = str(error)
        said += repr(desk.records) + repr(desk.gateway._models["m"].spec)
    assert KEY not in said
    assert KEY not in caplog.text
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert KEY.encode() not in file.read_bytes()


async def test_embeddings_are_calls_like_any_other(open_desk: Open, server: FaultServer, transport: str) -> None:
    texts = ["one", "two", "one", "lone \ud835"]
    async with open_desk(transport, model="openai/text-embedding-3-small", params={}) as desk:
        first = [await desk.ask(text, params=EMBEDDING_PARAMS) for text in texts]
        asked = server.seen.requests
        again = [await desk.ask(text, params=EMBEDDING_PARAMS) for text in texts]
        chat = await desk.ask("one")
    assert asked == 3
    assert server.seen.requests == 4
    vectors = [[read_vector(outcome.reply.text) for outcome in outcomes] for outcomes in (first, again)]
    assert vectors[0] == vectors[1]
    assert vectors[0][0] == vectors[0][2] != vectors[0][1]
    assert all(len(vector) == 8 for vector in vectors[0])
    assert isinstance(chat, Answered)


async def test_a_base_url_from_the_environment_is_part_of_the_identity(
    open_desk: Open, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    async with open_desk("litellm", api_base=None) as desk:
        outcome = await desk.ask("x")
    assert isinstance(outcome, Answered)
    assert outcome.request.endpoint == server.url
    assert server.seen.requests == 1
