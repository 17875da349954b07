"""`auxeval import`: other tools' results into one table that `auxeval estimate` reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from pipeline.cli.output import json_option, print_facts, print_json
from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.cli.documents.care import ImportDocument
    from pipeline.tables.imports.imported import ImportedTable

__all__ = ["command"]

ImportCommand: TypeAlias = Literal["import inspect", "import lm-eval", "import table"]

_path = click.argument("path", type=click.Path(path_type=Path))
_out = click.option(
    "--out", "out", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="TABLE",
    help="Where to write the table: .parquet, .csv or .jsonl.",
)  # fmt: skip


@click.group()
def command() -> None:
    """Turn other tools' results into a table: one row per task, model, item and epoch."""


@command.command("inspect")
@_path
@_out
@json_option
def inspect(path: Path, out: Path, as_json: bool) -> None:
    """Inspect AI logs: PATH is one .eval or .json log, or a folder of them."""
    from pipeline.tables.imports.inspect_logs import read_inspect_logs

    _finish(read_inspect_logs(path), out, "import inspect", as_json)


@command.command("lm-eval")
@_path
@_out
@json_option
@click.option("--id-field", metavar="NAME", help="Field of the document that is the item id (else looked for).")
def lm_eval(path: Path, out: Path, id_field: str | None, as_json: bool) -> None:
    """lm-evaluation-harness samples: PATH is one samples_*.jsonl, or a folder of them (--log_samples)."""
    from pipeline.tables.imports.lm_eval_samples import read_lm_eval_samples

    _finish(read_lm_eval_samples(path, id_field=id_field), out, "import lm-eval", as_json)


@command.command("table")
@_path
@_out
@json_option
@click.option("--columns", metavar="COL,…", help="Keep these columns only.")
@click.option("--rename", "renames", multiple=True, metavar="OLD=NEW", help="Rename a column. Repeatable.")
def table(path: Path, out: Path, columns: str | None, renames: tuple[str, ...], as_json: bool) -> None:
    """A plain CSV, JSON Lines or Parquet table: numbers cleaned, columns chosen and renamed."""
    from pipeline.cli.table_options import split_names
    from pipeline.tables.imports.plain_tables import read_plain_table

    pairs = [rename.rpartition("=") for rename in renames]
    if any(not old or not new for old, _, new in pairs):
        raise InputError(f"--rename takes OLD=NEW, got {', '.join(renames)}")
    imported = read_plain_table(path, columns=split_names(columns), rename={old: new for old, _, new in pairs})
    _finish(imported, out, "import table", as_json)


def _finish(imported: ImportedTable, out: Path, command: ImportCommand, as_json: bool) -> None:
    from pipeline.tables.imports.imported import write_table

    write_table(imported.frame, out)
    for note in imported.notes:
        click.echo(f"note: {note}", err=True)
    frame = imported.frame
    distinct = {
        name: frame[name].n_unique() if name in frame.columns else None for name in ("item_id", "model", "task")
    }
    document: ImportDocument = {
        "schema": 1,
        "command": command,
        "table": str(out),
        "rows": frame.height,
        "items": distinct["item_id"],
        "models": distinct["model"],
        "tasks": distinct["task"],
        "columns": frame.columns,
        "numbers": list(imported.scores),
        "notes": list(imported.notes),
        "next": _next(imported, out),
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
    click.echo(f"  next     {document['next']}")


def _next(imported: ImportedTable, out: Path) -> str:
    """The command that estimates, as far as the table says enough to write it."""
    from pipeline.cli.table_options import estimate_command
    from pipeline.tables.column_roles import ColumnRoles
    from pipeline.tables.imports.suggested_roles import suggested_roles

    return estimate_command(out, suggested_roles(imported) or ColumnRoles(gold="COL"))
