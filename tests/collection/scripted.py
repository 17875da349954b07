"""A tiny model world in memory: an asker whose replies a test writes, and what it was asked."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.benchmark.items import Benchmark, Item, draw_labeled
from pipeline.collection.collector import CollectionSummary, Collector
from pipeline.collection.prompts import load_prompts
from pipeline.collection.rows import Row
from pipeline.config import RunConfig, parse_config
from pipeline.models.types import Answered, CallLabel, Failed, Message, Outcome, Reply, ReplySchema, Request, Usage

BOTH: dict[str, Any] = {
    "roles": {
        "targets": ["sim/a", "sim/b"],
        "auxiliary": ["sim/x", "sim/y"],
        "judge": "sim/judge",
        "anchors": {"weak": "sim/w", "medium": "sim/m", "strong": "sim/s"},
        "regressor": "sim/r",
    },
    "design": {"draws": 2, "labeled": 4},
    "estimate": ["naive", "one_step", "lace"],
}


@dataclass(frozen=True)
class Call:
    """One call as the asker saw it."""

    model: str
    messages: tuple[Message, ...]
    label: CallLabel
    draw: int
    params: Mapping[str, Any]
    schema: ReplySchema | None

    @property
    def prompt(self) -> str:
        return self.messages[-1]["content"]

    @property
    def key(self) -> str:
        parts = [self.model, [dict(message) for message in self.messages], self.draw, dict(self.params)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


Answering = Callable[[Call], "Reply | Failed | str"]


def reply(text: str, outcome: Any = "ok", finish: str = "stop", reasoning: str | None = None) -> Reply:
    return Reply(text, finish, outcome, Usage(10, 5), reasoning)


def plain(call: Call) -> str:
    """A well-behaved model: right answers, the first text shown wins, middling scores."""
    kind = call.schema.name if call.schema else "chain"
    if kind == "preference":
        return '{"reason": "", "verdict": "A"}'
    if kind == "score":
        return '{"reason": "", "score": 0.75}'
    if kind == "probability":
        return '{"reason": "", "probability": 0.25}'
    return f"Written by {call.model}, draw {call.draw}.\nAnswer: 42\nConfidence: 80"


@dataclass
class ScriptedAsker:
    """Replies as a function says; remembers every call and how many were under way at once."""

    answering: Answering = plain
    delay_s: float = 0.0
    calls: list[Call] = field(default_factory=list)
    live: int = 0
    most_live: int = 0

    async def ask(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        label: CallLabel,
        draw: int = 0,
        params: Mapping[str, Any] | None = None,
        schema: ReplySchema | None = None,
    ) -> Outcome:
        call = Call(model, tuple(messages), label, draw, dict(params or {}), schema)
        self.calls.append(call)
        self.live += 1
        self.most_live = max(self.most_live, self.live)
        try:
            await asyncio.sleep(self.delay_s)
            said = self.answering(call)
        finally:
            self.live -= 1
        if isinstance(said, Failed):
            return Failed(call.key, said.kind, said.message, said.status)
        said = reply(said) if isinstance(said, str) else said
        return Answered(Request(model, None, call.messages, call.params, draw), call.key, said, cached=False)

    def of(self, stage: str, **wanted: Any) -> list[Call]:
        """Calls of a stage, and of a target, draw, … if given."""
        return [
            call
            for call in self.calls
            if call.label.stage == stage and all(getattr(call.label, name) == value for name, value in wanted.items())
        ]


def items(count: int = 5, **more: Any) -> tuple[Item, ...]:
    return tuple(Item(f"i{k}", f"What is 41 + 1, case {k}?", "42", profile=1.0, **more) for k in range(count))


def config(base: Mapping[str, Any] = BOTH, **changes: Any) -> RunConfig:
    design = {**base.get("design", {}), **changes.pop("design", {})}
    roles = {**base["roles"], **changes.pop("roles", {})}
    return parse_config({**base, **changes, "design": design, "roles": roles})


@dataclass
class Collected:
    """A finished collection."""

    rows: list[Row]
    asker: ScriptedAsker
    summary: CollectionSummary

    def table(self, name: str, **wanted: Any) -> list[Any]:
        return [
            row
            for row in self.rows
            if row.table == name and all(getattr(row, column) == value for column, value in wanted.items())
        ]


def benchmark_of(some: Sequence[Item], grading: str = "numeric") -> Benchmark:
    return Benchmark("scripted", tuple(some), grading, "level", "ordinal")


async def collect(
    run: RunConfig,
    asker: ScriptedAsker | Answering = plain,
    some: Sequence[Item] | None = None,
    *,
    grading: str = "numeric",
    rows: list[Row] | None = None,
    **options: Any,
) -> Collected:
    """Run a collector over a scripted world."""
    scripted = asker if isinstance(asker, ScriptedAsker) else ScriptedAsker(asker)
    benchmark = benchmark_of(items() if some is None else some, grading)
    tau = run.design.tau
    prompts = load_prompts(
        {str(stage): files for stage, files in run.prompts.items()}, tau_variant=tau.variant, tau_rubric=tau.rubric
    )
    kept: list[Row] = [] if rows is None else rows
    labeled = draw_labeled(benchmark, run.design.labeled, run.seed)
    collector = Collector(run, benchmark, labeled, scripted, prompts, kept.append, **options)
    return Collected(kept, scripted, await collector.run())


_FENCE = re.compile(r"<<<(?P<name>[A-Z0-9 ]+) (?P<nonce>[0-9a-f]{12})>>>\n(?P<text>.*?)\n<<<END \1 \2>>>", re.DOTALL)


def fences(prompt: str) -> dict[str, str]:
    """What stands between the markers of a prompt, by name."""
    return {match["name"]: match["text"] for match in _FENCE.finditer(prompt)}


def outside(prompt: str) -> str:
    """The prompt without what stands between markers, and without their codes."""
    return _FENCE.sub(lambda match: f"[{match['name']}]", prompt)
