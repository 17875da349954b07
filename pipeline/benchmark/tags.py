"""Overlapping tags of an item, as one text: sorted, each once, with a semicolon between."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

SEPARATOR = ";"
"""Between the tags of one text; inside a tag it becomes a comma."""
_MARKS = re.compile(r"\s*[;|\n]\s*")


def tags_text(value: Any) -> str:
    """Tags as people write them (a list, ``a; b``, ``a|b``, ``["a", "b"]``, else ``a, b``) as one canonical text.

    Example:
        >>> tags_text(['sports', 'news']), tags_text('news|sports'), tags_text('news, sports'), tags_text(None)
        ('news;sports', 'news;sports', 'news;sports', '')
    """
    entries = _entries(value)
    cleaned = (" ".join(str(entry).replace(SEPARATOR, ",").split()) for entry in entries if entry is not None)
    return SEPARATOR.join(sorted({entry for entry in cleaned if entry}))


def tags_of(texts: Iterable[str]) -> list[str]:
    """All tags of some canonical texts, sorted."""
    return sorted({tag for text in texts for tag in text.split(SEPARATOR) if tag})


def _entries(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, list | tuple | set):
        return list(value)
    text = str(value).strip()
    if text.startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list):
            return listed
    return _MARKS.split(text) if _MARKS.search(text) else text.split(",")
