"""`auxeval estimate`: the estimators on a user's own table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast

import click

from pipeline.cli.output import console, json_option, print_json
from pipeline.cli.table_options import column_options, column_roles, split_names
from pipeline.errors import InputError

__all__ = ["command"]


@click.command("estimate")
@click.argument("table", type=click.Path(path_type=Path))
@column_options
@click.option(
    "--best-of-n", metavar="N,…", help="Value of picking the best of N candidates; TABLE is a long score table."
)
@click.option("--j", type=int, help="Selection scores per candidate (default: all but one).")
@click.option("--prompt", metavar="COL", default="prompt", show_default=True, help="Prompt column of a score table.")
@click.option("--candidate", metavar="COL", default="candidate", show_default=True, help="Candidate column.")
@click.option("--draw", metavar="COL", help="Number of the score (default: draw, or the order of the rows).")
@click.option("--score", metavar="COL", default="score", show_default=True, help="Score column.")
@click.option("--methods", metavar="NAME,…", help="Only these: naive, lace, lace_profile, …, or comparators.")
@click.option(
    "--target", type=click.Choice(["pool", "population"]), default="pool", show_default=True,
    help="What intervals are about: these rows, or what they were drawn from.",
)  # fmt: skip
@click.option("--level", type=float, default=0.95, show_default=True, help="Coverage of the intervals.")
@click.option("--shrink", is_flag=True, help="Also show tiny groups of a categorical profile shrunk to their mean.")
@click.option("--rehearse", type=int, metavar="B", help="Hide known labels at random B times: error and coverage.")
@click.option("--seed", type=int, default=0, show_default=True, help="Root of all randomness.")
@json_option
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write JSON, CSV and HTML here.")
def command(table: Path, **given: Any) -> None:
    """Estimate from TABLE (CSV, JSON Lines or Parquet, compressed or not); rows with empty gold are the pool."""
    if not 0.0 < given["level"] < 1.0:
        raise InputError(f"--level must lie between 0 and 1, got {given['level']:g}")
    if given["best_of_n"]:
        _best_of_n(table, given)
        return
    _means(table, given)


def _means(table: Path, given: dict[str, Any]) -> None:
    from pipeline.evaluation.table_estimates import DEFAULT_METHODS, TableOptions, check_methods, estimate_table
    from pipeline.evaluation.table_pool import read_pool

    roles, distribution = column_roles(given)
    methods = split_names(given["methods"]) or DEFAULT_METHODS
    check_methods(methods)
    if not roles.signals and not roles.taus and "lace" in methods and given["rehearse"] is None:
        raise InputError("--signals COL,… is needed: label-free numbers that tell good answers from bad ones")
    inputs = read_pool(table, roles)
    about = cast(Literal["pool", "population"], given["target"])
    options = TableOptions(methods, given["level"], about, distribution, given["seed"], given["shrink"])
    estimates = estimate_table(inputs, options)
    rehearsed: tuple[Any, ...] = ()
    if given["rehearse"] is not None:
        from dataclasses import replace

        from pipeline.evaluation.rehearsal import rehearse

        rehearsed = rehearse(inputs, given["rehearse"], level=given["level"], seed=given["seed"])
        extra = {"rehearsal": [row.to_dict() for row in rehearsed]}
        estimates = replace(estimates, extra={**estimates.extra, **extra})
    _show(table, estimates, rehearsed, given)


def _best_of_n(table: Path, given: dict[str, Any]) -> None:
    from pipeline.evaluation.table_best_of_n import ScoreColumns, estimate_best_of_n

    try:
        sizes = [int(part) for part in given["best_of_n"].split(",")]
    except ValueError:
        raise InputError(f"--best-of-n: {given['best_of_n']!r} is no list of whole numbers") from None
    columns = ScoreColumns(
        given["prompt"],
        given["candidate"],
        given["score"],
        given["draw"],
        given["gold"],
        given["model"],
        given["cluster"],
    )
    _show(table, estimate_best_of_n(table, columns, sizes, given["j"], level=given["level"]), (), given)


def _show(table: Path, estimates: Any, rehearsed: tuple[Any, ...], given: dict[str, Any]) -> None:
    from pipeline.report.table_text import print_table_estimates, worth_sentences

    written: tuple[Path, ...] = ()
    if given["out"] is not None:
        from pipeline.report.table_files import write_table_report

        sentences = worth_sentences(estimates)
        written = write_table_report(
            given["out"], estimates, title=table.name, sentences=sentences, rehearsed=rehearsed
        )
    if given["as_json"]:
        print_json(estimates.to_dict())
    else:
        print_table_estimates(console(), estimates, title=table.name, rehearsed=rehearsed)
    for path in written:
        click.echo(f"wrote {path}", err=True)
