"""The simulated transport: deterministic replies, faults at their rates, settings that are checked."""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import Any

import pytest

from pipeline.benchmark.embedded import embedded_items
from pipeline.errors import ConfigError
from pipeline.models.simulated import (
    SIMULATED_MODELS,
    SimulatedTransport,
    World,
    simulated_endpoint,
    simulated_transports,
    simulation_settings,
)
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawReply, TransportError
from pipeline.models.types import Request

ITEMS = embedded_items()
WORLD = World.from_items(ITEMS)


def entry(model: str = "sim/medium", **simulate: Any) -> ModelSpec:
    endpoint = simulated_endpoint(WORLD, model, simulate)
    return ModelSpec(model, model, api_base=endpoint, transport="simulated", simulate=simulate)


def request(spec: ModelSpec, item: int = 0, draw: int = 0, **params: Any) -> Request:
    question = f"<<<QUESTION 0123456789ab>>>\n{ITEMS[item].question}\n<<<END QUESTION 0123456789ab>>>"
    prompt = f"{question}\n\nEnd with two lines:\nAnswer: …\nConfidence: …"
    return Request(spec.model, spec.endpoint, ({"role": "user", "content": prompt},), params, draw)


async def attempts(
    transport: SimulatedTransport, spec: ModelSpec, asked: Request
) -> tuple[RawReply, list[TransportError]]:
    """The reply, and the failures that came before it."""
    failures: list[TransportError] = []
    while True:
        try:
            return await transport.send(spec, asked, timeout_s=5), failures
        except TransportError as error:
            failures.append(error)


async def test_replies_depend_on_request_draw_and_world_alone() -> None:
    spec = entry()
    one, two = SimulatedTransport(WORLD), SimulatedTransport(World.from_items(ITEMS))
    texts = [(await one.send(spec, request(spec, draw=draw), timeout_s=5)).text for draw in range(6)]
    assert [(await two.send(spec, request(spec, draw=draw), timeout_s=5)).text for draw in range(6)] == texts
    assert len(set(texts)) == 6
    reply = await one.send(spec, request(spec), timeout_s=5)
    assert reply.served_model == "sim/medium"
    assert reply.finish_reason == "stop"


def test_other_worlds_and_other_settings_have_other_addresses() -> None:
    addresses = {
        simulated_endpoint(WORLD, "sim/strong"),
        simulated_endpoint(WORLD, "sim/strong", {"ability": 3.0}),
        simulated_endpoint(World.from_items(ITEMS, seed=1), "sim/strong"),
    }
    assert len(addresses) == 3
    assert simulated_endpoint(World.from_items(ITEMS[:9]), "sim/strong") in addresses
    assert simulated_endpoint(WORLD, "sim/strong", {}) in addresses
    assert all(entry("sim/strong").endpoint == address for address in [simulated_endpoint(WORLD, "sim/strong")])


async def test_failed_attempts_come_at_their_rate_and_the_reply_is_the_same() -> None:
    flaky, sound = entry(rate_limit=0.3, server_error=0.2, retry_after_s=1.5), entry()
    transport = SimulatedTransport(WORLD)
    failures: list[TransportError] = []
    for draw in range(400):
        reply, failed = await attempts(transport, flaky, request(flaky, draw=draw))
        assert reply.text
        failures += failed
    tries = 400 + len(failures)
    limited = [error for error in failures if error.kind == "rate_limited"]
    assert len(limited) / tries == pytest.approx(0.3, abs=4 * (0.21 / tries) ** 0.5)
    assert all(error.status == 429 and error.retry_after == 1.5 for error in limited)
    broken = [error for error in failures if error.kind == "server"]
    assert len(broken) / tries == pytest.approx(0.7 * 0.2, abs=4 * (0.12 / tries) ** 0.5)
    assert {error.status for error in broken} == {500, 503}
    again, failed = await attempts(SimulatedTransport(WORLD), flaky, request(flaky))
    first, before = await attempts(SimulatedTransport(WORLD), flaky, request(flaky))
    assert (again.text, len(failed)) == (first.text, len(before))
    assert (await transport.send(sound, request(sound), timeout_s=5)).text


async def test_terminal_refusals_and_unsupported_formats() -> None:
    transport = SimulatedTransport(WORLD)
    spec = entry(bad_request=1.0)
    with pytest.raises(TransportError) as caught:
        await transport.send(spec, request(spec), timeout_s=5)
    assert (caught.value.kind, caught.value.status) == ("bad_request", 400)
    plain = entry(structured="json_object")
    schema = {"type": "json_schema", "json_schema": {"name": "score", "schema": {}}}
    with pytest.raises(TransportError) as caught:
        await transport.send(plain, request(plain, response_format=schema), timeout_s=5)
    assert (caught.value.kind, caught.value.param) == ("unsupported_parameter", "response_format")
    assert (await transport.send(plain, request(plain, response_format={"type": "json_object"}), timeout_s=5)).text


