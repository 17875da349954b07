"""The Dask side of a distributed run: submitting shards, reading what hosts stored, stopping them."""

from __future__ import annotations

import shutil
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from pipeline.models.budget import Spent
from pipeline.models.cache import ReplyCache
from pipeline.models.entries import decode, entry_from_json
from pipeline.models.merging import Encoded, encoded_after, merge_encoded
from pipeline.models.spec import ModelSpec
from pipeline.runs.leases import Lease
from pipeline.runs.shard import Gathered, ShardWork, collect_shard, final_meter, held_shards, read_since

__all__ = ["Hosts", "LeaseSpent", "lease_name", "work_once"]

_PAGE = 500
_SIGHT = ".seen-by"


class LeaseSpent(Exception):
    """Dask ran a shard a second time by itself: its worker died, and its lease with it."""


_STOPPED: set[str] = set()
"""Sessions that were stopped, as far as this worker process has heard."""


def work_once(work: ShardWork, lease: dict[str, Any], session: str) -> dict[str, Any]:
    """A shard in a Dask worker, under a lease that the first execution alone may take.

    Raises:
        LeaseSpent: this is not the first execution.
    """
    from distributed import Queue, get_client, get_worker

    worker = get_worker()
    task = worker.get_current_task()
    name = lease_name(session, lease["number"])
    try:
        Queue(name, client=get_client()).get(timeout=2)
    except TimeoutError:
        raise LeaseSpent(name) from None

    def should_stop() -> bool:
        """Whether the run was stopped, or its client or its scheduler has gone. Nothing is asked over the network."""
        known = worker.state.tasks.get(task)
        wanted = known is not None and known.state in ("executing", "long-running")
        return not wanted or session in _STOPPED or str(worker.status) not in _AT_WORK

    return collect_shard(work, Lease(**lease), name, should_stop)


_AT_WORK = ("Status.running", "Status.paused", "Status.closing_gracefully")


def lease_name(session: str, number: int) -> str:
    """Name of a lease's queue and meter."""
    return f"{session}-lease-{number}"


def _stop_here(session: str) -> None:
    _STOPPED.add(session)


