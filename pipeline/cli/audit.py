"""``auxeval audit``: how replies were read, out to a person and back."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import (
    all_option,
    allow_code_option,
    console,
    every_table,
    json_option,
    print_json,
    runs_dir_option,
)
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.care import AuditDocument

__all__ = ["command"]


@click.command()
@click.argument("run", shell_complete=offer_runs)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--sample", type=click.IntRange(min=0), default=0, metavar="N", help="Also N read answers, at random.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The sheet (default: RUN-audit.csv).")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample.")
@runs_dir_option
@allow_code_option
@all_option
@json_option
def command(
    run: str, file: Path | None, sample: int, out: Path | None, seed: int, runs_dir: str, as_json: bool
) -> None:
    """Write the answers of RUN that could not be read as a sheet; with FILE, take the filled sheet back.

    In the sheet, write yes or no under right, or what the reply answers under correct_answer (none: nothing).
    """
    from pipeline.runs.audit import export_audit, import_audit
    from pipeline.runs.directory import find_run

    directory = find_run(run, Path(runs_dir))
    if file is not None:
        if not file.is_file():
            raise InputError(f"{file}: no such audit sheet; auxeval audit {shlex.quote(run)} writes one")
        estimates, filled = import_audit(directory, file)
        click.echo(f"{filled} rows taken in, kept in {directory.path / 'audit.json'}", err=True)
        if as_json:
            print_json(estimates.to_dict())
            return
        from pipeline.report.terminal import print_estimates

        print_estimates(console(), estimates, title=directory.path.name, every=every_table())
        return
    sheet = out or Path(f"{directory.path.name}-audit.csv")
    unread, drawn = export_audit(directory, sheet, sample=sample, seed=seed)
    then = shlex.join(["auxeval", "audit", run, str(sheet)])
    if as_json:
        document: AuditDocument = {
            "schema": 1,
            "command": "audit",
            "run": str(directory.path),
            "file": str(sheet),
            "unread": unread,
            "sample": drawn,
            "next": then,
        }
        print_json(document)
        return
    click.echo(f"{sheet}: {unread} answers that could not be read, {drawn} read ones at random")
    click.echo("fill in right (yes or no), or what the reply answers under correct_answer (none: nothing)")
    click.echo(f"then: {then}")
