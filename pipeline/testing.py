"""Scripted models and recorded replies for tests: no network, no keys, the same gateway as a real run.

A script says what a model entry answers. It may be

* a string: the answer to everything,
* a mapping: the first key that is the kind of reply asked for (``answer``, ``chain``, ``preference``, ``score``,
  ``probability``) or that occurs in the prompt gives the answer; ``"*"`` matches everything,
* a list: one answer per attempt, in the order in which the attempts arrive,
* a function of the :class:`ScriptedCall`, plain or ``async``.

An answer is the text of the reply, a :class:`~pipeline.models.transport.RawReply` (to set finish reason or tokens), or
an exception to raise (a :class:`~pipeline.models.transport.TransportError` is a failure as a provider causes it, and is
retried if it may be).

Example:
    A run of real model strings in which nothing leaves the process::

        from pipeline.testing import rate_limited, run_scripted

        def test_my_judge_prompt(tmp_path):
            result = run_scripted(
                "my-config.yaml",
                {
                    "gpt": lambda call: f"I think so.\\nAnswer: {7 + call.draw}\\nConfidence: 60",
                    "judge": {"score": '{"score": 0.5, "reason": "-"}', "*": '{"verdict": "A", "reason": "-"}'},
                    "anchor": [rate_limited(after_s=0.1), *["Answer: 7"] * 100],
                },
                folder=tmp_path,
            )
            assert result.calls["gpt"][0].texts["QUESTION"] == "What is 3 + 4?"
            assert 0 <= result.estimates["gpt"]["lace"].value <= 1

    The gateway alone::

        async with scripted_gateway({"gpt": "Answer: 4"}, folder=tmp_path) as gateway:
            outcome = await gateway.ask("gpt", [user("What is 2 + 2?")], label=a_label())

    A cassette, with ``pytest_plugins = ["pipeline.testing"]`` in ``conftest.py``::

        def test_recorded_run(replay_cassette):
            result = replay_cassette("tests/cassettes/demo.cassette")     # any call that was not recorded fails
            assert result.estimates["gpt"]["naive"].n == 50
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.models.cache import ReplyCache
from pipeline.models.entries import Entry
from pipeline.models.simulated.reading import read_request
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawReply, Transport, TransportError
from pipeline.models.types import CallLabel, Message, Request, Usage

if TYPE_CHECKING:
    from pipeline.models.gateway import Gateway
    from pipeline.runs.interface import ConfigLike, RunResult

__all__ = [
    "Answer",
    "MemoryCache",
    "Script",
    "ScriptError",
    "ScriptedCall",
    "ScriptedRun",
    "ScriptedTransport",
    "a_label",
    "rate_limited",
    "run_scripted",
    "scripted_gateway",
    "server_error",
    "user",
]


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
        from pipeline.models.identity import request_key

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


class MemoryCache(ReplyCache):
    """A cache that ends with the process: for simulations in which nothing is worth keeping."""

    def __init__(self) -> None:
        self.directory = Path("memory")
        self._entries: dict[str, Entry] = {}
        self._notes: dict[str, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def close(self) -> None:
        """Nothing to close."""

    def free_bytes(self) -> int:
        """As if there were no end of it."""
        return 2**62

    def get(self, key: str) -> Entry | None:
        """The entry of a request key, or None."""
        return self._entries.get(key)

    def add_many(self, entries: Sequence[Entry]) -> list[bool]:
        """Keep entries; False for those whose key was there before."""
        return [self._entries.setdefault(entry.key, entry) is entry for entry in entries]

    def note(self, name: str) -> dict[str, Any] | None:
        """A small document kept beside the entries, or None."""
        return self._notes.get(name)

    def set_note(self, name: str, document: dict[str, Any]) -> None:
        """Keep a small document, replacing the one before."""
        self._notes[name] = document

    def sync_fully(self) -> None:
        """Nothing to sync."""

    def entries(self) -> Iterator[Entry]:
        """Every entry in the order of writing."""
        yield from self._entries.values()


@contextlib.asynccontextmanager
async def scripted_gateway(
    scripts: Mapping[str, Script], *, folder: str | Path, specs: Mapping[str, ModelSpec] | None = None
) -> AsyncIterator[Gateway]:
    """A real gateway (cache, single flight, limits, retries) over scripted models.

    Args:
        scripts: script per model entry.
        folder: where its cache is.
        specs: the entries (they need no keys); by default one per script, with its name as model string.
    """
    from pipeline.models.budget import Budget
    from pipeline.models.gateway import Gateway

    given = specs or {name: ModelSpec(name, name) for name in scripts}
    entries = {name: replace(spec, transport="simulated") for name, spec in given.items()}
    transport = ScriptedTransport(scripts)
    with ReplyCache(Path(folder) / "cache") as cache:
        gateway = Gateway(
            entries,
            cache=cache,
            budget=Budget(),
            record=lambda record: None,
            transports={"simulated": transport},
        )
        async with gateway:
            yield gateway


@dataclass(frozen=True, slots=True)
class ScriptedRun:
    """A finished run of scripted models.

    Attributes:
        run: the run itself, as :func:`pipeline.run` returns it.
        calls: attempts by model entry, in order of arrival (scripted entries only).
    """

    run: RunResult
    calls: Mapping[str, Sequence[ScriptedCall]] = field(default_factory=dict)

    @property
    def estimates(self) -> Any:
        """Target → method → estimate."""
        return self.run.estimates

    @property
    def tables(self) -> Any:
        """The run's tables as polars frames."""
        return self.run.tables

    @property
    def path(self) -> Path:
        """The run's directory."""
        return self.run.path


def run_scripted(
    config: ConfigLike, scripts: Mapping[str, Script], *, folder: str | Path, limit: int | None = None
) -> ScriptedRun:
    """A whole run in which scripted models answer; simulated entries without a script stay simulated.

    The entries need no keys, and the run counts as simulated throughout.

    Args:
        config: as of :func:`pipeline.run`.
        scripts: script per model entry.
        folder: run directory and cache go there; nothing else is written, and no earlier cache is read.
        limit: only so many items.

    Raises:
        ScriptError: a script has no answer, or an entry has neither a script nor a simulated model.
        InputError, StoppedEarly: as :func:`pipeline.run`.
    """
    from pipeline.benchmark.items import load_benchmark
    from pipeline.models.simulated import SimulatedTransport, World
    from pipeline.runs.interface import run
    from pipeline.runs.setup import resolve_config

    resolved = resolve_config(config, limit=limit)
    entries = resolved.model_entries
    for name in scripts:
        if name not in entries:
            raise ScriptError(f"script for {name!r}, which plays no role (roles: {', '.join(entries)})")
    for name, entry in entries.items():
        if name not in scripts and not entry.is_simulated:
            raise ScriptError(f"no script for {name!r} ({entry.model}), and it is no simulated model")
    in_process = {name: entry.model_copy(update={"transport": "simulated"}) for name, entry in entries.items()}
    resolved = resolved.model_copy(update={"models": in_process})
    world = World.from_items(load_benchmark(resolved.benchmark, resolved.seed).items, seed=resolved.seed)
    transport = ScriptedTransport(scripts, otherwise=SimulatedTransport(world))
    result = run(
        resolved,
        runs_dir=Path(folder) / "runs",
        cache_dir=Path(folder) / "cache",
        yes=True,
        transports={"simulated": transport},
    )
    calls: dict[str, list[ScriptedCall]] = {name: [] for name in scripts}
    for call in transport.calls:
        calls[call.entry].append(call)
    return ScriptedRun(result, calls)
