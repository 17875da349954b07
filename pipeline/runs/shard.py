"""One shard of a distributed run, in a worker process: its own collector, cache, call log and lease."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.benchmark.items import Item
from pipeline.collection.collector import Collector
from pipeline.collection.rows import Row
from pipeline.errors import AuxevalError, ConfigError
from pipeline.models.budget import Budget, Spent
from pipeline.models.cache import ReplyCache
from pipeline.models.gateway import Gateway
from pipeline.models.merging import Encoded, LayeredCache, encoded_after
from pipeline.models.stopping import RunStopped
from pipeline.models.transport import Transport
from pipeline.runs.call_log import CallLog
from pipeline.runs.leases import Lease
from pipeline.runs.setup import Prepared

__all__ = ["Gathered", "ShardWork", "collect_shard", "read_since", "shard_folder"]

_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class ShardWork:
    """What a worker needs to know; holds no key.

    Attributes:
        number: of the shard.
        prepared: the run with this shard's items and its share of the limits, without its world.
        known: what simulated models know: all items of the run; None where no model is simulated.
        folder: where shards keep caches and logs on the worker's disk.
        home: host of the client, whose cache is read by workers on that host alone.
        run_cache: that cache.
        since: when the session began, UTC ISO 8601.
        pause_s: seconds to wait first, so that a rerun starts no new minute of a rate limit early.
    """

    number: int
    prepared: Prepared
    known: tuple[Item, ...] | None
    folder: Path
    home: str
    run_cache: Path
    since: str
    pause_s: float = 0.0


def shard_folder(folder: Path, number: int) -> Path:
    """Where one shard keeps its cache (``cache``) and its log (``calls.jsonl``)."""
    return folder / f"shard-{number}"


def collect_shard(work: ShardWork, lease: Lease, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Collect a shard's items into its own cache.

    Args:
        work: the shard.
        lease: what it may spend.
        should_stop: asked twice a second, off the event loop.

    Returns:
        ``state`` (``done``, or the kind of stop), ``reason``, ``spent``, ``host``: plain values.
    """
    return asyncio.run(_collect(work, lease, should_stop))


async def _collect(work: ShardWork, lease: Lease, should_stop: Callable[[], bool]) -> dict[str, Any]:
    own = shard_folder(work.folder, work.number)
    own.mkdir(parents=True, exist_ok=True)
    prepared = _with_world(work)
    budget = Budget(usd=lease.usd, calls=lease.calls, tokens=lease.tokens)
    state, reason = "done", ""
    await asyncio.sleep(work.pause_s)
    paths = [work.folder / "seed", *([work.run_cache] if socket.gethostname() == work.home else [])]
    below = [ReplyCache(path) for path in paths if (path / "cache.db").exists()]
    try:
        with LayeredCache(own / "cache", below) as cache, CallLog(own / "calls.jsonl", crashed_since=work.since) as log:
            gateway = Gateway(
                with_own_keys(prepared).specs,
                cache=cache,
                budget=budget,
                record=log.append,
                transports=_transports(prepared),
            )
            async with gateway:
                await _run(prepared, gateway, should_stop)
    except RunStopped as stop:
        state, reason = stop.kind, stop.reason
    except AuxevalError as error:
        state, reason = "error", str(error)
    return {"state": state, "reason": reason, "spent": asdict(budget.spent), "host": socket.gethostname()}


async def _run(prepared: Prepared, gateway: Gateway, should_stop: Callable[[], bool]) -> None:
    def forget(row: Row) -> None:  # rows are made once, from the merged cache
        pass

    watcher = asyncio.create_task(_watch(gateway, should_stop, prepared.config.drain_s))
    try:
        await Collector(prepared.config, prepared.benchmark, prepared.labeled, gateway, prepared.prompts, forget).run()
    finally:
        watcher.cancel()
    if gateway.stopped is not None:
        raise gateway.stopped


async def _watch(gateway: Gateway, should_stop: Callable[[], bool], drain_s: float) -> None:
    while not await asyncio.to_thread(should_stop):  # noqa: ASYNC110  (another process says so)
        await asyncio.sleep(_POLL_S)
    gateway.stop("the run was stopped", "interrupted")
    await gateway.drain(drain_s)


def with_own_keys(prepared: Prepared) -> Prepared:
    """The run with the keys of this process's environment.

    Raises:
        ConfigError: a variable is not set here.
    """
    specs = {}
    for name, spec in prepared.specs.items():
        key = spec.api_key
        if spec.api_key_env is not None and spec.transport != "simulated":
            key = os.environ.get(spec.api_key_env)
            if not key:
                raise ConfigError(
                    f"models.{name}: the environment variable {spec.api_key_env} is not set for the worker on"
                    f" {socket.gethostname()}; set it where the Dask worker is started"
                )
        specs[name] = replace(spec, api_key=key)
    return replace(prepared, specs=specs)


def _with_world(work: ShardWork) -> Prepared:
    if work.known is None:
        return work.prepared
    from pipeline.models.simulated.world import World

    return replace(work.prepared, world=World.from_items(work.known, seed=work.prepared.config.seed))


def _transports(prepared: Prepared) -> dict[str, Transport]:
    if prepared.world is None:
        return {}
    from pipeline.models.simulated import simulated_transports

    return dict(simulated_transports(prepared.world, prepared.specs.values()))


@dataclass(frozen=True, slots=True)
class Gathered:
    """New replies and log lines of one shard, and where to read on."""

    number: int
    entries: list[Encoded]
    lines: bytes
    row: int
    offset: int


def read_since(folder: Path, cursors: dict[int, tuple[int, int]], limit: int = 500) -> list[Gathered]:
    """What the shards of this host, running or dead, have stored since (row, byte) of each.

    Replies are read after the log: every line of an answered call that is returned has its reply stored already.
    """
    found = []
    for path in sorted(folder.glob("shard-*")):
        number = int(path.name.removeprefix("shard-"))
        row, offset = cursors.get(number, (0, 0))
        lines = _whole_lines_after(path / "calls.jsonl", offset)
        entries = encoded_after(path / "cache", row, limit)
        row = entries[-1][0] if entries else row
        found.append(Gathered(number, entries, lines, row, offset + len(lines)))
    return found


def _whole_lines_after(path: Path, offset: int, limit: int = 4_000_000) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(offset)
        text = file.read(limit)
    return text[: text.rfind(b"\n") + 1]


def spent_of(values: dict[str, Any]) -> Spent:
    """What a shard said it spent."""
    return Spent(**values)
