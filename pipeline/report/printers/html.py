"""Prints a page as one self-contained HTML file, piece by piece, through templates that escape everything."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

from pipeline.report.page_values import Page
from pipeline.report.printers.svg import axis_strip, drawn_cell, svg
from pipeline.report.terms import TERMS, term_of
from pipeline.report.values import Column, Drawn, Span, Table, cell_text, clean, number

_ROOM = Path(__file__).resolve().parent.parent
_EMPHASIS = re.compile(r"\*([^*\s](?:[^*]*[^*\s])?)\*")


def html(page: Page) -> Iterator[str]:
    """The page in pieces; parts that are made while it is written never stand in memory together."""
    template = _environment().get_template("page.html.j2")
    assets = {name: Markup((_ROOM / "assets" / file).read_text(encoding="utf-8")) for name, file in _ASSETS.items()}
    yield from template.generate(page=page, terms=TERMS, **assets)


def fragment(name: str, **values: Any) -> str:
    """One template as HTML, for a part that is made while the page is written."""
    return _environment().get_template(name).render(**values)


_ASSETS = {"style": "report.css", "script": "report.js"}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_ROOM / "templates"), autoescape=True, finalize=_visible, keep_trailing_newline=True
    )
    made.filters.update(
        kind=lambda value: type(value).__name__,
        cell=lambda value: "–" if value is None else cell_text(value),
        full=lambda value: f"{value:.10g}" if math.isfinite(value) else "",
        term=term_of,
        slug=lambda word: re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-"),
        svg=lambda figure: Markup(svg(figure)),
        strip=lambda column: Markup(axis_strip(column.axis, column.room)),
        draw=_draw,
        spans=_spans,
        emphasis=_emphasis,
    )
    return made


def _visible(value: Any) -> Any:
    """Every text that a template puts in, hidden letters made visible; what is markup already stays."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else clean(value)


def _draw(cell: Drawn, column: Column) -> Markup:
    ends = f", {number(cell.low, percent=False, digits=-1)} to {number(cell.high, percent=False, digits=-1)}"
    assert column.axis is not None
    return Markup(drawn_cell(cell, column.axis, column.room, f"{number(cell.value, percent=False, digits=-1)}{ends}"))


def _spans(table: Table, position: int) -> bool:
    return any(isinstance(row[position], Span) for row in table.body)


def _emphasis(text: str) -> Markup:
    """Names between asterisks set apart."""
    return Markup(_EMPHASIS.sub(r"<em>\1</em>", str(escape(clean(text)))))
