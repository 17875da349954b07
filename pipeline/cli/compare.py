"""``auxeval compare``: paired comparison of two runs on shared items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import (
    allow_code_option,
    json_option,
    print_json,
    print_table,
    print_text,
    provenance,
    runs_dir_option,
)

if TYPE_CHECKING:
    from pipeline.cli.documents.plans import CompareDocument


@click.command()
@click.argument("first", metavar="RUN", shell_complete=offer_runs)
@click.argument("second", metavar="RUN", shell_complete=offer_runs)
@click.option(
    "--target", type=click.Choice(["population", "pool"]), default="population", show_default=True,
    help="What differences are about: items like these, or these very items (then nothing is decided).",
)  # fmt: skip
@click.option("--margin", type=float, metavar="D", help="Runs that differ by less than D are equivalent.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write JSON, CSV and the page here.")
@runs_dir_option
@allow_code_option
@json_option
def command(
    first: str,
    second: str,
    runs_dir: str,
    as_json: bool,
    target: Literal["population", "pool"],
    margin: float | None,
    out: Path | None,
) -> None:
    """The first RUN minus the second, item by item: pairing removes what makes items hard for both."""
    from pipeline.evaluation.options import Options
    from pipeline.report.document_tables import about
    from pipeline.report.values import number, span
    from pipeline.runs.comparison import compare_runs

    options = Options(("naive", "lace", "gaps"), target=target, margin=margin)
    compared = compare_runs(first, second, runs_dir=runs_dir, options=options)
    estimates = compared.estimates
    if out is not None:
        from pipeline.report.table_files import write_table_report

        told = provenance(*(Path(run) if Path(run).exists() else Path(runs_dir) / run for run in (first, second)))
        for path in write_table_report(out, estimates, title=f"{first} − {second}", provenance=told):
            click.echo(f"wrote {path}", err=True)
    if as_json:
        more = {"command": "compare", "first": first, "second": second}
        comparisons = [entry.to_dict() for entry in compared.pairs]
        print_json(cast("CompareDocument", {**estimates.to_dict(), **more, "comparisons": comparisons}))
        return
    percent = all(abs(entry.naive.value) <= 1.0 for entry in compared.pairs)
    rows = []
    for entry in compared.pairs:
        name = entry.a if entry.a == entry.b else f"{entry.a} − {entry.b}"
        for method, estimate in (("naive, paired", entry.naive), ("LACE", entry.lace)):
            if estimate is None:
                continue
            rows.append(
                [
                    name,
                    method,
                    number(estimate.value, percent=percent),
                    number(estimate.se, percent=percent, digits=2),
                    span(estimate.low, estimate.high, percent=percent),
                    f"{entry.labeled}/{entry.shared}",
                ]
            )
            name = ""
        decided = entry.decision
        joint = span(decided.low, decided.high, percent=percent)
        rows.append(["", "all pairs together", number(decided.value, percent=percent), "", joint, ""])
    print_text(estimates.headline)
    columns = ["target", "method", "difference", "SE", "95 % interval", "labels"]
    print_table(" ".join((f"{first} − {second}", about(estimates))).strip(), columns, rows, numeric=(2, 3, 4, 5))
    for entry in compared.pairs:
        if entry.decision.said:
            print_text(f"{entry.a if entry.a == entry.b else f'{entry.a} − {entry.b}'}: {entry.decision.said}")
