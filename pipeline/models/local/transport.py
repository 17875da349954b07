"""ServedTransport: another transport, with local servers started for the entries that name one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.errors import ConfigError
from pipeline.models.local.server import LocalServer, check_can_serve
from pipeline.models.local.weights import CATALOGUE, fetch_weights, weights_file
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import EmbeddingTransport, RawEmbeddings, RawReply, Transport, TransportError
from pipeline.models.transports import default_transport
from pipeline.models.types import Request

__all__ = ["ServedTransport", "check_served", "with_servers"]


class ServedTransport:
    """Calls of served entries go to their server, all others as they were.

    A server is started by the first call that reaches it: where the cache answers everything, none is. It is shared by
    the entries that name it, and started again where it has died.

    Args:
        inner: what carries the calls.
        servers: endpoint that stands for a server → the server.
    """

    def __init__(self, inner: Transport, servers: Mapping[str, LocalServer]) -> None:
        self._inner = inner
        self._servers = servers

    async def open(self) -> None:
        """Open the transport underneath; no server is started yet."""
        await self._inner.open()

    async def close(self) -> None:
        """Close the transport underneath and end the servers."""
        await self._inner.close()
        for server in self._servers.values():
            await server.close()

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        """One attempt; see :class:`pipeline.models.transport.Transport`."""
        reply = await self._inner.send(await self._at_its_server(spec), request, timeout_s=timeout_s)
        # The weights are known by their hash; what the server calls them is no news.
        return replace(reply, served_model=spec.model.removeprefix("openai/")) if spec.is_served else reply

    async def embed(
        self, spec: ModelSpec, texts: Sequence[str], params: Mapping[str, Any], *, timeout_s: float
    ) -> RawEmbeddings:
        """One attempt to embed ``texts``."""
        if not isinstance(self._inner, EmbeddingTransport):
            raise ConfigError(f"model {spec.name}: transport {spec.transport} has no embeddings")
        return await self._inner.embed(await self._at_its_server(spec), texts, params, timeout_s=timeout_s)

    async def _at_its_server(self, spec: ModelSpec) -> ModelSpec:
        server = self._servers.get(spec.api_base or "")
        if server is None:
            return spec
        try:
            return replace(spec, api_base=await server.url())
        except ConfigError as error:
            raise TransportError("not_found", str(error)) from None  # the next attempt would meet the same


def with_servers(transports: Mapping[str, Transport], specs: Iterable[ModelSpec]) -> dict[str, Transport]:
    """The transports, with servers behind those that served entries use."""
    models = {model.endpoint: model for model in CATALOGUE.values()}
    served = [(spec.transport, models[spec.api_base]) for spec in specs if spec.api_base in models]
    servers = {model.endpoint: LocalServer(model, weights_file(model)) for _, model in served}
    used = sorted({transport for transport, _ in served})
    return {
        **transports,
        **{name: ServedTransport(transports.get(name) or default_transport(name), servers) for name in used},
    }


def check_served(specs: Iterable[ModelSpec]) -> None:
    """Refuse, before anything is asked, what cannot be served here; fetch weights that are not here yet.

    Raises:
        ConfigError: the extra is missing, memory is short, or the weights cannot be had.
    """
    for model in CATALOGUE.values():
        names = [spec.name for spec in specs if spec.api_base == model.endpoint]
        if names:
            check_can_serve(model.bytes, what=f"models.{names[0]}: serve")
            fetch_weights(model)
