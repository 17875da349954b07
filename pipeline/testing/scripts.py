"""ScriptedTransport: models that answer from scripts, one attempt at a time."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.models.identity import request_key
from pipeline.models.simulated.reading import read_request
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawReply, Transport, TransportError
from pipeline.models.types import CallLabel, Message, Request, Usage


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One attempt as it reached a scripted model.

    Attributes:
        entry: name of the model entry.
        model: its model string.
        messages: the conversation.
        params: everything sent with it.
        draw: index of the independent replicate.
        attempt: 0 for the first attempt of this request, then 1, …
        kind: the reply asked for: ``answer``, ``chain``, ``preference``, ``score`` or ``probability``.
        texts: what stands between the prompt's markers, by name: ``QUESTION``, ``RESPONSE``, ``CHAIN A``, ….
    """

    entry: str
    model: str
    messages: tuple[Message, ...]
    params: Mapping[str, Any]
    draw: int
    attempt: int
    kind: str
    texts: Mapping[str, str]

    @property
    def prompt(self) -> str:
        """The last message."""
        return self.messages[-1]["content"]


Answer = str | RawReply | Exception
Script = str | Mapping[str, Answer] | Sequence[Answer] | Callable[[ScriptedCall], Answer | Awaitable[Answer]]


class ScriptError(AssertionError):
    """A scripted model was asked something that its script does not answer."""


class ScriptedTransport:
    """A transport whose models answer from scripts.

    Args:
        scripts: script per model entry (by the entry's name, else by its model string).
        otherwise: carries the attempts of entries without a script; None makes them an error.

    Attributes:
        calls: every attempt so far, in order of arrival.
    """

    def __init__(self, scripts: Mapping[str, Script], *, otherwise: Transport | None = None) -> None:
        self._scripts = dict(scripts)
        self._otherwise = otherwise
        self._used: dict[str, int] = {}
        self._attempts: dict[tuple[str, str], int] = {}
        self.calls: list[ScriptedCall] = []

    async def open(self) -> None:
        """Open what carries the other entries."""
        if self._otherwise is not None:
            await self._otherwise.open()

    async def close(self) -> None:
        """Close what carries the other entries."""
        if self._otherwise is not None:
            await self._otherwise.close()

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        """One attempt, answered by the entry's script.

        Raises:
            ScriptError: there is no script for it, or the script has no answer (left).
            Exception: what the script says to raise.
        """
        name = next((name for name in (spec.name, spec.model) if name in self._scripts), None)
        if name is None:
            if self._otherwise is not None:
                return await self._otherwise.send(spec, request, timeout_s=timeout_s)
            raise ScriptError(f"no script for model {spec.name!r} (scripts: {', '.join(self._scripts) or 'none'})")
        call = self._call(spec, request)
        self.calls.append(call)
        answer = self._answer(name, call)
        given = await answer if inspect.isawaitable(answer) else answer
        if isinstance(given, Exception):
            raise given
        if isinstance(given, str):
            given = RawReply(given, "stop", _usage(request, given), served_model=spec.model)
        return given if given.usage is not None else replace(given, usage=_usage(request, given.text))

    def _call(self, spec: ModelSpec, request: Request) -> ScriptedCall:
        asked = read_request(request.messages, request.params.get("response_format"))
        key = (spec.name, request_key(request))
        attempt = self._attempts.get(key, 0)
        self._attempts[key] = attempt + 1
        return ScriptedCall(
            entry=spec.name,
            model=spec.model,
            messages=request.messages,
            params=request.params,
            draw=request.draw,
            attempt=attempt,
            kind=asked.stage,
            texts=asked.texts,
        )

    def _answer(self, name: str, call: ScriptedCall) -> Answer | Awaitable[Answer]:
        script = self._scripts[name]
        if isinstance(script, str):
            return script
        if callable(script):
            return script(call)
        if isinstance(script, Mapping):
            for key, answer in script.items():
                if key in ("*", call.kind) or key in call.prompt:
                    return answer
            raise ScriptError(f"the script of {name!r} has no answer to a {call.kind} prompt: {call.prompt[:200]!r}")
        place = self._used.get(name, 0)
        if place >= len(script):
            raise ScriptError(f"the script of {name!r} has {len(script)} answers and was asked for one more")
        self._used[name] = place + 1
        return script[place]


def _usage(request: Request, text: str) -> Usage:
    prompt = sum(len(message["content"]) for message in request.messages)
    return Usage(prompt=-(-prompt // 4), completion=-(-len(text) // 4))


def rate_limited(*, after_s: float | None = None) -> TransportError:
    """A 429, for a script; ``after_s`` is its Retry-After."""
    return TransportError("rate_limited", "rate limit reached", status=429, retry_after=after_s)


def server_error(status: int = 500) -> TransportError:
    """A 5xx, for a script."""
    return TransportError("server", "the server had an error", status=status)


def user(text: str) -> Message:
    """A user's message."""
    return {"role": "user", "content": text}


def a_label(stage: str = "answer", item: str = "item", role: str = "target", **more: Any) -> CallLabel:
    """A label for a call made by a test."""
    return CallLabel(stage=stage, item=item, role=role, **more)
