"""``auxeval compare``: paired comparison of two runs on shared items."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import json_option, print_json, print_table, runs_dir_option

if TYPE_CHECKING:
    from pipeline.cli.documents.plans import CompareDocument, ComparisonEntry

__all__ = ["command"]


@click.command()
@click.argument("first", metavar="RUN", shell_complete=offer_runs)
@click.argument("second", metavar="RUN", shell_complete=offer_runs)
@runs_dir_option
@json_option
def command(first: str, second: str, runs_dir: str, as_json: bool) -> None:
    """The first RUN minus the second, item by item: pairing removes what makes items hard for both."""
    from pipeline.report.terminal import number, span
    from pipeline.runs.comparison import compare_runs

    compared = compare_runs(first, second, runs_dir=runs_dir)
    if as_json:
        document: CompareDocument = {
            "schema": 1,
            "command": "compare",
            "first": first,
            "second": second,
            "comparisons": [cast("ComparisonEntry", entry.to_dict()) for entry in compared],
        }
        print_json(document)
        return
    percent = all(abs(entry.naive.value) <= 1.0 for entry in compared)
    rows = []
    for entry in compared:
        name = entry.a if entry.a == entry.b else f"{entry.a} − {entry.b}"
        for method, estimate in (("naive, paired", entry.naive), ("LACE", entry.lace)):
            if estimate is None:
                continue
            decided = "first" if estimate.low > 0 else "second" if estimate.high < 0 else "no"
            rows.append(
                [
                    name,
                    method,
                    number(estimate.value, percent=percent),
                    number(estimate.se, percent=percent, digits=2),
                    span(estimate.low, estimate.high, percent=percent),
                    f"{entry.labeled}/{entry.shared}",
                    decided,
                ]
            )
            name = ""
    columns = ["target", "method", "difference", "SE", "95 % interval", "labels", "better"]
    print_table(f"{first} − {second}", columns, rows, numeric=(2, 3, 4, 5))
