"""Notices a target that ignores what its prompt asks for, before the rest of the money goes the same way."""

from __future__ import annotations

import logging
from collections import Counter

from pipeline.collection.rows import ResponseRow
from pipeline.models.stopping import RunStopped

_LOG = logging.getLogger(__name__)
FIRST_REPLIES = 20
"""Replies of a target that are looked at."""
_QUOTED = 3
_QUOTED_CHARS = 80
_WORDS = {"no_answer": "unread", "truncated": "cut off", "failed": "failed"}


class FormWatch:
    """Counts what became of each target's first answers.

    Args:
        limit: share of them that may be unread, cut off or failed; 1 never stops.
        stops: whether to stop beyond it; else it is only said.
    """

    def __init__(self, limit: float, *, stops: bool) -> None:
        self._limit = limit
        self._stops = stops
        self._counts: dict[str, Counter[str]] = {}
        self._ends: dict[str, list[str]] = {}
        self._said: set[str] = set()

    def take(self, row: ResponseRow) -> RunStopped | None:
        """Count an answer; why the run must stop, if it must."""
        if row.stage != "answer":
            return None
        counts = self._counts.setdefault(row.model, Counter())
        if counts.total() >= FIRST_REPLIES:  # judged when one more comes: nothing is gained by stopping at the end
            return self._judged(row.model)
        counts[row.outcome] += 1
        if row.outcome in _WORDS:
            self._ends.setdefault(row.model, []).append((row.text or "").strip()[-_QUOTED_CHARS:])
        return None

    def _judged(self, target: str) -> RunStopped | None:
        counts = self._counts[target]
        bad = sum(counts[outcome] for outcome in _WORDS)
        if target in self._said or bad <= self._limit * FIRST_REPLIES or bad == counts["failed"]:
            return None  # failures alone are what stage_failure_limit is for
        self._said.add(target)
        parts = ", ".join(f"{counts[name]} {word}" for name, word in _WORDS.items() if counts[name])
        ends = [" ".join(end.split()) for end in self._ends[target] if end][-_QUOTED:]
        quoted = "; ".join(repr(end) for end in ends) or "(no text)"
        sentence = (
            f"{target}: {bad} of its first {FIRST_REPLIES} answers cannot be used ({parts}); replies end in {quoted}"
        )
        if not self._stops:
            _LOG.warning("%s", sentence)
            return None
        return RunStopped(
            f"{sentence}. Change the prompt, the token limit or the entry; auxeval run --yes,"
            " or design.form_limit: 1 (auxeval resume --set design.form_limit=1), goes on as it is",
            "failure_limit",
        )
