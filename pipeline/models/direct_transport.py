"""DirectTransport: OpenAI-compatible servers over aiohttp, without LiteLLM in between."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.models.completions import completion_body, parse_body, read_completion, read_embeddings
from pipeline.models.faults import classify
from pipeline.models.http.bodies import ENCODINGS, read_bounded, refuse_redirect, tolerant_json
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawEmbeddings, RawReply
from pipeline.models.types import Request

if TYPE_CHECKING:
    import aiohttp

    from pipeline.models.http.failures import Connections

_CONNECT_S = 30.0


class DirectTransport:
    """One aiohttp session for every entry with ``transport: direct`` (vLLM, llama.cpp, gateways).

    The model is sent under its name without the ``openai/`` prefix. Redirects are not followed, proxies of the
    environment are respected, cookies are not kept, nothing is retried here.

    aiohttp and not httpx, which LiteLLM's client builds on: a call costs 0.11 ms of CPU here, 1.5 ms with httpx at 16
    in flight (it grows with them) and 0.36 ms with httpx over aiohttp (``benchmarks/call_cost.py clients``).
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._connections: Connections
        self._proxies: dict[str, str | None] = {}

    async def open(self) -> None:
        """Create the session; no connection is made yet."""
        import aiohttp

        from pipeline.models.http.failures import Connections

        self._connections = Connections()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=30.0, ttl_dns_cache=300),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
            auto_decompress=False,  # its own inflation knows no bound
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
        headers = request.params.get("extra_headers")
        return read_completion(await self._post(spec, "chat/completions", body, headers), secrets=spec.secrets)

    async def embed(
        self, spec: ModelSpec, texts: Sequence[str], params: Mapping[str, Any], *, timeout_s: float
    ) -> RawEmbeddings:
        """One attempt to embed ``texts``."""
        sent = {name: value for name, value in params.items() if name != "extra_headers"}
        body = {"model": spec.model.removeprefix("openai/"), "input": list(texts), **sent}
        return read_embeddings(await self._post(spec, "embeddings", body, params.get("extra_headers")), len(texts))

    async def _post(self, spec: ModelSpec, path: str, body: Mapping[str, Any], extra: Mapping[str, str] | None) -> Any:
        """The parsed body of a 200.

        Raises:
            TransportError: every other end.
        """
        import aiohttp

        from pipeline.models.http.failures import proxy_of

        assert self._session is not None, "open() comes before send()"
        headers = {"Accept": "application/json"}
        if spec.api_key:
            headers["Authorization"] = f"Bearer {spec.api_key}"
        headers |= {**(extra or {}), **spec.headers}
        headers |= {"Content-Type": "application/json", "Accept-Encoding": ENCODINGS}
        base, _, query = (spec.api_base or "").partition("?")
        url = f"{base.rstrip('/')}/{path}" + (f"?{query}" if query else "")
        # ASCII JSON: every text has a form, and no encoding error can be mistaken for the server's.
        data = json.dumps(body, separators=(",", ":")).encode("ascii")
        if base not in self._proxies:
            self._proxies[base] = proxy_of(base)
        try:
            async with self._session.post(
                url, data=data, headers=headers, allow_redirects=False, proxy=self._proxies[base]
            ) as response:
                status = response.status
                refuse_redirect(status, response.headers)
                raw = await read_bounded(response.content.iter_any(), response.headers.get("Content-Encoding", ""))
                kept = {name.lower(): value for name, value in response.headers.items()} if status != 200 else {}
        except (aiohttp.ClientError, OSError) as error:
            raise self._connections.failure(error, base, spec.secrets) from None
        self._connections.answered(base)
        if 200 <= status < 300:
            return parse_body(raw, secrets=spec.secrets)
        try:
            content: Any = tolerant_json(raw)
        except ValueError:
            content = raw[:2000].decode("utf-8", "replace")
        raise classify(status, content, kept, secrets=spec.secrets)
