"""The table of the papers' tables and figures is complete, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.studies.registry import study_summaries

ROOT = Path(__file__).resolve().parents[2]
PRINTED = {
    "One-step": ({*range(1, 12)}, {*range(1, 6)}),
    "LACE": ({*range(1, 36)}, {*range(1, 5)}),
    "Best-of-N": ({1, 2, 3}, {2}),
}
"""Paper → numbers of its tables and of its figures with numbers in them."""


def _rows() -> list[tuple[str, str, str]]:
    text = (ROOT / "docs" / "studies" / "README.md").read_text(encoding="utf-8")
    part = text.split("## Every table and figure of the three papers", 1)[1].split("\n## ", 1)[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("| ")
    ]
    return [(row[0], row[1], row[2]) for row in cells[2:]]


def test_every_table_and_figure_has_a_row() -> None:
    named: dict[str, tuple[set[int], set[int]]] = {paper: (set(), set()) for paper in PRINTED}
    for paper, what, _ in _rows():
        kind, first, last = re.fullmatch(r"(Table|Figure)s? (\d+)(?: to (\d+))?", what).groups()  # type: ignore[union-attr]
        named[paper][kind == "Figure"].update(range(int(first), int(last or first) + 1))
    assert named == PRINTED


def test_every_command_and_file_named_exists() -> None:
    studies = study_summaries()
    for _, what, command in _rows():
        study = re.search(r"auxeval study (\S+?)(?=[ `])", command)
        assert study is None or study[1] in studies, command
        for name in re.findall(r"(examples/paper/[\w.*-]+|docs/[\w/.-]+)", command):
            assert list(ROOT.glob(name)), name
        for design in re.findall(r"(?<=[ ])(table\d+(?:-config\d)?)", command):
            assert (ROOT / "examples" / "paper" / f"{design}.yaml").exists(), (what, design)
