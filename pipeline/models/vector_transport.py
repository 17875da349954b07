"""Embedding requests as calls like any other: cached, limited, budgeted and replayed, with a vector for a reply."""

from __future__ import annotations

import json
from typing import Any

from pipeline.errors import ConfigError
from pipeline.models.embeddings import MARK
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import EmbeddingTransport, RawReply, Transport
from pipeline.models.types import Request

__all__ = ["EMBEDDING_PARAMS", "VectorTransport", "read_vector"]

EMBEDDING_PARAMS: dict[str, Any] = {MARK: "embedding"}
"""Parameters that make a call an embedding request: part of its identity, never sent."""
_CHAT_ONLY = frozenset({MARK, "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop"})


class VectorTransport:
    """A transport whose embedding requests go to the provider's embedding endpoint, and all others as they were.

    The text to embed is the content of the only message; the reply's text is the vector as a JSON list.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def open(self) -> None:
        """Open the transport underneath."""
        await self._inner.open()

    async def close(self) -> None:
        """Close the transport underneath."""
        await self._inner.close()

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        """One attempt; see :class:`pipeline.models.transport.Transport`.

        Raises:
            ConfigError: the entry's transport cannot embed.
            TransportError: no complete reply arrived.
        """
        if request.params.get(MARK) != "embedding":
            return await self._inner.send(spec, request, timeout_s=timeout_s)
        if not isinstance(self._inner, EmbeddingTransport):
            raise ConfigError(
                f"model {spec.name} ({spec.model}): transport {spec.transport} has no embeddings; leave out"
                " design.embedding for the model that ships in a package"
            )
        params = {name: value for name, value in request.params.items() if name not in _CHAT_ONLY}
        text = str(request.messages[0]["content"])
        raw = await self._inner.embed(spec, [text], params, timeout_s=timeout_s)
        vector = json.dumps([float(value) for value in raw.vectors[0]], separators=(",", ":"))
        return RawReply(text=vector, finish_reason="stop", usage=raw.usage, served_model=raw.served_model)


def read_vector(text: str) -> list[float]:
    """The vector in a reply of :class:`VectorTransport`; ValueError if it is none."""
    values = json.loads(text)
    if not isinstance(values, list) or not values:
        raise ValueError("an embedding reply holds no vector")
    return [float(value) for value in values]
