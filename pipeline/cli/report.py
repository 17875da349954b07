"""``auxeval report``: (re)build the report of a run."""

from __future__ import annotations

import click

from pipeline.cli.output import print_json, runs_dir_option

__all__ = ["command"]


@click.command()
@click.argument("run")
@runs_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print the paths as JSON.")
def command(run: str, runs_dir: str, as_json: bool) -> None:
    """(Re)build report.html and figures/ of RUN from what it holds; asks nobody anything."""
    from pathlib import Path

    from pipeline.runs.directory import find_run
    from pipeline.runs.finish import make_report

    directory = find_run(run, Path(runs_dir))
    make_report(directory)
    if as_json:
        print_json({"schema": 1, "run": str(directory.path), "report": str(directory.report_file)})
    else:
        click.echo(str(directory.report_file))
