"""What became of replies, by target and stage; a model that ignores what it is asked for is noticed before the rest."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.collection.rows import Row, columns_of
from pipeline.config import RunConfig
from pipeline.models.stopping import RunStopped

_LOG = logging.getLogger(__name__)
FIRST_REPLIES = 20
"""Replies of a model in a stage that are looked at."""
_LOUD, _FEW = 0.05, 3
"""Share of a stage's replies, and their number, beyond which what was lost is told while the run goes on, as on the
page: the first run that a newcomer makes once told of one judgement in a thousand, every ten seconds."""
_QUOTED = 3
_QUOTED_CHARS = 80

End = Literal["ok", "cut", "unread", "invalid", "refused", "failed"]
WORDS: Mapping[End, str] = {"unread": "unread", "cut": "cut off", "invalid": "invalid", "failed": "failed"}
"""Ends that nothing can be made of, as they are told; a refusal is an answer of its own."""
COUNTED: Mapping[str, tuple[str, ...]] = {
    "responses": ("model", "stage", "outcome", "phi_reason"),
    "preferences": ("target", "rater", "pair", "verdict_reason"),
    "scores": ("target", "rater", "score_reason"),
    "taus": ("target", "tau_reason"),
}
"""Tables that hold replies → the columns that say what became of them."""
_REASONS: Mapping[str | None, End] = {
    None: "ok", "truncated": "cut", "no_answer": "unread", "refused": "refused",
    "empty": "invalid", "invalid": "invalid",
}  # fmt: skip
_NEVER_ASKED = ("not_asked", "missing_input")


@dataclass(frozen=True, slots=True)
class Ending:
    """What became of one reply: of which model (None: the regressor), about which target, in which stage."""

    model: str | None
    target: str
    stage: str
    end: End


def ending(table: str, row: Mapping[str, Any]) -> Ending | None:
    """What became of the reply of a row; None where none was asked for.

    The one place that decides it: during the run, on the terminal and on the page.
    """
    if table == "responses":
        reason = row["outcome"] if row["outcome"] in ("truncated", "no_answer", "refused") else None
        if row["outcome"] == "no_answer" and row["phi_reason"] == "missing_input":  # no such response in the file
            return None
        if row["outcome"] == "failed":
            reason = "empty" if row["phi_reason"] == "empty" else "failed"
        return Ending(row["model"], row["model"], row["stage"], _REASONS.get(reason, "failed"))
    value = {"preferences": "verdict", "scores": "score", "taus": "tau"}[table]
    reason = row[f"{value}_reason"]
    if reason in _NEVER_ASKED:
        return None
    stage = value if table != "preferences" else "preference" if row["pair"] == "chains" else "pairwise"
    return Ending(row.get("rater"), row["target"], stage, _REASONS.get(reason, "failed"))


class FormWatch:
    """Counts what became of replies as they come, and judges each model in each stage by its first twenty.

    Args:
        config: the run; ``design.form_limit`` is the share of them that may be unread, cut off, invalid or failed.
        stops: whether to stop beyond it; else it is only said.
    """

    def __init__(self, config: RunConfig, *, stops: bool = True) -> None:
        self._limit = config.design.form_limit
        self._regressor = config.roles.regressor or ""
        self._stops = stops
        self.counts: dict[tuple[str, str], Counter[End]] = {}
        """(target, stage) → how often each end was met."""
        self._first: dict[tuple[str, str], Counter[End]] = {}
        self._ends: dict[tuple[str, str], list[str]] = {}
        self._lost: dict[tuple[str, str], dict[str, str]] = {}

    def take(self, row: Row, text: str = "") -> RunStopped | None:
        """Count a reply, ``text`` being what it says; why the run must stop, if it must."""
        if row.table not in COUNTED or (told := ending(row.table, columns_of(row))) is None:
            return None
        model = self._regressor if told.model is None else told.model
        first = self._first.setdefault((model, told.stage), Counter())
        # Judged when one more comes: nothing is gained by stopping at the end.
        stop = self._judged(model, told.stage) if first.total() == FIRST_REPLIES else None
        first[told.end] += 1
        self.counts.setdefault((told.target, told.stage), Counter())[told.end] += 1
        quote = " ".join(text.strip()[-_QUOTED_CHARS:].split())
        if told.end in WORDS and quote:
            self._ends.setdefault((model, told.stage), []).append(quote)
            del self._ends[model, told.stage][:-_QUOTED]
            # Those of the first items by name: a replay, in which they come in another order, quotes the same.
            kept = self._lost.setdefault((told.target, told.stage), {})
            kept[quote] = min(row.item_id, kept.get(quote, row.item_id))
            if len(kept) > _QUOTED:
                del kept[max(kept, key=lambda each: (kept[each], each))]
        return stop

    def quotes(self) -> dict[str, dict[str, list[str]]]:
        """Target → stage → how up to three of its replies end that could not be used."""
        told: dict[str, dict[str, list[str]]] = {}
        for (target, stage), kept in sorted(self._lost.items()):
            told.setdefault(target, {})[stage] = sorted(kept, key=lambda quote: (kept[quote], quote))
        return told

    def line(self, most: int = 3) -> str:
        """The worst (target, stage) so far with what was lost there and how it ends; empty where little was."""
        worst = []
        for where, counts in self.counts.items():
            bad = sum(counts[end] for end in WORDS)
            if bad >= _FEW and bad > _LOUD * counts.total():
                worst.append((bad / counts.total(), where))
        told, quotes = [], self.quotes()
        for _, (target, stage) in sorted(worst, reverse=True)[:most]:
            counts, kept = self.counts[target, stage], quotes.get(target, {}).get(stage)
            quoted = f", as {kept[0]!r}" if kept else ""
            told.append(f"{target} {stage}: {_parts(counts)} of {counts.total()}{quoted}")
        return "; ".join(told)

    def _judged(self, model: str, stage: str) -> RunStopped | None:
        counts = self._first[model, stage]
        # A chain that is cut off serves as well as any; failures alone are what stage_failure_limit is for.
        bad = sum(counts[end] for end in WORDS if (stage, end) != ("auxiliary", "cut"))
        if bad <= self._limit * FIRST_REPLIES or bad == counts["failed"]:
            return None
        quoted = "; ".join(map(repr, self._ends.get((model, stage), ()))) or "(no text)"
        replies = "answers" if stage == "answer" else f"replies of stage {stage}"
        sentence = (
            f"{model}: {bad} of its first {FIRST_REPLIES} {replies} cannot be used ({_parts(counts)}); replies end in"
            f" {quoted}"
        )
        if not self._stops:
            _LOG.warning("%s", sentence)
            return None
        return RunStopped(
            f"{sentence}. Change the prompt, the token limit or the entry; auxeval run --yes,"
            " or design.form_limit: 1 (auxeval resume --set design.form_limit=1), goes on as it is",
            "failure_limit",
        )


def _parts(counts: Counter[End]) -> str:
    return ", ".join(f"{counts[end]} {word}" for end, word in WORDS.items() if counts[end])
