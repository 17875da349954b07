"""One shard of a distributed run, in a worker process: its own collector, cache, call log and lease."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pipeline.benchmark.items import Item
from pipeline.collection.collector import Collector
from pipeline.collection.rows import Row
from pipeline.errors import AuxevalError, ConfigError
from pipeline.models.budget import Spent
from pipeline.models.cache import ReplyCache
from pipeline.models.gateway import Gateway
from pipeline.models.merging import Encoded, LayeredCache, encoded_after, merge_encoded
from pipeline.models.spec import ModelSpec
from pipeline.models.stopping import RunStopped
from pipeline.models.transport import Transport
from pipeline.models.transports import default_transport
from pipeline.runs.call_log import CallLog
from pipeline.runs.directory import RunDirectory
from pipeline.runs.leases import Lease
from pipeline.runs.meter import MeteredBudget, MeteredTransport, read_meter
from pipeline.runs.setup import Prepared

__all__ = [
    "Gathered",
    "ShardWork",
    "absorb_shards",
    "collect_shard",
    "final_meter",
    "held_shards",
    "read_since",
    "shard_folder",
    "shards_folder",
    "spent_of",
    "with_own_keys",
]

LOCK = "lock"
STATUS = "status.json"
_POLL_S = 0.5
_LANDING_S = 60.0


@dataclass(frozen=True, slots=True)
class ShardWork:
    """What a worker needs to know; holds no key.

    Attributes:
        number: of the shard.
        shards: how many there are.
        prepared: the run with this shard's items and its share of the limits, without its world.
        known: what simulated models know: all items of the run; None where no model is simulated.
        folder: where shards keep caches and logs on the worker's disk.
        home: host of the client, whose cache is read by workers on that host alone.
        run_cache: that cache.
        since: when the session began, UTC ISO 8601.
        pause_s: seconds to wait first, so that a rerun starts no new minute of a rate limit early.
    """

    number: int
    shards: int
    prepared: Prepared
    known: tuple[Item, ...] | None
    folder: Path
    home: str
    run_cache: Path
    since: str
    pause_s: float = 0.0


def shards_folder(base: Path, directory: RunDirectory, prepared: Prepared) -> Path:
    """Where the shards of one run are, under ``base``."""
    return base / f"{directory.path.name}-{prepared.config.digest()[:12]}"


def shard_folder(folder: Path, number: int) -> Path:
    """Where one shard keeps its cache (``cache``) and its log (``calls.jsonl``)."""
    return folder / f"shard-{number}"


def collect_shard(work: ShardWork, lease: Lease, name: str, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Collect a shard's items into its own cache, as the only process of this host that works on it.

    Args:
        work: the shard.
        lease: what it may spend.
        name: of the lease's meter, unlike any other's.
        should_stop: asked twice a second; must not block.

    Returns:
        ``state`` (``done``, or the kind of stop), ``reason``, ``spent``, ``host``: plain values.
    """
    own = shard_folder(work.folder, work.number)
    own.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(own / LOCK, timeout=work.prepared.config.drain_s + 30.0):
            for old in own.glob("*.meter"):
                old.unlink()
            return asyncio.run(_collect(work, lease, own / f"{name}.meter", should_stop))
    except Timeout:
        reason = f"shard {work.number} is still worked on by another process on {socket.gethostname()}"
        return {"state": "error", "reason": reason, "spent": asdict(Spent()), "host": socket.gethostname()}


async def _collect(work: ShardWork, lease: Lease, meter: Path, should_stop: Callable[[], bool]) -> dict[str, Any]:
    own = meter.parent
    prepared = _with_world(work)
    state, reason = "done", ""
    spent = Spent()
    paths = [work.folder / "seed", *([work.run_cache] if socket.gethostname() == work.home else [])]
    below = [ReplyCache(path) for path in paths if (path / "cache.db").exists()]
    try:
        with (
            LayeredCache(own / "cache", below) as cache,
            CallLog(own / "calls.jsonl", crashed_since=work.since) as log,
            MeteredBudget(lease, meter) as budget,
        ):
            spent = budget.spent
            gateway = Gateway(
                with_own_keys(prepared.specs),
                cache=cache,
                budget=budget,
                record=log.append,
                transports=_transports(prepared, budget, shared=work.shards > 1),
            )
            async with gateway:
                await _run(work, prepared, gateway, own / STATUS, should_stop)
    except RunStopped as stop:
        state, reason = stop.kind, stop.reason
    except AuxevalError as error:
        state, reason = "error", str(error)
    return {"state": state, "reason": reason, "spent": asdict(spent), "host": socket.gethostname()}


