"""Prints tables as plain text, Markdown and LaTeX: for logs, for pages of documentation, for a paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipeline.report.values import Table, cell_text, clean

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "λ": r"$\lambda$", "τ": r"$\tau$", "φ": r"$\varphi$", "±": r"$\pm$", "×": r"$\times$", "−": "$-$", "–": "--",
    "|": r"\textbar{}",
}  # fmt: skip
_MARKS = re.compile(r"([\\|`*_\[\]<>&])")


def _line(cell: str) -> str:
    return " ".join(clean(cell).split())


def _cells(table: Table) -> list[list[str]]:
    return [[_line(cell_text(cell)) for cell in row] for row in table.body]


def text(table: Table) -> str:
    """Aligned plain text: the first column flush left, the others flush right."""
    table = table.undrawn()
    lines = [[_line(column.name) for column in table.columns], *_cells(table)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(table.columns))]
    aligned = [
        "  ".join(
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    aligned.insert(1, "  ".join("-" * width for width in widths))
    notes = [f"* {_line(note)}" for note in table.note.splitlines()]
    return "\n".join([_line(table.title), "", *aligned, *notes])


def markdown(tables: Iterable[Table]) -> str:
    """Every table under its own heading; text of models and data cannot mark anything up."""
    return "\n".join(_markdown(table.undrawn()) for table in tables)


def _marked(cell: str) -> str:
    return _MARKS.sub(r"\\\1", _line(cell))


def _markdown(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    lines = [
        f"## {_marked(table.title)}",
        "",
        row([_marked(column.name) for column in table.columns]),
        row(["---:" if column.numeric else "---" for column in table.columns]),
        *(row([_marked(cell) for cell in cells]) for cells in _cells(table)),
    ]
    return "\n".join(lines) + "\n"


def latex(tables: Iterable[Table]) -> str:
    """Every table for the package booktabs, with its title in a comment above."""
    return "\n".join(_latex(table.undrawn()) for table in tables)


def _tex(cell: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in _line(cell))


def _latex(table: Table) -> str:
    layout = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [f"% {_line(table.title)}", rf"\begin{{tabular}}{{{layout}}}", r"\toprule"]
    lines += [" & ".join(_tex(column.name) for column in table.columns) + r" \\", r"\midrule"]
    lines += [" & ".join(map(_tex, cells)) + r" \\" for cells in _cells(table)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"
