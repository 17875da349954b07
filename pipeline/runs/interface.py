"""The Python interface: run, resume, replay, in a script or inside a notebook's running event loop."""

from __future__ import annotations

import asyncio
import logging
import shlex
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pipeline.benchmark.data_checks import check_data
from pipeline.config import RunConfig
from pipeline.errors import StoppedEarly
from pipeline.evaluation.document import EstimateSet, read_estimates
from pipeline.models.transport import Transport
from pipeline.runs.confirmation import confirm_cost, confirm_paid_again
from pipeline.runs.directory import RunDirectory, create_run, find_run
from pipeline.runs.frames import RunTables
from pipeline.runs.manifest import restore_manifest
from pipeline.runs.own_runs import edited_source, record_run
from pipeline.runs.setup import Prepared, check_ready, prepare, resolve_config, with_settings

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
ConfigLike = RunConfig | Mapping[str, Any] | str | Path | None


@dataclass(frozen=True, slots=True)
class RunResult:
    """A finished run.

    Attributes:
        path: its directory.
        state: ``done``.
        manifest: versions, hashes, seeds, counts, cost.
        estimates: target → method → Estimate or Profile, and gaps, best-of-N values, warnings.
        tables: the tables as polars frames (``tables.responses``, …).
    """

    path: Path
    state: str
    manifest: Mapping[str, Any]
    estimates: EstimateSet
    tables: RunTables


def load_run(path: str | Path, *, runs_dir: str | Path = "runs") -> RunResult:
    """A finished run, from its directory or id.

    Raises:
        InputError: no such run, or it has no estimates yet.
    """
    return result_of(find_run(path, Path(runs_dir)))


def result_of(directory: RunDirectory) -> RunResult:
    """What a finished run directory holds."""
    manifest = directory.manifest()
    estimates = read_estimates(directory.estimates_file)
    return RunResult(directory.path, str(manifest.get("state")), manifest, estimates, RunTables(directory.tables))


async def run_async(
    config: ConfigLike = None,
    *,
    run_id: str | None = None,
    runs_dir: str | Path = "runs",
    limit: int | None = None,
    budget_usd: float | None = None,
    yes: bool = False,
    quiet: bool = True,
    transports: Mapping[str, Transport] | None = None,
    cache_dir: str | Path | None = None,
    command: str = "pipeline.run",
) -> RunResult:
    """Collect, assemble, estimate, report. See :func:`run`."""
    with started(config, run_id, runs_dir, limit, budget_usd, yes, quiet, transports, cache_dir) as (directory, ready):
        await _collect(directory, ready, quiet, transports, cache_dir, command)
    return result_of(directory)


@contextmanager
def started(
    config: ConfigLike,
    run_id: str | None,
    runs_dir: str | Path,
    limit: int | None,
    budget_usd: float | None,
    yes: bool,
    quiet: bool,
    transports: Mapping[str, Transport] | None,
    cache_dir: str | Path | None,
) -> Iterator[tuple[RunDirectory, Prepared]]:
    """Everything before the first call of a run; the run is locked inside."""
    load_env_file()
    resolved = resolve_config(config, limit=limit, budget_usd=budget_usd, trusted=True)
    directory = create_run(resolved, run_id=run_id, runs_dir=Path(runs_dir))
    carried_on = directory if directory.config_file.exists() else None
    if carried_on is not None:
        with directory.locked():
            restore_manifest(directory)
    prepared = prepare(resolved, carried_on, need_keys=not transports)
    if not transports:
        check_ready(prepared)
        _tell_of_unbounded_replies(prepared, quiet)
    _tell_of_the_data(prepared, quiet)
    if not yes:
        confirm_cost(prepared, Path(cache_dir) if cache_dir else None)
        if carried_on is not None and not transports:
            confirm_paid_again(carried_on, prepared, Path(cache_dir) if cache_dir else None)
    with directory.locked():
        record_run(resolved, directory.path, Path(config) if isinstance(config, str | Path) else None)
        yield directory, replace(prepared, stop_on_form=not yes)