async def _run(
    work: ShardWork, prepared: Prepared, gateway: Gateway, status: Path, should_stop: Callable[[], bool]
) -> None:
    def forget(row: Row) -> None:  # rows are made once, from the merged cache
        pass

    watcher = asyncio.create_task(_watch(gateway, should_stop, status, prepared.config.drain_s))
    try:
        await _pause(work.pause_s, gateway)
        await Collector(prepared.config, prepared.benchmark, prepared.labeled, gateway, prepared.prompts, forget).run()
    finally:
        watcher.cancel()
        status.unlink(missing_ok=True)
    if gateway.stopped is not None:
        raise gateway.stopped


async def _pause(seconds: float, gateway: Gateway) -> None:
    until = time.monotonic() + seconds
    while gateway.stopped is None and (left := until - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(left, _POLL_S))


async def _watch(gateway: Gateway, should_stop: Callable[[], bool], status: Path, drain_s: float) -> None:
    """Twice a second: say what the gateway is doing, hear whether the run was stopped."""
    while not should_stop():
        status.write_text(json.dumps(asdict(gateway.status())), encoding="ascii")
        await asyncio.sleep(_POLL_S)
    gateway.stop("the run was stopped", "interrupted")
    await gateway.drain(drain_s)


def with_own_keys(specs: Mapping[str, ModelSpec]) -> dict[str, ModelSpec]:
    """The entries with the keys of this process's environment.

    Raises:
        ConfigError: a variable is not set here.
    """
    found = {}
    for name, spec in specs.items():
        key = spec.api_key
        if spec.api_key_env is not None and spec.transport != "simulated" and spec.provider != "sim":
            key = os.environ.get(spec.api_key_env)
            if not key:
                raise ConfigError(f"models.{name}: the environment variable {spec.api_key_env} is not set")
        found[name] = replace(spec, api_key=key)
    return found


def _with_world(work: ShardWork) -> Prepared:
    if work.known is None:
        return work.prepared
    from pipeline.models.simulated.world import World

    return replace(work.prepared, world=World.from_items(work.known, seed=work.prepared.config.seed))


def _transports(prepared: Prepared, budget: MeteredBudget, *, shared: bool) -> dict[str, Transport]:
    transports: dict[str, Transport] = {}
    if prepared.world is not None:
        from pipeline.models.simulated import simulated_transports

        transports = simulated_transports(prepared.world, prepared.specs.values())
    for name in {spec.transport for spec in prepared.specs.values()} - transports.keys():
        transports[name] = default_transport(name)
    return {name: MeteredTransport(inner, budget, shared=shared) for name, inner in transports.items()}


@dataclass(frozen=True, slots=True)
class Gathered:
    """New replies and log lines of one shard, where to read on, and what its gateway is doing if it is at work."""

    number: int
    entries: list[Encoded]
    lines: bytes
    row: int
    offset: int
    status: dict[str, Any] | None


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
        found.append(Gathered(number, entries, lines, row, offset + len(lines), _status(path / STATUS)))
    return found


def _status(path: Path) -> dict[str, Any] | None:
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None


def absorb_shards(folder: Path, cache: ReplyCache, log: CallLog) -> None:
    """Merge and remove what a distributed session left on this host whose client was killed before it could.

    Waits while its workers let their calls in flight land: they stop by themselves when their client has gone.
    """
    if not folder.is_dir():
        return
    until = time.monotonic() + _LANDING_S
    while (busy := held_shards(folder)) and time.monotonic() < until:
        time.sleep(0.2)
    cursors: dict[int, tuple[int, int]] = {}
    while parts := [part for part in read_since(folder, cursors) if part.entries or part.lines]:
        for part in parts:
            merge_encoded(part.entries, cache)
            for line in part.lines.splitlines():
                log.append_line(json.loads(line))
            cursors[part.number] = (part.row, part.offset)
    if not busy:
        shutil.rmtree(folder, ignore_errors=True)


def held_shards(folder: Path) -> list[int]:
    """The shards of this host that a process is working on."""
    return [int(path.name.removeprefix("shard-")) for path in sorted(folder.glob("shard-*")) if _held(path / LOCK)]


def _held(path: Path) -> bool:
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True


def final_meter(folder: Path, number: int, name: str) -> Spent | None:
    """What a process that has ended spent, or may have, under a lease; None where it did not run here or still does."""
    own = shard_folder(folder, number)
    if not own.exists() or _held(own / LOCK):
        return None
    return read_meter(own / f"{name}.meter")


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
