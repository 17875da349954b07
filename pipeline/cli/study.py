"""`auxeval study`: reproduce a paper's table, or run its protocol on a real one."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from pipeline.cli.completion import offer_studies
from pipeline.cli.output import console, json_option, print_facts, print_json, print_text
from pipeline.errors import InputError, StoppedEarly

if TYPE_CHECKING:
    from pipeline.cli.documents.plans import StudyListDocument
    from pipeline.studies.results import StudyResult


@click.command("study")
@click.argument("name", required=False, shell_complete=offer_studies)
@click.argument("tables", nargs=-1, type=click.Path(path_type=Path), metavar="[TABLE|RUN]…")
@click.option("--reps", type=int, help="Replicates (default: the study's own number).")
@click.option("--jobs", type=int, default=1, show_default=True, help="Worker processes.")
@click.option("--dask", metavar="ADDRESS", help="Run the replicates on this Dask scheduler instead.")
@click.option(
    "--reading",
    type=click.Choice(["text", "printed"]),
    default="text",
    show_default=True,
    help="Where a paper's text and its printed numbers disagree, which to follow.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the result here (JSON if it ends in .json), figures beside it; also makes the study resumable.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Root of all randomness.")
@json_option
@click.option("--list", "list_all", is_flag=True, help="List the studies.")
@click.option("--gold", metavar="COL", help="TABLE's outcome column (known on every row).")
@click.option("--signals", metavar="COL,…", help="TABLE's signal columns.")
@click.option(
    "--profile", metavar="COL[:TYPE]", help="TABLE's profile column; TYPE continuous, ordinal or categorical."
)
@click.option("--model", metavar="COL", help="Column that splits TABLE into one cell per value.")
@click.option("--id", "item", metavar="COL", help="TABLE's item column.")
def command(name: str | None, tables: tuple[Path, ...], list_all: bool, as_json: bool, **given: Any) -> None:
    """Run the study NAME, on TABLE (or finished runs) where it needs one; `study list` names them."""
    if list_all or name == "list":
        _print_list(as_json)
        return
    if name is None:
        raise InputError("which study? `auxeval study --list` names them")
    from pipeline.studies.registry import StudyOptions, TableColumns, load_study
    from pipeline.studies.runner import run_study, write_result

    study = load_study(name)
    signals = tuple(part.strip() for part in (given["signals"] or "").split(",") if part.strip())
    out = cast(Path | None, given["out"])
    options = StudyOptions(
        reps=given["reps"],
        jobs=given["jobs"],
        dask=given["dask"],
        reading=cast(Literal["text", "printed"], given["reading"]),
        table=tables[0] if tables else None,
        more=tables[1:],
        out=out,
        seed=given["seed"],
        progress=_show_progress,
        columns=TableColumns(given["gold"], signals, given["profile"], given["model"], given["item"]),
    )
    line = _command_line(name, tables, given)
    try:
        result = replace(run_study(study, options), command=line)
    except KeyboardInterrupt:
        if out is None:
            raise
        raise StoppedEarly("stopped; finished replicates are kept", resume_command=line) from None
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result)
    if out is not None:
        for path in write_result(result, out):
            click.echo(f"wrote {path}", err=True)


def _print_list(as_json: bool) -> None:
    from pipeline.studies.registry import study_summaries

    summaries = study_summaries()
    if as_json:
        document: StudyListDocument = {
            "schema": 1,
            "command": "study --list",
            "studies": [{"name": name, "summary": text} for name, text in summaries.items()],
        }
        print_json(document)
        return
    print_facts(list(summaries.items()))


def _print(result: StudyResult) -> None:
    """The result on a terminal's width; ``--out`` writes it with whole tables."""
    from pipeline.report.printers.terminal import TerminalTable

    print_text(result.title)
    click.echo("=" * min(len(result.title), 80))
    if result.command:
        click.echo(f"Made by: {result.command}")
    for note in result.notes:
        print_text(f"* {note}")
    for table in result.tables:
        click.echo()
        console().print(TerminalTable(table.printed()))
        for note in table.notes:
            print_text(f"* {note}")
    if result.figures:
        print_text("Figures, with --out: " + ", ".join(f"{name}.svg" for name in result.figures))


def _command_line(name: str, tables: tuple[Path, ...], given: dict[str, Any]) -> str:
    """The command as typed, without what does not change the numbers being left to chance."""
    words = ["auxeval", "study", name, *map(str, tables)]
    flags = {
        "reps": None,
        "jobs": 1,
        "dask": None,
        "reading": "text",
        "seed": 0,
        "gold": None,
        "signals": None,
        "profile": None,
        "model": None,
        "item": None,
        "out": None,
    }
    for flag, default in flags.items():
        if given[flag] != default:
            words += ["--id" if flag == "item" else f"--{flag}", str(given[flag])]
    return shlex.join(words)


def _show_progress(label: str, done: int, total: int) -> None:
    """One line on stderr, rewritten on a terminal, every tenth part otherwise."""
    if sys.stderr.isatty():
        click.echo(f"\r{label}: {done}/{total}" + ("\n" if done == total else ""), err=True, nl=False)
    elif total and (done == total or done % max(total // 10, 1) == 0):
        click.echo(f"{label}: {done}/{total}", err=True)
