"""Reads lm-evaluation-harness samples: every metric under every filter, and how sure the model was of its choice."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import DataError
from pipeline.foreign_json import read_json
from pipeline.tables.imports.imported import ImportedTable, files_below, tidy_name
from pipeline.tables.imports.runs import Header, ToolRun, table_of_runs
from pipeline.tables.json_records import json_rows
from pipeline.tables.table_source import inspect_source

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
_MEANS = frozenset(["acc", "acc_norm", "exact_match", "em", "prompt_level_strict_acc", "prompt_level_loose_acc"])
"""Metrics that the harness prints as the mean of the items' numbers; others it may aggregate in another way."""


def read_lm_eval_samples(path: str | Path, *, id_field: str | None = None) -> ImportedTable:
    """One ``samples_*.jsonl`` file, or every one in a folder and below it; the arrays of 0.4.0 to 0.4.2 too.

    The item id is a field of the document that names it (``id``, ``question_id``, …) where it is there and unique
    within the task, else the harness's ``doc_id``. A metric under filter ``none`` becomes the column
    ``score_<metric>``, under any other filter ``score_<metric>__<filter>``; where a file does not name its filters
    (up to 0.4.5) they are as the results file has them, else numbered. The model is the one the results file beside it
    names, else the folder's name. Metrics that are no single number per item (pairs of gold and prediction) are left
    out: their mean is not the metric.

    Args:
        path: file or folder.
        id_field: the document's field that is the item id; None means: look for one.

    Raises:
        DataError: no sample files, a damaged line, ``id_field`` missing, or a results file that the samples contradict.
    """
    root = Path(path)
    notes: list[str] = []
    runs = lm_eval_runs(files_below(root, ("samples_*.jsonl", "samples_*.jsonl.gz")), notes, id_field=id_field)
    if not any(run.rows for run in runs):
        raise DataError(f"{root}: the sample files are empty")
    return table_of_runs(runs, notes)


def lm_eval_runs(files: Sequence[Path], notes: list[str], *, id_field: str | None = None) -> list[ToolRun]:
    """The run of every sample file.

    Args:
        files: the files.
        notes: gets what was skipped, one line each.
        id_field: see :func:`read_lm_eval_samples`.

    Raises:
        DataError: a damaged line, or ``id_field`` missing.
    """
    return [_run(file, id_field, notes) for file in files]


def _run(file: Path, id_field: str | None, notes: list[str]) -> ToolRun:
    match = _FILE_NAME.match(file.name)
    stamp = (match["stamp"] or "") if match else ""
    results = _results(file, stamp)
    task, model = _names(file, results)
    lines = list(_lines(file))
    identity = _identity_field(file, lines, id_field)
    printed = (results.get("results") or {}).get(task) or {}
    filters = list(dict.fromkeys(key.partition(",")[2] for key in printed if "," in key))
    merged: dict[str, dict[str, Any]] = {}
    seen: Counter[str] = Counter()
    skipped: dict[str, None] = {}
    scores: dict[str, None] = {}
    unnamed = "filter" not in (lines[0] if lines else {}) and len({line["doc_id"] for line in lines}) < len(lines)
    for line in lines:
        item = _item_id(line, identity)
        row = merged.setdefault(item, _row(line, item))
        seen[item] += 1
        if unnamed:
            number = seen[item]
            line["filter"] = filters[number - 1] if number <= len(filters) else f"filter{number}"
        for name, value in _metrics(line, skipped):
            row[name] = value
            scores[name] = None
            row["reason"] = None if value is not None else row["reason"]
    notes += [f"{file.name}: metric {name} has no single number per item; skipped" for name in sorted(skipped)]
    return ToolRun(
        file.name, task, model, stamp, list(merged.values()), tuple(scores), {}, _model_facts(results, task),
        tuple(_headers(printed)),
    )  # fmt: skip


