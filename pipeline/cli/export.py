"""``auxeval export``: the responses of a run as one portable file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import allow_code_option, json_option, print_json, runs_dir_option

if TYPE_CHECKING:
    from pipeline.cli.documents.care import ExportDocument


@click.command()
@click.argument("run", shell_complete=offer_runs)
@click.argument("cassette", type=click.Path(dir_okay=False, path_type=Path))
@runs_dir_option
@allow_code_option
@json_option
def command(run: str, cassette: Path, runs_dir: str, as_json: bool) -> None:
    """Write every recorded response of RUN to CASSETTE (.jsonl.gz); auxeval replay CASSETTE needs nothing else."""
    from pipeline.runs.cassettes import export_run
    from pipeline.runs.directory import find_run

    count = export_run(find_run(run, Path(runs_dir)), cassette)
    if as_json:
        document: ExportDocument = {
            "schema": 1,
            "command": "export",
            "cassette": str(cassette),
            "responses": count,
        }
        print_json(document)
    else:
        click.echo(f"{count} responses written to {cassette}")
