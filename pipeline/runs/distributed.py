"""A run's items split over Dask workers: leases out, replies and log lines in, then the run over the merged cache."""

from __future__ import annotations

import json
import logging
import shlex
import socket
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline.collection.collector import example_pool
from pipeline.errors import StoppedEarly
from pipeline.models.budget import Spent
from pipeline.models.cache import ReplyCache, default_cache_dir
from pipeline.models.merging import MergeReport, merge_encoded
from pipeline.models.stopping import RunStopped
from pipeline.runs.call_log import CallLog
from pipeline.runs.connecting import check_workers, connected, terminable
from pipeline.runs.directory import RunDirectory, create_run, write_atomically
from pipeline.runs.hosts import Hosts, work_once
from pipeline.runs.interface import ConfigLike, RunResult, confirm, in_any_loop, load_env_file, result_of
from pipeline.runs.leases import Lease, LeaseBook, dealt_items, divided_specs, most_shards, restart_pause_s
from pipeline.runs.manifest import Manifest
from pipeline.runs.progress import planned_calls
from pipeline.runs.setup import Prepared, check_ready, prepare, resolve_config, save_prompts
from pipeline.runs.shard import ShardWork, shards_folder, spent_of
from pipeline.runs.worker_progress import WorkersProgress

__all__ = ["run_distributed"]

_LOG = logging.getLogger(__name__)
_MOST_DEATHS = 5


def run_distributed(
    config: ConfigLike = None,
    *,
    client: Any = None,
    workers: int | None = None,
    run_id: str | None = None,
    runs_dir: str | Path = "runs",
    limit: int | None = None,
    budget_usd: float | None = None,
    yes: bool = False,
    quiet: bool = True,
    cache_dir: str | Path | None = None,
    local_dir: str | Path | None = None,
    gather_s: float = 5.0,
    command: str = "run_distributed",
) -> RunResult:
    """``run`` with its items split over Dask workers.

    Every worker process collects its share with a collector and a cache of its own, under a lease: a part of the
    budget, and 1/N of each model's concurrency, rpm and tpm, so that N workers never exceed what one may spend. Every
    ``gather_s`` seconds, and at the end, replies and log lines are merged into the run's cache and log. Tables,
    estimates and report are then made here, by an ordinary run over the merged cache: they are those of one process.
    A worker that dies costs its calls in flight; its shard is carried on over what it stored. ``auxeval resume`` or
    the same call again carries on a run that stopped.

    Args:
        config, run_id, runs_dir, limit, budget_usd, yes, quiet, cache_dir: as of :func:`pipeline.run`.
        client: a ``distributed.Client``, or the address of a scheduler; None starts local processes.
        workers: how many take part (local ones: 2 by default; a cluster's: all); no more than a model has slots.
        local_dir: folder on the workers' own disks, a relative one under the directory that each worker was started
            in; by default an absolute path beside the cache.
        gather_s: seconds between merges: what the loss of a whole host, disk and all, can cost.

    Raises:
        InputError: as :func:`pipeline.run`; the dask extra is missing, no scheduler answers, or a worker lacks
            auxeval, its version or a key.
        StoppedEarly: budget, interrupt, a provider's refusal, the scheduler lost; everything paid for is merged.
    """
    load_env_file()
    resolved = resolve_config(config, limit=limit, budget_usd=budget_usd)
    directory = create_run(resolved, run_id=run_id, runs_dir=Path(runs_dir))
    prepared = prepare(resolved, directory if directory.config_file.exists() else None)
    check_ready(prepared)
    cache_path = Path(cache_dir or default_cache_dir()).resolve()
    if not yes:
        confirm(prepared, cache_path)
    folder = shards_folder(Path(local_dir) if local_dir else cache_path.parent / "workers", directory, prepared)
    with connected(client, workers) as opened, terminable(prepared.config.drain_s):
        check_workers(opened, divided_specs(prepared.specs, 1, 0))
        with directory.locked():
            hosts = Hosts(opened, folder, cache_path)
            facts = _Session(directory, prepared, hosts, cache_path, gather_s, command, quiet).collect(workers)
            hosts.tidy()
            from pipeline.runs.drive import collect

            in_any_loop(collect(directory, prepared, quiet=quiet, cache_dir=cache_path, command=command))
            Manifest(directory).update(distributed=facts)
    return result_of(directory)


@dataclass(slots=True)
class _Shards:
    """One phase: who waits, who runs, who could not start a call under its lease."""

    works: list[ShardWork]
    waiting: deque[int]
    running: dict[Any, tuple[int, Lease, bool]] = field(default_factory=dict)
    starved: deque[int] = field(default_factory=deque)
    deaths: Counter[int] = field(default_factory=Counter)
    started: set[int] = field(default_factory=set)


