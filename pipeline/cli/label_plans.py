"""`auxeval labels plan`, `next` and `status`, and what `labels import` does where a plan is there."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from pipeline.cli.completion import offer_runs
from pipeline.cli.output import json_option, print_json, runs_dir_option
from pipeline.cli.table_options import column_options, column_roles, split_names
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.looks import LabelPlanDocument
    from pipeline.evaluation.document import EstimateSet
    from pipeline.evaluation.plans.ledger import Ledger

_plan_option = click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="The plan's file (default: TABLE.plan.json, RUN/label_plan.json).",
)  # fmt: skip


def ledger_file(source: str, runs_dir: str, plan_file: Path | None) -> Path:
    """Where the ledger of a table or run is."""
    from pipeline.evaluation.plans.ledger import ledger_of_table

    if plan_file is not None:
        return plan_file
    if Path(source).is_file():
        return ledger_of_table(Path(source))
    from pipeline.runs.directory import find_run

    return find_run(source, Path(runs_dir)).path / "label_plan.json"


def _needed(source: str, runs_dir: str, plan_file: Path | None) -> tuple[Path, Ledger]:
    from pipeline.evaluation.plans.ledger import read_ledger

    path = ledger_file(source, runs_dir, plan_file)
    ledger = read_ledger(path)
    if ledger is None or ledger.promised is None:
        raise InputError(f"{path}: no plan is there; auxeval labels plan {source} declares one")
    return path, ledger


@click.command("plan")
@click.argument("source", metavar="RUN|TABLE", shell_complete=offer_runs)
@click.option("--half-width", type=float, metavar="W", help="Goal: every mean to ±W. Blind, unless --open.")
@click.option("--open", "open_", is_flag=True, help="--half-width: show the number at every look (3 % more labels).")
@click.option("--gap", metavar="A,B", help="Goal: which of two models is better.")
@click.option("--noninferior", type=float, metavar="D", help="--gap: is A not worse than B by more than D?")
@click.option("--equivalent", type=float, metavar="D", help="--gap: are A and B within D of each other?")
@click.option("--top", is_flag=True, help="Goal: which model is best.")
@click.option("--margin", type=float, metavar="D", help="--gap, --top: by more than D; near the best within D.")
@click.option("--max", "most", type=int, metavar="N", help="At most N labeled items (default: from --detect).")
@click.option("--detect", type=float, metavar="D", help="Without --max: labels that decide a gap of D (default .05).")
@click.option("--power", type=float, default=0.9, show_default=True, help="With this chance.")
@click.option("--first", type=int, help="Show nothing before so many labels (default 20, at least 15).")
@click.option("--spending", metavar="NAME", help="obrien-fleming, power:2 or pocock (default: by the goal).")
@click.option("--sheet", type=int, metavar="N", help="Items of one sheet (default: an eighth of --max).")
@click.option(
    "--design", type=click.Choice(["auto", "uniform"]), default="auto", show_default=True,
    help="auto: by strata from the second sheet on, where they pay.",
)  # fmt: skip
@click.option("--target", type=click.Choice(["population", "pool"]), default="population", show_default=True)
@click.option("--fresh", is_flag=True, help="Labels that are there serve for planning only.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the order of items.")
@click.option("--question", metavar="COL", help="TABLE's question column, shown in sheets.")
@click.option("--answer", metavar="COL", help="TABLE's answer column, shown in sheets.")
@column_options
@_plan_option
@runs_dir_option
@json_option
def plan(source: str, as_json: bool, runs_dir: str, plan_file: Path | None, **given: Any) -> None:
    """Declare, before the labels, what they shall decide: then every look holds together with all others."""
    from importlib.metadata import version

    from pipeline.evaluation.plans.ledger import Ledger, locked, read_ledger, write_ledger
    from pipeline.evaluation.plans.session import Wish, declare, goal_of
    from pipeline.evaluation.plans.words import expectation_line, plan_line
    from pipeline.labelling.planned import open_planned

    margins = {name: given[name] for name in ("noninferior", "equivalent", "margin")}
    goal = goal_of((), given["half_width"], split_names(given["gap"]), given["top"], margins)
    wish = Wish(
        goal, given["most"], given["first"], given["sheet"], given["spending"], given["open_"], given["design"],
        given["target"], given["fresh"], given["detect"], given["power"], seed=given["seed"],
    )  # fmt: skip
    path = ledger_file(source, runs_dir, plan_file)
    with locked(path):
        old = read_ledger(path)
        if old is not None and old.promised is not None and old.state == "open" and old.looks:
            raise InputError(
                f"{path}: the plan {old.promised.id} is open and has been looked at; finish it, or forget it first "
                f"(auxeval labels import … --forget-plan)"
            )
        columns: dict[str, Any] = {}
        if Path(source).is_file():
            roles, _ = column_roles({**given, "gold": given["gold"] or "gold"})
            visible = [name for name in (given["question"], given["answer"]) if name]
            columns = {**roles.to_dict(), **({"shown": visible} if visible else {})}
        draft = Ledger(_stand_in(goal, columns))
        opened = open_planned(source, runs_dir, draft)
        declared = declare(opened, wish, columns, f"auxeval {version('auxeval')}")
        write_ledger(path, declared.ledger)
        if declared.ledger.hidden:
            opened.hide()
    promise = declared.ledger.promised
    assert promise is not None
    ratings = len(opened.wanted) if columns.get("model") else 1
    lines = plan_line(promise, path.name, ratings)
    if declared.expected:
        lines.append(expectation_line(promise, declared.expected))
    _print(source, path, declared.ledger, lines, "labels plan", as_json)


def _stand_in(goal: Any, columns: dict[str, Any]) -> Any:
    """A promise that says no more than which columns and models: what a source is made from."""
    from pipeline.evaluation.plans.ledger import Promise

    return Promise(goal, "population", 0, 0.05, "power:2", 0, 0, 0, False, "auto", columns, 0, 0, "", {})


@click.command("next")
@click.argument("source", metavar="RUN|TABLE", shell_complete=offer_runs)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("-n", "--labels", type=int, help="How many items (default: as planned).")
@_plan_option
@runs_dir_option
@json_option
def next_(source: str, file: Path, labels: int | None, as_json: bool, runs_dir: str, plan_file: Path | None) -> None:
    """The next items in the plan's order, as a sheet to fill in."""
    from pipeline.evaluation.plans.ledger import locked, write_ledger
    from pipeline.evaluation.plans.session import hand_out
    from pipeline.labelling.opening import labelled_in_page
    from pipeline.labelling.planned import open_planned

    if labels is not None and labels < 1:
        raise InputError(f"--labels must be at least 1, got {labels}")
    path = ledger_file(source, runs_dir, plan_file)
    with locked(path):
        path, ledger = _needed(source, runs_dir, plan_file)
        opened = open_planned(source, runs_dir, ledger)
        after, following = hand_out(ledger, opened, labels)
        promise = after.promised
        assert promise is not None
        items = following.sheet.items
        filled = labelled_in_page(source, runs_dir, items, plan_file)
        rows = opened.write_sheet(file, items, tuple(promise.columns.get("shown", ())), promise.id, filled)
        write_ledger(path, after)
    lines = [f"{file}: the next {len(items)} items of plan {promise.id}, {rows} rows to fill in"]
    lines += [f"  {len(filled)} of them were labelled in the page and are filled in already"] if filled else []
    lines += [f"  {following.reason}"] if following.reason else []
    kept = ["--out", source] if Path(source).is_file() else []
    plan = ["--plan", str(plan_file)] if plan_file is not None else []
    lines.append("then: " + shlex.join(["auxeval", "labels", "import", source, str(file), *kept, *plan]))
    _print(source, path, after, lines, "labels next", as_json)


