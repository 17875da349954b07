"""Reads lm-evaluation-harness samples: every metric under every filter, and how sure the model was of its choice."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import DataError
from pipeline.tables.imports.imported import ImportedTable, files_below, frame_of_rows, tidy_name
from pipeline.tables.table_source import open_bytes

__all__ = ["read_lm_eval_samples"]

_KNOWN = frozenset(
    [
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "task_hash", "sample_len"),
    ]
)
_ID_FIELDS = ("id", "item_id", "question_id", "sample_id", "unique_id", "qid", "task_id", "key", "idx", "index")
_QUESTION_FIELDS = ("question", "query", "problem", "input", "prompt", "goal", "ctx", "sentence", "text")
_GOLD_FIELDS = frozenset(["answer", "answers", "label", "target", "gold", "answerkey", "solution", "output"])
_SKIPPED_FIELDS = _GOLD_FIELDS | set(_ID_FIELDS) | set(_QUESTION_FIELDS)
_FILE_NAME = re.compile(r"^samples_(?P<task>.+?)(?:_(?P<stamp>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl(?:\.gz)?$")
_META_CHARS = 80


def read_lm_eval_samples(path: str | Path, *, id_field: str | None = None) -> ImportedTable:
    """One ``samples_*.jsonl`` file, or every one in a folder and below it.

    The item id is a field of the document that names it (``id``, ``question_id``, …) where it is there and unique
    within the task, else the harness's ``doc_id``. A metric under filter ``none`` becomes the column
    ``score_<metric>``, under any other filter ``score_<metric>__<filter>``. The model is the one the results file
    beside it names, else the folder's name.

    Args:
        path: file or folder.
        id_field: the document's field that is the item id; None means: look for one.

    Raises:
        DataError: no sample files, a damaged line, or ``id_field`` missing.
    """
    root = Path(path)
    notes: list[str] = []
    scores: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    for file in sorted(files_below(root, ("samples_*.jsonl", "samples_*.jsonl.gz")), key=_stamp):
        rows.extend(_file_rows(file, id_field, scores, notes))
    if not rows:
        raise DataError(f"{root}: the sample files are empty")
    frame, replaced = frame_of_rows(rows)
    if replaced:
        notes.append(f"{replaced} samples stood in several files; the latest file counts")
    numeric = tuple(name for name in scores if frame[name].dtype.is_numeric())
    return ImportedTable(frame, numeric, tuple(notes))


def _stamp(file: Path) -> tuple[str, str]:
    match = _FILE_NAME.match(file.name)
    return (match["stamp"] or "") if match else "", str(file)


def _file_rows(file: Path, id_field: str | None, scores: dict[str, None], notes: list[str]) -> Iterator[dict[str, Any]]:
    match = _FILE_NAME.match(file.name)
    task = match["task"] if match else file.name.split(".")[0]
    model = _model_name(file, match["stamp"] if match else None)
    lines = list(_lines(file))
    identity = _identity_field(file, lines, id_field)
    merged: dict[str, dict[str, Any]] = {}
    skipped: set[str] = set()
    for line in lines:
        item = _item_id(line, identity)
        row = merged.setdefault(item, _row(line, task, model, item))
        for name, value in _metrics(line, skipped):
            row[name] = value
            scores[name] = None
            row["reason"] = None if value is not None else row["reason"]
    notes.extend(f"{file.name}: metric {name} has no single number per item; skipped" for name in sorted(skipped))
    yield from merged.values()


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with open_bytes(file, "gzip" if file.suffix == ".gz" else "none") as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8", errors="replace")
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                raise DataError(f"{file}: line {number} is no JSON ({error})") from error
            if not isinstance(record, dict) or "doc_id" not in record:
                raise DataError(f"{file}: line {number} is no lm-evaluation-harness sample (it has no doc_id)")
            yield record


def _model_name(file: Path, stamp: str | None) -> str:
    """As the results file of the same run says it, else from the folder, where ``/`` was written as ``__``."""
    candidates = [file.with_name(f"results_{stamp}.json")] if stamp else []
    candidates += sorted(file.parent.glob("results*.json"), reverse=True)
    for results in candidates:
        try:
            content = json.loads(results.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        name = content.get("model_name") or content.get("config", {}).get("model_args")
        if isinstance(name, str) and name:
            return name
    return file.parent.name.replace("__", "/") or "unknown"


def _identity_field(file: Path, lines: list[dict[str, Any]], wanted: str | None) -> str | None:
    documents = {line["doc_id"]: line.get("doc") for line in lines}.values()
    fields = (wanted,) if wanted else _ID_FIELDS
    for field in fields:
        values = [doc.get(field) if isinstance(doc, dict) else None for doc in documents]
        if all(isinstance(value, str | int) and value != "" for value in values) and len(set(values)) == len(values):
            return field
    if wanted:
        raise DataError(f"{file}: the documents have no field {wanted!r} that names each of them once")
    return None


def _item_id(line: Mapping[str, Any], field: str | None) -> str:
    return str(line["doc"][field] if field else line["doc_id"])


def _row(line: dict[str, Any], task: str, model: str, item: str) -> dict[str, Any]:
    doc = line.get("doc")
    doc = doc if isinstance(doc, dict) else {}
    contexts, continuations = _arguments(line.get("arguments"))
    asked = next((doc[field] for field in _QUESTION_FIELDS if isinstance(doc.get(field), str)), None)
    likelihoods = _log_likelihoods(line.get("resps"))
    answer = _answer(line, continuations, likelihoods)
    row: dict[str, Any] = {
        "task": task,
        "model": model,
        "item_id": item,
        "epoch": 1,
        "cluster": f"{task}/{item}",
        "question": asked if asked is not None else (contexts[0] if contexts else None),
        "target": _plain_text(line.get("target")),
        "answer": answer,
        "reason": "not_asked",
        **_certainty(likelihoods),
    }
    if not likelihoods and answer is not None:
        row["answer_chars"] = len(answer)
    for key, value in doc.items():
        short = isinstance(value, str) and len(value) <= _META_CHARS
        if key.lower() not in _SKIPPED_FIELDS and (short or isinstance(value, int | float)):
            row.setdefault("meta_" + tidy_name(key), value)
    return row


def _arguments(arguments: Any) -> tuple[list[str], list[str]]:
    """Contexts and continuations of a sample's requests; written as lists before 0.4.4 and as a mapping since."""
    entries = list(arguments.values()) if isinstance(arguments, dict) else list(arguments or [])
    pairs = [list(entry.values()) if isinstance(entry, dict) else list(entry) for entry in entries if entry]
    contexts = [str(pair[0]) for pair in pairs]
    continuations = [pair[1].strip() if len(pair) > 1 and isinstance(pair[1], str) else "" for pair in pairs]
    return contexts, continuations


