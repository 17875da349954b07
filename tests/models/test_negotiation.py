"""Which response format a model takes: certain only once a reply was JSON, else one rung down, and every row alike."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from fault_server import FaultServer

from pipeline.models.types import Answered, CallLabel, ReplySchema

Open = Callable[..., Any]
SCHEMA = ReplySchema("score", {"type": "object", "properties": {"score": {"type": "number"}}})
LABEL = CallLabel("pointwise", "item-1", "judge")


def formats(server: FaultServer) -> list[str | None]:
    return [(body.get("response_format") or {}).get("type") for body in server.bodies]


async def test_a_server_that_ignores_the_format_is_stepped_down_and_told(
    open_desk: Open, server: FaultServer, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.keep_bodies = True
    server.fail("text", content="I think it is rather good.")
    with caplog.at_level(logging.WARNING):
        async with open_desk(transport) as desk:
            outcome = await desk.ask("judge", schema=SCHEMA, label=LABEL)
            await desk.ask("another", schema=SCHEMA, label=LABEL)
            learnt = desk.gateway.describe()["m"]["negotiated"]
    assert isinstance(outcome, Answered)
    assert "response_format" not in outcome.request.params
    assert learnt == {"response_format": "prompt"}
    assert formats(server) == ["json_schema", "json_object", None, None]
    assert sum("no JSON" in record.message for record in caplog.records) == 2
    assert len(desk.records) == 2  # what taught the format is no row


@pytest.mark.parametrize("text", ['{"score": 0.5}', '```json\n{"score": 0.5}\n```', 'Here: {"score": 1}'])
async def test_one_json_reply_makes_the_format_certain(open_desk: Open, server: FaultServer, text: str) -> None:
    server.keep_bodies = True
    server.fail("text", content=text, times=1)
    server.fail("text", content="no JSON this time")
    async with open_desk() as desk:
        await desk.ask("judge", schema=SCHEMA, label=LABEL)
        await desk.ask("another", schema=SCHEMA, label=LABEL)
        learnt = desk.gateway.describe()["m"]["negotiated"]
    assert learnt == {"response_format": "json_schema"}
    assert formats(server) == ["json_schema", "json_schema"]


async def test_replies_that_say_nothing_do_not_hold_calls_in_line_for_ever(
    open_desk: Open, server: FaultServer
) -> None:
    server.keep_bodies = True
    server.fail("content_filter")
    async with open_desk() as desk:
        for k in range(4):
            await desk.ask(str(k), schema=SCHEMA, label=LABEL)
        assert desk.gateway.describe()["m"]["negotiated"] == {"response_format": "json_schema"}
    assert set(formats(server)) == {"json_schema"}


async def test_a_second_session_asks_nothing_twice(open_desk: Open, server: FaultServer, transport: str) -> None:
    server.fail("text", content="I think it is rather good.")
    async with open_desk(transport) as desk:
        first = await desk.ask("judge", schema=SCHEMA, label=LABEL)
        known = {"m": desk.gateway.describe()["m"]["negotiated"]}
    asked = server.seen.requests
    for negotiated in (known, {"m": {}}):
        async with open_desk(transport, gateway={"negotiated": negotiated}) as desk:
            again = await desk.ask("judge", schema=SCHEMA, label=LABEL)
        assert isinstance(first, Answered)
        assert isinstance(again, Answered)
        assert again.reply == first.reply
    assert server.seen.requests == asked
