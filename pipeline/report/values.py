"""What is printed, as values: cells, the one ``Table``, the one ``Figure``; every medium has a printer for each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)
"""What cannot be seen, reorders its neighbours or is no character: controls, direction marks, surrogates."""
_LARGE = 1e6
"""From here on decimals say nothing."""


def clean(value: str) -> str:
    """Text as it can be printed and stored: hidden characters become visible escapes such as ``\\u202e``."""
    if value.isprintable():
        return value
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", value.replace("\r\n", "\n"))


def plain(text: str) -> str:
    """Text for one line: hidden characters become visible escapes, line breaks and tabs blanks."""
    return text if text.isprintable() else clean(text.replace("\t", " ").replace("\n", " ").replace("\r", " "))


def number(value: float, *, percent: bool, digits: int = 1) -> str:
    """A number for people: 0.8123 as 81.2 in percent, or with four digits; a dash where there is none."""
    if not math.isfinite(value):
        return "–"
    if not percent and abs(value) >= _LARGE:
        return f"{value:.7g}"
    return f"{100 * value:.{digits}f}" if percent else f"{value:.{digits + 2}f}"


def span(low: float, high: float, *, percent: bool) -> str:
    """An interval for people."""
    return f"[{number(low, percent=percent)}, {number(high, percent=percent)}]"


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a table: in full, for CSV and sorting, and as people read it."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of a table: both ends in full (two columns of a CSV), and as people read it."""

    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """A point with its interval, to be drawn on the axis of its column; media that cannot draw leave the column out.

    Attributes:
        value, low, high: on the column's axis; a range of ranks has ``value`` inside ``low`` to ``high``.
        tone: number of the target whose colour it has.
    """

    value: float
    low: float
    high: float
    tone: int = 0


Cell = str | int | float | Number | Span | Drawn | None


def quantity(value: float, *, percent: bool, digits: int = 1) -> Number:
    """A number in percent or as it is."""
    return Number(100.0 * value if percent else value, number(value, percent=percent, digits=digits))


def range_of(low: float, high: float, *, percent: bool) -> Span:
    """An interval in percent or as it is."""
    scale = 100.0 if percent else 1.0
    return Span(scale * low, scale * high, span(low, high, percent=percent))


def cell_text(cell: Cell) -> str:
    """A cell as people read it; empty where there is nothing, or where it is drawn."""
    if isinstance(cell, Number | Span):
        return cell.text
    if isinstance(cell, float):
        return f"{cell:g}" if math.isfinite(cell) else "–"
    return "" if cell is None or isinstance(cell, Drawn) else str(cell)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a picture, or of a column whose cells are drawn.

    Attributes:
        label: what it measures.
        percent: values are shares.
        log: logarithmic; values must be above 0.
        low, high: its ends; None: those of the data.
        names: levels at 0, 1, …, which have no distances; points on them are joined by nothing.
        marks: values at which a line is drawn: no difference, a nominal level, as many labels as there are.
        beside: of a vertical axis with names, a text at the right end of each row.
    """

    label: str = ""
    percent: bool = False
    log: bool = False
    low: float | None = None
    high: float | None = None
    names: tuple[str, ...] = ()
    marks: tuple[float, ...] = ()
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one kind, with a line, a band or whiskers.

    Attributes:
        label: its name in the legend; empty leaves it out.
        x, y: the points, in drawing order; one that is not finite breaks the line.
        low, high: ends of each point's interval, along y, or along x where ``across``.
        outer_low, outer_high: ends of a wider interval around it (the whole curve at once).
        across: intervals lie along x.
        line, markers, dashed: how it is drawn.
        whiskers: intervals as lines, not as a band; always where a level has a name.
        tone: number of its colour; None: its place among the series. A negative tone is grey.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    outer_low: Sequence[float] = ()
    outer_high: Sequence[float] = ()
    across: bool = False
    line: bool = True
    markers: bool = True
    dashed: bool = False
    whiskers: bool = False
    tone: int | None = None

    def __post_init__(self) -> None:
        parts = (self.x, self.y, self.low, self.high, self.outer_low, self.outer_high)
        if len({len(part) for part in parts if len(part)}) > 1:
            raise ValueError(f"series {self.label!r} has parts of different lengths")


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture with two axes.

    Attributes:
        title: what it is; the name a screen reader gives it.
        series: drawn in order.
        x, y: its axes.
        caption: how to read it.
        diagonal: draw the line y = x.
        width, height: in pixels; 0: as the content needs.
    """

    title: str
    series: tuple[Series, ...]
    x: Axis = Axis()
    y: Axis = Axis()
    caption: str = ""
    diagonal: bool = False
    width: int = 720
    height: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: its header.
        numeric: flush right, never folded.
        axis: its cells are drawn on this axis.
        term: the word of the glossary that explains it, where that is not its name.
        aside: left out of a terminal that is too narrow for all columns.
        room: pixels of a drawn cell.
    """

    name: str
    numeric: bool = False
    axis: Axis | None = None
    term: str = ""
    aside: bool = False
    room: int = 150


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        title: what it is.
        columns: of which the first names the row.
        rows: one cell per column; None is a break between the rows before and after.
        note: how to read it.
        source: the file and entry that its numbers come from.

    Raises:
        ValueError: a row whose length is not that of the columns.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...] | None, ...]
    note: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if row is not None and len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.title!r} has {len(self.columns)} columns but a row of {len(row)} cells: {row}"
                )

    @property
    def body(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows without the breaks."""
        return tuple(row for row in self.rows if row is not None)

    def undrawn(self, *, aside: bool = True) -> Table:
        """The table without the columns that are drawn, for media of text alone; or without those aside too."""
        kept = [k for k, column in enumerate(self.columns) if column.axis is None and (aside or not column.aside)]
        if len(kept) == len(self.columns):
            return self
        rows = tuple(None if row is None else tuple(row[k] for k in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[k] for k in kept), rows=rows)


def table(
    title: str,
    columns: Iterable[str | Column],
    rows: Iterable[Sequence[Cell] | None],
    *,
    numeric: Iterable[int] = (),
    note: str = "",
    source: str = "",
) -> Table:
    """A table from names; ``numeric`` are the positions of the columns of numbers."""
    right = set(numeric)
    named = tuple(
        column if isinstance(column, Column) else Column(column, k in right) for k, column in enumerate(columns)
    )
    return Table(title, named, tuple(None if row is None else tuple(row) for row in rows), note, source)
