"""ServedModels: which model each entry's replies name, and whether it is the one that was asked for."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping

_LOG = logging.getLogger(__name__)
_DATED = re.compile(r"(?:[-@_.](?:\d{3,8}|\d{4}-\d{2}(?:-\d{2})?|latest))?$")
_LONGEST = 80


def is_same_model(asked: str, served: str) -> bool:
    """Whether a reply names the model that was asked for: path and provider aside, up to a dated suffix."""
    return _bare(asked) == _bare(served)


def _bare(name: str) -> str:
    return _DATED.sub("", name.lower().rpartition("/")[2].removesuffix(".gguf"), count=1)


def served_warning(entry: str, asked: str, served: Mapping[str, int]) -> str | None:
    """What a reader must know of the models that answered for an entry; None where they are what was asked.

    Args:
        entry: name of the model entry.
        asked: its model string.
        served: model that replies name → how many.
    """
    if len(served) == 1 and all(is_same_model(asked, name) for name in served):
        return None
    counts = ", ".join(f"{name} ({count})" for name, count in served.items())
    if len(served) == 1:
        return f"{entry}: {asked} was asked, and every reply names another model: {counts}"
    return f"{entry}: {asked} was asked, and replies name {len(served)} models: {counts}"


class ServedModels:
    """Counts, per entry, the replies of each model that a server named, and says every change once.

    A gateway once answered as another model from request 120 on, and no output knew.

    Args:
        asked: entry → model string.
    """

    def __init__(self, asked: Mapping[str, str]) -> None:
        self._asked = asked
        self._counts: dict[str, Counter[str]] = {}

    def see(self, entry: str, served: str | None) -> None:
        """A reply names ``served``, or nothing."""
        if served is None:
            return
        served = " ".join(served.split())[:_LONGEST]
        counts = self._counts.setdefault(entry, Counter())
        if served not in counts:
            self._tell(entry, served, counts)
        counts[served] += 1

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Entry → model named → replies; both by name."""
        return {entry: dict(sorted(counts.items())) for entry, counts in sorted(self._counts.items())}

    def _tell(self, entry: str, served: str, counts: Mapping[str, int]) -> None:
        if counts:
            before = ", ".join(f"{name!r} ({count})" for name, count in counts.items())
            _LOG.warning("%s: a reply names the model %r; replies until now: %s", entry, served, before)
        elif not is_same_model(self._asked[entry], served):
            _LOG.warning("%s: %s was asked, and the server answers as %r", entry, self._asked[entry], served)
