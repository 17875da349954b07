"""Scripted models: every kind of script, through the real gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.models.simulated import SimulatedTransport, World
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawReply, TransportError
from pipeline.models.types import Answered, Failed, ReplySchema, Usage
from pipeline.testing import (
    Answer,
    ScriptedCall,
    ScriptedTransport,
    ScriptError,
    a_label,
    rate_limited,
    scripted_gateway,
    server_error,
    user,
)

SCORE = ReplySchema("score", {"type": "object"})


async def test_a_string_answers_everything_and_is_cached(tmp_path: Path) -> None:
    async with scripted_gateway({"m": "Answer: 4"}, folder=tmp_path) as gateway:
        first = await gateway.ask("m", [user("2 + 2?")], label=a_label())
        again = await gateway.ask("m", [user("2 + 2?")], label=a_label())
    assert isinstance(first, Answered)
    assert isinstance(again, Answered)
    assert (first.reply.text, first.cached, again.cached) == ("Answer: 4", False, True)
    assert first.reply.usage == Usage(prompt=2, completion=3)


async def test_a_mapping_answers_by_kind_then_by_words(tmp_path: Path) -> None:
    script = {"score": '{"score": 1}', "capital": "Answer: Lima", "*": "Answer: ?"}
    async with scripted_gateway({"m": script}, folder=tmp_path) as gateway:
        texts = []
        for prompt, schema in (("Rate it.", SCORE), ("The capital of Peru?", None), ("Other", None)):
            outcome = await gateway.ask("m", [user(prompt)], label=a_label(), schema=schema)
            assert isinstance(outcome, Answered)
            texts.append(outcome.reply.text)
    assert texts == ['{"score": 1}', "Answer: Lima", "Answer: ?"]


async def test_a_list_answers_in_order_with_failures_between(tmp_path: Path) -> None:
    script: list[Answer] = [server_error(503), "one", rate_limited(after_s=0.01), "two"]
    async with scripted_gateway({"m": script}, folder=tmp_path) as gateway:
        one = await gateway.ask("m", [user("a")], label=a_label())
        two = await gateway.ask("m", [user("b")], label=a_label())
        with pytest.raises(ScriptError, match="4 answers and was asked for one more"):
            await gateway.ask("m", [user("c")], label=a_label())
    assert isinstance(one, Answered)
    assert isinstance(two, Answered)
    assert (one.reply.text, two.reply.text) == ("one", "two")


async def test_a_function_sees_the_call_and_may_wait(tmp_path: Path) -> None:
    seen: list[ScriptedCall] = []

    async def script(call: ScriptedCall) -> RawReply:
        seen.append(call)
        return RawReply("cut", "length", Usage(1, 2))

    prompt = "Mark this.\n<<<RESPONSE 0123456789ab>>>\nAnswer: 5\n<<<END RESPONSE 0123456789ab>>>"
    async with scripted_gateway({"m": script}, folder=tmp_path) as gateway:
        outcome = await gateway.ask(
            "m", [user(prompt)], label=a_label(), draw=3, params={"temperature": 0.5}, schema=SCORE
        )
    assert isinstance(outcome, Answered)
    assert outcome.reply.outcome == "truncated"
    (call,) = seen
    assert (call.entry, call.draw, call.attempt, call.kind) == ("m", 3, 0, "score")
    assert call.texts == {"RESPONSE": "Answer: 5"}
    assert call.params["temperature"] == 0.5
    assert call.prompt == prompt


async def test_attempts_of_one_request_are_counted(tmp_path: Path) -> None:
    def script(call: ScriptedCall) -> str | Exception:
        return server_error() if call.attempt < 2 else f"after {call.attempt}"

    async with scripted_gateway({"m": script}, folder=tmp_path) as gateway:
        outcome = await gateway.ask("m", [user("a")], label=a_label())
    assert isinstance(outcome, Answered)
    assert outcome.reply.text == "after 2"


async def test_terminal_failures_are_outcomes(tmp_path: Path) -> None:
    script = [TransportError("context_too_long", "too long", status=400)]
    async with scripted_gateway({"m": script}, folder=tmp_path) as gateway:
        outcome = await gateway.ask("m", [user("a")], label=a_label())
    assert isinstance(outcome, Failed)
    assert outcome.kind == "context_too_long"


async def test_what_no_script_answers_fails_the_test(tmp_path: Path) -> None:
    async with scripted_gateway({"m": {"verse": "x"}}, folder=tmp_path) as gateway:
        with pytest.raises(ScriptError, match="no answer to a chain prompt: 'prose'"):
            await gateway.ask("m", [user("prose")], label=a_label())
    transport = ScriptedTransport({"other": "x"})
    spec = ModelSpec("m", "openai/m")
    async with scripted_gateway({"m": "x"}, folder=tmp_path, specs={"m": spec}) as gateway:
        outcome = await gateway.ask("m", [user("a")], label=a_label())
    assert isinstance(outcome, Answered)
    with pytest.raises(ScriptError, match="no script for model 'm'"):
        await transport.send(spec, outcome.request, timeout_s=1)


async def test_entries_without_a_script_go_elsewhere(tmp_path: Path) -> None:
    world = World.from_items([])
    transport = ScriptedTransport({"m": "x"}, otherwise=SimulatedTransport(world))
    async with scripted_gateway({"m": "x"}, folder=tmp_path) as gateway:
        outcome = await gateway.ask("m", [user("a")], label=a_label())
    assert isinstance(outcome, Answered)
    with pytest.raises(TransportError, match="knows only the questions"):
        await transport.send(ModelSpec("s", "sim/weak", transport="simulated"), outcome.request, timeout_s=1)
