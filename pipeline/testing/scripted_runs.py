"""Gateways and whole runs in which scripted models answer."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.models.spec import ModelSpec
from pipeline.testing.scripts import Script, ScriptedCall, ScriptedTransport, ScriptError

if TYPE_CHECKING:
    from pipeline.models.gateway import Gateway
    from pipeline.runs.interface import ConfigLike, RunResult


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
    from pipeline.models.cache import ReplyCache
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

    resolved = resolve_config(config, limit=limit, trusted=True)
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