class Hosts:
    """The workers of one client, by the disks they share.

    Args:
        client: a synchronous ``distributed.Client``.
        folder: on the workers' disks.
        cache_path: the run's cache, on the client's disk.

    Attributes:
        lost: whether the connection to the scheduler is.
        statuses: shard → what its gateway is doing, None where it has ended.
    """

    def __init__(self, client: Any, folder: Path, cache_path: Path) -> None:
        self._client, self.folder, self._cache_path = client, folder, cache_path
        self._cursors: dict[str, dict[int, tuple[int, int]]] = {}
        self._seeded: dict[str, int] = {}
        self.lost = False
        self.statuses: dict[int, dict[str, Any] | None] = {}

    def count(self) -> int:
        """Workers there are."""
        return len(self._client.nthreads())

    def submit(self, function: Callable[..., Any], work: ShardWork, lease: Lease, session: str) -> Any:
        """Start one attempt at a shard, on the host that has its replies if there is one.

        The lease is put where only one execution can take it.
        """
        from distributed import Queue

        name = lease_name(session, lease.number)
        Queue(name, client=self._client).put(lease.number)
        return self._client.submit(
            function,
            work,
            lease.to_dict(),
            session,
            pure=False,
            key=f"{name}-shard-{work.number}",
            workers=self._home(work.number),
        )

    def _home(self, number: int) -> list[str] | None:
        """The live workers of the host where a shard has got furthest; None where it may go anywhere."""
        rows = {host: cursors[number] for host, cursors in self._cursors.items() if number in cursors}
        best = max(rows, key=lambda host: rows[host], default=None)
        return [address for address in self._client.nthreads() if _host(address) == best] or None

    def elsewhere(self, number: int) -> bool:
        """Whether a shard was begun on a host that has gone."""
        return self._home(number) is None and any(number in cursors for cursors in self._cursors.values())

    def finished(self, running: Mapping[Any, Any], seconds: float) -> list[Any]:
        """Futures that have ended, waiting so long for one at most."""
        from distributed import wait

        if not running:
            return []
        try:
            wait(list(running), timeout=seconds, return_when="FIRST_COMPLETED")
        except TimeoutError:
            return []
        except CancelledError:  # by the loss of the scheduler
            self.lost = True
        return [future for future in running if future.done()]

    def died(self, error: BaseException) -> bool:
        """Whether the worker of a shard was lost, rather than its work failing."""
        from distributed import KilledWorker

        return isinstance(error, LeaseSpent | KilledWorker)

    def spent_under(self, session: str, lease: Lease, number: int) -> Spent | None:
        """What a shard whose worker died had spent, or may have; None where no host knows for sure."""
        name = lease_name(session, lease.number)
        found = (self._on(address, final_meter, self.folder, number, name) for address in self._one_each().values())
        return next((spent for spent in found if spent is not None), None)

    def stop(self, session: str) -> None:
        """Tell all workers to stop."""
        self._client.run(_stop_here, session, on_error="ignore")

    def wait_for_quiet(self, seconds: float) -> bool:
        """Wait until no process works on a shard any more, as those of a killed client do for a while."""
        until = time.monotonic() + seconds
        while any(self._on(address, held_shards, self.folder) for address in self._one_each().values()):
            if time.monotonic() > until:
                return False
            time.sleep(0.2)
        return True

    def gather(self) -> Iterable[Gathered]:
        """What shards stored since the last call, a page at a time, from one live worker of each host."""
        for host, address in self._one_each().items():
            cursors = self._cursors.setdefault(host, {})
            while True:
                parts = self._on(address, read_since, self.folder, cursors, _PAGE) or []
                self.statuses.update({part.number: part.status for part in parts})
                news = [part for part in parts if part.entries or part.lines]
                for part in news:
                    yield part
                    cursors[part.number] = (part.row, part.offset)
                if not news:
                    break

    def seed(self, cache: ReplyCache, specs: Iterable[ModelSpec]) -> None:
        """Send hosts that cannot see the run's cache the replies of this run's models that it holds."""
        token = uuid.uuid4().hex
        sight = self._cache_path / _SIGHT
        sight.write_text(token, encoding="ascii")
        wanted = {(spec.model, spec.endpoint) for spec in specs}
        for host, address in self._one_each().items():
            if self._on(address, _sees, sight, token, socket.gethostname()):
                continue
            row = self._seeded.get(host, 0)
            while rows := encoded_after(self._cache_path, row, _PAGE):
                chosen = [one for one in rows if _is_of(one, wanted)]
                if chosen:
                    self._on(address, _store, self.folder / "seed", chosen)
                row = rows[-1][0]
            self._seeded[host] = row
        sight.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove the shards' folders: everything in them is merged."""
        for address in self._one_each().values():
            self._on(address, _remove, self.folder)

    def _one_each(self) -> dict[str, str]:
        """Host → the address of one of its workers."""
        return {_host(address): address for address in sorted(self._client.nthreads())}

    def _on(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function on one worker; None where the worker has just died."""
        try:
            results = self._client.run(function, *arguments, workers=[address], on_error="ignore")
        except (OSError, ValueError):
            return None
        return results.get(address)


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _sees(sight: Path, token: str, host: str) -> bool:
    """Whether this worker is on the client's own host and sees its cache (SQLite does not share over a network)."""
    if socket.gethostname() != host or not sight.exists():
        return False
    return sight.read_text(encoding="ascii") == token


def _store(folder: Path, rows: list[Encoded]) -> int:
    with ReplyCache(folder) as cache:
        return merge_encoded(rows, cache).added


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _is_of(row: Encoded, wanted: set[tuple[str, str | None]]) -> bool:
    _, key, value = row
    if key.startswith("note:"):
        return True
    try:
        request = entry_from_json(decode(key, value)).request
    except ValueError:
        return False
    return (request.model, request.endpoint) in wanted