def _headers(printed: Mapping[str, Any]) -> Iterator[Header]:
    """Numbers of the results file that are means over items."""
    for key, value in printed.items():
        metric, _, chosen = key.partition(",")
        if metric in _MEANS and isinstance(value, int | float):
            yield Header(_column(metric, chosen or "none"), f"{metric} ({chosen})" if chosen else metric, float(value))


def _column(metric: str, chosen: str) -> str:
    return f"score_{tidy_name(metric)}" + ("" if chosen == "none" else f"__{tidy_name(chosen)}")


def _model_facts(results: Mapping[str, Any], task: str) -> dict[str, Any]:
    """What makes another target of the same model: arguments, few-shot examples, prompt, generation."""
    config = results.get("config") or {}
    own = (results.get("configs") or {}).get(task) or {}
    settings = {
        "model_args": config.get("model_args"),
        "gen_kwargs": config.get("gen_kwargs") or own.get("generation_kwargs"),
        "num_fewshot": (results.get("n-shot") or {}).get(task, own.get("num_fewshot")),
        "prompt": own.get("doc_to_text"),
        "system_instruction": results.get("system_instruction"),
        "chat_template": results.get("chat_template_sha"),
    }
    return {name: value for name, value in settings.items() if value is not None}


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    source = inspect_source(file)
    if source.format not in ("json", "jsonl"):
        raise DataError(f"{file} is no JSON Lines file of lm-evaluation-harness samples")
    for number, record in json_rows(source.json):
        if "doc_id" not in record:
            raise DataError(f"{file}: line {number} is no lm-evaluation-harness sample (it has no doc_id)")
        yield record


def _results(file: Path, stamp: str) -> dict[str, Any]:
    """The results file of the same run, or nothing."""
    beside = [file.with_name(f"results_{stamp}.json")] if stamp else []
    if not stamp:
        # 0.4.0 to 0.4.2 with --output_path FILE.json: FILE_<task>.jsonl stands beside FILE.json.
        named = [other for other in file.parent.glob("*.json") if file.name.startswith(f"{other.stem}_")]
        beside += [*named, *sorted(file.parent.glob("results*.json"), reverse=True)]
    for path in beside:
        try:
            content = read_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(content, dict) and "results" in content:
            return content
    return {}


def _names(file: Path, results: Mapping[str, Any]) -> tuple[str, str]:
    """Task and model: as the results file says them, else from the names of file and folder (``/`` written ``__``)."""
    match = _FILE_NAME.match(file.name)
    stem = file.name.removesuffix(".gz").removesuffix(".jsonl")
    tasks = sorted((task for task in results.get("results") or {} if stem.endswith(f"_{task}")), key=len)
    task = match["task"] if match else tasks[-1] if tasks else stem.rpartition("_")[2]
    model = results.get("model_name") or (results.get("config") or {}).get("model_args")
    if not (isinstance(model, str) and model):
        model = file.parent.name if match else stem.removesuffix(f"_{task}").removeprefix("pretrained__")
        model = model.replace("__", "/")
    return task, model or "unknown"


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


def _row(line: dict[str, Any], item: str) -> dict[str, Any]:
    doc = line.get("doc")
    doc = doc if isinstance(doc, dict) else {}
    contexts, continuations = _arguments(line.get("arguments"))
    asked = next((doc[field] for field in _QUESTION_FIELDS if isinstance(doc.get(field), str)), None)
    likelihoods = _log_likelihoods(line.get("resps"))
    answer = _answer(line, continuations, likelihoods)
    row: dict[str, Any] = {
        "item_id": item,
        "epoch": 1,
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


def _metrics(line: Mapping[str, Any], skipped: dict[str, None]) -> Iterator[tuple[str, float | None]]:
    names = line.get("metrics") or [key for key in line if key not in _KNOWN]
    chosen = str(line.get("filter") or "none")
    for name in names:
        value = line.get(name)
        if not (value is None or isinstance(value, bool | int | float)) or "perplexity" in str(name):
            skipped[str(name)] = None
            continue
        yield _column(str(name), chosen), float(value) if value is not None and math.isfinite(value) else None
