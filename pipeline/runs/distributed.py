"""A run whose attempts leave from Dask workers; everything else, and all that must last, stays in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.models.cache import default_cache_dir
from pipeline.models.transport import Transport
from pipeline.runs.connecting import check_workers, connected
from pipeline.runs.interface import ConfigLike, RunResult, in_any_loop, result_of, started
from pipeline.runs.manifest import Manifest
from pipeline.runs.worker_transport import WorkerTransport


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
    command: str = "run_distributed",
) -> RunResult:
    """``run`` with its calls carried out by Dask workers.

    Workers ask this process for work, one attempt at a time, and hand back what the server sent. The cache, the ledger
    of money, the leases and the limits are here, so that tables, bounds and rates are those of one process. A worker
    that dies costs its attempts in the air; ``auxeval resume`` or the same call again carries on a run that stopped.
    Simulated models answer in this process.

    Args:
        config, run_id, runs_dir, limit, budget_usd, yes, quiet, cache_dir: as of :func:`pipeline.run`.
        client: a ``distributed.Client``, or the address of a scheduler; None starts local processes.
        workers: how many local processes to start (2 by default).

    Raises:
        InputError: as :func:`pipeline.run`; the dask extra is missing, no scheduler answers, or a worker lacks
            auxeval, its version or a key.
        StoppedEarly: as :func:`pipeline.run`; the scheduler was lost.
    """
    from pipeline.runs.drive import collect

    cache_path = Path(cache_dir or default_cache_dir()).resolve()
    with (
        started(config, run_id, runs_dir, limit, budget_usd, yes, quiet, None, cache_path) as (directory, prepared),
        connected(client, workers) as opened,
    ):
        real: set[str] = {spec.transport for spec in prepared.specs.values() if spec.transport != "simulated"}
        check_workers(opened, prepared.specs)
        carriers = {
            name: WorkerTransport(name, opened.scheduler.address, opened.security)
            for name in sorted(real)
            if not any(spec.provider == "sim" and spec.transport == name for spec in prepared.specs.values())
        }
        transports: dict[str, Transport] = {**carriers}
        in_any_loop(
            collect(directory, prepared, quiet=quiet, transports=transports, cache_dir=cache_path, command=command)
        )
        used: set[str] = set().union(*(carrier.workers for carrier in carriers.values()))
        lost: set[str] = set().union(*(carrier.lost for carrier in carriers.values()))
        Manifest(directory).update(distributed={"workers": len(used), "workers_lost": len(lost)})
    return result_of(directory)
