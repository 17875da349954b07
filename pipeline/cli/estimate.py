"""`auxeval estimate`: the estimators on a user's own table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from pipeline.cli.output import all_option, console, every_table, json_option, print_json, provenance
from pipeline.cli.table_options import (
    answer_options,
    column_options,
    column_roles,
    score_columns,
    score_options,
    shape_options,
    split_names,
)
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.evaluation.document import EstimateSet
    from pipeline.report.page_values import Part
    from pipeline.tables.column_roles import ColumnRoles
    from pipeline.tables.shapes.shape import ShapeOptions


@click.command("estimate")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE…", type=click.Path(path_type=Path))
@column_options
@answer_options
@shape_options
@click.option(
    "--best-of-n", metavar="N,…", help="Value of picking the best of N candidates; TABLE is a long score table."
)
@score_options
@click.option("--pairwise", is_flag=True, help="TABLE holds votes on pairs of models: win rates, Bradley–Terry, ranks.")
@click.option("--model-a", metavar="COL", default="model_a", show_default=True, help="Votes: model of side a.")
@click.option("--model-b", metavar="COL", default="model_b", show_default=True, help="Votes: model of side b.")
@click.option("--methods", metavar="NAME,…", help="Only these: naive, lace, lace_profile, …, or comparators.")
@click.option(
    "--target",
    type=click.Choice(["population", "pool"]),
    help="What numbers are about: items like these (the default), or these very items (then nothing is decided).",
)
@click.option("--level", type=float, help="Coverage of the intervals; of decisions jointly (default 0.95).")
@click.option("--margin", type=float, metavar="D", help="Two models that differ by less than D are equivalent.")
@click.option("--baseline", metavar="MODEL", help="Gaps to this model alone, where all pairs are too many.")
@click.option("--pool-models", is_flag=True, help="Take rows that look like those of several models for repeats.")
@click.option("--smooth", is_flag=True, default=None, help="Levels of an ordinal profile borrow from their neighbours.")
@click.option(
    "--shrink", is_flag=True, default=None, help="Also show tiny groups of a categorical profile shrunk to their mean."
)
@click.option("--as-if-once", is_flag=True, default=None, help="Decide as if these labels were the first look.")
@click.option("--forget-plan", is_flag=True, help="Show numbers although a blind label plan hides them.")
@click.option("--rehearse", type=int, metavar="B", help="Hide known labels at random B times: error and coverage.")
@click.option("--seed", type=int, help="Root of all randomness (default 0).")
@all_option
@json_option
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write JSON, CSV and HTML here.")
def command(tables: tuple[Path, ...], **given: Any) -> None:
    """Estimate from TABLE: CSV, JSON, JSON Lines, Parquet or .xlsx, compressed or not; - is standard input.

    Rows with empty gold are the pool. Several files, a glob or a folder are one table. `auxeval look TABLE` says what
    a file holds and which command to run.
    """
    if given["level"] is not None and not 0.0 < given["level"] < 1.0:
        raise InputError(f"--level must lie between 0 and 1, got {given['level']:g}")
    if given["best_of_n"]:
        if len(tables) > 1:
            raise InputError("--best-of-n reads one table")
        _best_of_n(tables[0], given)
        return
    if given["pairwise"]:
        _votes(tables, given)
        return
    _means(tables, given)


def _means(tables: tuple[Path, ...], given: dict[str, Any]) -> None:
    from pipeline.evaluation.interface import described, estimate_table
    from pipeline.evaluation.plans.doors import ledger_at_door
    from pipeline.tables.shapes.read import read_shaped_table
    from pipeline.tables.shapes.shape import table_shape

    distribution: dict[str, float] = {}
    roles: ColumnRoles | None = None
    table: Any = tables[0]
    shape = table_shape(cast("ShapeOptions", given))
    if "gold" in shape.wide:
        given["gold"] = given["gold"] or "gold"
    for part in tables[1:]:
        ledger_at_door(part, forget=given["forget_plan"])
    if given["gold"] or given["answer"] or given["gold_answer"] or len(tables) > 1 or described(table) is None:
        roles, distribution = column_roles(given)
        table, roles = read_shaped_table(tables, roles, shape)
    names = ("target", "level", "margin", "baseline", "smooth", "shrink", "seed", "as_if_once")
    options = {name: given[name] for name in names}
    options |= {"methods": split_names(given["methods"]) or None, "distribution": distribution or None}
    made = estimate_table(
        table, roles, options, rehearsals=given["rehearse"], pool_models=given["pool_models"],
        forget_plan=given["forget_plan"],
    )  # fmt: skip
    plain = len(tables) == 1 and shape == table_shape({}) and roles is not None and not roles.answer
    _show(tables, made, given, roles if plain else None)


def _votes(tables: tuple[Path, ...], given: dict[str, Any]) -> None:
    from pipeline.evaluation.votes import VoteColumns, estimate_votes
    from pipeline.tables.column_roles import ColumnRoles
    from pipeline.tables.shapes.read import read_shaped_table
    from pipeline.tables.shapes.shape import table_shape

    if not given["gold"]:
        raise InputError("--pairwise needs --gold COL: who won, by people's votes")
    columns = VoteColumns(
        given["model_a"], given["model_b"], given["gold"], split_names(given["signals"]), given["id_"], given["cluster"]
    )
    shape = table_shape(cast("ShapeOptions", given))
    roles = ColumnRoles(columns.gold, (*columns.signals, columns.a, columns.b), columns.id, cluster=columns.cluster)
    table, _ = read_shaped_table(tables, roles, shape)
    _show(tables, estimate_votes(table, columns, level=given["level"] or 0.95, seed=given["seed"] or 0), given)


def _best_of_n(table: Path, given: dict[str, Any]) -> None:
    from pipeline.evaluation.best_of_n import estimate_best_of_n

    try:
        sizes = [int(part) for part in given["best_of_n"].split(",")]
    except ValueError:
        raise InputError(f"--best-of-n: {given['best_of_n']!r} is no list of whole numbers") from None
    _show(
        (table,),
        estimate_best_of_n(table, score_columns(given), sizes, given["j"], level=given["level"] or 0.95),
        given,
    )


def _show(
    tables: tuple[Path, ...], estimates: EstimateSet, given: dict[str, Any], roles: ColumnRoles | None = None
) -> None:
    from pipeline.report.terminal import print_estimates

    written: tuple[Path, ...] = ()
    title = tables[0].name
    if given["out"] is not None:
        from pipeline.report.table_files import write_table_report

        parts = {} if roles is None else {"items": _items(tables[0], roles)}
        told = provenance(*tables, seed=given["seed"] or 0)
        written = write_table_report(given["out"], estimates, title=title, provenance=told, parts=parts)
    if given["as_json"]:
        print_json(estimates.to_dict())
    else:
        print_estimates(console(), estimates, title=title, every=every_table())
    for path in written:
        click.echo(f"wrote {path}", err=True)


def _items(path: Path, roles: ColumnRoles) -> tuple[Part, ...]:
    """The rows of a file for the page; a file that cannot be read a second time has none."""
    from pipeline.report.table_items import table_items
    from pipeline.tables.table_source import inspect_source
    from pipeline.tables.user_table import read_user_table

    if not path.is_file():
        return ()
    source = inspect_source(path)
    frame = read_user_table(source, source.columns).frame
    return table_items(frame, gold=roles.gold, item=roles.id, model=roles.model)
