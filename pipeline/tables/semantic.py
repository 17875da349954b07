"""Groups of texts that mean alike, named by the text nearest to each group's middle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.tables.embedding import StaticEmbedder

_MOST, _ITEMS_A_GROUP = 8, 25
_NAME = 48
"""Characters of a group's name."""


def semantic_groups(texts: Sequence[str], column: str) -> NDArray[np.str_]:
    """The group of every text: k-means on the shipped embedding, one group per 25 texts, at least 2 and at most 8.

    Nothing but the texts is read, so no label can leak into the axis, and the same texts give the same groups.

    Args:
        texts: of the items.
        column: that holds them, for messages.

    Returns:
        (M,) names: the beginning of the text nearest to the middle of the group.

    Raises:
        InputError: the extra ``embed`` is not installed.
        DataError: fewer than 4 different texts.

    References:
        Lloyd, "Least Squares Quantization in PCM" (1982), IEEE Transactions on Information Theory 28.
    """
    distinct, place = np.unique(np.asarray(texts, dtype=np.str_), return_inverse=True)
    if len(distinct) < 4:
        raise DataError(
            f"profile column {column!r} has {len(distinct)} different texts; groups by meaning need 4 or more"
        )
    from sklearn.cluster import KMeans  # 0.6 s, for those alone who ask for such an axis

    vectors = StaticEmbedder().embed(distinct.tolist()).astype(np.float64)
    groups = min(max(len(distinct) // _ITEMS_A_GROUP, 2), _MOST)
    fitted = KMeans(groups, n_init=10, random_state=0).fit(vectors)
    distance = fitted.transform(vectors)
    names = _names([distinct[int(np.argmin(distance[:, group]))] for group in range(groups)])
    return np.asarray(np.array(names, dtype=np.str_)[fitted.labels_][place.reshape(-1)])


def _names(texts: Sequence[str]) -> list[str]:
    """Short names, each once."""
    names: list[str] = []
    for text in texts:
        line = " ".join(text.split())
        name = line if len(line) <= _NAME else f"{line[: _NAME - 1].rstrip()}…"
        names.append(name if name and name not in names else f"{name} ({len(names) + 1})".strip())
    return names
