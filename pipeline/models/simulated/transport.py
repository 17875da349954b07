"""The transport that reaches simulated models in process, with the failures a network would bring."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from pipeline.models.simulated.chance import Chance
from pipeline.models.simulated.model import SimulatedModel, UnknownQuestionError
from pipeline.models.simulated.settings import Simulation, simulation_settings
from pipeline.models.simulated.world import World
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawReply, TransportError
from pipeline.models.types import Request

_RUNGS = {"json_schema": 2, "json_object": 1, "none": 0}


def simulated_endpoint(world: World, model: str, simulate: Mapping[str, Any] | None = None) -> str:
    """What stands for a simulated model's address in the identity of its requests.

    A reply of another world or of other settings must not be taken from the cache for one of this, so both are in
    the address: ``sim://<world>/<settings>``.

    Raises:
        ConfigError: no such model, or its settings cannot be used.
    """
    return f"sim://{world.name}/{simulation_settings(model, simulate).digest()}"


class SimulatedTransport:
    """Simulated models behind the gateway's transport interface.

    Replies are a function of the request (draw included) and of the world's seed; failures of an attempt are
    a function of the request and of how many of its attempts have failed before.

    Args:
        world: what the models know.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._models: dict[str, tuple[ModelSpec, SimulatedModel]] = {}
        self._failed: dict[str, int] = {}

    async def open(self) -> None:
        """Nothing to acquire."""

    async def close(self) -> None:
        """Nothing to release."""

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        """One attempt; raises TransportError at the rates of the model's settings.

        Raises:
            ConfigError: the entry names no simulated model, or its settings cannot be used.
        """
        model = self._model(spec)
        key = _name(request)
        await _wait(model.settings, Chance("wait", self._world.seed, key), timeout_s)
        self._maybe_fail(model, request, key)
        try:
            reply = model.reply(request.messages, request.params, key)
        except UnknownQuestionError as error:
            raise TransportError("bad_request", str(error), status=400) from None
        refused = reply.finish_reason == "content_filter"
        return RawReply(
            text=reply.text,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            reasoning=reply.reasoning,
            refusal=reply.text if refused else None,
            served_model=spec.model,
        )

    def _model(self, spec: ModelSpec) -> SimulatedModel:
        existing = self._models.get(spec.name)
        if existing is not None and (existing[0] is spec or existing[0] == spec):
            return existing[1]
        model = SimulatedModel(spec.model, simulation_settings(spec.model, spec.simulate), self._world)
        self._models[spec.name] = (spec, model)
        return model

    def _maybe_fail(self, model: SimulatedModel, request: Request, key: str) -> None:
        settings = model.settings
        wanted = request.params.get("response_format")
        rung = str(wanted.get("type")) if isinstance(wanted, Mapping) else "none"
        if _RUNGS.get(rung, 0) > _RUNGS[settings.structured]:
            message = f"response_format of type {rung} is not supported by {model.name}"
            raise TransportError("unsupported_parameter", message, status=400, param="response_format")
        if Chance("refused", self._world.seed, key).happens(settings.bad_request):
            raise TransportError("bad_request", "the request could not be processed", status=400)
        if not settings.rate_limit and not settings.server_error:
            return
        failed = self._failed.get(key, 0)
        chance = Chance("attempt", self._world.seed, key, failed)
        limited, broken = chance.happens(settings.rate_limit), chance.happens(settings.server_error)
        if not limited and not broken:
            self._failed.pop(key, None)
            return
        self._failed[key] = failed + 1
        if limited:
            message = "rate limit reached, slow down"
            raise TransportError("rate_limited", message, status=429, retry_after=settings.retry_after_s)
        raise TransportError("server", "the server had an error", status=500 if chance.happens(0.5) else 503)


def _name(request: Request) -> str:
    """Names a request as its key does, by everything that is sent and the draw, at a tenth of the cost."""
    digest = blake2b(f"{request.model}\n{request.draw}\n".encode(), digest_size=16)
    digest.update(json.dumps(request.params, sort_keys=True, default=str).encode())
    for message in request.messages:
        text = message["content"]
        digest.update(f"\n{message['role']} {len(text)}\n".encode())
        digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


async def _wait(settings: Simulation, chance: Chance, timeout_s: float) -> None:
    if not settings.latency_s:
        return
    seconds = -settings.latency_s * math.log(chance.uniform())
    if seconds > timeout_s:
        await asyncio.sleep(timeout_s)
        raise TransportError("timeout", f"no reply within {timeout_s:g} s", maybe_billed=True)
    await asyncio.sleep(seconds)
