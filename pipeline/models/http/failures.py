"""Connections that failed, as TransportErrors that name the cause: one reading for every transport."""

from __future__ import annotations

import socket
from collections import Counter
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from pipeline.models.redaction import one_line
from pipeline.models.transport import TransportError


class Connections:
    """Tells failures that pass from those that stay: an unknown authority, a bad proxy, a name unknown twice running.

    One per transport; it counts per host.
    """

    def __init__(self) -> None:
        self._unknown: Counter[str] = Counter()

    def answered(self, url: str) -> None:
        """A host answered: whatever its name resolved to before, it exists."""
        if self._unknown:
            self._unknown.pop(_host(url), None)

    def failure(self, error: BaseException, url: str, secrets: tuple[str, ...] = ()) -> TransportError:
        """What an exception of aiohttp, a time-out or a socket error means; its text names the cause."""
        line = one_line(f"{type(error).__name__}: {error}", secrets=secrets)
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ServerFingerprintMismatch):
            return TransportError("not_found", f"the server's certificate is not trusted: {line}")
        if isinstance(error, aiohttp.ClientHttpProxyError | aiohttp.ClientProxyConnectionError):
            return TransportError("not_found", f"the proxy of the environment cannot be used: {line}")
        if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
            return TransportError("not_found", f"the address cannot be used: {line}")
        if isinstance(error, aiohttp.ClientConnectorDNSError | socket.gaierror):
            host = _host(url)
            self._unknown[host] += 1
            if self._unknown[host] > 1 and _does_not_exist(error):
                return TransportError("not_found", f"the host {host!r} does not exist: {line}")
            return TransportError("connection", line)
        if isinstance(error, TimeoutError):  # aiohttp's time-outs are, too
            sent = not isinstance(error, aiohttp.ConnectionTimeoutError)
            return TransportError("timeout", line, maybe_billed=sent)
        sent = not isinstance(error, aiohttp.ClientConnectorError)
        return TransportError("connection", line, maybe_billed=sent)


def _does_not_exist(error: BaseException) -> bool:
    """Whether the resolver said that there is no such name, not that it could not find out."""
    number = getattr(getattr(error, "os_error", error), "errno", None)
    return number in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for a URL; ``all_proxy`` counts, and one without a scheme is HTTP's."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy
