"""What a run would do: calls, tokens and money by stage, role and model, and what is cached already."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.collection.collector import Collector
from pipeline.collection.stages import PlannedCalls, plan_calls
from pipeline.models.budget import Budget
from pipeline.models.cache import ReplyCache, default_cache_dir
from pipeline.models.gateway import Gateway
from pipeline.models.pricing import find_price, reply_cost
from pipeline.models.stopping import RunStopped
from pipeline.models.types import CallRecord, Usage
from pipeline.runs.call_log import answered_calls
from pipeline.runs.directory import RunDirectory
from pipeline.runs.setup import Prepared

ASSUMED_CHAIN_TOKENS = 250.0
ASSUMED_JSON_TOKENS = 60.0
_CHAINS = ("answer", "anchor", "auxiliary", "candidates", "episode")
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class StageForecast:
    """One stage, role and model.

    Attributes:
        stage, role, model: what is asked of whom.
        calls: planned, repairs as frequent as in the replies at hand included.
        cached: of them answered already.
        prompt_tokens, completion_tokens: of the calls still to make.
        cost_usd: of the calls still to make; None where the price is unknown.
        measured: whether lengths come from replies at hand (a pilot) or from plain assumptions.
    """

    stage: str
    role: str
    model: str
    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    measured: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """A whole run."""

    items: int
    stages: tuple[StageForecast, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Planned calls."""
        return sum(stage.calls for stage in self.stages)

    @property
    def cached(self) -> int:
        """Calls answered already."""
        return sum(stage.cached for stage in self.stages)

    @property
    def tokens(self) -> int:
        """Tokens of the calls still to make."""
        return sum(stage.prompt_tokens + stage.completion_tokens for stage in self.stages)

    @property
    def cost_usd(self) -> float | None:
        """USD of the calls still to make; None where any price is unknown."""
        costs = [stage.cost_usd for stage in self.stages]
        priced = [cost for cost in costs if cost is not None]
        return sum(priced) if len(priced) == len(costs) else None

    def to_dict(self) -> dict[str, Any]:
        """As ``auxeval plan --json`` prints it."""
        totals = {"calls": self.calls, "cached": self.cached, "tokens": self.tokens, "cost_usd": self.cost_usd}
        items = {"items": self.items, "left_out": dict(self.left_out)}
        return {**items, **totals, "stages": [asdict(stage) for stage in self.stages]}


@dataclass(slots=True)
class _Seen:
    """Replies at hand for one stage, role and model."""

    calls: int = 0
    repairs: int = 0
    prompt: int = 0
    completion: int = 0
    cached_prompt: int = 0

    def add(self, part: str | None, prompt: int, completion: int, cached: int) -> None:
        """Count one reply."""
        repair = (part or "").endswith("repair")
        self.repairs += repair
        self.calls += not repair
        self.prompt += prompt
        self.completion += completion
        self.cached_prompt += cached


def forecast_run(
    prepared: Prepared, cache_dir: Path | None = None, *, finished: RunDirectory | None = None
) -> Forecast:
    """:func:`forecast_async`, also inside a running event loop."""
    from pipeline.runs.interface import in_any_loop

    return in_any_loop(forecast_async(prepared, cache_dir, finished=finished))


async def forecast_async(
    prepared: Prepared, cache_dir: Path | None = None, *, finished: RunDirectory | None = None
) -> Forecast:
    """Walk the run over the cache alone, count what is answered, and price the rest.

    ``finished``: the run itself, done with this configuration; its log says what it asked, and the cache only whether
    it still holds that.

    A pilot (``auxeval run CONFIG --limit 20``) leaves its replies in the cache; their lengths and their share of
    repairs are what the rest is forecast from. Without any reply, chains count 250 tokens and verdicts 60.
    """
    place = cache_dir or default_cache_dir()
    seen = _told(finished, place) if finished is not None else await _walk(prepared, place)
    lengths = {
        (stage, model): seen_stage.completion / (seen_stage.calls + seen_stage.repairs)
        for (stage, _, model), seen_stage in seen.items()
        if seen_stage.calls
    }
    planned = plan_calls(prepared.config, prepared.benchmark, prepared.prompts, reply_tokens=lengths)
    stages = tuple(_stage(entry, seen.get((entry.stage, entry.role, entry.model)), prepared) for entry in planned)
    return Forecast(len(prepared.benchmark.items), stages, prepared.benchmark.skipped)


def assumed_tokens(stage: str) -> float:
    """Tokens of a reply of a stage, where none is at hand."""
    return ASSUMED_CHAIN_TOKENS if stage in _CHAINS else ASSUMED_JSON_TOKENS


async def calls_at_hand(prepared: Prepared, cache_dir: Path) -> dict[tuple[str, str], int]:
    """(stage, model) → calls that the cache answers already, repairs aside."""
    counts: dict[tuple[str, str], int] = {}
    for (stage, _, model), seen in (await _walk(prepared, cache_dir)).items():
        counts[stage, model] = counts.get((stage, model), 0) + seen.calls
    return counts


def _stage(entry: PlannedCalls, seen: _Seen | None, prepared: Prepared) -> StageForecast:
    calls, cached = entry.calls, 0
    measured = seen is not None and seen.calls > 0
    if seen is not None and measured:
        cached = min(seen.calls, entry.calls)
        share = 1 + seen.repairs / seen.calls
        replies = seen.calls + seen.repairs
        calls = round(entry.calls * share)
        prompt, completion = seen.prompt / replies, seen.completion / replies
        cheap = seen.cached_prompt / replies
        fresh = (entry.calls - cached) * share
        cached = round(cached * share)
    else:
        prompt = entry.prompt_tokens / max(entry.calls, 1)
        completion = assumed_tokens(entry.stage)
        cheap, fresh = 0.0, float(entry.calls)
    usage = Usage(round(prompt * fresh), round(completion * fresh), round(cheap * fresh))
    price = find_price(prepared.specs[entry.model])
    cost = reply_cost(price.price if price else None, usage) if fresh else 0.0
    return StageForecast(
        entry.stage, entry.role, entry.model, calls, cached, usage.prompt, usage.completion, cost, measured
    )


def _told(directory: RunDirectory, cache_dir: Path) -> Mapping[_Key, _Seen]:
    """The same by the log of a run that is done: each of its calls whose reply the cache still has."""
    calls = answered_calls(directory.calls_file)
    seen: dict[_Key, _Seen] = {}
    if not calls or not cache_dir.exists():
        return seen
    with ReplyCache(cache_dir) as cache:
        there = cache.stored({line["key"] for line in calls})
    for line in calls:
        if line["key"] in there:
            entry = seen.setdefault((line["stage"], str(line.get("role")), str(line.get("model"))), _Seen())
            tokens = line.get("tokens") or {}
            entry.add(line.get("part"), *(int(tokens.get(name) or 0) for name in ("prompt", "completion", "cached")))
    return seen


async def _walk(prepared: Prepared, cache_dir: Path) -> Mapping[_Key, _Seen]:
    """What the cache answers of this run; nothing is asked."""
    if not cache_dir.exists():
        return {}
    seen: dict[_Key, _Seen] = {}

    def record(call: CallRecord) -> None:
        if call.state != "cached":
            return
        entry = seen.setdefault((call.label.stage, call.label.role, call.model), _Seen())
        entry.add(call.label.part, call.usage.prompt, call.usage.completion, call.usage.cached)

    patient = prepared.config.design.model_copy(update={"form_limit": 1.0})
    lenient = prepared.config.model_copy(update={"stage_failure_limit": 1.0, "design": patient})
    with ReplyCache(cache_dir) as cache:
        gateway = Gateway(prepared.specs, cache=cache, budget=Budget(), record=record, offline=True)
        async with gateway:
            collector = Collector(
                lenient, prepared.benchmark, prepared.labeled, gateway, prepared.prompts, lambda row: None
            )
            try:
                await collector.run()
            except RunStopped:
                await asyncio.sleep(0)
    return seen