async def resume_async(
    run: str | Path,
    *,
    runs_dir: str | Path = "runs",
    budget_usd: float | None = None,
    quiet: bool = True,
    transports: Mapping[str, Transport] | None = None,
    cache_dir: str | Path | None = None,
    command: str = "pipeline.resume",
    forgive_unknown: bool = False,
    settings: Mapping[str, Any] | None = None,
    yes: bool = False,
    rebuild: bool = False,
) -> RunResult:
    """Carry a run on. See :func:`resume`."""
    with _reopened(run, runs_dir, budget_usd, quiet, transports, settings, yes, rebuild, cache_dir) as (
        directory,
        prepared,
    ):
        await _collect(directory, prepared, quiet, transports, cache_dir, command, forgive_unknown)
    return result_of(directory)


@contextmanager
def _reopened(
    run: str | Path,
    runs_dir: str | Path,
    budget_usd: float | None,
    quiet: bool,
    transports: Mapping[str, Transport] | None,
    settings: Mapping[str, Any] | None,
    yes: bool,
    rebuild: bool,
    cache_dir: str | Path | None,
) -> Iterator[tuple[RunDirectory, Prepared]]:
    """Everything before the first call of a run that is carried on; the run is locked inside."""
    load_env_file()
    directory = find_run(run, Path(runs_dir))
    with directory.locked():
        restore_manifest(directory, damaged=rebuild)
        config = resolve_config(directory.own_config(asks=not transports), budget_usd=budget_usd)
        _tell_of_an_edited_config(directory, config)
        config = with_settings(config, settings or {})
        prepared = prepare(config, directory, need_keys=not transports)
        if not transports:
            check_ready(prepared)
            _tell_of_unbounded_replies(prepared, quiet)
            if not yes:
                confirm_paid_again(directory, prepared, Path(cache_dir) if cache_dir else None)
        yield directory, prepared


def _tell_of_the_data(prepared: Prepared, quiet: bool) -> None:
    """Say once, before anything is asked, what of the items puts numbers at risk."""
    if not quiet:
        for finding in check_data(prepared.benchmark):
            if finding.warns:
                _LOG.warning("%s", finding.message)


def _tell_of_an_edited_config(directory: RunDirectory, config: RunConfig) -> None:
    """Say so where a run is carried on under another configuration than it began with."""
    began_with = directory.manifest().get("config_sha256")
    if began_with is not None and began_with != config.digest():
        _LOG.warning(
            "%s was edited since the run began: tables and estimates will follow the edited one, and calls.jsonl keeps"
            " the calls of both; a new run (auxeval run CONFIG) keeps them apart and still asks nothing twice",
            directory.config_file,
        )
    source = edited_source(directory.path)
    if source is not None:
        _LOG.warning(
            "%s was edited since this run was started from it: the run goes on with what it began with (%s); for the"
            " edited one: auxeval run %s, which asks nothing twice",
            source, directory.config_file, shlex.quote(str(source)),
        )  # fmt: skip


async def _collect(
    directory: RunDirectory,
    prepared: Prepared,
    quiet: bool,
    transports: Mapping[str, Transport] | None,
    cache_dir: str | Path | None,
    command: str,
    forgive_unknown: bool = False,
) -> None:
    from pipeline.runs.drive import collect

    await collect(
        directory,
        prepared,
        quiet=quiet,
        transports=transports,
        cache_dir=Path(cache_dir) if cache_dir else None,
        command=command,
        forgive_unknown=forgive_unknown,
    )


def run(
    config: ConfigLike = None,
    *,
    run_id: str | None = None,
    runs_dir: str | Path = "runs",
    limit: int | None = None,
    budget_usd: float | None = None,
    yes: bool = False,
    **options: Any,
) -> RunResult:
    """Collect, assemble, estimate, report; works inside a running event loop too.

    Args:
        config: a YAML file, a mapping, a :class:`RunConfig`, or None for the embedded default (simulated models).
        run_id: name of the run directory; ``<date>-<name>-<hash>`` by default. An existing run with the same
            configuration is carried on: nothing is asked twice.
        runs_dir: where run directories are.
        limit: only so many items.
        budget_usd: stop before more than this is spent.
        yes: go ahead whatever the forecast says.
        options: ``quiet``, ``transports``, ``cache_dir`` as of :func:`run_async`.

    Raises:
        InputError: the configuration or its data cannot be used; nothing was asked.
        StoppedEarly: budget, interrupt, a provider's refusal; everything paid for is stored, ``resume`` carries on.
    """
    quiet, transports, cache_dir, command = _options("pipeline.run", **options)
    with started(config, run_id, runs_dir, limit, budget_usd, yes, quiet, transports, cache_dir) as (directory, ready):
        _to_its_end(directory, _collect(directory, ready, quiet, transports, cache_dir, command))
    return result_of(directory)


