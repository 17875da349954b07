"""HTML from plain values: everything escaped, tables that copy as CSV, data blocks that no text can close."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)
"""What cannot be seen, reorders its neighbours or is no character: controls, direction marks, surrogates."""


def clean(value: str) -> str:
    """Text as it can be shown and stored: hidden characters become visible escapes such as ``\\u202e``."""
    if value.isprintable():
        return value
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", value.replace("\r\n", "\n"))


_PACKED = 4
"""Effort of gzip: the next levels take twice as long for 2 % less."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a table: as it is shown, and in full for CSV."""

    value: float
    shown: str


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of a table: as it is shown, and both ends in full for CSV (two columns there)."""

    low: float
    high: float
    shown: str


Cell = str | int | float | Number | Span | None


def text(value: object) -> str:
    """A value as escaped HTML text."""
    return escape(clean("–" if value is None else str(value)), quote=True)


def _full(value: float) -> str:
    return f"{value:.10g}" if math.isfinite(value) else ""


def _cell(cell: Cell, first: bool, right: bool) -> str:
    attributes, body = "", cell
    if isinstance(cell, Number):
        attributes, body = f' data-v="{_full(cell.value)}"', cell.shown
    elif isinstance(cell, Span):
        attributes, body = f' data-v="{_full(cell.low)}" data-w="{_full(cell.high)}"', cell.shown
    if right:
        attributes += ' class="n"'
    return f'<th scope="row"{attributes}>{text(body)}</th>' if first else f"<td{attributes}>{text(body)}</td>"


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    caption: str,
    numeric: Iterable[int] = (),
    note: str = "",
    source: str = "",
) -> str:
    """A table with a caption, scoped headers and a button that copies it as CSV with all digits.

    Args:
        columns: headers.
        rows: cells; the first of each row names it.
        caption: what the table is.
        numeric: columns set to the right.
        note: how to read it.
        source: the file and entry its numbers come from.
    """
    right, listed = set(numeric), [tuple(row) for row in rows]
    spans = {k for row in listed for k, cell in enumerate(row) if isinstance(cell, Span)}
    head = "".join(
        f'<th scope="col"{" data-span" if k in spans else ""}{_align(k in right)}>{text(name)}</th>'
        for k, name in enumerate(columns)
    )
    body = "".join(
        f"<tr>{''.join(_cell(cell, k == 0, k in right) for k, cell in enumerate(row))}</tr>" for row in listed
    )
    origin = f'{" " if note else ""}<span class="source">Source: {text(source)}.</span>' if source else ""
    described = f'<p class="note">{text(note)}{origin}</p>' if note or source else ""
    return (
        f'<div class="table"><button type="button" class="csv" aria-label="Copy as CSV: {text(caption)}">CSV</button>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}">'
        f"<table><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f"{described}</div>"
    )


def _align(right: bool) -> str:
    return ' class="n"' if right else ""


def facts(pairs: Iterable[tuple[str, Cell]]) -> str:
    """A definition list."""
    items = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in pairs)
    return f"<dl>{items}</dl>"


def figure(svg: str, caption: str = "") -> str:
    """A chart, with a caption under it."""
    described = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="chart">{svg}</div>'
    return f'<figure class="chart">{region}{described}</figure>'


def section(identity: str, title: str, *parts: str) -> str:
    """A section with a heading that can be linked to."""
    heading = f'<h2 id="{identity}-title">{text(title)}</h2>'
    return f'<section id="{identity}" aria-labelledby="{identity}-title">{heading}{"".join(parts)}</section>'


def data_block(identity: str, value: Any) -> str:
    """JSON as gzip and base64 inside a script that is never run: nothing in it can end the element."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    raw = written.encode("utf-8", "backslashreplace")
    packed = base64.b64encode(gzip.compress(raw, _PACKED, mtime=0)).decode("ascii")
    return f'<script type="application/octet-stream" id="{identity}">{packed}</script>'
