"""Simulated models as a LiteLLM provider, so that ``sim/…`` can also be reached down the path of real models."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from pipeline.errors import ConfigError
from pipeline.models.simulated.transport import SimulatedTransport
from pipeline.models.simulated.world import World
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import EmbeddingTransport, RawEmbeddings, RawReply, Transport, TransportError
from pipeline.models.types import Message, Request

PROVIDER = "sim"
_LITELLM_OWN = frozenset({"stream", "extra_headers", "max_retries"})
_CURRENT: ContextVar[tuple[ModelSpec, Request] | None] = ContextVar("simulated_request", default=None)


class AnnouncingTransport:
    """Another transport, with each attempt announced to the simulated provider beforehand.

    The draw is never sent, and a sampling server needs none: its randomness is its own. A simulated model's randomness
    is the draw, so it must hear of it beside the request.

    Args:
        inner: the transport that carries the attempts (LiteLLM's).
        world: what the provider's models know; registered with LiteLLM on opening.
    """

    def __init__(self, inner: Transport, world: World) -> None:
        self._inner = inner
        self._world = world

    async def open(self) -> None:
        """Open the inner transport, then register the provider."""
        await self._inner.open()
        await asyncio.to_thread(register_simulated_provider, self._world)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        """One attempt of the inner transport; raises what it raises."""
        token = _CURRENT.set((spec, request))
        try:
            return await self._inner.send(spec, request, timeout_s=timeout_s)
        finally:
            _CURRENT.reset(token)

    async def embed(
        self, spec: ModelSpec, texts: Sequence[str], params: Mapping[str, Any], *, timeout_s: float
    ) -> RawEmbeddings:
        """One attempt of the inner transport to embed texts; raises what it raises."""
        if not isinstance(self._inner, EmbeddingTransport):
            raise TransportError("bad_request", f"{spec.model}: this transport cannot embed texts")
        return await self._inner.embed(spec, texts, params, timeout_s=timeout_s)


def register_simulated_provider(world: World) -> None:
    """Make LiteLLM answer ``sim/<name>`` from this world; the last registration counts.

    Imports LiteLLM. A call that was not announced is answered as draw 0 with the model's default settings.
    """
    import litellm

    others = [entry for entry in litellm.custom_provider_map if entry["provider"] != PROVIDER]
    litellm.custom_provider_map = [*others, {"provider": PROVIDER, "custom_handler": _handler(world)}]


def _handler(world: World) -> Any:
    """The LiteLLM handler; its class is made here because its base lives in LiteLLM."""
    from litellm import CustomLLM

    transport = SimulatedTransport(world)

    class SimulatedProvider(CustomLLM):  # type: ignore[misc]  # LiteLLM is imported without its types
        async def acompletion(self, *args: Any, **kwargs: Any) -> Any:
            spec, request = _as_received(kwargs["model"], kwargs["messages"], kwargs["optional_params"])
            try:
                reply = await transport.send(spec, request, timeout_s=float(kwargs.get("timeout") or 600.0))
            except TransportError as error:
                raise _litellm_error(error, spec.model) from None
            except ConfigError as error:
                unknown = TransportError("not_found", str(error), status=404)
                raise _litellm_error(unknown, spec.model) from None
            return _filled(kwargs["model_response"], reply)

    return SimulatedProvider()


def _as_received(
    model: str, messages: Sequence[Mapping[str, Any]], params: Mapping[str, Any]
) -> tuple[ModelSpec, Request]:
    """The request as the provider got it, with the announced entry, endpoint and draw."""
    name = f"{PROVIDER}/{model.removeprefix(PROVIDER + '/')}"
    heard: tuple[Message, ...] = tuple(
        {"role": str(message["role"]), "content": str(message["content"])} for message in messages
    )
    sent = {key: value for key, value in params.items() if key not in _LITELLM_OWN and value is not None}
    current = _CURRENT.get()
    if current is None or current[0].model != name:
        return ModelSpec(name=name, model=name), Request(name, None, heard, sent)
    spec, request = current
    return spec, replace(request, messages=heard, params=sent)


def _filled(response: Any, reply: RawReply) -> Any:
    from litellm.types.utils import CompletionTokensDetailsWrapper, Usage

    message = response.choices[0].message
    message.content = reply.text
    if reply.reasoning is not None:
        message.reasoning_content = reply.reasoning
    response.choices[0].finish_reason = reply.finish_reason
    response.model = reply.served_model
    if reply.usage is not None:
        response.usage = Usage(
            prompt_tokens=reply.usage.prompt,
            completion_tokens=reply.usage.completion,
            total_tokens=reply.usage.prompt + reply.usage.completion,
            completion_tokens_details=CompletionTokensDetailsWrapper(reasoning_tokens=reply.usage.reasoning),
        )
    return response


def _litellm_error(error: TransportError, model: str) -> Exception:
    """The error LiteLLM itself would raise for this status."""
    import httpx
    import litellm

    headers = {"retry-after": f"{error.retry_after:g}"} if error.retry_after is not None else {}
    response = httpx.Response(
        error.status or 500, headers=headers, request=httpx.Request("POST", "https://simulated.invalid/v1")
    )
    named = {"message": error.message, "model": model, "llm_provider": PROVIDER}
    if error.kind == "rate_limited":
        return litellm.RateLimitError(response=response, **named)  # type: ignore[no-any-return]
    if error.kind == "timeout":
        return litellm.Timeout(**named)  # type: ignore[no-any-return]
    if error.status == 400:
        return litellm.BadRequestError(response=response, **named)  # type: ignore[no-any-return]
    if error.status == 404:
        return litellm.NotFoundError(response=response, **named)  # type: ignore[no-any-return]
    if error.status == 503:
        return litellm.ServiceUnavailableError(response=response, **named)  # type: ignore[no-any-return]
    return litellm.InternalServerError(response=response, **named)  # type: ignore[no-any-return]
