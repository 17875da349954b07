"""``auxeval run``: collect, assemble, estimate, report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.output import (
    all_option,
    allow_code_option,
    console,
    every_table,
    invocation,
    json_option,
    print_json,
    runs_dir_option,
)

if TYPE_CHECKING:
    from pipeline.runs.interface import RunResult

quiet_option = click.option("--quiet", is_flag=True, help="No progress on stderr.")
budget_option = click.option("--budget-usd", type=float, metavar="X", help="Stop before more than this is spent.")


@click.command()
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--run-id", metavar="ID", help="Name of the run directory (default: date, name and hash).")
@runs_dir_option
@click.option("--limit", type=int, metavar="N", help="Only N items.")
@budget_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask, whatever the forecast says.")
@quiet_option
@allow_code_option
@all_option
@json_option
@click.option(
    "--dask", metavar="ADDRESS|local:N", help="Collect on a Dask scheduler's workers, or on N local processes."
)
def command(
    config: Path | None,
    run_id: str | None,
    runs_dir: str,
    limit: int | None,
    budget_usd: float | None,
    yes: bool,
    quiet: bool,
    as_json: bool,
    dask: str | None,
) -> None:
    """Collect, assemble, estimate, report. Without CONFIG: the embedded default, on simulated models."""
    with interrupts_explained():
        result = _start(dask)(
            config,
            run_id=run_id,
            runs_dir=runs_dir,
            limit=limit,
            budget_usd=budget_usd,
            yes=yes,
            quiet=quiet,
            command=invocation(),
        )
    show_result(result, as_json)


@contextmanager
def interrupts_explained() -> Iterator[None]:
    """An interrupt that reaches us came before the first call: once a run is under way it is a ``StoppedEarly``."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted before anything was asked; there is nothing to resume") from None


def _start(dask: str | None) -> Callable[..., RunResult]:
    if dask is None:
        from pipeline.runs.interface import run

        return run
    from pipeline.runs.distributed import run_distributed

    return partial(run_distributed, **_workers(dask))


def _workers(dask: str) -> dict[str, Any]:
    """``local:N`` or a scheduler's address as arguments of ``run_distributed``."""
    if not dask.startswith("local:"):
        return {"client": dask}
    count = dask.removeprefix("local:")
    if not count.isdecimal() or int(count) < 1:
        raise click.UsageError(f"--dask {dask}: expected local:N with N at least 1, or a scheduler's address")
    return {"workers": int(count)}


def show_result(result: RunResult, as_json: bool) -> None:
    """The estimates and where everything is; or, with ``--json``, the document alone."""
    if as_json:
        print_json(result.estimates.to_dict())
        return
    from pipeline.report.document_tables import with_axis
    from pipeline.report.terminal import print_estimates

    manifest = result.manifest
    benchmark = manifest.get("benchmark") or {}
    simulated = manifest.get("simulated") or []
    mark = " (simulated models)" if simulated else ""
    title = f"{benchmark.get('name')}: {manifest.get('labeled')} of {benchmark.get('items')} items labeled{mark}"
    rated = benchmark.get("grading") == "rating"
    estimates = with_axis(result.estimates, str(benchmark.get("profile") or "profile"))
    print_estimates(console(), estimates, title=title, judged=rated, every=every_table())
    calls = manifest.get("calls") or {}
    cost = manifest.get("cost_usd")
    money = f", ${cost:.4f}" if cost else ""
    click.echo(
        f"calls    {calls.get('answered', 0)} asked, {calls.get('cached', 0)} from the cache,"
        f" {calls.get('failed', 0)} failed; {calls.get('tokens', 0)} tokens{money}"
    )
    click.echo(f"run      {result.path}")
    click.echo(f"report   {result.path / 'report.html'}")
