"""`auxeval labels`: the items that need gold labels, out to a CSV and back."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.carry import command as carry
from pipeline.cli.completion import offer_runs
from pipeline.cli.label_plans import import_under_plan, import_without_plan, ledger_file, next_, plan, status
from pipeline.cli.output import (
    all_option,
    allow_code_option,
    console,
    every_table,
    json_option,
    print_json,
    runs_dir_option,
)
from pipeline.cli.table_options import column_options, column_roles, estimate_command
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.care import LabelsExportDocument
    from pipeline.evaluation.document import EstimateSet
    from pipeline.labelling.asked import Gold
    from pipeline.runs.directory import RunDirectory
    from pipeline.tables.column_roles import ColumnRoles

__all__ = ["command"]


@click.group()
def command() -> None:
    """Label sheets: export the items to label as CSV, import the filled sheet and estimate again."""


@command.command("export")
@click.argument("source", metavar="RUN|TABLE", shell_complete=offer_runs)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("-n", "--labels", type=int, help="How many items to draw (default: 50, or all that are left).")
@click.option(
    "--design", "kind", type=click.Choice(["uniform", "stratified"]), default="uniform", show_default=True,
    help="Stratified: more labels where the signals predict worst; needs some labels already.",
)  # fmt: skip
@click.option("--question", metavar="COL", help="TABLE's question column, shown in the sheet.")
@click.option("--answer", metavar="COL", help="TABLE's answer column, shown in the sheet.")
@click.option("--raters", metavar="N|NAME,…", default="1", help="Of a run's responses: a sheet for each.")
@click.option("--overlap", type=float, default=0.0, help="Share of the responses that two raters rate.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draw.")
@column_options
@runs_dir_option
@json_option
def export(source: str, file: Path, as_json: bool, **given: Any) -> None:
    """Draw items of a RUN (its right answers are asked for) or rows of a TABLE (a score is asked for) into FILE."""
    if Path(source).is_file():
        from pipeline.evaluation.label_tables import export_table_labels

        roles, _ = column_roles({**given, "gold": given["gold"] or "gold"})
        design = export_table_labels(
            Path(source), roles, file, given["labels"], kind=given["kind"], question=given["question"],
            answer=given["answer"], seed=given["seed"],
        )  # fmt: skip
    else:
        from pipeline.collection.stages import is_rated
        from pipeline.runs.labels import export_run_labels

        directory = _run(source, given)
        if is_rated(directory.config()):
            _export_ratings(directory, source, file, as_json, given)
            return
        if given["raters"] != "1" or given["overlap"]:
            raise InputError("--raters and --overlap are for runs whose responses people rate (grading: rating)")
        design = export_run_labels(directory, file, given["labels"], kind=given["kind"], seed=given["seed"])
    then = shlex.join(["auxeval", "labels", "import", source, str(file)])
    if as_json:
        document: LabelsExportDocument = {
            "schema": 1,
            "command": "labels export",
            "source": source,
            "file": str(file),
            "drawn": len(design.drawn),
            "design": design.kind,
            "gold": design.gold,
            "next": then,
        }
        print_json(document)
        return
    asked = "the right answer" if design.gold == "answer" else "a score, 1 or 0"
    click.echo(f"{file}: {len(design.drawn)} items drawn ({design.kind}); fill in the gold column ({asked})")
    click.echo(f"then: {then}")


def _export_ratings(directory: RunDirectory, source: str, file: Path, as_json: bool, given: dict[str, Any]) -> None:
    """Blind sheets that ask people to rate the responses of a run."""
    from pipeline.runs.ratings import export_ratings

    if given["kind"] != "uniform":
        raise InputError("--design stratified is for right answers; responses to rate are drawn uniformly")
    made = export_ratings(
        directory, file, given["labels"], raters=given["raters"], overlap=given["overlap"], seed=given["seed"]
    )
    then = shlex.join(["auxeval", "labels", "import", source, *map(str, made.files)])
    if as_json:
        document: LabelsExportDocument = {
            "schema": 1,
            "command": "labels export",
            "source": source,
            "file": str(made.files[0]),
            "drawn": made.items,
            "design": "uniform",
            "gold": "rating",
            "next": then,
            "files": [str(name) for name in made.files],
            "responses": made.responses,
            "twice": made.twice,
        }
        print_json(document)
        return
    twice = f", {made.twice} of them by two people" if made.twice else ""
    click.echo(
        f"{', '.join(map(str, made.files))}: {made.items} items drawn, {made.responses} responses to rate{twice};"
        " models and scores are not in the sheets"
    )
    click.echo(f"then: {then}")


@command.command("import")
@click.argument("source", metavar="RUN|TABLE", shell_complete=offer_runs)
@click.argument("files", metavar="[FILE…]", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="TABLE: write it with the labels here.")
@click.option("--peek", is_flag=True, help="Open a blind plan for good: show the number now.")
@click.option("--no-look", is_flag=True, help="Store the labels and print counts only.")
@click.option("--rater-errors", metavar="measured|SENS,SPEC", help="Of yes or no: say the rates without them too.")
@click.option("--forget-plan", is_flag=True, help="Go on without the plan; its looks stay counted.")
@click.option("--anytime", is_flag=True, help="Decide by intervals that hold however often you look, from now on.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path, dir_okay=False), help="The plan's file.")
@allow_code_option
@all_option
@json_option
@runs_dir_option
def import_(source: str, files: tuple[Path, ...], out: Path | None, as_json: bool, runs_dir: str, **given: Any) -> None:
    """Check the filled FILE, put its labels into the RUN or TABLE, and estimate again; under a plan: look.

    Without FILE: the labels that were given in the page of auxeval label."""
    from pipeline.evaluation.plans.ledger import read_ledger, write_ledger
    from pipeline.evaluation.plans.table_plans import plan_of_sheet
    from pipeline.report.terminal import print_estimates

    gone = next((name for name in files if not name.is_file()), None)
    if gone is not None:
        raise InputError(f"{gone}: no such label sheet; auxeval labels export {source} {gone} writes one")
    path = ledger_file(source, runs_dir, given["plan_file"])
    ledger = read_ledger(path)
    options = {**given, "out": out, "as_json": as_json, "runs_dir": runs_dir}
    planned = ledger is not None and ledger.promised is not None
    if not files and planned:
        raise InputError(f"{path}: under a plan the page itself looks: auxeval label {source}")
    if ledger is not None and planned and not given["forget_plan"]:
        _one_sheet(files)
        import_under_plan(source, files[0], path, ledger, options)
        return
    notes: tuple[str, ...] = ()
    then = ""
    if ledger is not None and planned and plan_of_sheet(files[0]) is not None:
        _one_sheet(files)
        estimates = import_without_plan(source, files[0], path, ledger, options)
    else:
        if ledger is not None and planned:
            write_ledger(path, ledger.forgotten())
        estimates, notes, then = _ordinary(source, files, path, options)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if as_json:
        print_json(estimates.to_dict())
    else:
        print_estimates(console(), estimates, title=Path(source).name, every=every_table())
    if then:
        click.echo(then, err=True)


def _ordinary(
    source: str, files: tuple[Path, ...], path: Path, given: dict[str, Any]
) -> tuple[EstimateSet, tuple[str, ...], str]:
    """Labels of a sheet without a plan: counted as a look, estimated; with notes and what to do next."""
    from pipeline.evaluation.plans.doors import at_door, count_look
    from pipeline.evaluation.plans.ledger import ledger_of_table

    out = given["out"]
    if not Path(source).is_file():
        from pipeline.collection.stages import is_rated
        from pipeline.runs.labels import import_run_labels, take_gold
        from pipeline.runs.ratings import import_ratings

        if out is not None:
            raise InputError("--out is for tables; a run keeps its labels itself")
        directory = _run(source, given)
        if is_rated(directory.config()):
            taken = import_ratings(directory, files, errors=given["rater_errors"])
            return taken.estimates, taken.notes, ""
        _one_sheet(files)
        if given["rater_errors"]:
            raise InputError("--rater-errors is for runs whose responses people rate (grading: rating)")
        if not files:
            in_page, _ = _from_page(source, given)
            gold = {item: text for (item, _), text in in_page.items()}
            return take_gold(directory, gold, anytime=given["anytime"]), (), ""
        return *import_run_labels(directory, files[0], anytime=given["anytime"]), ""
    _one_sheet(files)
    from pipeline.evaluation.evaluate import evaluate
    from pipeline.evaluation.label_tables import import_table_labels, take_table_gold
    from pipeline.evaluation.options import Options

    if files:
        labeled = import_table_labels(Path(source), files[0], out)
    else:
        in_page, roles = _from_page(source, given)
        assert roles is not None
        labeled = take_table_gold(Path(source), roles, in_page, out)
    to = ledger_of_table(out) if out is not None and given["plan_file"] is None else None
    counted = count_look(path, labeled.before, max(target.n for target in labeled.inputs.targets), to)
    estimates = evaluate(*at_door(counted, labeled.inputs, Options(anytime=given["anytime"])))
    then = "" if out is None else f"wrote {out}; to estimate it again: {estimate_command(out, labeled.roles)}"
    return estimates, labeled.filled.notes, then


command.add_command(plan)
command.add_command(next_)
command.add_command(status)
command.add_command(carry)


def _from_page(source: str, given: dict[str, Any]) -> tuple[Gold, ColumnRoles | None]:
    """Labels that were given in the page, and the columns of a table."""
    from pipeline.labelling.opening import open_to_label

    opened = open_to_label(source, given["runs_dir"])
    gold = opened.source.gold(opened.source.ids, opened.source.store.read())
    opened.source.close()
    if not gold:
        raise InputError(f"{opened.source.store.path}: no label is there yet; auxeval label {source} asks for them")
    return gold, opened.roles


def _one_sheet(files: tuple[Path, ...]) -> None:
    if len(files) > 1:
        raise InputError("several sheets are for runs whose responses people rate (grading: rating); give one")


def _run(source: str, given: dict[str, Any]) -> RunDirectory:
    from pipeline.runs.directory import find_run

    return find_run(source, Path(given["runs_dir"]))
