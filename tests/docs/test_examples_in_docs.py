"""What README and tutorials name exists: commands, options, Python names, linked files."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import click
import pytest

from pipeline.cli import _auxeval

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs/README.md", ROOT / "docs/vllm.md", ROOT / "docs/formats.md"]
PAGES += sorted((ROOT / "docs/tutorials").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


def _commands(page: Path) -> list[str]:
    lines = page.read_text(encoding="utf-8").splitlines()
    return [line.split("#")[0].strip() for line in lines if re.match(r"\s{4}auxeval ", line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_exist(page: Path) -> None:
    for text in _commands(page):
        command: click.Command = _auxeval
        for word in text.split()[1:]:
            if isinstance(command, click.Group) and not word.startswith("-"):
                found = command.get_command(click.Context(command), word)
                assert found is not None, text
                command = found
            elif word.startswith("-"):
                assert any(word in option.opts for option in command.params), text


def test_python_of_the_readme_imports() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGES[0].read_text(encoding="utf-8"), re.S)
    assert blocks
    for node in ast.walk(ast.parse("\n".join(blocks))):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            assert all(hasattr(module, name.name) for name in node.names)
