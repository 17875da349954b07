"""Embeddings as calls like any other: one text per request, the vector kept as the text of its reply."""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Sequence

from pipeline.models.spec import ModelSpec
from pipeline.models.transport import EmbeddingTransport, RawReply, Transport, TransportError
from pipeline.models.types import Message, Request

__all__ = ["MARK", "embedding_message", "is_embedding", "read_vector", "send_attempt", "write_vector"]

_ROLE = "input"
MARK = "auxeval_task"
"""Parameter that makes a call an embedding request: part of its identity, never sent."""


def embedding_message(text: str) -> Message:
    """The message that stands for a text to embed; its role keeps its key apart from any conversation's."""
    return {"role": _ROLE, "content": text}


def is_embedding(request: Request) -> bool:
    """Whether a request asks for an embedding, by its role or by the parameter of ``vector_transport``."""
    marked = request.params.get(MARK) == "embedding"
    return marked or (len(request.messages) == 1 and request.messages[0].get("role") == _ROLE)


async def send_attempt(transport: Transport, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
    """One attempt of a conversation or of an embedding.

    Raises:
        TransportError: the attempt failed, or the transport cannot embed.
    """
    if request.messages[0].get("role") != _ROLE:
        return await transport.send(spec, request, timeout_s=timeout_s)
    if not isinstance(transport, EmbeddingTransport):
        raise TransportError("bad_request", f"the transport {spec.transport} has no embeddings")
    raw = await transport.embed(spec, [request.messages[0]["content"]], request.params, timeout_s=timeout_s)
    return RawReply(write_vector(raw.vectors[0]), "stop", raw.usage, served_model=raw.served_model)


def write_vector(vector: Sequence[float]) -> str:
    """Single-precision numbers, little endian, base64."""
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def read_vector(text: str) -> tuple[float, ...]:
    """The numbers of :func:`write_vector`.

    Raises:
        ValueError: the text is none of its outputs.
    """
    numbers = array("f")
    numbers.frombytes(base64.b64decode(text.encode("ascii", "strict"), validate=True))
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)
