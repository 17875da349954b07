"""Probing: what a model entry and its server take and give, by a handful of cheap calls without retries."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pipeline.errors import AuxevalError
from pipeline.models.embeddings import EMBEDDING_PARAMS, send_attempt
from pipeline.models.http.bodies import read_bounded, tolerant_json
from pipeline.models.providers import check_credentials
from pipeline.models.served import is_same_model
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawReply, Transport, TransportError
from pipeline.models.types import Request
from pipeline.turn import read_turn

_ATTEMPT_S = 30.0
_LOOK_S = 5.0
_AT_ONCE = 8
_SLOW_S = 10.0
_ENOUGH_TOKENS = 16
_SHORT, _LONG = 16, 192
_SPARE = 1024
_SCHEMA = {
    "type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"], "additionalProperties": False,
}  # fmt: skip
_FORMAT = {"type": "json_schema", "json_schema": {"name": "score", "schema": _SCHEMA, "strict": True}}
_IGNORES = "ignores a JSON schema"
_ANSWER = re.compile(r"^\W*answer\s*:", re.I | re.M)


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found.

    Attributes:
        ok: whether the model answers.
        model: what the model did, or why it did not, in one line.
        server: slots, context and latency under load; empty where nothing is known of them.
        proposals: key of the entry (or of the configuration) → a value that suits the server better.
    """

    ok: bool
    model: str
    server: str = ""
    proposals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Timed:
    raw: RawReply
    seconds: float

    @property
    def tokens(self) -> int:
        return max(1, self.raw.usage.completion if self.raw.usage else len(self.raw.text) // 4)


async def probe(
    spec: ModelSpec, transport: Transport, *, embeds: bool = False, turn: asyncio.Lock | None = None
) -> Probe:
    """Reach a model: one short call, then whether it obeys a JSON schema, ends with an answer, and bears company.

    Calls at once are only asked of servers of one's own (``api_base``): at others they would cost money and tell
    little. Nothing is retried, so that the worst ends after a minute.

    Args:
        spec: the entry.
        transport: opened.
        embeds: it is only asked for vectors.
        turn: of the entry's server, so that no other entry's calls are measured with its own.
    """
    try:
        check_credentials({spec.name: spec})
        if embeds:
            first = await _ask(spec, transport, "ready", EMBEDDING_PARAMS)
            return Probe(True, _named(spec, first, "embedded"))
        first = await _ask(spec, transport, "Reply with the word: ready", {"max_tokens": _SHORT})
    except TransportError as error:
        status = f" (status {error.status})" if error.status else ""
        return Probe(False, f"{error.kind}: {error.message}{status}")
    except AuxevalError as error:
        return Probe(False, str(error))
    told, about = await asyncio.gather(_format(spec, transport), _about(spec))
    async with turn or asyncio.Lock():
        alone = await _sum(spec, transport, 25)
        load = None if spec.api_base is None else await _load(spec, transport, alone)
    model = "; ".join((_named(spec, first, "answered"), told, _ending(alone)))
    timed = alone if isinstance(alone, _Timed) and spec.api_base is not None else None
    return Probe(True, model, _described(about, timed, load), _proposals(spec, about, timed, load))


async def _load(spec: ModelSpec, transport: Transport, alone: _Timed | TransportError) -> _Load | None:
    """Several calls at once; None where one alone takes so long that it would be a burden."""
    if not isinstance(alone, _Timed) or alone.seconds > _SLOW_S:
        return None
    at_once = min(spec.max_concurrency, _AT_ONCE)
    began = time.monotonic()
    together = await asyncio.gather(*(_sum(spec, transport, 30 + k) for k in range(at_once)))
    seconds = time.monotonic() - began
    return _Load(alone, at_once, [each for each in together if isinstance(each, _Timed)], seconds)


@dataclass(frozen=True, slots=True)
class _Load:
    """What a server did with several calls at once."""

    alone: _Timed
    calls: int
    answered: list[_Timed]
    seconds: float

    @property
    def at_once(self) -> float:
        """Calls that it really works on at once: its speed under load over its speed alone, in tokens."""
        tokens = sum(each.tokens for each in self.answered)
        return tokens / max(self.seconds, 1e-9) / (self.alone.tokens / max(self.alone.seconds, 1e-9))


async def _ask(spec: ModelSpec, transport: Transport, text: str, params: Mapping[str, Any]) -> _Timed:
    """One attempt; raises TransportError where no reply comes in time."""
    sent = {name: value for name, value in {**spec.params, **params}.items() if value is not None}
    if "max_completion_tokens" in sent:
        sent["max_completion_tokens"] = sent.pop("max_tokens", _SHORT)
    request = Request(spec.model, spec.endpoint, ({"role": "user", "content": text},), sent)
    here = not (spec.api_base or "https").startswith("http")  # a server that the first call has to start
    limit = spec.attempt_timeout_s if here else min(spec.attempt_timeout_s, _ATTEMPT_S)
    began = time.monotonic()
    try:
        async with asyncio.timeout(limit):
            raw = await send_attempt(transport, spec, request, timeout_s=limit)
    except TimeoutError:
        raise TransportError("timeout", f"no reply within {limit:g} s") from None
    return _Timed(raw, time.monotonic() - began)


async def _sum(spec: ModelSpec, transport: Transport, number: int) -> _Timed | TransportError:
    text = f"What is 17 + {number}? Think in one short sentence, then end with a line that begins with Answer:"
    try:
        return await _ask(spec, transport, text, {"max_tokens": _LONG})
    except TransportError as error:
        return error


async def _format(spec: ModelSpec, transport: Transport) -> str:
    """Whether a JSON schema is obeyed that the prompt says nothing of."""
    text = "In one short sentence: how good is the answer 4 to the question 2 + 2?"
    try:
        reply = await _ask(spec, transport, text, {"max_tokens": _LONG, "response_format": _FORMAT})
        value = json.loads(read_turn(reply.raw.text).text)
    except TransportError as error:
        return f"refuses a JSON schema ({error.message[:80]})"
    except (ValueError, RecursionError):
        return _IGNORES
    obeyed = isinstance(value, dict) and isinstance(value.get("score"), int | float)
    return "obeys a JSON schema" if obeyed else _IGNORES


def _ending(answer: _Timed | TransportError) -> str:
    if isinstance(answer, TransportError):
        return f"a longer reply failed ({answer.message[:80]})"
    if _ANSWER.search(read_turn(answer.raw.text).text):
        return "ends with its answer"
    if answer.raw.finish_reason in ("length", "max_tokens"):
        return f"no answer within {_LONG} tokens: it thinks long, so give it a large max_tokens"
    return "no line Answer: comes"


def _named(spec: ModelSpec, first: _Timed, did: str) -> str:
    served = first.raw.served_model or spec.model
    other = "" if is_same_model(spec.model, served) else f" (asked for {spec.model})"
    return f"{served} {did} in {first.seconds:.1f} s{other}"


async def _about(spec: ModelSpec) -> dict[str, int]:
    """``slots`` and ``context`` as a server of one's own tells them (llama.cpp, vLLM); empty where it does not."""
    if spec.api_base is None or not spec.api_base.startswith("http"):
        return {}
    parts = urlsplit(spec.api_base)
    root = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1"), "", ""))
    base = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    props, models = await asyncio.gather(_look(spec, f"{root}/props"), _look(spec, f"{base}/models"))
    told: dict[str, int] = {}
    if isinstance(props, dict):
        settings = props.get("default_generation_settings")
        told |= _counts(props, slots=("total_slots",))
        told |= _counts(settings if isinstance(settings, dict) else props, context=("n_ctx",))
    rows = models.get("data") if isinstance(models, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and (len(rows or ()) == 1 or is_same_model(spec.model, str(row.get("id")))):
            told = {**_counts(row, context=("max_model_len", "context_length", "context_window")), **told}
    return told


def _counts(values: Mapping[str, Any], **wanted: tuple[str, ...]) -> dict[str, int]:
    """The first sensible count under one of the names."""
    counts = {}
    for name, keys in wanted.items():
        for value in (values.get(key) for key in keys):
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9:
                counts[name] = value
                break
    return counts


async def _look(spec: ModelSpec, url: str) -> Any:
    """The JSON at an address of the entry's own server, or None."""
    import httpx

    headers = {**({"Authorization": f"Bearer {spec.api_key}"} if spec.api_key else {}), **spec.headers}
    try:
        async with (
            httpx.AsyncClient(follow_redirects=False, timeout=_LOOK_S) as client,
            client.stream("GET", url, headers={**headers, "Accept-Encoding": "identity"}) as response,
        ):
            if response.status_code != 200:
                return None
            return tolerant_json(await read_bounded(response.aiter_raw(), ""))
    except (httpx.HTTPError, httpx.InvalidURL, TransportError, ValueError, OSError):
        return None


def _described(about: Mapping[str, int], alone: _Timed | None, load: _Load | None) -> str:
    parts = [f"{about['slots']} slots"] if "slots" in about else []
    parts += [f"context {about['context']:,} tokens"] if "context" in about else []
    if alone is not None:
        late = f", {load.calls - len(load.answered)} failed" if load and len(load.answered) < load.calls else ""
        parts.append(
            f"{alone.seconds:.1f} s alone" + (f", {load.calls} at once {load.seconds:.1f} s{late}" if load else "")
        )
    return "; ".join(parts)


def _proposals(spec: ModelSpec, about: Mapping[str, int], alone: _Timed | None, load: _Load | None) -> dict[str, float]:
    """What suits the server better than what the entry says."""
    proposals: dict[str, float] = {}
    wanted = about.get("slots")
    measured = load is not None and load.calls > 1 and load.alone.tokens >= _ENOUGH_TOKENS
    if wanted is None and load is not None and measured:
        wanted = max(1, round(load.at_once)) if load.at_once < 0.6 * load.calls else None
    if wanted is not None and wanted < spec.max_concurrency:
        proposals["max_concurrency"] = wanted
    cap = spec.params.get("max_completion_tokens") or spec.params.get("max_tokens")
    if not isinstance(cap, int | float) or isinstance(cap, bool):
        return proposals
    if about.get("context", math.inf) < cap + _SPARE:
        cap = max(256, about["context"] - _SPARE)
        proposals["max_tokens"] = cap
    if alone is not None and alone.tokens >= _ENOUGH_TOKENS:
        needed = 3 * cap * alone.seconds / alone.tokens
        if needed > spec.attempt_timeout_s:
            proposals["attempt_timeout_s"] = math.ceil(needed / 10) * 10
    return proposals
