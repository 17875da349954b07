"""Embeddings as calls like any other: one text per request, the vector kept as the text of its reply."""

from __future__ import annotations

import json
from typing import Any

from pipeline.errors import ConfigError
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import EmbeddingTransport, RawReply, Transport
from pipeline.models.types import Request

_MARK = "auxeval_task"
EMBEDDING_PARAMS: dict[str, Any] = {_MARK: "embedding"}
"""Parameters that make a call an embedding request: part of its identity, never sent."""
_CHAT_ONLY = frozenset({_MARK, "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop"})


def is_embedding(request: Request) -> bool:
    """Whether a request asks for the vector of its only message."""
    return request.params.get(_MARK) == "embedding"


async def send_attempt(transport: Transport, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
    """One attempt of a conversation or of an embedding, whose reply's text is the vector as a JSON list.

    Raises:
        ConfigError: the transport cannot embed.
        TransportError: the attempt failed.
    """
    if not is_embedding(request):
        return await transport.send(spec, request, timeout_s=timeout_s)
    if not isinstance(transport, EmbeddingTransport):
        raise ConfigError(
            f"model {spec.name} ({spec.model}): transport {spec.transport} has no embeddings; leave out"
            " design.embedding for the model that ships in a package"
        )
    params = {name: value for name, value in request.params.items() if name not in _CHAT_ONLY}
    raw = await transport.embed(spec, [str(request.messages[0]["content"])], params, timeout_s=timeout_s)
    vector = json.dumps([float(value) for value in raw.vectors[0]], separators=(",", ":"))
    return RawReply(text=vector, finish_reason="stop", usage=raw.usage, served_model=raw.served_model)


def read_vector(text: str) -> list[float]:
    """The vector in the reply of an embedding request; ValueError if it is none."""
    values = json.loads(text)
    if not isinstance(values, list) or not values:
        raise ValueError("an embedding reply holds no vector")
    return [float(value) for value in values]
