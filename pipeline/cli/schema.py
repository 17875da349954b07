"""``auxeval schema``: the JSON Schema of what a command prints with ``--json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeline.cli.completion import offer_commands
from pipeline.cli.output import json_option, print_json

if TYPE_CHECKING:
    from pipeline.cli.documents.care import SchemaListDocument


@click.command()
@click.argument("words", metavar="[COMMAND]", nargs=-1, shell_complete=offer_commands)
@json_option
def command(words: tuple[str, ...], as_json: bool) -> None:
    """Print the JSON Schema of the document that COMMAND --json prints, as in: auxeval schema runs list.

    Without COMMAND: which commands have one; with --json all of them in one document."""
    from pipeline.cli.documents import DOCUMENTS, document_schema

    if words:
        print_json(document_schema(_known(" ".join(words))))
    elif as_json:
        document: SchemaListDocument = {
            "schema": 1,
            "command": "schema",
            "schemas": {name: document_schema(name) for name in DOCUMENTS},
        }
        print_json(document)
    else:
        for name in DOCUMENTS:
            click.echo(name)


def _known(name: str) -> str:
    from difflib import get_close_matches

    from pipeline.cli.documents import DOCUMENTS
    from pipeline.errors import InputError

    if name in DOCUMENTS:
        return name
    below = [command for command in DOCUMENTS if command.startswith(f"{name} ")]
    near = below or get_close_matches(name, DOCUMENTS, n=1)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "auxeval schema lists them"
    raise InputError(f"no command {name!r} has a document; {hint}")
