"""Cache entries: a reply with the request that it answers, as checksummed, compressed JSON."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.models.identity import canonical_json, earlier_keys, request_key
from pipeline.models.types import Reply, Request, Token, Usage

ENTRY_SCHEMA = 1
_MAGIC = b"AX1"
_DIGEST = 16
_LIMIT = 256 * 2**20
_OUTCOMES = ("ok", "truncated", "refused", "empty", "no_answer")


class DamagedEntry(ValueError):
    """The bytes of an entry are not what was written, or were never written by this program."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One paid reply: its key, the request itself (so that a cache can be audited) and what was really sent."""

    key: str
    request: Request
    reply: Reply
    sent: Mapping[str, Any] = field(default_factory=dict)


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """The entry as JSON values."""
    request, reply, usage = entry.request, entry.reply, entry.reply.usage
    return {
        "schema": ENTRY_SCHEMA,
        "key": entry.key,
        "request": {
            "model": request.model,
            "endpoint": request.endpoint,
            "messages": [dict(message) for message in request.messages],
            "params": dict(request.params),
            "draw": request.draw,
        },
        "reply": {
            "text": reply.text,
            "finish_reason": reply.finish_reason,
            "outcome": reply.outcome,
            "usage": {
                "prompt": usage.prompt,
                "completion": usage.completion,
                "cached": usage.cached,
                "reasoning": usage.reasoning,
                **({"written": usage.written} if usage.written else {}),
            },
            "reasoning": reply.reasoning,
            "served_model": reply.served_model,
            "latency_s": reply.latency_s,
            "cost_usd": reply.cost_usd,
            "at": reply.at,
            **({"tokens": [_token_to_json(token) for token in reply.tokens]} if reply.tokens else {}),
        },
        "sent": dict(entry.sent),
    }


def entry_from_json(data: Any, *, check_key: bool = False) -> Entry:
    """The entry from JSON values of any origin.

    Args:
        data: parsed JSON; nothing about it is trusted.
        check_key: compute the request's key again and compare it.

    Raises:
        DamagedEntry: a field is missing, has the wrong type, or the key does not belong to the request.
    """
    try:
        if data["schema"] != ENTRY_SCHEMA:
            raise DamagedEntry(f"schema {data['schema']!r}, this program reads {ENTRY_SCHEMA}")
        asked, got = data["request"], data["reply"]
        request = Request(
            model=_text(asked["model"]),
            endpoint=_optional_text(asked["endpoint"]),
            messages=tuple({_text(k): _text(v) for k, v in message.items()} for message in asked["messages"]),
            params=_mapping(asked["params"]),
            draw=_count(asked["draw"]),
        )
        outcome = got["outcome"]
        if outcome not in _OUTCOMES:
            raise DamagedEntry(f"unknown outcome {outcome!r}")
        usage = got["usage"]
        reply = Reply(
            text=_text(got["text"]),
            finish_reason=_text(got["finish_reason"]),
            outcome=outcome,
            usage=Usage(
                prompt=_count(usage["prompt"]),
                completion=_count(usage["completion"]),
                cached=_count(usage["cached"]),
                reasoning=_count(usage["reasoning"]),
                written=_count(usage.get("written", 0)),
            ),
            reasoning=_optional_text(got["reasoning"]),
            served_model=_optional_text(got["served_model"]),
            latency_s=_number(got["latency_s"]),
            cost_usd=None if got["cost_usd"] is None else _number(got["cost_usd"]),
            at=_text(got["at"]),
            tokens=tuple(map(_token_from_json, got.get("tokens", ()))),
        )
        entry = Entry(_text(data["key"]), request, reply, _mapping(data["sent"]))
    except DamagedEntry:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DamagedEntry(f"not an entry: {type(error).__name__}: {error}") from None
    if check_key and entry.key not in _keys_of(request):
        raise DamagedEntry("the key does not belong to the request")
    return entry


def _token_to_json(token: Token) -> list[Any]:
    """[text, log-probability, [[other text, log-probability], …]]: a reply has hundreds of them."""
    return [token.text, token.logprob, [list(other) for other in token.others]]


def _token_from_json(value: Any) -> Token:
    text, logprob, others = value
    return Token(_text(text), _number(logprob), tuple((_text(other), _number(weight)) for other, weight in others))


def _keys_of(request: Request) -> tuple[str, ...]:
    try:
        return (request_key(request), *earlier_keys(request))
    except (TypeError, ValueError) as error:
        raise DamagedEntry(f"the request has no key: {error}") from None


def encode(key: str, document: Mapping[str, Any]) -> bytes:
    """A JSON document as stored bytes: magic, checksum bound to the key, zlib."""
    payload = zlib.compress(canonical_json(document).encode("ascii"), 1)
    return _MAGIC + _checksum(key, payload) + payload


def decode(key: str, value: Any) -> Any:
    """The JSON document stored under ``key``.

    Raises:
        DamagedEntry: wrong type, magic or checksum, a body that does not decompress, or one beyond 256 MiB.
    """
    if not isinstance(value, bytes) or not value.startswith(_MAGIC):
        raise DamagedEntry("not written by this program")
    head = len(_MAGIC) + _DIGEST
    payload = value[head:]
    if value[len(_MAGIC) : head] != _checksum(key, payload):
        raise DamagedEntry("checksum does not match")
    try:
        unpack = zlib.decompressobj()
        text = unpack.decompress(payload, _LIMIT)
        if not unpack.eof or unpack.unused_data:
            raise DamagedEntry("the body is cut off or larger than 256 MiB")
        return json.loads(text)
    except (zlib.error, ValueError, RecursionError) as error:
        raise DamagedEntry(f"the body cannot be read: {error}") from None


def _checksum(key: str, payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_DIGEST, key=key.encode("utf-8")[:64]).digest()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DamagedEntry(f"expected text, got {type(value).__name__}")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise DamagedEntry(f"expected a count, got {value!r:.40}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DamagedEntry(f"expected a number, got {value!r:.40}")
    return float(value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DamagedEntry(f"expected a mapping, got {type(value).__name__}")
    return value
