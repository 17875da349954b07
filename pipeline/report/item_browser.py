"""Every item of a run as compact blocks for the page's browser: question, answers, verdicts, scores, why null."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline.report.markup import clean, data_block, section, text
from pipeline.report.run_folder import RunFolder

__all__ = ["item_browser"]

BLOCK = 200
"""Items of one block; a block is unpacked when one of its items is opened."""
_ROOM = 40_000_000
"""Characters of text in all blocks together, before compression; longer texts are cut, and the cut is stated."""
_LEAST, _MOST = 120, 4_000


def item_browser(run: RunFolder) -> str:
    """The section and its data: an index to search in, and blocks of details."""
    items = run.items.sort("item_id")
    ids = items["item_id"].to_list()
    texts = max(1, len(ids) * (1 + len(run.targets)))
    cut = max(_LEAST, min(_MOST, _ROOM // texts))
    details = _Details(run, cut)
    index, blocks = [], []
    for start in range(0, len(ids), BLOCK):
        rows = [details.of(row) for row in items[start : start + BLOCK].iter_rows(named=True)]
        index += [_index_entry(row) for row in rows]
        blocks.append(data_block(f"block-{start // BLOCK}", rows))
    targets = "".join(f'<option value="{k}">{text(name)}</option>' for k, name in enumerate(run.targets))
    controls = (
        '<div class="controls"><label>Search <input type="search" id="search" autocomplete="off"></label>'
        f'<label>Target <select id="target"><option value="">any</option>{targets}</select></label>'
        '<label>Show <select id="state"><option value="">all items</option><option value="right">right answers</option>'
        '<option value="wrong">wrong answers</option><option value="null">something is null</option>'
        '<option value="labeled">labeled</option></select></label><output id="count"></output></div>'
    )
    body = '<div id="items" role="list"></div><p><button type="button" id="more" hidden>Show more</button></p>'
    note = (
        f'<p class="note">Texts beyond {cut} characters are cut here; the tables beside this page hold them whole.</p>'
    )
    data = data_block("item-index", {"block": BLOCK, "targets": list(run.targets), "items": index})
    return section("items", "Items", note, controls, body) + data + "".join(blocks)


def _index_entry(row: dict[str, Any]) -> list[Any]:
    """[id, question's head, labeled, φ per target, anything null per target]."""
    answers = row["targets"]
    return [
        row["id"],
        row["question"][:160],
        int(row["labeled"]),
        [None if a is None else a["phi"] for a in answers],
        [int(a is None or bool(a["nulls"])) for a in answers],
    ]


class _Details:
    """What is known of each item, by id."""

    def __init__(self, run: RunFolder, cut: int) -> None:
        self._cut = cut
        self._targets = run.targets
        answers = run.responses.filter((pl.col("stage") == "answer") & (pl.col("draw") == 0))
        self._answers = {(r["item_id"], r["model"]): r for r in answers.iter_rows(named=True)}
        self._verdicts = _grouped(run.preferences, ("rater", "pair", "draw", "order", "verdict", "verdict_reason"))
        self._scores = _grouped(run.scores, ("prompt", "candidate", "draw", "score", "score_reason"))
        taus = run.table("taus")
        self._taus = _grouped(taus, ("draw", "tau", "tau_reason"))

    def of(self, item: dict[str, Any]) -> dict[str, Any]:
        """One item's details as JSON values."""
        return {
            "id": clean(item["item_id"]),
            "question": self._text(item["question"]),
            "gold": None if item["gold"] is None else self._text(item["gold"]),
            "choices": None if item["choices"] is None else [self._text(choice) for choice in item["choices"]],
            "profile": item["profile"],
            "labeled": bool(item["labeled"]),
            "targets": [self._target(item["item_id"], name) for name in self._targets],
        }

    def _target(self, item: str, target: str) -> dict[str, Any] | None:
        key = (item, target)
        answer = self._answers.get(key)
        verdicts, scores, taus = self._verdicts.get(key, []), self._scores.get(key, []), self._taus.get(key, [])
        if answer is None and not (verdicts or scores or taus):
            return None
        found = answer or dict.fromkeys(
            ("answer", "phi", "phi_reason", "confidence", "confidence_reason", "outcome", "text")
        )
        nulls = [
            *([f"φ: {found['phi_reason']}"] if found["phi_reason"] else []),
            *([f"confidence: {found['confidence_reason']}"] if found["confidence_reason"] else []),
            *_reasons("verdict", verdicts),
            *_reasons("score", scores),
            *_reasons("τ", taus),
        ]
        return {
            "answer": None if found["answer"] is None else self._text(found["answer"]),
            "phi": found["phi"],
            "confidence": found["confidence"],
            "outcome": found["outcome"],
            "text": None if found["text"] is None else self._text(found["text"]),
            "pairs": [[f"{p} {o}", v or r] for _, p, d, o, v, r in verdicts if p != "chains" and d == 0],
            "chains": _tally([v for _, p, _, _, v, _ in verdicts if p == "chains"]),
            "scores": [
                [p if c is None else f"candidate {c}.{d}", s if s is not None else r] for p, c, d, s, r in scores
            ],
            "taus": [t for _, t, _ in taus],
            "nulls": nulls,
        }

    def _text(self, value: str) -> str:
        shown = clean(value[: self._cut])
        return shown if len(value) <= self._cut else f"{shown} … [{len(value) - self._cut} more characters]"


def _grouped(frame: pl.DataFrame, columns: tuple[str, ...]) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """(item, target) → the rows' values of ``columns``, in the order of the table."""
    groups: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for row in frame.select("item_id", "target", *columns).iter_rows():
        groups[row[0], row[1]].append(row[2:])
    return groups


def _reasons(kind: str, rows: list[tuple[Any, ...]]) -> Iterator[str]:
    """One note per reason of null values, with its count; the reason is the last column."""
    counts: dict[str, int] = {}
    for row in rows:
        if row[-1] is not None:
            counts[row[-1]] = counts.get(row[-1], 0) + 1
    for reason, count in counts.items():
        yield f"{count} × {kind}: {reason}"


def _tally(verdicts: list[str | None]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict or "null"] = counts.get(verdict or "null", 0) + 1
    return counts
