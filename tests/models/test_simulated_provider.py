"""``sim/…`` through LiteLLM: the same replies as in process, and failures as typed errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.benchmark.embedded import embedded_items
from pipeline.models.budget import Budget
from pipeline.models.cache import ReplyCache
from pipeline.models.gateway import Gateway
from pipeline.models.simulated import SimulatedTransport, World, simulated_endpoint, simulated_transports
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import TransportError
from pipeline.models.types import Answered, CallLabel, CallRecord, ReplySchema, Request

ITEMS = embedded_items()
WORLD = World.from_items(ITEMS)
LABEL = CallLabel("answer", "item", "target")


def entry(model: str = "sim/medium", **simulate: Any) -> ModelSpec:
    endpoint = simulated_endpoint(WORLD, model, simulate)
    return ModelSpec("m", model, api_base=endpoint, transport="litellm", params={"temperature": 0.7}, simulate=simulate)


def prompt(item: int = 0) -> str:
    question = f"<<<QUESTION 0123456789ab>>>\n{ITEMS[item].question}\n<<<END QUESTION 0123456789ab>>>"
    return f"{question}\n\nEnd with two lines:\nAnswer: …\nConfidence: …"


async def test_replies_are_those_of_the_model_in_process(tmp_path: Path) -> None:
    spec = entry(reasoning=True)
    records: list[CallRecord] = []
    with ReplyCache(tmp_path) as cache:
        transports = simulated_transports(WORLD, [spec])
        gateway = Gateway({"m": spec}, cache=cache, budget=Budget(), record=records.append, transports=transports)
        async with gateway:
            outcomes = [
                await gateway.ask("m", [{"role": "user", "content": prompt(item)}], label=LABEL, draw=draw)
                for item in (0, 120)
                for draw in range(3)
            ]
            wanted = ReplySchema("score", {"type": "object"})
            judged = await gateway.ask("m", [{"role": "user", "content": prompt()}], label=LABEL, schema=wanted)
    direct = SimulatedTransport(WORLD)
    for outcome in (*outcomes, judged):
        assert isinstance(outcome, Answered)
        same = await direct.send(spec, outcome.request, timeout_s=5)
        assert (outcome.reply.text, outcome.reply.reasoning) == (same.text, same.reasoning)
        assert outcome.reply.usage == same.usage
        assert outcome.reply.served_model == "sim/medium"
    texts = [outcome.reply.reasoning for outcome in outcomes if isinstance(outcome, Answered)]
    assert len(set(texts)) == 6
    assert isinstance(judged, Answered)
    assert '"score"' in judged.reply.text


@pytest.mark.parametrize(
    ("simulate", "kind", "status"),
    [
        ({"rate_limit": 1.0, "retry_after_s": 1.5}, "rate_limited", 429),
        ({"server_error": 1.0}, "server", None),
        ({"bad_request": 1.0}, "bad_request", 400),
        ({"structured": "none"}, "unsupported_parameter", 400),
    ],
)
async def test_failures_arrive_as_what_they_are(simulate: dict[str, Any], kind: str, status: int | None) -> None:
    spec = entry(**simulate)
    transport = simulated_transports(WORLD, [spec])["litellm"]
    schema = {"type": "json_schema", "json_schema": {"name": "score", "schema": {"type": "object"}}}
    request = Request(
        spec.model,
        spec.endpoint,
        ({"role": "user", "content": prompt()},),
        {"temperature": 0.7, "response_format": schema},
    )
    await transport.open()
    try:
        with pytest.raises(TransportError) as caught:
            await transport.send(spec, request, timeout_s=30)
    finally:
        await transport.close()
    assert caught.value.kind == kind
    assert status is None or caught.value.status == status
    if kind == "rate_limited":
        assert caught.value.retry_after == 1.5
    if kind == "unsupported_parameter":
        assert caught.value.param == "response_format"
