"""The failure table over real HTTP, for both transports: what is tried again, what ends a call, what ends the run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from fault_server import FaultServer

from pipeline.models import RunStopped
from pipeline.models.types import Answered, Failed, ReplySchema

Open = Callable[..., Any]

TRANSIENT: list[tuple[str, dict[str, Any]]] = [
    ("status", {"status": 408}),
    ("status", {"status": 409}),
    ("status", {"status": 425}),
    ("status", {"status": 500}),
    ("status", {"status": 502}),
    ("status", {"status": 503}),
    ("overloaded", {}),
    ("gateway_html", {}),
    ("reset", {}),
    ("cut", {}),
    ("bad_json", {}),
    ("html", {}),
    ("error_in_200", {}),
    ("error_in_200", {"plain": True}),
    ("empty_choices", {}),
]


@pytest.mark.parametrize(("fault", "options"), TRANSIENT, ids=lambda value: str(value))
async def test_transient_faults_are_tried_again_and_end_well(
    open_desk: Open, server: FaultServer, transport: str, fault: str, options: dict[str, Any]
) -> None:
    server.fail(fault, times=2, **options)
    async with open_desk(transport, hurry=30) as desk:
        outcome = await desk.ask("What is 2 + 3? Answer:")
    assert isinstance(outcome, Answered)
    assert server.seen.requests == 3
    (record,) = desk.records
    assert (record.state, record.attempts) == ("answered", 3)
    assert record.waits_s > 0


@pytest.mark.parametrize("fault", ["status", "reset", "bad_json"])
async def test_attempts_do_not_multiply_and_end(
    open_desk: Open, server: FaultServer, transport: str, fault: str
) -> None:
    server.fail(fault)
    async with open_desk(transport, hurry=200, max_attempts=4) as desk:
        outcome = await desk.ask("x")
    assert isinstance(outcome, Failed)
    assert outcome.kind == {"status": "server", "reset": "connection", "bad_json": "invalid_body"}[fault]
    assert server.seen.requests == desk.records[0].attempts == 4
    assert len(desk.cache) == 0


TERMINAL: list[tuple[str, dict[str, Any], str]] = [
    ("context", {}, "context_too_long"),
    ("policy", {}, "content_policy"),
    ("status", {"status": 400, "message": "messages is empty"}, "bad_request"),
    ("status", {"status": 422}, "bad_request"),
]


@pytest.mark.parametrize(("fault", "options", "kind"), TERMINAL, ids=lambda value: str(value))
async def test_terminal_faults_fail_one_call_and_the_run_goes_on(
    open_desk: Open, server: FaultServer, transport: str, fault: str, options: dict[str, Any], kind: str
) -> None:
    server.fail(fault, text="bad", **options)
    async with open_desk(transport) as desk:
        failed = await desk.ask("bad question")
        fine = await desk.ask("good question")
    assert isinstance(failed, Failed)
    assert failed.kind == kind
    assert isinstance(fine, Answered)
    assert server.seen.requests == 2


STOPS: list[tuple[str, dict[str, Any], str]] = [
    ("status", {"status": 401, "message": "Incorrect API key provided"}, "auth"),
    ("status", {"status": 403}, "auth"),
    ("status", {"status": 404, "message": "The model does not exist", "code": "model_not_found"}, "not_found"),
    ("status", {"status": 402}, "out_of_credit"),
    ("quota", {}, "out_of_credit"),
    ("unsupported", {"param": "max_tokens"}, "unsupported_parameter"),
    ("unsupported", {"param": "temperature"}, "unsupported_parameter"),
]


@pytest.mark.parametrize(("fault", "options", "kind"), STOPS, ids=lambda value: str(value))
async def test_faults_that_every_call_would_meet_stop_the_run_at_once(
    open_desk: Open, server: FaultServer, transport: str, fault: str, options: dict[str, Any], kind: str
) -> None:
    server.fail(fault, **options)
    async with open_desk(transport, max_concurrency=8) as desk:
        results = await asyncio.gather(*[desk.ask(f"question {i}") for i in range(100)], return_exceptions=True)
    assert all(isinstance(result, RunStopped) and result.kind == kind for result in results)
    assert server.seen.requests <= 8
    reason = str(results[0])
    assert "\n" not in reason
    assert "openai/tester" in reason
    if fault == "unsupported":
        assert options["param"] in reason
        assert "drop_params" in reason


async def test_replies_in_flight_are_stored_when_the_run_stops(open_desk: Open, server: FaultServer) -> None:
    server.latency_s = 0.3
    server.fail("status", status=401, text="bad")
    async with open_desk(max_concurrency=8) as desk:
        good = [asyncio.create_task(desk.ask(f"good {i}")) for i in range(7)]
        await asyncio.sleep(0.2)
        with pytest.raises(RunStopped):
            await desk.ask("bad")
        assert await desk.gateway.drain(5)
        assert all(isinstance(outcome, Answered) for outcome in await asyncio.gather(*good))
        assert len(desk.cache) == 7


@pytest.mark.parametrize("form", ["seconds", "date", "ms", "reset"])
async def test_429_pauses_the_whole_model_and_does_not_count(
    open_desk: Open, server: FaultServer, transport: str, form: str
) -> None:
    async with open_desk(transport, max_attempts=1, max_concurrency=8) as desk:
        await desk.ask("warm up")  # imports are done
        server.reset()
        server.fail("rate_limit", times=1, seconds=1, form=form)
        outcomes = await asyncio.gather(*[desk.ask(f"q {i}") for i in range(24)])
    assert all(isinstance(outcome, Answered) for outcome in outcomes)
    refused_at = min(server.seen.times)
    # What was in flight when the 429 came is done within moments; then silence until the second is over.
    assert not [t for t in server.seen.times if refused_at + 0.3 < t < refused_at + 0.95]
    assert max(server.seen.times) >= refused_at + 0.95
    assert server.seen.requests == 25


async def test_many_429_end_complete_and_lower_the_concurrency(open_desk: Open, server: FaultServer) -> None:
    server.latency_s = 0.01
    server.fail("rate_limit", rate=0.1, seconds=0.2, form="ms")
    async with open_desk(max_concurrency=64, max_attempts=2) as desk:
        outcomes = await asyncio.gather(*[desk.ask(f"q {i}") for i in range(300)])
        limit = desk.gateway._models["m"].limits.limit
    assert all(isinstance(outcome, Answered) for outcome in outcomes)
    assert limit < 64
    assert max(record.attempts for record in desk.records) > 1


async def test_endless_429_end_at_the_deadline(open_desk: Open, server: FaultServer) -> None:
    server.fail("rate_limit", seconds=0.2, form="ms")
    began = time.monotonic()
    async with open_desk(call_deadline_s=2.0, max_attempts=1) as desk:
        outcome = await desk.ask("x")
    assert isinstance(outcome, Failed)
    assert outcome.kind == "deadline"
    assert outcome.status == 429
    assert time.monotonic() - began < 4
    assert 2 <= server.seen.requests <= 6


async def test_no_attempt_is_sent_that_the_deadline_could_only_cut_off(open_desk: Open, server: FaultServer) -> None:
    server.fail("rate_limit", seconds=0.92, form="ms")
    async with open_desk(call_deadline_s=1.0, max_attempts=1) as desk:
        outcome = await desk.ask("x")
    assert isinstance(outcome, Failed)
    assert (outcome.kind, outcome.status) == ("deadline", 429)
    assert server.seen.requests == 1


async def test_a_pause_beyond_reason_stops_the_run(open_desk: Open, server: FaultServer) -> None:
    server.fail("rate_limit", seconds=7200)
    async with open_desk() as desk:
        with pytest.raises(RunStopped, match="asks to wait") as caught:
            await desk.ask("x")
    assert caught.value.kind == "rate_limited"


@pytest.mark.parametrize("fault", ["drip", "stall"])
async def test_attempts_that_never_end_are_ended(
    open_desk: Open, server: FaultServer, transport: str, fault: str
) -> None:
    async with open_desk(transport) as desk:
        await desk.ask("bring LiteLLM in")
    server.reset()
    server.fail(fault, times=1)
    async with open_desk(transport, attempt_timeout_s=0.5, hurry=1) as desk:
        began = time.monotonic()
        outcome = await desk.ask("x")
    assert isinstance(outcome, Answered)
    assert 0.5 <= time.monotonic() - began < 4
    assert server.seen.requests == 2


async def test_the_deadline_bounds_attempts_and_waits_together(open_desk: Open, server: FaultServer) -> None:
    server.fail("status", status=503)
    began = time.monotonic()
    async with open_desk(call_deadline_s=1.0, max_attempts=100) as desk:
        outcome = await desk.ask("x")
    assert isinstance(outcome, Failed)
    assert outcome.kind == "deadline"
    assert "503" in outcome.message or outcome.status == 503
    assert time.monotonic() - began < 2


async def test_the_attempt_timeout_starts_with_the_slot(open_desk: Open, server: FaultServer) -> None:
    server.latency_s = 0.2
    async with open_desk(max_concurrency=1, attempt_timeout_s=0.5, call_deadline_s=0.5, max_attempts=1) as desk:
        outcomes = await asyncio.gather(*[desk.ask(f"q {i}") for i in range(6)])  # the last waits a second for its slot
    assert all(isinstance(outcome, Answered) for outcome in outcomes)


async def test_no_server_is_a_connection_failure(open_desk: Open, transport: str) -> None:
    async with open_desk(transport, api_base="http://127.0.0.1:9/v1", hurry=200, max_attempts=3) as desk:
        outcome = await desk.ask("x")
    assert isinstance(outcome, Failed)
    assert outcome.kind == "connection"
    assert desk.gateway.spent.calls == 0


async def test_a_call_is_cancelled_not_retried(open_desk: Open, server: FaultServer) -> None:
    server.latency_s = 5
    async with open_desk() as desk:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(desk.ask("x"), 0.2)
    assert server.seen.requests == 1
    assert len(desk.cache) == 0


REPLIES: list[tuple[str, dict[str, Any], str]] = [
    ("reasoning_only", {}, "truncated"),
    ("reasoning_only", {"finish": "stop"}, "truncated"),
    ("length", {}, "truncated"),
    ("refusal", {}, "refused"),
    ("content_filter", {}, "refused"),
    ("empty", {}, "empty"),
    ("null_usage", {}, "ok"),
    ("no_usage", {}, "ok"),
    ("odd_usage", {}, "ok"),
    ("text", {"content": "lone \ud835 surrogate, NUL \x00, right-to-left \u202e, <script>alert(1)</script>"}, "ok"),
    ("text", {"content": "x" * 1_000_000}, "ok"),
]


@pytest.mark.parametrize(("fault", "options", "outcome"), REPLIES, ids=lambda value: str(value)[:30])
async def test_complete_replies_are_stored_flagged_and_asked_once(
    open_desk: Open, server: FaultServer, transport: str, fault: str, options: dict[str, Any], outcome: str
) -> None:
    server.fail(fault, **options)
    async with open_desk(transport) as desk:
        first = await desk.ask("x")
        again = await desk.ask("x")
    assert isinstance(first, Answered)
    assert isinstance(again, Answered)
    assert first.reply == again.reply
    assert first.reply.outcome == outcome
    assert again.cached
    assert server.seen.requests == 1
    if fault == "reasoning_only":
        assert first.reply.reasoning == "I was still thinking about"
    if fault == "refusal":
        assert first.reply.text == "I can't help with that."
    if "usage" in fault:
        assert first.reply.cost_usd is None
    if fault == "text":
        assert first.reply.text == options["content"]


@pytest.mark.parametrize("types", [["json_schema"], ["json_schema", "json_object"]])
async def test_the_response_format_is_negotiated_once(
    open_desk: Open, server: FaultServer, transport: str, types: list[str]
) -> None:
    server.fail("no_response_format", types=types)
    server.keep_bodies = True
    schema = ReplySchema("score", {"type": "object", "properties": {"score": {"type": "number"}}})
    learnt: list[tuple[str, dict[str, Any]]] = []
    notes = {"on_negotiated": lambda name, known: learnt.append((name, known))}
    async with open_desk(transport, max_concurrency=16, gateway=notes) as desk:
        outcomes = await asyncio.gather(*[desk.ask(f'{i} "score"', schema=schema) for i in range(40)])
    assert all(isinstance(outcome, Answered) for outcome in outcomes)
    assert server.seen.requests == 40 + len(types)
    rung = "json_object" if len(types) == 1 else "prompt"
    assert learnt[-1] == ("m", {"response_format": rung})
    assert [record.state for record in desk.records] == ["answered"] * 40
    # A later run of the same model knows, and everything is there.
    async with open_desk(transport, max_concurrency=16) as desk:
        outcomes = await asyncio.gather(*[desk.ask(f'{i} "score"', schema=schema) for i in range(40)])
    assert all(isinstance(outcome, Answered) and outcome.cached for outcome in outcomes)
    assert server.seen.requests == 40 + len(types)


async def test_a_listed_parameter_is_dropped_once_and_the_request_says_so(
    open_desk: Open, server: FaultServer, transport: str
) -> None:
    server.fail("unsupported", param="temperature")
    async with open_desk(transport, drop_params=("temperature",), max_concurrency=8) as desk:
        outcomes = await asyncio.gather(*[desk.ask(f"q {i}") for i in range(20)])
    assert server.seen.requests == 21
    for outcome in outcomes:
        assert isinstance(outcome, Answered)
        assert outcome.request.params == {"max_tokens": 200}


async def test_what_was_really_sent_is_stored(open_desk: Open, server: FaultServer) -> None:
    async with open_desk("litellm", model="openai/gpt-5-mini", params={"max_tokens": 50}) as desk:
        await desk.ask("x")
        await desk.ask("x")
    assert [dict(record.sent) for record in desk.records] == [{"max_completion_tokens": 50}] * 2


async def test_the_draw_is_never_sent_and_makes_replies_differ(
    open_desk: Open, server: FaultServer, transport: str
) -> None:
    server.keep_bodies = True
    async with open_desk(transport) as desk:
        cold = [await desk.ask("roll 1 2 3 Answer:", draw=draw) for draw in range(5)]
        warm = [await desk.ask("roll 1 2 3 Answer:", draw=draw) for draw in range(5)]
    assert len({outcome.reply.text for outcome in cold}) == 5
    assert [o.reply for o in warm] == [o.reply for o in cold]
    assert server.seen.requests == 5
    assert len({str(body) for body in server.bodies}) == 1
    assert "draw" not in server.bodies[0]