class _Session:
    """Everything between the first lease and the last merge."""

    def __init__(
        self,
        directory: RunDirectory,
        prepared: Prepared,
        hosts: Hosts,
        cache_path: Path,
        gather_s: float,
        command: str,
        quiet: bool,
    ) -> None:
        self._directory, self._prepared, self._hosts = directory, prepared, hosts
        self._cache_path, self._gather_s, self._command, self._quiet = cache_path, gather_s, command, quiet
        self._manifest = Manifest(directory)
        self._name = f"auxeval-{directory.path.name}-{uuid.uuid4().hex[:8]}"
        self._merged = MergeReport()
        self._deaths = 0
        self._answered: Counter[int] = Counter()
        self._pause_s = 0.0

    def collect(self, workers: int | None) -> dict[str, Any]:
        """Collect all items on the workers; the run's cache and log hold everything when it returns or raises.

        Returns:
            What the manifest says about it.
        """
        shards = most_shards(self._prepared.specs, min(self._hosts.count(), workers or self._hosts.count()))
        since = self._begin()
        with ReplyCache(self._cache_path) as cache, CallLog(self._directory.calls_file, crashed_since=since) as log:
            self._hosts.wait_for_quiet(self._prepared.config.drain_s + 10.0)
            self._gather(cache, log)
            book = self._book(log)
            planned = planned_calls(self._prepared)
            try:
                with WorkersProgress(log, planned, self._hosts.statuses, self._answered, quiet=self._quiet) as progress:
                    for split in self._phases(shards):
                        self._hosts.seed(cache, self._prepared.specs.values())
                        self._run_phase(split, since, book, cache, log, progress)
                self._wait_before_asking_again(log)
            except (RunStopped, KeyboardInterrupt) as stop:
                reason = stop.reason if isinstance(stop, RunStopped) else "stopped by an interrupt"
                self._record(log, book, shards)
                self._manifest.finish("stopped", reason=reason)
                command = f"auxeval resume {shlex.quote(str(self._directory.path))}"
                raise StoppedEarly(reason, run=self._directory.path, resume_command=command) from None
            except BaseException as error:
                self._record(log, book, shards)
                self._manifest.finish("stopped", reason=f"{type(error).__name__}: {error}"[:500])
                raise
            return self._record(log, book, shards)

    def _begin(self) -> str:
        """Open the run; the time since when replies in the cache may be this run's own."""
        values = self._manifest.values
        crashed = values.get("started_at") if values.get("state") == "running" else None
        if not self._directory.config_file.exists():
            save_prompts(self._prepared.prompts, self._directory.path / "prompts")
        write_atomically(self._directory.config_file, self._prepared.config.to_yaml())
        self._manifest.start(self._prepared.config, {**self._prepared.facts(), "command": self._command})
        if crashed:
            self._manifest.update(started_at=crashed)
        return str(self._manifest.values["started_at"])

    def _book(self, log: CallLog) -> LeaseBook:
        """The run's bounds, less what earlier sessions spent, or may have without a line in the log."""
        bounds, prior = self._prepared.config.budget, self._manifest.prior_spend
        spent = Spent(
            calls=log.totals.calls_sent + prior.calls,
            tokens=log.totals.tokens + prior.tokens,
            usd=log.totals.cost_usd + prior.usd,
        )
        return LeaseBook(usd=bounds.usd, calls=bounds.calls, tokens=bounds.tokens, spent=spent)

    def _phases(self, shards: int) -> Iterator[list[Prepared]]:
        """First the labeled items that all others are shown as examples, if any; then every item, split evenly."""
        run = self._prepared
        pool = set(example_pool(run.config, run.labeled))
        first = [item for item in run.benchmark.items if item.item_id in pool]
        others = [item for item in run.benchmark.items if item.item_id not in pool]
        if first:
            alone = replace(run.benchmark, items=tuple(first))
            yield [replace(run, benchmark=alone, specs=divided_specs(run.specs, 1, 0))]
        hands = dealt_items(others, shards)
        for number, hand in enumerate(hands):
            hands[number] = [*first, *hand]
        yield [
            replace(
                run,
                benchmark=replace(run.benchmark, items=tuple(hand)),
                specs=divided_specs(run.specs, len(hands), number),
            )
            for number, hand in enumerate(hands)
        ]

    def _run_phase(
        self,
        split: list[Prepared],
        since: str,
        book: LeaseBook,
        cache: ReplyCache,
        log: CallLog,
        progress: WorkersProgress,
    ) -> None:
        home, folder, path = socket.gethostname(), self._hosts.folder, self._cache_path
        known = None if self._prepared.world is None else self._prepared.benchmark.items
        works = [
            ShardWork(k, len(split), replace(part, world=None), known, folder, home, path, since, self._pause_s)
            for k, part in enumerate(split)
        ]
        self._pause_s = restart_pause_s(self._prepared.specs)
        shards = _Shards(works, deque(range(len(works))))
        try:
            while shards.waiting or shards.running or shards.starved:
                self._start(shards, book, cache)
                finished = self._hosts.finished(shards.running, self._gather_s)
                self._gather(cache, log)
                progress.show()
                for future in finished:
                    self._end(shards, future, book)
        except OSError as error:
            self._hosts.lost = True
            raise RunStopped(f"the connection to the Dask scheduler was lost ({error})", "interrupted") from None
        except BaseException:
            if not self._hosts.lost:  # else the workers stop by themselves, and resume merges what they stored
                self._stop(shards, book)
                self._gather(cache, log)
            raise
        finally:
            for _, lease, _ in shards.running.values():
                book.settle(lease, Spent()) if self._hosts.lost else book.forfeit(lease)

    def _start(self, shards: _Shards, book: LeaseBook, cache: ReplyCache) -> None:
        """Lease and submit what waits: half of what is free, split evenly; all of it to the last that is starved."""
        alone = not shards.waiting and not shards.running
        if alone:
            shards.waiting.append(shards.starved.popleft())
        while shards.waiting:
            share = 1.0 if alone else 1.0 / (len(shards.works) + len(shards.waiting))
            number = shards.waiting.popleft()
            lease = book.grant(share)
            work = shards.works[number]
            if number in shards.started:
                work = replace(work, pause_s=restart_pause_s(work.prepared.specs))
                if self._hosts.elsewhere(number):
                    self._hosts.seed(cache, self._prepared.specs.values())
            shards.started.add(number)
            shards.running[self._hosts.submit(work_once, work, lease, self._name)] = (number, lease, alone)

    def _end(self, shards: _Shards, future: Any, book: LeaseBook) -> None:
        if self._hosts.lost or future.status in ("lost", "cancelled"):
            raise RunStopped("the connection to the Dask scheduler was lost", "interrupted")
        number, lease, alone = shards.running.pop(future)
        error = future.exception()
        if error is not None:
            if not self._hosts.died(error):
                raise error
            self._bury(shards, number, lease, book)
            return
        result = future.result()
        spent = spent_of(result["spent"])
        book.settle(lease, spent)
        if result["state"] == "done":
            return
        if result["state"] != "budget" or alone:
            raise RunStopped(result["reason"], "budget" if result["state"] == "budget" else "interrupted")
        (shards.waiting if spent.calls else shards.starved).append(number)

    def _bury(self, shards: _Shards, number: int, lease: Lease, book: LeaseBook) -> None:
        """A worker died: what it spent, calls in flight included, is known from its meter; its shard is carried on."""
        spent = self._hosts.spent_under(self._name, lease, number)
        if spent is None:
            book.forfeit(lease)
        else:
            book.settle(lease, spent)
        self._deaths += 1
        shards.deaths[number] += 1
        _LOG.warning("the worker of shard %d died; the shard is carried on", number)
        if shards.deaths[number] > _MOST_DEATHS:
            raise RunStopped(f"shard {number} lost its worker {shards.deaths[number]} times", "interrupted")
        shards.waiting.append(number)

    def _stop(self, shards: _Shards, book: LeaseBook) -> None:
        """No new calls anywhere; those in flight have ``drain_s`` to land."""
        self._hosts.stop(self._name)
        until = time.monotonic() + self._prepared.config.drain_s + 10.0
        while shards.running and time.monotonic() < until:
            for future in self._hosts.finished(shards.running, 1.0):
                _, lease, _ = shards.running.pop(future)
                if future.status == "finished":
                    book.settle(lease, spent_of(future.result()["spent"]))

    def _wait_before_asking_again(self, log: CallLog) -> None:
        """Calls that failed for good are asked once more from here, at the full rate: not in the same minute."""
        if any(stage.failed for stage in log.totals.stages.values()):
            time.sleep(restart_pause_s(self._prepared.specs))

    def _gather(self, cache: ReplyCache, log: CallLog) -> None:
        """Merge what the workers stored since the last time."""
        for part in self._hosts.gather():
            report = merge_encoded(part.entries, cache)
            self._merged += report
            for key, problem in report.damaged:
                _LOG.warning("shard %d: entry %.16s… is damaged (%s) and left out", part.number, key, problem)
            lines = part.lines.splitlines()
            self._answered[part.number] += len(lines)
            for line in lines:
                log.append_line(json.loads(line))

    def _record(self, log: CallLog, book: LeaseBook, shards: int) -> dict[str, Any]:
        totals = log.totals.to_dict()
        unlogged = book.beyond(calls=log.totals.calls_sent, tokens=log.totals.tokens, usd=log.totals.cost_usd)
        facts = {
            "shards": shards,
            "merged": self._merged.added,
            "damaged": len(self._merged.damaged),
            "workers_lost": self._deaths,
            "possibly_charged": unlogged,
        }
        self._manifest.update(calls=totals, cost_usd=totals["cost_usd"], distributed=facts, prior_spend=unlogged)
        return facts
