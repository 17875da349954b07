"""What a study returns: titled tables of measured numbers beside the paper's, figures and notes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.report.printers.paper import text
from pipeline.report.values import Figure, Table, table

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """One number of a study.

    Attributes:
        value: what this study measured.
        low, high: ends of its 95% Monte Carlo interval, if known.
        paper: the number printed in the paper for the same quantity, if any.
        digits: decimals shown in text (JSON holds the full number).
    """

    value: float
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    digits: int | None = None

    def to_text(self, digits: int) -> str:
        """``1.234 [1.200, 1.268] (paper 1.240)``, parts that are unknown left out."""
        places = self.digits if self.digits is not None else digits
        text = _number(self.value, places)
        if self.low is not None and self.high is not None:
            text += f" [{_number(self.low, places)}, {_number(self.high, places)}]"
        if self.paper is not None:
            text += f" (paper {_number(self.paper, places)})"
        return text

    def to_dict(self) -> dict[str, float | None]:
        """The known parts as JSON values; NaN is None."""
        parts = {"value": self.value, "low": self.low, "high": self.high, "paper": self.paper}
        return {
            name: (float(part) if part is not None and math.isfinite(part) else None)
            for name, part in parts.items()
            if name == "value" or part is not None
        }


Cell = Measured | float | int | str | None


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A titled table: one name per column, one row of cells per line.

    Raises:
        ValueError: a row whose length differs from the number of columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    digits: int = 3

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.title!r} has {len(self.columns)} columns but a row of {len(row)} cells: {row}"
                )

    def printed(self) -> Table:
        """The table as every medium prints it."""
        rows = [[_text(cell, self.digits) for cell in row] for row in self.rows]
        return table(self.title, self.columns, rows, numeric=range(1, len(self.columns)), note="\n".join(self.notes))

    def to_text(self) -> str:
        """Aligned plain text: first column flush left, the others flush right."""
        return text(self.printed())

    def to_dict(self) -> dict[str, Any]:
        """Title, columns, rows and notes as JSON values."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [[_json(cell) for cell in row] for row in self.rows],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class StudyResult:
    """Everything a study has to show.

    Attributes:
        title: one line.
        tables: in reading order.
        figures: file stem to picture.
        notes: what a reader must know to judge the numbers (replicates, readings, departures).
        command: the command line that made it; filled in by ``auxeval study``.
    """

    title: str
    tables: tuple[ResultTable, ...]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    command: str = ""

    def to_text(self) -> str:
        """Plain text for the terminal and for ``docs/studies``."""
        head = [self.title, "=" * len(self.title)]
        if self.command:
            head += ["", f"Made by: {self.command}"]
        if self.notes:
            head += ["", *(f"* {note}" for note in self.notes)]
        blocks = ["\n".join(head), *(table.to_text() for table in self.tables)]
        if self.figures:
            blocks.append("Figures: " + ", ".join(f"{name}.svg" for name in self.figures))
        return "\n\n".join(blocks) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Tables and notes as JSON values, with a schema number; figures by name only."""
        return {
            "schema": SCHEMA,
            "title": self.title,
            "command": self.command,
            "notes": list(self.notes),
            "tables": [table.to_dict() for table in self.tables],
            "figures": list(self.figures),
        }

    def to_json(self) -> str:
        """``to_dict`` as strict JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"


def _text(cell: Cell, digits: int) -> str:
    if isinstance(cell, Measured):
        return cell.to_text(digits)
    if isinstance(cell, float):
        return _number(cell, digits)
    return "–" if cell is None else str(cell)


def _json(cell: Cell) -> Any:
    if isinstance(cell, Measured):
        return cell.to_dict()
    if isinstance(cell, float):
        return float(cell) if math.isfinite(cell) else None
    return cell
