"""DirectTransport: OpenAI-compatible servers over aiohttp, without LiteLLM in between."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pipeline.models.completions import completion_body, parse_body, read_completion, read_embeddings
from pipeline.models.faults import classify
from pipeline.models.redaction import one_line
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawEmbeddings, RawReply, TransportError
from pipeline.models.types import Request

if TYPE_CHECKING:
    import aiohttp

__all__ = ["DirectTransport"]

_CONNECT_S = 30.0
_LONGEST_BODY = 64 * 2**20


class DirectTransport:
    """One aiohttp session for every entry with ``transport: direct`` (vLLM, llama.cpp, gateways).

    The model is sent under its name without the ``openai/`` prefix. Redirects are not followed, proxies of the
    environment are respected, cookies are not kept, nothing is retried here.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[str, str | None] = {}

    async def open(self) -> None:
        """Create the session; no connection is made yet."""
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=30.0, ttl_dns_cache=300),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
            auto_decompress=True,
            trust_env=False,  # it would look proxy and netrc up in threads, for every request
        )

    async def close(self) -> None:
        """Close the session and its connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        """One attempt; see :class:`pipeline.models.transport.Transport`."""
        body = completion_body(spec.model.removeprefix("openai/"), request)
        return read_completion(await self._post(spec, "chat/completions", body), secrets=_secrets(spec))

    async def embed(
        self, spec: ModelSpec, texts: Sequence[str], params: Mapping[str, Any], *, timeout_s: float
    ) -> RawEmbeddings:
        """One attempt to embed ``texts``."""
        body = {"model": spec.model.removeprefix("openai/"), "input": list(texts), **params}
        return read_embeddings(await self._post(spec, "embeddings", body), len(texts))

    async def _post(self, spec: ModelSpec, path: str, body: Mapping[str, Any]) -> Any:
        """The parsed body of a 200.

        Raises:
            TransportError: every other end.
        """
        import aiohttp

        assert self._session is not None, "open() comes before send()"
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if spec.api_key:
            headers["Authorization"] = f"Bearer {spec.api_key}"
        base, _, query = (spec.api_base or "").partition("?")
        url = f"{base.rstrip('/')}/{path}" + (f"?{query}" if query else "")
        # ASCII JSON: every text has a form, and no encoding error can be mistaken for the server's.
        data = json.dumps(body, separators=(",", ":")).encode("ascii")
        if base not in self._proxies:
            self._proxies[base] = _proxy_of(base)
        proxy = self._proxies[base]
        try:
            async with self._session.post(
                url, data=data, headers=headers, allow_redirects=False, proxy=proxy
            ) as response:
                raw = await _read(response)
                status = response.status
                kept = {name.lower(): value for name, value in response.headers.items()} if status != 200 else {}
        except aiohttp.ClientConnectorError as error:
            raise TransportError("connection", _message(spec, error)) from None
        except aiohttp.ServerDisconnectedError as error:
            raise TransportError("connection", _message(spec, error), maybe_billed=True) from None
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            raise TransportError("bad_request", _message(spec, error)) from None
        except aiohttp.ConnectionTimeoutError as error:
            raise TransportError("timeout", _message(spec, error)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise TransportError("connection", _message(spec, error), maybe_billed=True) from None
        if 200 <= status < 300:
            return parse_body(raw, secrets=_secrets(spec))
        try:
            content: Any = json.loads(raw)
        except ValueError:
            content = raw[:2000].decode("utf-8", "replace")
        if 300 <= status < 400:
            raise TransportError("bad_request", f"the server redirects ({status}); give its own URL", status=status)
        raise classify(status, content, kept, secrets=_secrets(spec))


def _proxy_of(url: str) -> str | None:
    """The proxy that the environment names for a URL."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The whole body, at most 64 MiB."""
    length = response.content_length
    if length is not None and length <= _LONGEST_BODY:
        return await response.read()
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > _LONGEST_BODY:
            raise TransportError("bad_request", "the response is larger than 64 MiB", maybe_billed=True)
        chunks.append(chunk)
    return b"".join(chunks)


def _secrets(spec: ModelSpec) -> tuple[str, ...]:
    return (spec.api_key,) if spec.api_key else ()


def _message(spec: ModelSpec, error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}", secrets=_secrets(spec))
