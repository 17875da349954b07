"""Reads promptfoo results (JSON and CSV): one target per provider and prompt, every test an item."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.tables.imports.imported import tidy_name
from pipeline.tables.imports.runs import ToolRun

_HEAD = re.compile(r"^\[(?P<provider>[^\]]+)\] (?P<prompt>.*)$", re.DOTALL)
_SCORES = ("score_pass", "score_value")


def promptfoo_runs(file: Path, content: Any) -> list[ToolRun]:
    """The runs of one results file.

    Args:
        file: its name is what messages say.
        content: the parsed JSON, or None for a CSV file.

    Raises:
        DataError: rows that are no results, or counts that contradict the file's own statistics.
    """
    if content is None:
        return _table_runs(file)
    results = content["results"]
    rows = results["results"]
    _check_stats(file, rows, results.get("stats") or {})
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        provider = row.get("provider") or {}
        name = (
            str(provider.get("label") or provider.get("id") or "unknown")
            if isinstance(provider, dict)
            else str(provider)
        )
        prompt = row.get("prompt") or {}
        label = str(prompt.get("label") or prompt.get("raw") or "") if isinstance(prompt, dict) else str(prompt)
        groups.setdefault((name, label), []).append(row)
    created = str(results.get("timestamp") or "")
    return [
        _run(file, provider, prompt, created, [_result(row, index) for index, row in enumerate(group)])
        for (provider, prompt), group in groups.items()
    ]


def _run(file: Path, provider: str, prompt: str, created: str, rows: list[dict[str, Any]]) -> ToolRun:
    seen: Counter[str] = Counter()
    for row in rows:  # repeats of one test
        seen[row["item_id"]] += 1
        row["epoch"] = seen[row["item_id"]]
    named = sorted({name for row in rows for name in row if name.startswith("score_")} - set(_SCORES))
    return ToolRun(
        file.name, "promptfoo", provider, created, rows, (*_SCORES, *named), model_facts={"prompt": prompt}
    )  # fmt: skip


def _result(row: Mapping[str, Any], index: int) -> dict[str, Any]:
    response = row.get("response") or {}
    output = response.get("output") if isinstance(response, dict) else response
    variables = row.get("vars") or {}
    # 2 is an error of the provider or of a grader; a failed assertion is 1 and has a score.
    failed = row.get("failureReason") == 2
    scores = {f"score_{tidy_name(str(name))}": value for name, value in (row.get("namedScores") or {}).items()}
    return {
        **({} if failed else scores),
        "item_id": str(row.get("testIdx", index)),
        "question": "; ".join(f"{name}={value}" for name, value in variables.items()),
        "answer": None if output is None else output if isinstance(output, str) else json.dumps(output),
        "reason": "failed" if failed else None,
        "score_pass": None if failed else float(bool(row.get("success"))),
        "score_value": None if failed else _number(row.get("score")),
        "seconds": _number(row.get("latencyMs"), 1000.0),
        "answer_chars": len(output) if isinstance(output, str) else None,
    }


def _number(value: Any, unit: float = 1.0) -> float | None:
    return float(value) / unit if isinstance(value, int | float) else None


def _check_stats(file: Path, rows: Sequence[Mapping[str, Any]], stats: Mapping[str, Any]) -> None:
    errors = sum(row.get("failureReason") == 2 for row in rows)
    passed = sum(bool(row.get("success")) for row in rows)
    for name, own in {"successes": passed, "errors": errors, "failures": len(rows) - passed - errors}.items():
        if isinstance(stats.get(name), int) and stats[name] != own:
            raise DataError(
                f"{file.name}: the file's own number of {name} is {stats[name]}, but its {len(rows)} results give "
                f"{own}; results are missing from the file, or were changed"
            )


def _table_runs(file: Path) -> list[ToolRun]:
    with file.open(encoding="utf-8-sig", newline="") as text:
        lines = list(csv.reader(text))
    header, body = lines[0], lines[1:]
    starts = [index for index, name in enumerate(header) if _HEAD.match(name)]
    if not starts:
        raise DataError(f"{file}: no column is called '[provider] prompt', as promptfoo writes them")
    runs = []
    for start, end in zip(starts, [*starts[1:], len(header)], strict=True):
        match = _HEAD.match(header[start])
        assert match is not None
        names = header[start:end]
        rows = list(_cells(header[: starts[0]], starts[0], names, start, body))
        runs.append(_run(file, match["provider"], match["prompt"], "", rows))
    return runs


def _cells(
    variables: Sequence[str], width: int, names: Sequence[str], start: int, body: Sequence[Sequence[str]]
) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(body):
        cells = dict(zip(names[1:], line[start + 1 :], strict=False))
        status = cells.get("Status", "").strip().upper()
        failed = status == "ERROR"
        given = [f"{name}={value}" for name, value in zip(variables, line[:width], strict=False)]
        score = cells.get("Score", "")
        yield {
            "item_id": str(number),
            "question": "; ".join(given),
            "answer": line[start] if start < len(line) else None,
            "reason": "failed" if failed else None,
            "score_pass": None if failed or not status else float(status == "PASS"),
            "score_value": None if failed or not score else float(score),
            "answer_chars": len(line[start]) if start < len(line) else None,
        }
