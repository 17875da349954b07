"""Reaching Dask: a client, and workers that can do the run's work, before anything is asked."""

from __future__ import annotations

import logging
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from pipeline.dask_client import import_distributed, scheduler_client
from pipeline.errors import ConfigError, InputError
from pipeline.models.providers import check_credentials, with_credentials, without_credentials
from pipeline.models.spec import ModelSpec

_NAMED = 3


@contextmanager
def connected(client: Any, workers: int | None) -> Iterator[Any]:
    """A client: the caller's own, one of the scheduler at an address, or one of local processes.

    Raises:
        InputError: the dask extra is missing, or no scheduler answers.
    """
    if isinstance(client, str):
        with scheduler_client(client) as opened:
            yield opened
        return
    if client is not None:
        yield client
        return
    # A stream that is cut while the cluster is stopped is no news; Dask logs it with its traceback.
    logging.getLogger("distributed.batched").setLevel(logging.CRITICAL)
    Client, LocalCluster = import_distributed().Client, import_distributed().LocalCluster
    with _deaf_to_interrupts():
        # What a worker says of a scheduler that Ctrl-C has stopped is a traceback and no news; lost ones are counted.
        cluster = LocalCluster(
            n_workers=workers or 2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        )
    with cluster, Client(cluster) as own:
        yield own


def check_workers(client: Any, specs: Mapping[str, ModelSpec]) -> None:
    """Refuse workers that could not do the work, before anything is asked or written.

    Raises:
        InputError: there are none, or some have no auxeval, another version of it, or lack a key.
    """
    served = [name for name, spec in specs.items() if spec.is_served]
    if served:
        raise ConfigError(f"models.{served[0]}: serve starts a server on this machine; workers elsewhere need api_base")
    if not client.nthreads():
        raise InputError("the Dask scheduler has no worker; start some with dask worker ADDRESS")
    ours = version("auxeval")
    versions = client.run(version, "auxeval", on_error="return")
    without = [address for address, answer in versions.items() if isinstance(answer, BaseException)]
    if without:
        raise InputError(
            f"auxeval is not installed for the Dask workers {_named(without)}; install auxeval {ours} with its dask"
            " extra in the environment that dask worker is started in"
        )
    others = {address: answer for address, answer in versions.items() if answer != ours}
    if others:
        raise InputError(
            f"the Dask workers {_named(list(others))} have auxeval {', '.join(sorted(set(others.values())))} and this"
            f" is {ours}, which may ask in other words; install the same version everywhere"
        )
    problems: dict[str, list[str]] = defaultdict(list)
    keyless = {name: without_credentials(spec) for name, spec in specs.items()}
    for address, problem in client.run(_missing_key, keyless, on_error="return").items():
        if problem is not None:
            problems[str(problem)].append(address)
    for problem, addresses in problems.items():
        raise InputError(
            f"{problem} (Dask workers {_named(addresses)}); keys are read from the environment that dask worker is"
            " started in, and are never sent"
        )


def _missing_key(specs: dict[str, ModelSpec]) -> str | None:
    """What a worker's environment lacks; names a variable, never a value."""
    try:
        check_credentials({name: with_credentials(spec) for name, spec in specs.items()})
    except ConfigError as error:
        return str(error).partition(";")[0]
    return None


def _named(addresses: list[str]) -> str:
    listed = ", ".join(sorted(addresses)[:_NAMED])
    return listed if len(addresses) <= _NAMED else f"{listed} and {len(addresses) - _NAMED} more"


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started within do not hear Ctrl-C: a terminal sends it to all, and the client stops them in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
