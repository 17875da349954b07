"""How commands print: one JSON document, or tables that fit the terminal; colour only where a person looks."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

runs_dir_option = click.option(
    "--runs-dir", default="runs", show_default=True, metavar="DIR", help="Where run directories are."
)


def _permit(_context: click.Context, _option: click.Parameter, modules: tuple[str, ...]) -> None:
    from pipeline.code_permission import permit

    for module in modules:
        permit(module)


allow_code_option = click.option(
    "--allow-code",
    multiple=True,
    metavar="MODULE",
    expose_value=False,
    callback=_permit,
    help="Import MODULE, which the grading of a run, cassette or configuration from elsewhere names.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout (auxeval schema COMMAND: its shape)."
)


def _every(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    context.meta[__name__] = wanted


all_option = click.option(
    "--all",
    "every",
    is_flag=True,
    expose_value=False,
    callback=_every,
    help="Print every table, however long; without it at most 60 lines.",
)


def every_table() -> bool:
    """Whether the command that runs was given ``--all``."""
    return bool(click.get_current_context().meta.get(__name__))


def invocation() -> str:
    """The command as the user typed it, for manifests and pages."""
    return shlex.join(["auxeval", *sys.argv[1:]])


def console(*, stderr: bool = False) -> Console:
    """A Rich console on stdout or stderr; 80 columns where the output is not a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 80
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False)


def print_json(document: Mapping[str, Any]) -> None:
    """One strict JSON document on stdout, nothing else; numbers that are not finite are null."""
    click.echo(json.dumps(_strict(document), indent=1, ensure_ascii=True, allow_nan=False))


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _strict(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(entry) for entry in value]
    return value


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Sequence[int] = ()
) -> None:
    """A plain table; columns named in ``numeric`` are right-aligned. Cells are text, never markup."""
    from pipeline.report.printers.terminal import TerminalTable
    from pipeline.report.values import table

    console().print(TerminalTable(table(title, columns, rows, numeric=numeric)))


def print_facts(rows: Sequence[Sequence[str]]) -> None:
    """Lines of a few words and a text; the text is wrapped under itself."""
    from rich.table import Table
    from rich.text import Text

    from pipeline.report.values import plain

    grid = Table.grid(padding=(0, 2))
    for column in range(len(rows[0])):
        grid.add_column(overflow="fold", max_width=None if column == len(rows[0]) - 1 else 28)
    for fact in rows:
        grid.add_row(*(Text(plain(cell)) for cell in fact))
    console().print(grid)


def print_text(text: str) -> None:
    """A sentence, wrapped to the terminal; text, never markup."""
    from rich.text import Text

    from pipeline.report.values import plain

    console().print(Text(plain(text)))


def provenance(*files: Path, seed: int | None = None) -> list[tuple[str, str | int]]:
    """What a page says of where its numbers come from: files with their hashes, command, seed, versions, the day."""
    from datetime import UTC, datetime
    from hashlib import file_digest
    from importlib.metadata import version
    from platform import python_version

    made: list[tuple[str, str | int]] = [("Command", invocation())]
    for file in files:
        if file.is_file():
            with file.open("rb") as content:
                made.append((f"SHA-256 of {file.name}", file_digest(content, "sha256").hexdigest()))
        else:
            made.append(("Source", str(file)))
    made += [("Seed", seed)] if seed is not None else []
    packages = ", ".join(f"{name} {version(name)}" for name in ("auxeval", "numpy", "polars"))
    return [*made, ("Versions", f"Python {python_version()}, {packages}"), ("Made", f"{datetime.now(UTC):%Y-%m-%d}")]
