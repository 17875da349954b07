"""What stands on a profile axis: a number, a level, overlapping tags, or the group of texts that mean alike."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.benchmark.presets import BadRow, Skip
from pipeline.errors import DataError
from pipeline.foreign_json import read_json
from pipeline.tables.column_roles import ProfileKind

SEPARATOR = ";"
"""Between the tags of one text; inside a tag it becomes a comma."""
_MOST, _ITEMS_A_GROUP = 8, 25
_NAME = 48
"""Characters of a group's name."""
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
            listed = read_json(text)
        except ValueError:
            listed = None
        if isinstance(listed, list):
            return listed
    return _MARKS.split(text) if _MARKS.search(text) else text.split(",")


def axis_value(value: Any, column: str, kind: ProfileKind | None) -> float | str:
    """A row's value on the axis.

    Raises:
        Skip: there is none.
        BadRow: it is no number, where the axis is one of numbers.
    """
    if kind == "tags":  # an item without a tag is an item
        return tags_text(value)
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        raise Skip("no value on the profile axis")
    if kind in ("categorical", "semantic"):
        return f"{value:g}" if isinstance(value, float) else str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        if kind is None:
            return str(value)
        raise BadRow(f"field {column!r}, the {kind} profile axis, is not a number: {str(value)[:40]!r}") from None
    if not math.isfinite(number):
        raise BadRow(f"field {column!r}, the profile axis, is not finite")
    return number


def semantic_groups(texts: Sequence[str], column: str) -> list[str]:
    """The group of every text: k-means on the shipped embedding, one group per 25 texts, at least 2 and at most 8.

    Nothing but the texts is read, so no label can leak into the axis, and the same texts give the same groups.

    Args:
        texts: of the items.
        column: that holds them, for messages.

    Returns:
        Names, one per text: the beginning of the text nearest to the middle of the group.

    Raises:
        InputError: the extra ``embed`` is not installed.
        DataError: fewer than 4 different texts.

    References:
        Lloyd, "Least Squares Quantization in PCM" (1982), IEEE Transactions on Information Theory 28.
    """
    import numpy as np  # here, since collection starts without it

    distinct, place = np.unique(np.asarray(texts, dtype=np.str_), return_inverse=True)
    if len(distinct) < 4:
        raise DataError(
            f"profile column {column!r} has {len(distinct)} different texts; groups by meaning need 4 or more"
        )
    from sklearn.cluster import KMeans  # 0.6 s, for those alone who ask for such an axis

    from pipeline.tables.embedding import StaticEmbedder

    vectors = StaticEmbedder().embed(distinct.tolist()).astype(np.float64)
    groups = min(max(len(distinct) // _ITEMS_A_GROUP, 2), _MOST)
    fitted = KMeans(groups, n_init=10, random_state=0).fit(vectors)
    distance = fitted.transform(vectors)
    names = _names([distinct[int(np.argmin(distance[:, group]))] for group in range(groups)])
    return [names[group] for group in fitted.labels_[place.reshape(-1)].tolist()]


def _names(texts: Sequence[str]) -> list[str]:
    """Short names, each once."""
    names: list[str] = []
    for text in texts:
        line = " ".join(text.split())
        name = line if len(line) <= _NAME else f"{line[: _NAME - 1].rstrip()}…"
        names.append(name if name and name not in names else f"{name} ({len(names) + 1})".strip())
    return names