@click.command("status")
@click.argument("source", metavar="RUN|TABLE", shell_complete=offer_runs)
@click.option("--close", is_flag=True, help="End the plan here.")
@_plan_option
@runs_dir_option
@json_option
def status(source: str, close: bool, as_json: bool, runs_dir: str, plan_file: Path | None) -> None:
    """The ledger of the looks so far; no look."""
    from dataclasses import replace

    from pipeline.evaluation.plans.ledger import locked, read_ledger, write_ledger
    from pipeline.evaluation.plans.words import status_lines
    from pipeline.labelling.planned import open_planned

    path = ledger_file(source, runs_dir, plan_file)
    ledger = read_ledger(path)
    if ledger is None:
        raise InputError(f"{path}: nothing is there; auxeval labels plan {source} declares a plan")
    if close:
        if ledger.promised is None or ledger.state not in ("open", "decided"):
            raise InputError(f"{path}: only an open or decided plan can be closed")
        with locked(path):
            ledger = replace(ledger, state="closed")
            write_ledger(path, ledger)
            if Path(source).is_dir() or not Path(source).exists():  # what a blind plan took away is made again
                open_planned(source, runs_dir, ledger).seen()
    _print(source, path, ledger, status_lines(ledger, path.name), "labels status", as_json)


def import_under_plan(source: str, file: Path, path: Path, ledger: Ledger, given: dict[str, Any]) -> None:
    """Take a filled sheet in, look, and say what the plan says; nothing else is printed of the numbers."""
    from pipeline.evaluation.plans.words import look_lines
    from pipeline.labelling.planned import open_planned, take_labels

    taken = take_labels(
        path,
        lambda now: open_planned(source, given["runs_dir"], now),
        lambda opened, handed: opened.filled(file, handed, given["out"]),
        look=not given["no_look"],
        peek=given["peek"],
        follow=given["plan_file"] is None,
    )
    after = taken.ledger
    if given["no_look"]:
        assert after.promised is not None
        lines = [f"{len(after.labels)} of at most {after.promised.n_max} labels are stored; no look was taken"]
    else:
        lines = look_lines(after)
        if not taken.looked and after.looks:
            lines.append("  no new labels: that is the look before, no new one")
    _print(source, path, after, lines, "labels import", given["as_json"])