def _log_likelihoods(responses: Any) -> list[float]:
    """log p of each choice of a multiple-choice sample; empty for generated answers."""
    values = []
    for response in responses or []:
        first = response[0] if isinstance(response, list) and response else None
        if not (isinstance(first, list) and len(first) == 2 and str(first[1]) in ("True", "False")):
            return []
        try:
            values.append(float(first[0]))
        except (TypeError, ValueError):
            return []
    return values


def _answer(line: Mapping[str, Any], continuations: list[str], likelihoods: list[float]) -> str | None:
    if likelihoods:
        best = int(np.argmax(likelihoods))
        return continuations[best] if best < len(continuations) else str(best)
    responses = line.get("filtered_resps") or line.get("resps")
    while isinstance(responses, list):
        if not responses:
            return None
        responses = responses[0]
    return None if responses is None else str(responses)


def _certainty(likelihoods: list[float]) -> dict[str, float]:
    """Softmax share of the best choice and its lead over the next, both free of labels."""
    if len(likelihoods) < 2 or not all(math.isfinite(value) for value in likelihoods):
        return {}
    scores = np.sort(np.array(likelihoods))[::-1]
    return {
        "choice_probability": float(1.0 / np.exp(scores - scores[0]).sum()),
        "choice_margin": float(scores[0] - scores[1]),
    }


def _plain_text(value: Any) -> str | None:
    return " | ".join(map(str, value)) if isinstance(value, list) else None if value is None else str(value)


def _metrics(line: Mapping[str, Any], skipped: set[str]) -> Iterator[tuple[str, float | None]]:
    names = line.get("metrics") or [key for key in line if key not in _KNOWN]
    chosen = str(line.get("filter") or "none")
    for name in names:
        value = line.get(name)
        if isinstance(value, list) and value and all(isinstance(entry, bool | int | float) for entry in value):
            value = sum(value) / len(value)
        if not (value is None or isinstance(value, bool | int | float)):
            skipped.add(str(name))
            continue
        label = f"score_{tidy_name(str(name))}" + ("" if chosen == "none" else f"__{tidy_name(chosen)}")
        yield label, float(value) if value is not None and math.isfinite(value) else None
