"""Reads test cases with metrics, as DeepEval and Ragas write them: a row per case, a column per metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.tables.imports.imported import tidy_name
from pipeline.tables.imports.runs import ToolRun

RAGAS_TEXT = ("user_input", "response", "reference", "question", "answer", "ground_truth")


def deepeval_runs(file: Path, content: Mapping[str, Any]) -> list[ToolRun]:
    """``testCases`` (or ``test_results``) with ``metricsData``; a metric without a score is one that failed."""
    rows = []
    for index, case in enumerate(content.get("testCases") or content.get("test_results") or []):
        metrics = case.get("metricsData") or case.get("metrics_data") or []
        scores = {f"score_{tidy_name(str(metric.get('name')))}": _number(metric.get("score")) for metric in metrics}
        rows.append(
            {
                "item_id": str(case.get("name") or index),
                "epoch": 1,
                "question": case.get("input"),
                "answer": case.get("actualOutput") or case.get("actual_output"),
                "target": case.get("expectedOutput") or case.get("expected_output"),
                "reason": None if any(value is not None for value in scores.values()) else "failed",
                **scores,
            }
        )
    return [ToolRun(file.name, "deepeval", _model(content, file), "", rows, _names(rows))]


def ragas_runs(file: Path, records: Sequence[Mapping[str, Any]]) -> list[ToolRun]:
    """A table of ``user_input``, ``response``, ``reference`` and metrics; the item is its row."""
    rows = []
    for index, record in enumerate(records):
        scores = {
            f"score_{tidy_name(str(name))}": _number(value)
            for name, value in record.items()
            if name not in RAGAS_TEXT and (value in (None, "") or _number(value) is not None)
        }
        rows.append(
            {
                "item_id": str(index),
                "epoch": 1,
                "question": record.get("user_input") or record.get("question"),
                "answer": record.get("response") or record.get("answer"),
                "target": record.get("reference") or record.get("ground_truth"),
                "reason": None if any(value is not None for value in scores.values()) else "failed",
                **scores,
            }
        )
    return [ToolRun(file.name, "ragas", file.stem, "", rows, _names(rows))]


def _model(content: Mapping[str, Any], file: Path) -> str:
    parameters = content.get("hyperparameters")
    return str(parameters.get("model") or file.stem) if isinstance(parameters, dict) else file.stem


def _names(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows for name in row if name.startswith("score_")))


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
