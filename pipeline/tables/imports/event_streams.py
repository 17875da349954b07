"""Reads the event streams of openai/evals: outcomes are events of a match or of metrics; other events are no items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.tables.imports.imported import tidy_name
from pipeline.tables.imports.runs import Header, ToolRun

_OUTCOMES = ("match", "metrics")


def event_stream_run(file: Path, events: Sequence[Mapping[str, Any]], notes: list[str]) -> ToolRun:
    """The run of one stream, its first line being the specification.

    Args:
        file: its name is what messages say.
        events: the lines.
        notes: gets a line about the events that are no outcomes.
    """
    spec: dict[str, Any] = next((event["spec"] for event in events if "spec" in event), {})
    report: Any = next((event["final_report"] for event in events if "final_report" in event), {})
    samples: dict[str, dict[str, Any]] = {}
    others: Counter[str] = Counter()
    for event in events:
        item, data = event.get("sample_id"), event.get("data")
        if item is None or not isinstance(data, dict):
            continue
        row = samples.setdefault(str(item), {"item_id": str(item), "epoch": 1, "reason": "not_asked"})
        kind = str(event.get("type"))
        if kind == "sampling":
            row["question"] = row.get("question") or _text(data.get("prompt"))
            row["answer"] = _text(data.get("sampled"))
        elif kind == "error":
            row["reason"] = "failed"
        elif kind in _OUTCOMES:
            row["reason"] = None
            row["target"] = _text(data.get("expected"))
            row |= {f"score_{tidy_name(str(name))}": value for name, value in _numbers(data)}
        else:
            others[kind] += 1
    notes += [f"{file.name}: {count} events of type {kind} are no outcomes" for kind, count in sorted(others.items())]
    scores = dict.fromkeys(name for row in samples.values() for name in row if name.startswith("score_"))
    own = report.get("accuracy") if isinstance(report, dict) else None
    headers = (Header("score_correct", "accuracy", float(own)),) if isinstance(own, int | float) else ()
    functions = spec.get("completion_fns") or ["unknown"]
    return ToolRun(
        file.name, str(spec.get("eval_name") or spec.get("base_eval") or file.stem), str(functions[0]),
        str(spec.get("created_at") or ""), list(samples.values()), tuple(scores), headers=headers,
    )  # fmt: skip


def _numbers(data: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [(name, float(value)) for name, value in data.items() if isinstance(value, bool | int | float)]


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        parts = [entry.get("content", "") if isinstance(entry, dict) else entry for entry in value]
        return " | ".join(map(str, parts))
    return None if value is None else str(value)
