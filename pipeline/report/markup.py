"""HTML from plain values: everything escaped, tables that copy as CSV, data blocks that no text can close."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["Cell", "clean", "data_block", "facts", "section", "table", "text"]

Cell = str | int | float | None


def clean(value: str) -> str:
    """Text that UTF-8 can hold and that cannot reorder its neighbours: surrogates, NULs and direction marks shown."""
    safe = value.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\u{ord(c):04x}" for c in safe)


def text(value: object) -> str:
    """A value as escaped HTML text."""
    return escape(clean("–" if value is None else str(value)), quote=True)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    caption: str,
    numeric: Iterable[int] = (),
    note: str = "",
) -> str:
    """A table with a caption, scoped headers and a button that copies it as CSV."""
    right = set(numeric)
    head = "".join(f'<th scope="col"{_align(k in right)}>{text(name)}</th>' for k, name in enumerate(columns))
    body = []
    for row in rows:
        cells = "".join(
            f'<th scope="row">{text(cell)}</th>' if k == 0 else f"<td{_align(k in right)}>{text(cell)}</td>"
            for k, cell in enumerate(row)
        )
        body.append(f"<tr>{cells}</tr>")
    described = f'<p class="note">{text(note)}</p>' if note else ""
    return (
        f'<div class="table"><button type="button" class="csv" title="Copy this table as CSV">CSV</button>'
        f"<table><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table>{described}</div>"
    )


def _align(right: bool) -> str:
    return ' class="n"' if right else ""


def facts(pairs: Iterable[tuple[str, Cell]]) -> str:
    """A definition list."""
    items = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in pairs)
    return f"<dl>{items}</dl>"


def section(identity: str, title: str, *parts: str) -> str:
    """A section with a heading that can be linked to."""
    return f'<section id="{identity}"><h2>{text(title)}</h2>{"".join(parts)}</section>'


def data_block(identity: str, value: Any) -> str:
    """JSON as gzip and base64 inside a script that is never run: nothing in it can end the element."""
    raw = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")
    packed = base64.b64encode(gzip.compress(raw, 6, mtime=0)).decode("ascii")
    return f'<script type="application/octet-stream" id="{identity}">{packed}</script>'
