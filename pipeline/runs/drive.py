"""Drives a run from its first call to its report, and stops it so that it can be carried on."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import signal
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.benchmark.items import Benchmark
from pipeline.collection.collector import Collector
from pipeline.collection.form_watch import FormWatch
from pipeline.collection.rows import ResponseRow, Row, columns_of
from pipeline.errors import ReplayMissError, StoppedEarly
from pipeline.models.budget import Budget, Spent
from pipeline.models.cache import ReplyCache, default_cache_dir
from pipeline.models.gateway import Gateway
from pipeline.models.ledger import Ledger, name_of_payer
from pipeline.models.local.transport import with_servers
from pipeline.models.stopping import RunStopped
from pipeline.models.transport import Transport
from pipeline.models.types import Failed
from pipeline.runs.call_log import CallLog, read_calls
from pipeline.runs.directory import RunDirectory, write_atomically
from pipeline.runs.embeddings import fetch_embeddings, wanted_embedding
from pipeline.runs.finish import finish_run
from pipeline.runs.forecast import calls_at_hand
from pipeline.runs.manifest import Manifest
from pipeline.runs.progress import Progress, planned_stages
from pipeline.runs.setup import Prepared, save_prompts
from pipeline.tables.schemas import GIVEN, OWN, PROBABILITIES, RATINGS, TABLES, items_schema
from pipeline.tables.store import RowSpool, write_rows

_LOG = logging.getLogger(__name__)
_ASKED_FOR_PAYER = 500


async def collect(
    directory: RunDirectory,
    prepared: Prepared,
    *,
    quiet: bool = True,
    transports: Mapping[str, Transport] | None = None,
    cache_dir: Path | None = None,
    command: str = "",
    forgive_unknown: bool = False,
) -> None:
    """Ask what has not been asked, write tables, estimates and report. The caller holds the run's lock.

    Raises:
        StoppedEarly: the run stopped before its end; everything paid for is stored.
    """
    manifest = Manifest(directory)
    negotiated, prior = manifest.values.get("negotiated"), manifest.values.get("prior_spend") or {}
    with _disk_full_can_be_resumed(directory), ReplyCache(cache_dir or default_cache_dir()) as cache:
        if not (directory.path / "prompts" / "repair.md").exists():
            save_prompts(prepared.prompts, directory.path / "prompts")
        write_atomically(directory.config_file, prepared.config.to_yaml())
        manifest.start(prepared.config, {**prepared.facts(), "command": command})
        await _collect(
            directory,
            prepared,
            manifest,
            cache,
            quiet=quiet,
            transports=transports,
            negotiated=negotiated,
            prior=prior,
            forgive=forgive_unknown,
        )


async def _collect(
    directory: RunDirectory,
    prepared: Prepared,
    manifest: Manifest,
    cache: ReplyCache,
    *,
    quiet: bool,
    transports: Mapping[str, Transport] | None,
    negotiated: Mapping[str, Mapping[str, Any]] | None,
    prior: Mapping[str, float],
    forgive: bool,
) -> None:
    bounds = prepared.config.budget
    answered = (line["key"] for line in read_calls(directory.calls_file) if line["state"] == "answered")
    calls = [] if prior else list(islice(answered, _ASKED_FOR_PAYER))  # an older version's run has no ledger to find
    name = directory.name_in_ledger(lambda: name_of_payer(cache, calls))
    ledger = Ledger(cache, name, bounds.ledger)
    with CallLog(directory.calls_file, paid=ledger.paid) as log, RowSpool(directory.spool) as spool:
        ledger.carry_over(_before_the_ledger(log, prior))
        if forgive:
            _forgive(ledger)
        budget = Budget(usd=bounds.usd, calls=bounds.calls, tokens=bounds.tokens, spent=ledger.spent())
        gateway = Gateway(
            prepared.specs,
            cache=cache,
            budget=budget,
            record=log.append,
            ledger=ledger,
            transports=_transports(prepared, transports),
            negotiated=negotiated or None,
            on_negotiated=lambda name, learnt: _negotiated(manifest, name, learnt),
        )
        watch = FormWatch(prepared.config, stops=prepared.stop_on_form)
        try:
            async with _interruptible(gateway, prepared.config.drain_s), gateway:
                manifest.update(prices=_prices(gateway))
                at_hand = None if quiet or log.at_hand else await _at_hand(prepared, cache)
                planned = planned_stages(prepared)
                async with Progress(log, planned, gateway, at_hand=at_hand, quiet=quiet, replies=watch.line):
                    await _run_collector(directory, prepared, gateway, spool, watch)
            _refuse_dead_stages(log)
            _write_tables(directory, prepared, spool)
        except RunStopped as stop:
            manifest.finish("stopped", reason=stop.reason)
            raise StoppedEarly(stop.reason, run=directory.path, resume_command=directory.resume_command) from None
        except BaseException as error:
            manifest.finish("stopped", reason=_why(error))
            raise
        finally:
            spool.discard()
            manifest.record(log, ledger.own(), gateway, watch)
    _finish(directory, prepared, manifest)


async def replay_collection(
    directory: RunDirectory,
    prepared: Prepared,
    cache: ReplyCache,
    *,
    failures: Mapping[str, Failed],
    negotiated: Mapping[str, Mapping[str, Any]],
    command: str = "",
) -> None:
    """The same collection from recorded replies alone; no socket is opened.

    Raises:
        ReplayMissError: a reply is missing; names stage, item, model and how many are.
    """
    manifest = Manifest(directory)
    write_atomically(directory.config_file, prepared.config.to_yaml())
    manifest.start(prepared.config, {**prepared.facts(), "command": command, "replay": True})
    directory.calls_file.unlink(missing_ok=True)
    with CallLog(directory.calls_file) as log, RowSpool(directory.spool) as spool:
        gateway = Gateway(
            prepared.specs,
            cache=cache,
            budget=Budget(),
            record=log.append,
            offline=True,
            recorded_failures=failures,
            negotiated=negotiated,
        )
        watch = FormWatch(prepared.config, stops=False)
        try:
            async with gateway:
                await _run_collector(directory, prepared, gateway, spool, watch, replaying=True)
            if gateway.misses:
                _refuse(directory, manifest, gateway)
            _write_tables(directory, prepared, spool)
        finally:
            spool.discard()
            manifest.record(log, Spent(usd=log.totals.cost_usd), gateway, watch)
    _finish(directory, prepared, manifest)


def _finish(directory: RunDirectory, prepared: Prepared, manifest: Manifest) -> None:
    try:
        finish_run(directory, prepared.config, manifest)
    except BaseException as error:
        manifest.finish("stopped", reason=_why(error))
        raise


def _why(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return "interrupted"
    return f"{type(error).__name__}: {error}"[:500]


def _refuse(directory: RunDirectory, manifest: Manifest, gateway: Gateway) -> None:
    first = gateway.misses[0]
    label = first.label
    which = f"stage {label.stage}, item {label.item}, model {first.model}"
    details = (("target", label.target), ("draw", label.draw), ("part", label.part))
    extra = "".join(f", {name} {value}" for name, value in details if value)
    message = (
        f"{len(gateway.misses)} response(s) were not recorded; the first: {which}{extra}"
        f" (request {first.key[:12]}…); auxeval resume asks for them"
    )
    manifest.finish("stopped", reason=message)
    raise ReplayMissError(f"{directory.path}: {message}")


async def _run_collector(
    directory: RunDirectory,
    prepared: Prepared,
    gateway: Gateway,
    spool: RowSpool,
    watch: FormWatch,
    *,
    replaying: bool = False,
) -> None:
    embedding = wanted_embedding(prepared.config)
    texts = {item.question for item in prepared.benchmark.items} if embedding is not None else set()

    def take(row: Row) -> None:
        if embedding is not None and isinstance(row, ResponseRow) and row.stage == "auxiliary":
            texts.add(row.text or row.reasoning or "")
        spool.add(row.table, columns_of(row))

    collector = Collector(
        prepared.config,
        prepared.benchmark,
        prepared.labeled,
        gateway,
        prepared.prompts,
        take,
        watch=watch,
        stop_on_failures=not replaying,  # a replay meets the failures of a run that went through, in another order
    )
    await collector.run()
    if embedding is not None:
        slots = prepared.config.model_entry(embedding).max_concurrency
        await fetch_embeddings(embedding, slots, {*texts, ""}, gateway, directory.tables)


async def _at_hand(prepared: Prepared, cache: ReplyCache) -> dict[tuple[str, str], int]:
    """What a pilot has left in the cache, so that the time that is told is that of the calls still to ask."""
    if all(spec.transport == "simulated" for spec in prepared.specs.values()) or not len(cache):
        return {}
    return await calls_at_hand(prepared, cache.directory)


def _refuse_dead_stages(log: CallLog) -> None:
    """A stage without a single answer is an outage, never a result."""
    for name, stage in log.totals.stages.items():
        if stage.failed and stage.failed == stage.calls:
            why = "; ".join(f"{count} × {message}" for message, count in log.failure_messages(name, 3))
            raise RunStopped(f"all {stage.failed} calls of stage {name} failed: {why}", "failure_limit")


def _before_the_ledger(log: CallLog, prior: Mapping[str, float]) -> Spent:
    """What a run of an older version has spent by its log and, without a reply to show for it, by its manifest."""
    calls, tokens = int(prior.get("calls", 0)), int(prior.get("tokens", 0))
    sent, usd = log.totals.calls_sent, float(prior.get("usd", 0.0))
    return Spent(sent + calls, log.totals.tokens, log.totals.cost_usd, tokens, usd, calls)


def _forgive(ledger: Ledger) -> None:
    unknown = ledger.forgive()
    if unknown.possible_calls:
        _LOG.warning(
            "%d attempts of unknown cost, up to %d tokens and $%.4f, count as free from now on",
            unknown.possible_calls, unknown.possible_tokens, unknown.possible_usd,
        )  # fmt: skip


def _transports(prepared: Prepared, given: Mapping[str, Transport] | None) -> dict[str, Transport]:
    transports = dict(given or {})
    if prepared.world is not None:
        from pipeline.models.simulated import simulated_transports

        transports = {**simulated_transports(prepared.world, prepared.specs.values()), **transports}
    transports = with_servers(transports, prepared.specs.values())
    return transports


def _negotiated(manifest: Manifest, name: str, learnt: dict[str, Any]) -> None:
    manifest.update(negotiated={**manifest.values.get("negotiated", {}), name: learnt})


def _prices(gateway: Gateway) -> dict[str, Any]:
    return {name: entry.get("price") for name, entry in gateway.describe().items()}


def _write_tables(directory: RunDirectory, prepared: Prepared, spool: RowSpool) -> None:
    kind = prepared.benchmark.profile_kind
    rows: Iterator[dict[str, Any]] = (
        {
            "item_id": item.item_id,
            "question": item.question,
            "gold": item.gold,
            "choices": None if item.choices is None else list(item.choices),
            "profile": item.profile,
            "labeled": item.item_id in prepared.labeled,
            "split": str(item.metadata.get("split") or "test"),
            "cluster": item.cluster,
        }
        for item in prepared.benchmark.items
    )
    write_rows(directory.tables, items_schema(kind), rows)
    _write_given(directory, prepared.benchmark)
    optional = [PROBABILITIES] if spool.holds(PROBABILITIES.name) else []
    spool.write(directory.tables, [*(schema for name, schema in TABLES.items() if name != "items"), *optional])


def _write_given(directory: RunDirectory, benchmark: Benchmark) -> None:
    """What the file says beyond questions and gold answers: the user's own numbers, and people's ratings."""
    own = [
        {"item_id": item.item_id, "target": target, "signal": name, "value": None if math.isnan(value) else value}
        for item in benchmark.items
        for target, signals in ((None, item.signals), *((name, part.signals) for name, part in item.given.items()))
        for name, value in signals.items()
    ]
    ratings = [
        {"item_id": item.item_id, "target": target, "criterion": criterion, "rating": rating}
        for item in benchmark.items
        for target, part in item.given.items()
        for criterion, rating in part.ratings.items()
    ]
    beside = [
        {"item_id": item.item_id, "target": target, "context": part.context, "reference": item.reference}
        for item in benchmark.items
        for target, part in item.given.items()
        if part.context or item.reference
    ]
    for schema, rows in ((OWN, own), (RATINGS, ratings), (GIVEN, beside)):
        if rows:
            write_rows(directory.tables, schema, rows)


@contextlib.contextmanager
def _disk_full_can_be_resumed(directory: RunDirectory) -> Iterator[None]:
    """A run directory on a disk without room stops the run; every reply paid for is in the cache."""
    try:
        yield
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if not full and "No space left on device" not in str(error):  # as Polars says it
            raise
        raise StoppedEarly(
            f"{directory.path}: no space left on the disk; what was paid for is in the cache: free space, then resume",
            run=directory.path,
            resume_command=directory.resume_command,
        ) from None


@contextlib.asynccontextmanager
async def _interruptible(gateway: Gateway, drain_s: float) -> AsyncIterator[None]:
    """The first Ctrl-C, SIGTERM or SIGHUP stops asking and lets calls in flight land; the second ends at once.

    A SIGHUP that ``nohup`` has ignored stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    pending: list[asyncio.Task[bool]] = []

    def interrupt(name: str) -> None:
        if pending:
            if task is not None:
                task.cancel()
            return
        import sys

        with contextlib.suppress(OSError):  # after a hang-up there is no terminal to tell
            print(
                f"auxeval: {name}: no new calls; waiting up to {drain_s:g} s for those in flight (again to stop at"
                " once)",
                file=sys.stderr,
                flush=True,
            )
        gateway.stop(f"stopped by {name}", "interrupted")
        pending.append(asyncio.ensure_future(gateway.drain(drain_s)))

    wanted = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        wanted.append(signal.SIGHUP)
    handled = [number for number in wanted if _handles(loop, number, interrupt)]
    try:
        yield
    except asyncio.CancelledError:
        if not pending:
            raise
        raise RunStopped("stopped at once by a second interrupt", "interrupted") from None
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def _handles(loop: asyncio.AbstractEventLoop, number: signal.Signals, interrupt: Any) -> bool:
    try:
        loop.add_signal_handler(number, interrupt, number.name)
    except (NotImplementedError, RuntimeError, ValueError):
        return False
    return True
