"""`auxeval import`: other tools' results into one table that `auxeval estimate` reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from pipeline.cli.output import json_option, print_facts, print_json
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.care import ImportDocument
    from pipeline.tables.imports.imported import ImportedTable
    from pipeline.tables.imports.recognised import Tool

_TOOLS = (
    "inspect", "lm-eval", "promptfoo", "openai-evals", "alpaca-eval", "arena-hard", "mt-bench", "deepeval", "ragas",
    "table",
)  # fmt: skip


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH…")
@click.option(
    "--out", "out", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="TABLE",
    help="Where to write the table: .parquet, .csv or .jsonl.",
)  # fmt: skip
@click.option("--from", "tool", type=click.Choice(_TOOLS), help="Which tool wrote PATH (else recognised).")
@click.option("--id-field", metavar="NAME", help="lm-eval: field of the document that is the item id.")
@click.option("--columns", metavar="COL,…", help="table: keep these columns only.")
@click.option("--rename", "renames", multiple=True, metavar="OLD=NEW", help="table: rename a column. Repeatable.")
@click.option("--overwrite", is_flag=True, help="Replace TABLE even where it has columns that the new one has not.")
@json_option
def command(
    paths: tuple[Path, ...], out: Path, tool: Tool | None, id_field: str | None, columns: str | None,
    renames: tuple[str, ...], overwrite: bool, as_json: bool,
) -> None:  # fmt: skip
    """Turn other tools' results into a table: one row per task, model, item and epoch.

    PATH is a file or a folder of Inspect AI, lm-evaluation-harness, promptfoo, openai/evals, AlpacaEval, Arena-Hard,
    MT-bench, DeepEval or Ragas, or a plain table. The first word may name the tool instead of --from.
    """
    from pipeline.tables.imports.imported import check_output
    from pipeline.tables.imports.recognised import read_tool_files

    if tool is None and len(paths) > 1 and str(paths[0]) in _TOOLS and not paths[0].exists():
        tool, paths = cast("Tool", str(paths[0])), paths[1:]
    check_output(out, paths)
    if tool == "table" or columns or renames:
        imported = _plain(paths, columns, renames)
        name: Tool = "table"
    else:
        name, read = read_tool_files(paths, tool, id_field=id_field)
        imported = read if read is not None else _plain(paths, columns, renames)
    _finish(imported, out, name, as_json, overwrite)


def _plain(paths: tuple[Path, ...], columns: str | None, renames: tuple[str, ...]) -> ImportedTable:
    from pipeline.cli.table_options import split_names
    from pipeline.tables.imports.plain_tables import read_plain_table

    if len(paths) > 1:
        raise InputError("auxeval import table reads one file; auxeval estimate takes several as one table")
    pairs = [rename.rpartition("=") for rename in renames]
    if any(not old or not new for old, _, new in pairs):
        raise InputError(f"--rename takes OLD=NEW, got {', '.join(renames)}")
    return read_plain_table(paths[0], columns=split_names(columns), rename={old: new for old, _, new in pairs})


def _finish(imported: ImportedTable, out: Path, tool: Tool, as_json: bool, overwrite: bool) -> None:
    from pipeline.tables.imports.imported import write_table

    write_table(imported.frame, out, overwrite=overwrite)
    for note in imported.notes:
        click.echo(f"note: {note}", err=True)
    frame = imported.frame
    distinct = {  # an item is a cluster here: its id within its task
        name: frame[name].n_unique() if name in frame.columns else None for name in ("cluster", "model", "task")
    }
    commands = _next(imported, out)
    document: ImportDocument = {
        "schema": 1,
        "command": "import",
        "tool": tool,
        "table": str(out),
        "rows": frame.height,
        "items": distinct["cluster"],
        "models": distinct["model"],
        "tasks": distinct["task"],
        "columns": frame.columns,
        "numbers": list(imported.scores),
        "notes": list(imported.notes),
        "next": commands[0],
        "commands": commands,
    }
    if as_json:
        print_json(document)
    else:
        _print(document)


def _print(document: ImportDocument) -> None:
    nouns = (("item", document["items"]), ("model", document["models"]), ("task", document["tasks"]))
    counts = [f"{document['rows']} rows", *(f"{n} {noun}{'' if n == 1 else 's'}" for noun, n in nouns if n is not None)]
    click.echo(f"{document['table']}: {', '.join(counts)}")
    print_facts([("  numbers", ", ".join(document["numbers"]))])
    for line in document["commands"]:
        click.echo(f"  next     {line}")


def _next(imported: ImportedTable, out: Path) -> list[str]:
    """One command per task, each runnable as it is; where no column is a gold, the command that looks at the table."""
    import shlex

    from pipeline.cli.table_options import estimate_command
    from pipeline.tables.imports.suggested_roles import suggested_by_task

    chosen = suggested_by_task(imported)
    lines = [estimate_command(out, roles, [f"--where={text}" for text in where]) for where, roles in chosen]
    return lines or [shlex.join(["auxeval", "look", str(out)])]
