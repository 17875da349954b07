"""``auxeval resume``: carry on where a run stopped."""

from __future__ import annotations

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import json_option, runs_dir_option
from pipeline.cli.run import budget_option, interrupts_explained, invocation, quiet_option, show_result

__all__ = ["command"]


@click.command()
@click.argument("run", shell_complete=offer_runs)
@runs_dir_option
@budget_option
@quiet_option
@json_option
def command(run: str, runs_dir: str, budget_usd: float | None, quiet: bool, as_json: bool) -> None:
    """Carry on RUN (a directory, or an id under --runs-dir); what has been answered is not asked again."""
    with interrupts_explained():
        from pipeline.runs.interface import resume

        result = resume(run, runs_dir=runs_dir, budget_usd=budget_usd, quiet=quiet, command=invocation())
    show_result(result, as_json)
