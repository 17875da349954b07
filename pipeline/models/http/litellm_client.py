"""The HTTP client beneath LiteLLM: ours, so that both transports treat redirects, sizes, bodies and causes alike."""

from __future__ import annotations

import json
from typing import Any, cast

import aiohttp
import httpx
import litellm
from litellm.llms.custom_httpx import http_handler
from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport

from pipeline.models.http.bodies import ENCODINGS, read_bounded, refuse_redirect, tolerant_json
from pipeline.models.http.failures import Connections

_CONNECTIONS = Connections()


class _GuardedTransport(LiteLLMAiohttpTransport):  # type: ignore[misc]
    """LiteLLM's own transport with our rules on what comes back.

    LiteLLM's clients follow redirects and carry ``x-api-key`` and ``x-goog-api-key`` to the new host, inflate without
    a bound, and call every cause "Connection error.".
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request; raises ``TransportError``, which LiteLLM's own exceptions carry as their cause."""
        request.headers["Accept-Encoding"] = ENCODINGS
        url = str(request.url)
        try:
            response = await super().handle_async_request(request)
            refuse_redirect(response.status_code, response.headers)
            encoding = response.headers.get("content-encoding", "")
            raw = await read_bounded(cast("httpx.AsyncByteStream", response.stream).__aiter__(), encoding)
        except (httpx.TransportError, httpx.InvalidURL, aiohttp.ClientError, OSError) as error:
            cause = error.__cause__ or error.__context__
            raise _CONNECTIONS.failure(cause if isinstance(cause, Exception) else error, url) from None
        _CONNECTIONS.answered(url)
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
        ]
        if response.status_code == 200:
            raw = _readable(raw)
        return httpx.Response(response.status_code, headers=headers, content=raw, request=request)


def _readable(raw: bytes) -> bytes:
    """The body in a form that LiteLLM can take, where ours is the more lenient reading."""
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        try:
            return json.dumps(tolerant_json(raw)).encode("ascii")
        except ValueError:
            return raw
    return raw


def install_clients() -> None:
    """Put our client beneath every provider of LiteLLM; again after :func:`close_clients`.

    OpenAI's and Azure's SDK take ``litellm.aclient_session``; every other family gets its client from
    ``AsyncHTTPHandler`` or, in a thread, from ``HTTPHandler``.
    """
    handler: Any = http_handler.AsyncHTTPHandler
    for name in ("create_aiohttp_transport", "_create_aiohttp_transport"):
        setattr(handler, name, staticmethod(_guarded))
    if not hasattr(handler.create_client, "auxeval"):
        kinds: tuple[Any, ...] = (handler, http_handler.HTTPHandler)
        for kind in kinds:
            kind.create_client = _without_redirects(kind.create_client)
    if litellm.aclient_session is None:
        litellm.aclient_session = httpx.AsyncClient(transport=_guarded(), follow_redirects=False, timeout=None)
    if litellm.client_session is None:
        litellm.client_session = httpx.Client(follow_redirects=False, timeout=600.0)


_MAKE = http_handler.AsyncHTTPHandler.create_aiohttp_transport


def _guarded(*args: Any, **kwargs: Any) -> _GuardedTransport:
    """LiteLLM's transport, made by LiteLLM with its own settings of TLS and connections, as ours."""
    made = _MAKE(*args, **kwargs)
    made.__class__ = _GuardedTransport
    return cast(_GuardedTransport, made)


def _without_redirects(create: Any) -> Any:
    def create_client(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.follow_redirects = False
        return create(self, *args, **kwargs)

    create_client.auxeval = True  # type: ignore[attr-defined]
    return create_client


async def close_clients() -> None:
    """Close what :func:`install_clients` opened; its connections belong to the loop that ends."""
    if litellm.aclient_session is not None:
        await litellm.aclient_session.aclose()
        litellm.aclient_session = None
    if litellm.client_session is not None:
        litellm.client_session.close()
        litellm.client_session = None
