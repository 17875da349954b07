"""Request identity: the SHA-256 of everything that can change a reply and nothing that cannot."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pipeline.credentials import names_a_credential
from pipeline.models.types import Message, Request

IDENTITY_SCHEMA = 1
"""Raised when the canonical form changes, so that old entries are misses and never mistaken for new ones."""

_SAMPLING = ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no whitespace, floats as ``repr`` and everything beyond ASCII escaped.

    Escaping makes it total: lone surrogates, which UTF-8 cannot carry, have one form as well.

    Raises:
        ValueError: NaN or infinity, which have no JSON form.
        TypeError: a value or key that JSON does not know.
    """
    return _ENCODER.encode(value)


def public_endpoint(url: str | None) -> str | None:
    """A base URL as part of an identity: no credentials, no fragment, no trailing slash, host in lower case."""
    if url is None:
        return None
    parts = urlsplit(url.strip())
    host = (parts.hostname or "").lower()
    if ":" in host:
        host = f"[{host}]"
    if parts.port is not None:
        host = f"{host}:{parts.port}"
    query = sorted(
        (name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if not names_a_credential(name)
    )
    return urlunsplit((parts.scheme.lower(), host, parts.path.rstrip("/"), urlencode(query), ""))


def request_key(request: Request) -> str:
    """The identity of a request: 64 hex digits.

    Hashes schema number, model, endpoint, messages, every parameter that is sent, and the draw; numbers by value
    (1 = 1.0, 0 = -0.0). Not in it: API key, timeouts, retries, concurrency, item, run, time.
    """
    return _key(request, _by_value(dict(request.params)))


def earlier_keys(request: Request) -> tuple[str, ...]:
    """Keys under which caches of older versions, which told 1 from 1.0, may hold a reply to the request."""
    params = dict(request.params)
    floats = {name: float(value) if _is_sampling(name, value) else value for name, value in params.items()}
    keys = dict.fromkeys((_key(request, params), _key(request, floats)))
    return tuple(key for key in keys if key != request_key(request))


def _key(request: Request, params: Any) -> str:
    identity = {
        "schema": IDENTITY_SCHEMA,
        "model": request.model,
        "endpoint": request.endpoint,
        "messages": [dict(message) for message in request.messages],
        "params": params,
        "draw": request.draw,
    }
    return hashlib.sha256(canonical_json(identity).encode("ascii")).hexdigest()


def _is_sampling(name: str, value: Any) -> bool:
    return name in _SAMPLING and isinstance(value, int) and not isinstance(value, bool)


def _by_value(value: Any) -> Any:
    """JSON values with every whole number as an integer."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _by_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_by_value(part) for part in value]
    return value


def sendable_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages as they can be sent: a lone surrogate, which UTF-8 cannot carry, becomes U+FFFD."""
    return tuple({name: _sendable(text) for name, text in message.items()} for message in messages)


def _sendable(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
