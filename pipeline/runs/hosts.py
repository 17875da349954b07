"""The Dask side of a distributed run: submitting shards, reading what hosts stored, stopping them."""

from __future__ import annotations

import shutil
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.models.cache import ReplyCache
from pipeline.models.entries import decode, entry_from_json
from pipeline.models.merging import Encoded, encoded_after, merge_encoded
from pipeline.models.spec import ModelSpec
from pipeline.runs.leases import Lease
from pipeline.runs.shard import Gathered, ShardWork, collect_shard, read_since

__all__ = ["Hosts", "LeaseSpent", "work_once"]

_PAGE = 500
_SIGHT = ".seen-by"


class LeaseSpent(Exception):
    """Dask ran a shard a second time by itself: its worker died, and its lease with it."""


def work_once(work: ShardWork, lease: dict[str, Any], queue: str, stop: str) -> dict[str, Any]:
    """A shard in a Dask worker, under a lease that the first execution alone may take.

    Raises:
        LeaseSpent: this is not the first execution.
    """
    from distributed import Event, Queue, get_client, get_worker

    client, worker = get_client(), get_worker()
    task = worker.get_current_task()
    try:
        Queue(queue, client=client).get(timeout=2)
    except TimeoutError:
        raise LeaseSpent(queue) from None
    stopped = Event(stop, client=client)

    def should_stop() -> bool:
        """Whether the run was stopped, or its client has gone."""
        known = worker.state.tasks.get(task)
        return known is None or known.state not in ("executing", "long-running") or bool(stopped.is_set())

    return collect_shard(work, Lease(**lease), should_stop)


class Hosts:
    """The workers of one client, by the disks they share.

    Args:
        client: a synchronous ``distributed.Client``.
        folder: on the workers' disks.
        cache_path: the run's cache, on the client's disk.
    """

    def __init__(self, client: Any, folder: Path, cache_path: Path) -> None:
        self._client, self.folder, self._cache_path = client, folder, cache_path
        self._cursors: dict[str, dict[int, tuple[int, int]]] = {}
        self._seeded: dict[str, int] = {}

    def count(self) -> int:
        """Workers there are.

        Raises:
            InputError: none.
        """
        found = len(self._client.nthreads())
        if not found:
            raise InputError("the Dask scheduler has no worker; start some with dask worker ADDRESS")
        return found

    def submit(self, function: Callable[..., Any], work: ShardWork, lease: Lease, name: str) -> Any:
        """Start one attempt at a shard; the lease is put where only one execution can take it."""
        from distributed import Queue

        queue = f"{name}-lease-{lease.number}"
        Queue(queue, client=self._client).put(lease.number)
        return self._client.submit(
            function, work, lease.to_dict(), queue, f"{name}-stop", pure=False, key=f"{queue}-shard-{work.number}"
        )

    def finished(self, running: Mapping[Any, Any], seconds: float) -> list[Any]:
        """Futures that have ended, waiting so long for one at most."""
        from distributed import wait

        if not running:
            return []
        try:
            wait(list(running), timeout=seconds, return_when="FIRST_COMPLETED")
        except TimeoutError:
            return []
        return [future for future in running if future.done()]

    def died(self, error: BaseException) -> bool:
        """Whether the worker of a shard was lost, rather than its work failing."""
        from distributed import KilledWorker

        return isinstance(error, LeaseSpent | KilledWorker)

    def stop(self, name: str) -> None:
        """Tell all shards to stop."""
        from distributed import Event

        Event(f"{name}-stop", client=self._client).set()

    def gather(self) -> Iterable[Gathered]:
        """What shards stored since the last call, a page at a time, from one live worker of each host."""
        for host, address in self._one_each().items():
            cursors = self._cursors.setdefault(host, {})
            while True:
                parts = self._on(address, read_since, self.folder, cursors, _PAGE) or []
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
        return {address.rpartition(":")[0]: address for address in sorted(self._client.nthreads())}

    def _on(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function on one worker; None where the worker has just died."""
        try:
            results = self._client.run(function, *arguments, workers=[address], on_error="ignore")
        except (OSError, ValueError):
            return None
        return results.get(address)


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