def import_without_plan(source: str, file: Path, path: Path, ledger: Ledger, given: dict[str, Any]) -> EstimateSet:
    """Take a sheet in that a forgotten plan handed out: its looks stay counted, and the numbers are shown."""
    from pipeline.evaluation.plans.doors import count_look
    from pipeline.evaluation.plans.ledger import write_ledger
    from pipeline.labelling.planned import open_planned

    opened = open_planned(source, given["runs_dir"], ledger)
    target, fresh = opened.filled(file, [item for sheet in ledger.sheets for item in sheet.items], given["out"])
    write_ledger(path, ledger.forgotten())
    counted = count_look(path, len(ledger.labels), len(fresh.labels()))
    kept = fresh.keep(target)
    if kept is not None and kept != path:
        write_ledger(kept, counted)
    return cast("EstimateSet", fresh.seen())


def _print(source: str, path: Path, ledger: Ledger, lines: list[str], command: str, as_json: bool) -> None:
    if not as_json:
        for line in lines:
            click.echo(line)
        return
    import json

    from pipeline.evaluation.plans.ledger import document_of

    plain: Any = json.loads(json.dumps(document_of(ledger)))
    document: LabelPlanDocument = {
        "schema": 1,
        "command": command,
        "source": source,
        "file": str(path),
        "plan": plain["id"],
        "state": plain["state"],
        "labels": len(plain["labels"]),
        "promised": plain["promised"],
        "looks": plain["looks"],
        "says": lines,
    }
    print_json(document)