def _options(
    name: str,
    quiet: bool = True,
    transports: Mapping[str, Transport] | None = None,
    cache_dir: str | Path | None = None,
    command: str | None = None,
) -> tuple[bool, Mapping[str, Transport] | None, str | Path | None, str]:
    return quiet, transports, cache_dir, command or name


def _to_its_end(directory: RunDirectory, work: Coroutine[Any, Any, None]) -> None:
    """Collect and finish; an interrupt that no one drained for leaves a run that can be resumed."""
    try:
        in_any_loop(work)
    except KeyboardInterrupt:
        if not directory.config_file.exists():
            raise
        raise StoppedEarly("interrupted", run=directory.path, resume_command=directory.resume_command) from None


def resume(
    run: str | Path,
    *,
    runs_dir: str | Path = "runs",
    budget_usd: float | None = None,
    forgive_unknown: bool = False,
    settings: Mapping[str, Any] | None = None,
    yes: bool = False,
    rebuild: bool = False,
    **options: Any,
) -> RunResult:
    """Carry on where a run stopped; what has been answered is not asked again.

    Args:
        run: a run directory, or an id under ``runs_dir``.
        budget_usd: a new bound on what the whole run may spend.
        forgive_unknown: attempts whose cost nobody knows (no reply came, or one without usage) count as free from now
            on; until then they count at the most that they may have cost.
        settings: what changes how a run asks and nothing that it asks: concurrency, rates, time-outs, drain, as
            ``{"models.gpt.max_concurrency": 4, "attempt_timeout_s": 300}``.

    Raises:
        InputError, StoppedEarly: as :func:`run`.
    """
    quiet, transports, cache_dir, command = _options("pipeline.resume", **options)
    with _reopened(run, runs_dir, budget_usd, quiet, transports, settings, yes, rebuild, cache_dir) as (
        directory,
        prepared,
    ):
        work = _collect(directory, prepared, quiet, transports, cache_dir, command, forgive_unknown)
        _to_its_end(directory, work)
    return result_of(directory)


def replay(
    source: str | Path, *, out: str | Path | None = None, runs_dir: str | Path = "runs", **options: Any
) -> RunResult:
    """The same run from recorded responses alone, without network.

    Args:
        source: a run (directory or id) or a cassette file.
        out: directory of the new run; ``<run>-replay`` beside the run, or under ``runs_dir`` for a cassette.

    Raises:
        ReplayMissError: a response is missing; names stage, item, model and how many are.
    """
    from pipeline.runs.replay import replay_async

    return in_any_loop(replay_async(source, out=out, runs_dir=runs_dir, **options))


def in_any_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end: here, or in a thread of its own where this thread's loop is already running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    outcome: list[T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target, name="auxeval-run")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def load_env_file() -> None:
    """Variables of ``.env`` in the working directory; what the environment already has wins."""
    from dotenv import load_dotenv

    load_dotenv(Path.cwd() / ".env", override=False)


def _tell_of_unbounded_replies(prepared: Prepared, quiet: bool) -> None:
    """Say once which entries a money bound reserves an assumed reply length for."""
    from pipeline.models.pricing import ASSUMED_MAX_TOKENS, unbounded_replies
    from pipeline.runs.embeddings import embeds_only

    if quiet or prepared.config.budget.usd is None:
        return
    names = [name for name in unbounded_replies(prepared.specs) if not embeds_only(prepared.config, name)]
    if names:
        _LOG.warning(
            "params of models %s name no max_tokens; the budget reserves %d tokens for each of their replies",
            ", ".join(names),
            ASSUMED_MAX_TOKENS,
        )
