"""The tour of the rooms: its files and names exist, a walk takes at most twenty files, ten questions are answered."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(pipeline/[\w/]+\.pyi?)`(?:: ((?:`[\w.]+`(?:, )?)+))?")
WALKS = dict(
    section.split("\n", 1) for section in TOUR.partition("## Four walks")[2].partition("\n## ")[0].split("### ")[1:]
)


@cache
def defined(path: str) -> set[str]:
    """The names that a file defines at its top, and ``Class.member`` of its classes."""
    names: set[str] = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            functions = (part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {f"{node.name}.{part.name}" for part in functions}
        for target in [*getattr(node, "targets", ()), *([node.target] if isinstance(node, ast.AnnAssign) else ())]:
            names |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return names


def mentions(text: str) -> list[tuple[str, list[str]]]:
    return [(path, re.findall(r"`([\w.]+)`", names or "")) for path, names in NAMED.findall(" ".join(text.split()))]


@pytest.mark.parametrize(("path", "names"), mentions(TOUR), ids=lambda value: value if isinstance(value, str) else "")
def test_every_file_and_name_exists(path: str, names: list[str]) -> None:
    assert (ROOT / path).is_file()
    assert [name for name in names if name not in defined(path)] == []


def test_rooms_and_their_first_files_exist() -> None:
    rooms = re.findall(r"^\| `((?:pipeline|prompts)[\w/.]*)` \|.*\| (.*) \|$", TOUR, flags=re.M)
    assert len(rooms) >= 12
    for room, start in rooms:
        assert (ROOT / room).exists()
        for file in re.findall(r"`([\w/]+\.(?:py|md))`", start):
            assert (ROOT / file).exists() or (ROOT / room / file).exists(), f"{room}: {file}"


def test_every_room_is_on_the_tour() -> None:
    rooms = {path.name for path in (ROOT / "pipeline").iterdir() if (path / "__init__.py").is_file()}
    assert {room for room in rooms if f"`pipeline/{room}/`" not in TOUR} == set()


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_takes_at_most_twenty_files(walk: str) -> None:
    files = {path for path, _ in mentions(WALKS[walk])}
    assert 5 <= len(files) <= 20


def test_ten_questions_are_answered() -> None:
    table = TOUR.partition("## Where is it decided?")[2]
    rows = [row for row in table.splitlines() if row.startswith("| ") and "?" in row]
    assert len(rows) >= 10
    assert all(mentions(row) for row in rows)
