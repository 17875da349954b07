"""Prints a table in a terminal: numbers are never broken, names are folded, a table too wide is split into blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.report.values import Table, cell_text, plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table as RichTable


_NARROWEST = 12
"""A column of text is folded to no less than this, if it is wider by itself."""
_EDGES = 2
_WIDE, _NARROW, _TIGHT = 3, 2, 1
"""Blanks between columns."""


def _trimmed(console: Console, options: ConsoleOptions, table: RichTable) -> Iterator[Segment]:
    """The table's lines without the blanks at their ends, which only clutter what is copied or piped."""
    from rich.segment import Segment

    for line in console.render_lines(table, options, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
        yield from line
        yield Segment.line()


def column_widths(natural: Sequence[int], least: Sequence[int], room: int) -> list[int] | None:
    """Widths that fit into ``room``: natural where possible, else the widest columns give way first.

    None where even ``least`` does not fit.
    """
    widths = list(natural)
    excess = sum(widths) - room
    while excess > 0:
        able = [k for k, width in enumerate(widths) if width > least[k]]
        if not able:
            return None
        widest = max(able, key=lambda k: widths[k])
        widths[widest] -= 1
        excess -= 1
    return widths


class TerminalTable:
    """A table as a Rich console prints it, laid out for the console's width; drawn columns are left out.

    Args:
        table: what is printed; cells are text, never markup.
        aside: whether the columns are printed that may be left out where there is no room.
    """

    def __init__(self, table: Table, *, aside: bool = True) -> None:
        self._whole = table
        table = table.undrawn(aside=aside)
        self.table = table
        self._columns = [(plain(column.name), column.numeric) for column in table.columns]
        self._rows = [None if row is None else tuple(plain(cell_text(cell)) for cell in row) for row in table.rows]
        if None in self._rows:  # rows in groups: the name of each stands once
            before = [None, *self._rows]
            self._rows = [
                ("", *row[1:]) if row and above and row[0] == above[0] else row
                for above, row in zip(before, self._rows, strict=False)
            ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType | Segment]:
        from rich.text import Text

        natural, least = self._sizes()
        if sum(natural) + _overhead(len(natural), _NARROW) > options.max_width:
            narrower = TerminalTable(self._whole, aside=False)
            if len(narrower._columns) < len(self._columns):
                yield narrower
                return
        if self.table.title:
            yield Text(plain(self.table.title), style="bold")
        every = range(len(self._columns))
        for gap, smallest in ((_WIDE, natural), (_NARROW, natural), (_WIDE, least), (_TIGHT, least)):
            widths = column_widths(natural, smallest, options.max_width - _overhead(len(every), gap))
            if widths is not None:
                yield from _trimmed(console, options, self._rich(every, widths, gap))
                return
        blocks = self._blocks(natural, least, options.max_width)
        if blocks is None:
            yield from self._stacked()
            return
        for columns, widths in blocks:
            yield from _trimmed(console, options, self._rich(columns, widths, _WIDE))

    def _sizes(self) -> tuple[list[int], list[int]]:
        """Natural and least width of every column."""
        from rich.cells import cell_len

        natural, least = [], []
        for k, (name, number) in enumerate(self._columns):
            cells = max((cell_len(row[k]) for row in self._rows if row is not None), default=0)
            word = max((cell_len(part) for part in name.split()), default=0)
            natural.append(max(cells, cell_len(name)))
            least.append(max(cells, word) if number else min(natural[k], max(_NARROWEST, word)))
        return natural, least

    def _blocks(
        self, natural: Sequence[int], least: Sequence[int], width: int
    ) -> list[tuple[Sequence[int], list[int]]] | None:
        """Columns in blocks that fit, each led by the columns of text before the first number, or by the first alone.

        None where the first column and some other are too wide together.
        """
        numbers = [k for k, (_, number) in enumerate(self._columns) if number]
        for leading in dict.fromkeys((numbers[0] if numbers and numbers[0] else 1, 1)):
            blocks = self._led_blocks(list(range(leading)), natural, least, width)
            if blocks is not None:
                return blocks
        return None

    def _led_blocks(
        self, lead: list[int], natural: Sequence[int], least: Sequence[int], width: int
    ) -> list[tuple[Sequence[int], list[int]]] | None:
        blocks: list[tuple[Sequence[int], list[int]]] = []
        block = lead
        for k in range(len(lead), len(self._columns)):
            for wider in ([*block, k], [*lead, k]):
                widths = _fitted(wider, natural, least, width)
                if widths is not None:
                    break
            else:
                return None
            if len(wider) > len(lead) + 1:
                blocks.pop()
            blocks.append((wider, widths))
            block = wider
        return blocks

    def _rich(self, columns: Sequence[int], widths: Sequence[int], gap: int) -> RichTable:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, int(gap > _TIGHT), 0, int(gap > _NARROW)),
        )
        for k, width in zip(columns, widths, strict=True):
            name, number = self._columns[k]
            table.add_column(
                Text(plain(name)), justify="right" if number else "left", overflow="fold", min_width=width,
                max_width=width,
            )  # fmt: skip
        for row in self._rows:
            if row is None:
                table.add_section()
            else:
                table.add_row(*(Text(row[k]) for k in columns))
        return table

    def _stacked(self) -> Iterator[Any]:
        """One line per cell, for a terminal narrower than two columns."""
        from rich.text import Text

        for row in self._rows:
            if row is not None:
                cells = zip(self._columns, row, strict=True)
                yield Text("\n".join(f"{name}: {cell}" for (name, _), cell in cells if cell) + "\n", overflow="fold")


def _overhead(columns: int, gap: int) -> int:
    return _EDGES + gap * (columns - 1)


def _fitted(columns: Sequence[int], natural: Sequence[int], least: Sequence[int], width: int) -> list[int] | None:
    room = width - _overhead(len(columns), _WIDE)
    return column_widths([natural[k] for k in columns], [least[k] for k in columns], room)
