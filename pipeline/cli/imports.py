"""`auxeval import`: other tools' results into one table that `auxeval estimate` reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.errors import InputError

if TYPE_CHECKING:
    from pipeline.tables.imports.imported import ImportedTable

__all__ = ["command"]

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
def inspect(path: Path, out: Path) -> None:
    """Inspect AI logs: PATH is one .eval or .json log, or a folder of them."""
    from pipeline.tables.imports.inspect_logs import read_inspect_logs

    _finish(read_inspect_logs(path), out)


@command.command("lm-eval")
@_path
@_out
@click.option("--id-field", metavar="NAME", help="Field of the document that is the item id (else looked for).")
def lm_eval(path: Path, out: Path, id_field: str | None) -> None:
    """lm-evaluation-harness samples: PATH is one samples_*.jsonl, or a folder of them (--log_samples)."""
    from pipeline.tables.imports.lm_eval_samples import read_lm_eval_samples

    _finish(read_lm_eval_samples(path, id_field=id_field), out)


@command.command("table")
@_path
@_out
@click.option("--columns", metavar="COL,…", help="Keep these columns only.")
@click.option("--rename", "renames", multiple=True, metavar="OLD=NEW", help="Rename a column. Repeatable.")
def table(path: Path, out: Path, columns: str | None, renames: tuple[str, ...]) -> None:
    """A plain CSV, JSON Lines or Parquet table: numbers cleaned, columns chosen and renamed."""
    from pipeline.cli.table_options import split_names
    from pipeline.tables.imports.plain_tables import read_plain_table

    pairs = [rename.rpartition("=") for rename in renames]
    if any(not old or not new for old, _, new in pairs):
        raise InputError(f"--rename takes OLD=NEW, got {', '.join(renames)}")
    _finish(read_plain_table(path, columns=split_names(columns), rename={old: new for old, _, new in pairs}), out)


def _finish(imported: ImportedTable, out: Path) -> None:
    from pipeline.tables.imports.imported import write_table

    write_table(imported.frame, out)
    for note in imported.notes:
        click.echo(f"note: {note}", err=True)
    frame = imported.frame
    counts = [f"{frame.height} rows"]
    for column, noun in (("item_id", "items"), ("model", "models"), ("task", "tasks")):
        if column in frame.columns:
            counts.append(f"{frame[column].n_unique()} {noun}")
    click.echo(f"{out}: {', '.join(counts)}")
    click.echo(f"  numbers  {', '.join(imported.scores)}")
    click.echo(f"  next     {_next(imported, out)}")


def _next(imported: ImportedTable, out: Path) -> str:
    """The command that estimates, where the table says enough to write it."""
    names = imported.frame.columns
    if "item_id" not in names or not imported.scores:
        return f"auxeval estimate {out} --gold COL --signals COL,…"
    facts = [name for name in ("choice_probability", "choice_margin", "answer_chars", "output_tokens") if name in names]
    signals = ",".join(facts or imported.scores[1:]) or "COL,…"
    model = " --model model" if imported.frame["model"].n_unique() > 1 else ""
    return f"auxeval estimate {out} --gold {imported.scores[0]} --signals {signals} --id item_id{model}"
