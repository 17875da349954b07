"""``auxeval report``: (re)build the report of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import allow_code_option, json_option, print_json, runs_dir_option

if TYPE_CHECKING:
    from pipeline.cli.documents.care import ReportDocument


@click.command()
@click.argument("run", shell_complete=offer_runs)
@click.option("--pdf", is_flag=True, help="Figures as PDF too (needs the extra pdf).")
@runs_dir_option
@allow_code_option
@json_option
def command(run: str, runs_dir: str, as_json: bool, pdf: bool) -> None:
    """(Re)build report.html and figures/ of RUN from what it holds; asks nobody anything."""
    from pathlib import Path

    from pipeline.runs.directory import find_run
    from pipeline.runs.finish import make_report

    directory = find_run(run, Path(runs_dir))
    make_report(directory)
    if pdf:
        from pipeline.report.printers.pdf import figures_as_pdf

        figures_as_pdf(directory.report_file.parent / "figures")
    if as_json:
        document: ReportDocument = {
            "schema": 1,
            "command": "report",
            "run": str(directory.path),
            "report": str(directory.report_file),
        }
        print_json(document)
    else:
        click.echo(str(directory.report_file))
