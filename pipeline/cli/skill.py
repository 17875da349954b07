"""``auxeval skill``: one page, which command answers which question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.output import json_option, print_json

if TYPE_CHECKING:
    from pipeline.cli.documents.care import SkillDocument


def page() -> str:
    """The page, as an installed package has it or as it stands in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "skill.md"
    source = installed if installed.is_file() else package.parent / "docs" / "skill.md"
    return source.read_text(encoding="utf-8")


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Print one page: which command answers which question, with the traps."""
    if as_json:
        document: SkillDocument = {"schema": 1, "command": "skill", "page": page()}
        print_json(document)
        return
    click.echo(page(), nl=False)
