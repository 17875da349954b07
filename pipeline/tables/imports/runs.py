"""Runs of other tools: one identity each, reruns merged without losing scores, the tools' own numbers checked."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import DataError
from pipeline.tables.imports.imported import ImportedTable, frame_of_rows


@dataclass(frozen=True, slots=True)
class Header:
    """A number that the tool itself printed over the rows of a run.

    Attributes:
        column: which of our columns it is the mean of (item means first, where an item has several epochs).
        name: what the tool calls it.
        value: as printed.
    """

    column: str
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One run: one task, one model, one configuration, one file.

    Attributes:
        file: its name.
        task, model: as the tool names them.
        created: sorts runs in time.
        task_facts: what makes another task of it (task arguments): items of two such runs are never joined.
        model_facts: what makes another target of it (generation config, prompt, few-shot examples).
        rows: item_id, epoch, reason and the rest; the scores are in ``scores``.
        scores: the columns that may serve as gold or as signals.
        headers: the tool's own numbers.
    """

    file: str
    task: str
    model: str
    created: str
    rows: Sequence[Mapping[str, Any]]
    scores: tuple[str, ...]
    task_facts: Mapping[str, Any] = field(default_factory=dict)
    model_facts: Mapping[str, Any] = field(default_factory=dict)
    headers: tuple[Header, ...] = ()


def check_header(run: ToolRun) -> None:
    """Recompute what the tool printed about a run.

    Raises:
        DataError: a mean of the rows is not the number in the header; both are named.
    """
    for header in run.headers:
        groups: dict[str, list[float]] = defaultdict(list)
        for row in run.rows:
            value = row.get(header.column)
            if isinstance(value, int | float):
                groups[str(row["item_id"])].append(float(value))
        if not groups or not math.isfinite(header.value):
            continue
        mean = math.fsum(math.fsum(group) / len(group) for group in groups.values()) / len(groups)
        if abs(mean - header.value) > _printed_tolerance(header.value):
            raise DataError(
                f"{run.file}: the file's own {header.name} is {header.value:g}, but its {len(groups)} scored samples "
                f"give {mean:g}; samples are missing from the file, or were changed"
            )


def _printed_tolerance(value: float) -> float:
    """Half a unit of the last printed digit, where a number was rounded for print."""
    digits = len(repr(value).partition(".")[2])
    return 0.5001 * 10.0**-digits if digits <= 6 and "e" not in repr(value) else 1e-6 * max(1.0, abs(value))


def table_of_runs(runs: Sequence[ToolRun], notes: Sequence[str] = ()) -> ImportedTable:
    """One table: runs named by what they differ in, later samples in place of earlier ones but never a failure.

    Raises:
        DataError: no rows, or a header that the rows contradict.
    """
    for run in runs:
        check_header(run)
    lines = list(notes)
    rows: list[dict[str, Any]] = []
    for (task, model), same in _named(runs).items():
        merged = _merged(same, lines)
        rows += [{**row, "task": task, "model": model, "cluster": f"{task}/{row['item_id']}"} for row in merged]
    if not rows:
        raise DataError("the files hold no samples")
    _count_failures(rows, lines)
    frame, _ = frame_of_rows(rows)
    names = dict.fromkeys(name for run in runs for name in run.scores)
    numeric = [name for name in names if name in frame.columns and frame[name].dtype.is_numeric()]
    text = [name for name in names if name in frame.columns and name not in numeric and frame[name].drop_nulls().len()]
    lines += [
        f"score {name} is text ({', '.join(map(repr, frame[name].drop_nulls().unique().sort().to_list()[:4]))}); "
        f"--map '{name}: VALUE=NUMBER, …' makes it a number"
        for name in text
    ]
    return ImportedTable(frame, tuple(numeric), tuple(lines))


