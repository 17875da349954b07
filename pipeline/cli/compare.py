"""``auxeval compare``: paired comparison of two runs on shared items."""

from __future__ import annotations

import click

from pipeline.cli.output import print_json, print_table, runs_dir_option

__all__ = ["command"]


@click.command()
@click.argument("first", metavar="RUN")
@click.argument("second", metavar="RUN")
@runs_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(first: str, second: str, runs_dir: str, as_json: bool) -> None:
    """The first RUN minus the second, item by item: pairing removes what makes items hard for both."""
    from pipeline.report.terminal import number, span
    from pipeline.runs.comparison import compare_runs

    compared = compare_runs(first, second, runs_dir=runs_dir)
    if as_json:
        print_json({"schema": 1, "first": first, "second": second, "comparisons": [c.to_dict() for c in compared]})
        return
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
                    number(estimate.value, percent=True),
                    number(estimate.se, percent=True, digits=2),
                    span(estimate.low, estimate.high, percent=True),
                    f"{entry.labeled}/{entry.shared}",
                    decided,
                ]
            )
            name = ""
    columns = ["target", "method", "difference", "SE", "95 % interval", "labels", "better"]
    print_table(f"{first} − {second}", columns, rows, numeric=(2, 3, 4, 5))