async def test_questions_of_another_benchmark_end_in_a_clear_error() -> None:
    spec = entry()
    asked = Request(spec.model, spec.endpoint, ({"role": "user", "content": "Who wrote this? Answer: …"},), {})
    with pytest.raises(TransportError, match="knows only the questions of this run's benchmark"):
        await SimulatedTransport(WORLD).send(spec, asked, timeout_s=5)


async def test_latency_is_waited_for_and_bounded() -> None:
    transport = SimulatedTransport(WORLD)
    spec = entry(latency_s=0.02)
    start = time.perf_counter()
    await asyncio.gather(*(transport.send(spec, request(spec, draw=draw), timeout_s=5) for draw in range(50)))
    assert 0.02 < time.perf_counter() - start < 2
    slow = entry(latency_s=1000.0)
    with pytest.raises(TransportError) as caught:
        await transport.send(slow, request(slow), timeout_s=0.01)
    assert caught.value.kind == "timeout"


async def test_a_refusal_is_marked_as_one() -> None:
    spec = entry(refusal=1.0)
    reply = await SimulatedTransport(WORLD).send(spec, request(spec), timeout_s=5)
    assert reply.refusal == reply.text
    assert reply.finish_reason == "content_filter"


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        ("sim/stong", {}, "unknown simulated model 'sim/stong': did you mean 'sim/strong'"),
        ("sim/x", {}, "there are sim/strong, sim/medium, sim/weak"),
        ("sim/strong", {"abilty": 2}, "unknown key simulate.abilty: did you mean 'ability'"),
        ("sim/strong", {"refusal": 2}, "simulate.refusal: Input should be less than or equal to 1"),
        ("sim/strong", {"ability": "high"}, "simulate.ability: Input should be a valid number"),
    ],
)
def test_wrong_settings_are_one_clear_line(model: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        simulation_settings(model, given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_override_the_models_own() -> None:
    settings = simulation_settings("sim/weak", {"ability": 0.3})
    assert settings.ability == 0.3
    assert settings.length == SIMULATED_MODELS["sim/weak"].length


def test_any_model_string_may_be_simulated_when_the_entry_says_so() -> None:
    transports = simulated_transports(WORLD, [ModelSpec("gpt", "openai/gpt-5.2", transport="simulated")])
    assert list(transports) == ["simulated"]
    assert simulated_transports(WORLD, [ModelSpec("gpt", "openai/gpt-5.2")]) == {}
    with pytest.raises(ConfigError, match="unknown simulated model"):
        simulated_transports(WORLD, [ModelSpec("x", "sim/x", transport="simulated")])


async def test_the_laws_of_the_world_stay_as_they_are() -> None:
    """Replies are cached under the laws' version: whoever changes them must raise ``_LAWS`` in world.py."""
    transport, digest = SimulatedTransport(WORLD), hashlib.sha256()
    ends = (
        "End with two lines:\nAnswer: …\nConfidence: …",
        "End with the line\nAnswer: …",
        '<<<RESPONSE 0123456789ab>>>\nAnswer: 12\n<<<END RESPONSE 0123456789ab>>>\nReply {"score": 0.5}',
        "<<<CHAIN A 0123456789ab>>>\nAnswer: 82\n<<<END CHAIN A 0123456789ab>>>\n"
        '<<<CHAIN B 0123456789ab>>>\nAnswer: 83\n<<<END CHAIN B 0123456789ab>>>\nReply {"verdict": "A"}',
        "<<<CHAIN A 0123456789ab>>>\nAnswer: 82\n<<<END CHAIN A 0123456789ab>>>\n"
        "<<<CHAIN B 0123456789ab>>>\nAnswer: 83\n<<<END CHAIN B 0123456789ab>>>\n"
        'The target\'s preference: CHAIN A\nReply {"probability": 0.5}',
    )
    for model in ("sim/weak", "sim/judge", "sim/regressor"):
        spec = entry(model)
        for item in (0, 77, 180):
            question = f"<<<QUESTION 0123456789ab>>>\n{ITEMS[item].question}\n<<<END QUESTION 0123456789ab>>>"
            for end in ends:
                messages = ({"role": "user", "content": f"{question}\n\n{end}"},)
                reply = await transport.send(spec, Request(model, spec.endpoint, messages, {}), timeout_s=5)
                digest.update(reply.text.encode())
    assert digest.hexdigest()[:16] == "28fea6250a389276"
