"""What is known of each item, read from the tables block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.benchmark.extraction import strip_confidence
from pipeline.report.asked_prompts import AskedPrompts
from pipeline.report.run_folder import RunFolder
from pipeline.report.values import clean

Rows = dict[str, list[tuple[Any, ...]]]
_COLUMNS = {
    "responses": (
        *("model", "stage", "draw", "text", "answer", "confidence", "confidence_reason"),
        *("phi", "phi_reason", "outcome"),
    ),
    "preferences": ("target", "rater", "pair", "draw", "order", "verdict", "verdict_reason"),
    "scores": ("target", "rater", "prompt", "candidate", "draw", "score", "repaired", "score_reason"),
    "taus": ("target", "draw", "tau", "tau_reason"),
    "candidates": ("target", "candidate", "answer", "phi", "phi_reason"),
}  # fmt: skip
"""What is read of each table, in the order of the tuples below."""


class ItemDetails:
    """Details of items as JSON values.

    Attributes:
        cut: the most characters of one text.
    """

    def __init__(self, run: RunFolder, cut: int = 4_000, asked: AskedPrompts | None = None) -> None:
        self.cut = cut
        self._asked = asked
        self._targets, self._anchors = run.targets, run.anchors
        self._run, self._rows = run, dict[str, Rows]()

    def hold(self, items: Sequence[dict[str, Any]]) -> None:
        """Read the rows of these items of the items table, and let go of those that were held."""
        ids = [item["item_id"] for item in items]
        self._rows = {}
        for name, columns in _COLUMNS.items():
            self._rows[name] = self._run.rows(name, ids, columns)

    def of(self, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The details of rows of the items table that are held."""
        return [self._item(item, [rows.get(item["item_id"], []) for rows in self._rows.values()]) for item in items]

    def _item(self, item: dict[str, Any], rows: list[list[tuple[Any, ...]]]) -> dict[str, Any]:
        answers = {(row[0], row[2]): row[1:] for row in rows[0] if row[1] in ("answer", "anchor")}
        profile = item["profile"]
        return {
            "id": clean(item["item_id"]),
            "question": self._text(item["question"]),
            "gold": None if item["gold"] is None else self._text(item["gold"]),
            "choices": None if item["choices"] is None else [self._text(choice) for choice in item["choices"]],
            "profile": clean(profile) if isinstance(profile, str) else profile,
            "labeled": bool(item["labeled"]),
            "targets": [self._target(name, answers, rows) for name in self._targets],
            "chains": self._first_chains(rows[0]),
            "anchors": [self._anchor(answers.get((name, 0))) for name in self._anchors],
        }

    def _first_chains(self, responses: Sequence[tuple[Any, ...]]) -> list[str | None]:
        """The chains that a regressor was asked with first, where the page says what was asked."""
        if self._asked is None:
            return []
        chains = [(row[2], row[3]) for row in responses if row[1] == "auxiliary" and row[2] < 2]
        return [self._maybe(text) for _, text in sorted(chains, key=lambda chain: chain[0])]

    def _anchor(self, answer: tuple[Any, ...] | None) -> list[Any] | None:
        """[answer, φ, text, judged]"""
        if answer is None:
            return None
        return [self._maybe(answer[3]), answer[6], self._maybe(answer[2]), self._judged(answer[2])]

    def _judged(self, text: str | None) -> int | str | None:
        """The text as others see it, without its confidence: how much shorter at its end, or else whole."""
        if text is None or self._asked is None:
            return None
        whole, judged = self._text(text), self._text(strip_confidence(text).strip())
        tail = whole.removeprefix(judged)
        return len(tail.encode("utf-16-le")) // 2 if len(whole) == len(judged) + len(tail) else judged

    def _target(
        self, target: str, answers: dict[tuple[str, int], tuple[Any, ...]], rows: list[list[tuple[Any, ...]]]
    ) -> dict[str, Any] | None:
        verdicts, scores, taus, candidates = ([row[1:] for row in kind if row[0] == target] for kind in rows[1:])
        answer = answers.get((target, 0))
        if answer is None and not (verdicts or scores or taus or candidates):
            return None
        text, final, confidence, confidence_reason, phi, phi_reason, outcome = answer[2:] if answer else (None,) * 7
        more = [row[6] for (model, draw), row in sorted(answers.items()) if model == target and draw > 0]
        whole = [
            (prompt, score, repaired) for _, prompt, candidate, _, score, repaired, _ in scores if candidate is None
        ]
        return {
            "answer": self._maybe(final),
            "phi": phi,
            "confidence": confidence,
            "outcome": outcome,
            "text": self._maybe(text),
            "more": more,
            "pairs": _pairs([row for row in verdicts if row[1] != "chains"]),
            "chains": dict(Counter(v or "null" for _, pair, _, _, v, _ in verdicts if pair == "chains")),
            "judged": self._judged(text) if outcome == "ok" else None,
            "phrase": self._phrase(verdicts),
            "scores": [[prompt, score] for prompt, score, _ in whole],
            "repaired": sum(bool(repaired) for *_, repaired in whole),
            "taus": [tau for _, tau, _ in taus],
            "candidates": [
                [k, self._maybe(given), phi, [row[4] for row in scores if row[2] == k]]
                for k, given, phi, _ in candidates
            ],
            "nulls": [
                *([f"φ: {phi_reason}"] if phi_reason else []),
                *([f"confidence: {confidence_reason}"] if confidence_reason else []),
                *_reasons("verdict", verdicts),
                *_reasons("score", scores),
                *_reasons("τ", taus),
                *_reasons("candidate", candidates),
            ],
        }

    def _phrase(self, verdicts: Sequence[tuple[Any, ...]]) -> str | None:
        """What a regressor was told of the verdicts on the chains of draw 0."""
        first = {order: verdict for _, pair, draw, order, verdict, _ in verdicts if pair == "chains" and draw == 0}
        return self._asked.phrase(first) if self._asked is not None and first else None

    def _maybe(self, value: str | None) -> str | None:
        return None if value is None else self._text(value)

    def _text(self, value: str) -> str:
        excerpt = clean(value[: self.cut])
        return excerpt if len(value) <= self.cut else f"{excerpt} … [{len(value) - self.cut:,} more characters]"


def _pairs(verdicts: list[tuple[Any, ...]]) -> list[list[Any]]:
    """[anchor, what the target got when shown first, and when second, whether both agree]; a null verdict is null."""
    sides: dict[tuple[str, int], dict[str, str | None]] = {}
    for _, pair, draw, order, verdict, _ in verdicts:
        sides.setdefault((pair, draw), {})[order] = _side(verdict, order)
    rows = []
    for (pair, _), by_side in sides.items():
        first, second = by_side.get("ab"), by_side.get("ba")
        rows.append([pair, first, second, first is None or second is None or first == second])
    return rows


def _side(verdict: str | None, order: str) -> str | None:
    if verdict is None or verdict == "tie":
        return verdict
    return "win" if (verdict == "first") == (order == "ab") else "loss"


def _reasons(kind: str, rows: list[tuple[Any, ...]]) -> Iterator[str]:
    """One note per reason of null values, with its count; the reason is the last column."""
    for reason, count in Counter(row[-1] for row in rows if row[-1] is not None).items():
        yield f"{count} × {kind}: {reason}"