def _named(runs: Sequence[ToolRun]) -> dict[tuple[str, str], list[ToolRun]]:
    """Runs by task and model; of one task or model with several configurations each is named by what differs.

    Where task arguments differ but the items of one id ask the same, it is one task and the arguments are the target's.
    """
    groups = _task_groups(runs)
    tasks = _labels([(run.task, groups[id(run)].task_facts) for run in runs])
    keys = [(task, run.model) for task, run in zip(tasks, runs, strict=True)]
    models = _labels([(key, {**run.model_facts, **run.task_facts}) for key, run in zip(keys, runs, strict=True)])
    named: dict[tuple[str, str], list[ToolRun]] = defaultdict(list)
    for run, task, model in zip(runs, tasks, models, strict=True):
        named[f"{run.task}{task[1]}", f"{run.model}{model[1]}"].append(run)
    for same in named.values():
        same.sort(key=lambda run: (run.created, run.file))
    return named


def _task_groups(runs: Sequence[ToolRun]) -> dict[int, ToolRun]:
    """Run (by its identity as an object) → the first run of the same task: equal arguments, or equal questions."""
    firsts: list[tuple[ToolRun, dict[str, Any]]] = []
    groups: dict[int, ToolRun] = {}
    for run in runs:
        questions = {str(row["item_id"]): row.get("question") for row in run.rows}
        for first, asked in firsts:
            shared = asked.keys() & questions.keys()
            alike = bool(shared) and all(asked[item] and asked[item] == questions[item] for item in shared)
            if first.task == run.task and (first.task_facts == run.task_facts or alike):
                groups[id(run)] = first
                asked |= questions
                break
        else:
            firsts.append((run, questions))
            groups[id(run)] = run
    return groups


def _labels(entries: Sequence[tuple[Any, Mapping[str, Any]]]) -> list[tuple[Any, str]]:
    """Each entry's key with ``[fact=value, …]`` of the facts that differ among the entries of one key."""
    written = [(key, {name: _short(value) for name, value in settings.items()}) for key, settings in entries]
    values: dict[Any, dict[str, set[str | None]]] = defaultdict(lambda: defaultdict(set))
    for key, settings in written:
        names = {name for other, given in written if other == key for name in given}
        for name in names:
            values[key][name].add(settings.get(name))
    labels = []
    for key, settings in written:
        differing = sorted(name for name, distinct in values[key].items() if len(distinct) > 1)
        parts = [f"{name}={settings[name]}" for name in differing if name in settings]
        labels.append((key, f"[{', '.join(parts)}]" if parts else ""))
    return labels


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= 60 else f"{text[:50]}…{len(text)} characters"


def _scored(row: Mapping[str, Any], scores: Sequence[str]) -> bool:
    return any(row.get(name) is not None for name in scores)


def _merged(runs: Sequence[ToolRun], notes: list[str]) -> list[Mapping[str, Any]]:
    """The latest samples; a rerun that lost a score which an earlier run had only fills gaps."""
    latest: dict[tuple[str, int], tuple[ToolRun, Mapping[str, Any]]] = {}
    for run in runs:
        rows = {(str(row["item_id"]), int(row.get("epoch") or 1)): row for row in run.rows}
        had = {key for key in rows if key in latest and _scored(latest[key][1], latest[key][0].scores)}
        lost = {key for key in had if not _scored(rows[key], run.scores)}
        earlier = ", ".join(sorted({latest[key][0].file for key in rows if key in latest}))
        if lost:
            notes.append(
                f"{run.file}: {len(lost)} samples of this rerun failed or were not scored; all {len(had)} scores of "
                f"{earlier} are kept"
            )
        elif earlier:
            replaced = sum(key in latest for key in rows)
            notes.append(f"{run.file}: {replaced} samples replaced those of {earlier}")
        latest |= {key: (run, row) for key, row in rows.items() if not (lost and key in had)}
    return [row for _, row in latest.values()]


def _count_failures(rows: Sequence[Mapping[str, Any]], notes: list[str]) -> None:
    words = {"failed": "failed", "not_asked": "have no score"}
    counts = Counter((row["task"], row["model"], row["reason"]) for row in rows if row.get("reason"))
    notes += [
        f"{task}, {model}: {count} samples {words.get(reason, reason)}; they are not items to label"
        for (task, model, reason), count in sorted(counts.items())
    ]
