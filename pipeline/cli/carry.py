"""``auxeval labels carry``: the labels of an earlier version that hold in the next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import allow_code_option, json_option, print_json, runs_dir_option

if TYPE_CHECKING:
    from pipeline.cli.documents.looks import CarryDocument


@click.command("carry")
@click.argument("earlier", metavar="RUN|TABLE", shell_complete=offer_runs)
@click.argument("later", metavar="RUN|TABLE", shell_complete=offer_runs)
@allow_code_option
@runs_dir_option
@json_option
def command(earlier: str, later: str, as_json: bool, runs_dir: str) -> None:
    """Take over labels of an earlier version whose question and answer are the same in the next, which has a plan.

    Nobody is asked for them again, by labels next or label; which items count stays the plan's draw.
    """
    from pipeline.labelling.carried import carry_labels

    carried = carry_labels(earlier, later, runs_dir)
    following = shlex.join(["auxeval", "label", later])
    if as_json:
        document: CarryDocument = {
            "schema": 1, "command": "labels carry", "earlier": earlier, "later": later, "labels": carried.there,
            "holding": carried.holding, "added": carried.added, "disagreeing": carried.disagreeing, "next": following,
        }  # fmt: skip
        print_json(document)
        return
    click.echo(f"{carried.holding} of {carried.there} labels of {earlier} hold in {later}: the answer is the same")
    if carried.disagreeing:
        click.echo(f"raters disagree on {carried.disagreeing} answers; one of the two counts, drawn by lot")
    click.echo(f"next: {following}")
