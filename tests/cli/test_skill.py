"""The page of questions names commands and options that are there, and prints from a checkout."""

from __future__ import annotations

import re

import click
import pytest

from pipeline.cli import _auxeval, main
from pipeline.cli.skill import page

NAMED = sorted(set(re.findall(r"`(auxeval [^`]+)`", page())))


def _command(words: list[str]) -> tuple[click.Command, list[str]]:
    """The innermost command that the words name, and the words after it."""
    found: click.Command = _auxeval
    while words and isinstance(found, click.Group):
        inner = found.get_command(click.Context(found), words[0])
        assert inner is not None, words
        found, words = inner, words[1:]
    return found, words


@pytest.mark.parametrize("line", NAMED)
def test_every_command_and_option_of_the_page_exists(line: str) -> None:
    command, rest = _command(line.split()[1:])
    options = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= options


def test_every_command_has_its_question() -> None:
    answered = {line.split()[1] for line in NAMED if len(line.split()) > 1}
    without = {"skill", "export", "cache", "report", "runs"}  # care of what is there, no questions of their own
    assert set(_auxeval.list_commands(click.Context(_auxeval))) - without <= answered


def test_it_is_printed_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["skill"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == page()
