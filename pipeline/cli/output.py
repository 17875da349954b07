"""How commands print: one JSON document, or tables that fit the terminal; colour only where a person looks."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console", "print_json", "print_table", "runs_dir_option"]

runs_dir_option = click.option(
    "--runs-dir", default="runs", show_default=True, metavar="DIR", help="Where run directories are."
)


def console(*, stderr: bool = False) -> Console:
    """A Rich console on stdout or stderr; 80 columns where the output is not a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 80
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False)


def print_json(document: Any) -> None:
    """One strict JSON document on stdout, nothing else."""
    click.echo(json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Sequence[int] = ()
) -> None:
    """A plain table; columns named in ``numeric`` are right-aligned. Cells are text, never markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position in numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)
