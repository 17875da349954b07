"""Reads what judges said in AlpacaEval, Arena-Hard and MT-bench files: preferences and scores by item and model."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.tables.imports.runs import ToolRun

Record = Mapping[str, Any]
_VERDICTS = {"A>>B": 0.0, "A>B": 0.0, "A=B": 0.5, "B>A": 1.0, "B>>A": 1.0}
"""Share that the second-named model wins; Arena-Hard shows the baseline first in game 1 and second in game 2."""


def alpaca_eval_runs(file: Path, records: Sequence[Record]) -> list[ToolRun]:
    """``annotations.json``: preference in [1, 2] becomes the share that ``generator_2`` wins against the other."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        preference = record.get("preference")
        rows[str(record.get("generator_2")), str(record.get("generator_1"))].append(
            {
                "item_id": hashlib.sha256(str(record.get("instruction")).encode()).hexdigest()[:12],
                "epoch": 1,
                "question": str(record.get("instruction")),
                "answer": record.get("output_2"),
                "reason": None if isinstance(preference, int | float) else "failed",
                "score_win": float(preference) - 1.0 if isinstance(preference, int | float) else None,
                "meta_annotator": record.get("annotator"),
            }
        )
    return [
        ToolRun(file.name, "alpaca_eval", model, "", own, ("score_win",), {"baseline": baseline})
        for (model, baseline), own in rows.items()
    ]


def arena_hard_runs(file: Path, records: Sequence[Record]) -> list[ToolRun]:
    """Judgments with two games each, the models changing sides: the mean share that the model wins."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        games = [game.get("score") for game in record.get("games") or [] if isinstance(game, dict)]
        shares = [_VERDICTS[str(score)] if index % 2 == 0 else 1.0 - _VERDICTS[str(score)]
                  for index, score in enumerate(games) if str(score) in _VERDICTS]  # fmt: skip
        whole = len(shares) == len(games) and bool(games)
        rows[str(record.get("model"))].append(
            {
                "item_id": str(record.get("question_id") or record.get("uid")),
                "epoch": 1,
                "reason": None if whole else "failed",  # half a pair of orders is no verdict
                "score_win": sum(shares) / len(shares) if whole else None,
                "meta_judge": record.get("judge"),
            }
        )
    return [ToolRun(file.name, "arena_hard", model, "", own, ("score_win",)) for model, own in rows.items()]


def mt_bench_runs(file: Path, records: Sequence[Record]) -> list[ToolRun]:
    """Single-answer grades from 1 to 10, one item per question and turn; −1 marks a reply that was not read."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        if "score" not in record:
            raise DataError(
                f"{file}: these are MT-bench's pairs, not grades; auxeval estimate {file} --pairwise --model-a model_1 "
                "--model-b model_2 --gold g1_winner --id question_id"
            )
        score = record["score"]
        read = isinstance(score, int | float) and score >= 0
        rows[str(record.get("model"))].append(
            {
                "item_id": f"{record.get('question_id')}-{record.get('turn', 1)}",
                "epoch": 1,
                "question": record.get("user_prompt"),
                "reason": None if read else "failed",
                "score_judge": float(score) if read else None,
            }
        )
    return [ToolRun(file.name, "mt_bench", model, "", own, ("score_judge",)) for model, own in rows.items()]
