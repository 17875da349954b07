"""The guard of CSV cells: text that a spreadsheet would run as a formula is written as text, and read as it was."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

_RUNS = r"'*[=+\-@\t\r\n]"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_GUARD = re.compile(rf"(?!{_NUMBER}\Z){_RUNS}")
_GUARDED = re.compile(rf"'(?={_RUNS})")


def guard(text: str) -> str:
    """Text as it stands in a CSV file: an apostrophe before what begins as a formula or with a control character.

    Numbers stay, and text that looks guarded is guarded once more, so that :func:`unguard` gives back every text.
    Half a surrogate pair, which no file can hold, is spelled out.
    """
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "'" + text if _GUARD.match(text) else text


def unguard(text: str) -> str:
    """The text of a cell that :func:`guard` may have written."""
    return text[1:] if text[:1] == "'" and _GUARDED.match(text) else text


def guarded_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame as it is written to CSV: texts and names of columns guarded."""
    import polars as pl  # not above: readers of benchmarks start without it

    cells = pl.col(pl.String)
    runs = cells.str.contains(rf"^{_RUNS}") & ~cells.str.contains(rf"^{_NUMBER}$")
    frame = frame.with_columns(pl.when(runs).then("'" + cells).otherwise(cells).name.keep())
    return frame.rename({name: guard(name) for name in frame.columns})


def unguarded(cells: pl.Expr, otherwise: pl.Expr | None = None) -> pl.Expr:
    """Text cells of a CSV file as they were; ``otherwise`` for those that carry no guard, by default as they are."""
    import polars as pl

    guarded = cells.str.contains(rf"^'{_RUNS}")
    return pl.when(guarded).then(cells.str.slice(1)).otherwise(cells if otherwise is None else otherwise)


def guarded_row(cells: Any) -> list[Any]:
    """The cells of one row, texts guarded."""
    return [guard(cell) if isinstance(cell, str) else cell for cell in cells]
