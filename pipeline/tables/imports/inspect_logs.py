"""Reads Inspect AI logs (.eval and .json): scores of every scorer, targets, metadata, epochs as repeats of an item."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from pipeline.errors import DataError
from pipeline.foreign_json import read_json
from pipeline.tables.compressed import decompress_zstd
from pipeline.tables.imports.imported import ImportedTable, files_below, tidy_name
from pipeline.tables.imports.runs import Header, ToolRun, table_of_runs

_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_ZSTANDARD = 93
_META_CHARS = 200
MAX_MEMBER_BYTES = 1 << 29


def read_inspect_logs(path: str | Path) -> ImportedTable:
    """One log, or every log in a folder and below it.

    A run is a task with its arguments, a model with its generation config and solver, and its file: tasks are never
    joined, and two runs that differ are two. Of two logs of one run the later sample counts, unless it failed. Letter
    grades become C = 1, P = 0.5, I = N = 0, yes and no 1 and 0; other text stays text; a score that is a mapping
    becomes one column per key; a sample that failed keeps its row, with null scores and the reason ``failed``.

    Raises:
        DataError: no logs, a damaged log, a log without samples, or one whose own means its samples contradict.
    """
    notes: list[str] = []
    runs = inspect_runs(files_below(Path(path), ("*.eval", "*.json")), notes, required=Path(path).is_file())
    if not runs:
        raise DataError(f"{path} holds no Inspect AI logs (.eval or .json with 'eval' and 'samples')")
    if not any(run.rows for run in runs):
        raise DataError(f"{path}: the logs hold no samples (were they made with log_samples off?)")
    return table_of_runs(runs, notes)


def inspect_runs(files: Sequence[Path], notes: list[str], *, required: bool) -> list[ToolRun]:
    """The run of every log among some files.

    Args:
        files: logs, and others that are passed over.
        notes: gets what was skipped, one line each.
        required: whether a file that is no log is an error.

    Raises:
        DataError: a damaged log.
    """
    logs = (_open_log(file, required=required) for file in files)
    return [_run(file, header, notes) for file, header in filter(None, logs)]


def _run(file: Path, header: dict[str, Any], notes: list[str]) -> ToolRun:
    spec, results = header["eval"], header.get("results") or {}
    scores: dict[str, None] = {}
    scorer = (results.get("scorer") or {}).get("name") or "score"  # of version 1, which had one
    rows = list(_rows(file, header, scores, notes, scorer))
    complete = header.get("status") in (None, "success")
    return ToolRun(
        file.name, str(spec.get("task") or file.stem), str(spec.get("model") or "unknown"),
        str(spec.get("created") or ""), rows, tuple(scores), spec.get("task_args") or {}, _model_facts(header),
        tuple(_headers(results)) if complete else (),
    )  # fmt: skip


def _model_facts(header: dict[str, Any]) -> dict[str, Any]:
    """What makes another target of the same model: generation config, arguments, solver."""
    spec, plan = header["eval"], header.get("plan") or {}
    generation = {**(plan.get("config") or {}), **(spec.get("model_generate_config") or {})}
    steps = [(step.get("solver"), step.get("params")) for step in plan.get("steps") or [] if isinstance(step, dict)]
    settings = {**generation, **(spec.get("model_args") or {}), "solver": steps or spec.get("solver")}
    return {name: value for name, value in settings.items() if value is not None}


def _headers(results: dict[str, Any]) -> Iterator[Header]:
    """The means that the log itself states; those of another reducer than the mean over epochs are no means of rows."""
    entries = list(results.get("scores") or [])
    if isinstance(results.get("scorer"), dict):
        entries.append({"name": results["scorer"].get("name"), "metrics": results.get("metrics") or {}})
    for entry in entries:
        if entry.get("reducer") not in (None, "mean"):
            continue
        name, scorer = str(entry.get("name")), str(entry.get("scorer") or entry.get("name"))
        column = "score_" + tidy_name(name if name == scorer else f"{scorer}_{name}")
        for metric in ("accuracy", "mean"):
            value = ((entry.get("metrics") or {}).get(metric) or {}).get("value")
            if isinstance(value, int | float):
                yield Header(column, f"{metric} of {name}", float(value))


def _open_log(file: Path, required: bool) -> tuple[Path, dict[str, Any]] | None:
    """The header of a log, or None if a file found in a folder is no log."""
    try:
        header = _eval_header(file) if zipfile.is_zipfile(file) else _load(file.read_bytes())
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        if file.suffix == ".eval" or required:
            raise DataError(f"{file} is no readable Inspect AI log ({error}); is it still being written?") from error
        return None
    if isinstance(header, dict) and isinstance(header.get("eval"), dict):
        return file, {key: header[key] for key in ("eval", "status", "plan", "results") if key in header}
    if required:
        raise DataError(f"{file} is no Inspect AI log: it has no 'eval' section")
    return None


def _eval_header(file: Path) -> Any:
    with zipfile.ZipFile(file) as archive, file.open("rb") as raw:
        members = {info.filename: info for info in archive.infolist()}
        name = "header.json" if "header.json" in members else "_journal/start.json"
        return _load(_member(archive, raw, members[name]))


def _samples(file: Path) -> Iterator[dict[str, Any]]:
    """The samples of a log, one at a time where the format allows."""
    if not zipfile.is_zipfile(file):
        yield from _load(file.read_bytes()).get("samples") or []
        return
    with zipfile.ZipFile(file) as archive, file.open("rb") as raw:
        members = {info.filename: info for info in archive.infolist() if info.filename.startswith("samples/")}
        for name in sorted(members):
            try:
                yield _load(_member(archive, raw, members[name]))
            except (ValueError, zipfile.BadZipFile) as error:
                raise DataError(f"{file}: member {name} is damaged ({error})") from error


def _member(archive: zipfile.ZipFile, raw: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    """One file of the archive; newer logs use Zstandard, which the standard library reads from Python 3.14 on."""
    if info.file_size > MAX_MEMBER_BYTES:
        raise zipfile.BadZipFile(f"{info.filename} unpacks to more than {MAX_MEMBER_BYTES >> 20} MiB")
    if info.compress_type != _ZSTANDARD:
        return archive.read(info)
    raw.seek(info.header_offset)
    local = raw.read(30)
    name_length, extra_length = struct.unpack("<HH", local[26:30])
    raw.seek(name_length + extra_length, 1)
    try:
        return decompress_zstd(raw.read(info.compress_size))
    except Exception as error:  # whichever decoder is there raises its own kind
        raise zipfile.BadZipFile(f"{info.filename}: {type(error).__name__}") from error


def _load(data: bytes) -> Any:
    return read_json(data.decode("utf-8", errors="replace"))


def _rows(
    file: Path, header: dict[str, Any], scores: dict[str, None], notes: list[str], scorer: str
) -> Iterator[dict[str, Any]]:
    if header.get("status") not in (None, "success"):
        notes.append(f"{file.name}: the evaluation's status is {header['status']}; its finished samples were read")
    skipped: set[str] = set()
    for sample in _samples(file):
        if "scores" not in sample and sample.get("score") is not None:
            sample["scores"] = {scorer: sample["score"]}
        yield {**_identity(sample), **_scores(sample, scores, skipped), **_facts(sample)}
    notes.extend(f"{file.name}: scorer {name} gives lists, not single values; skipped" for name in sorted(skipped))


def _identity(sample: dict[str, Any]) -> dict[str, Any]:
    attachments = sample.get("attachments") or {}
    scored = any(_value(score) is not None for score in (sample.get("scores") or {}).values())
    return {
        "item_id": str(sample.get("id")),
        "epoch": int(sample.get("epoch") or 1),
        "question": _attached(_input_text(sample.get("input")), attachments),
        "target": _target_text(sample.get("target")),
        "answer": _attached(_completion(sample.get("output") or {}), attachments),
        "reason": "failed" if sample.get("error") else None if scored else "not_asked",
    }


def _input_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    users = [message for message in value or [] if isinstance(message, dict) and message.get("role") == "user"]
    return _content_text(users[-1].get("content")) if users else ""


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [part.get("text", "") for part in content or [] if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(parts)


def _target_text(value: Any) -> str | None:
    return " | ".join(map(str, value)) if isinstance(value, list) else None if value is None else str(value)


def _completion(output: dict[str, Any]) -> str:
    if output.get("completion"):
        return str(output["completion"])
    choices = output.get("choices") or []
    return _content_text(choices[0].get("message", {}).get("content")) if choices else ""


def _attached(text: str, attachments: dict[str, str]) -> str:
    """Long texts are kept once and referred to."""
    mark = "attachment://"
    return attachments.get(text.removeprefix(mark), text) if text.startswith(mark) else text


def _value(score: Any) -> Any:
    return score.get("value") if isinstance(score, dict) else score


def _scores(sample: dict[str, Any], scores: dict[str, None], skipped: set[str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for scorer, score in (sample.get("scores") or {}).items():
        value = _value(score)
        if isinstance(value, list):
            skipped.add(scorer)
            continue
        parts = value.items() if isinstance(value, dict) else [("", value)]
        for key, part in parts:
            name = "score_" + tidy_name(f"{scorer}_{key}" if key else scorer)
            row[name] = _graded(part)
            scores[name] = None
    return row


def _graded(value: Any) -> Any:
    """A score as a number where it is one; other text stays text."""
    if isinstance(value, str):
        if value in _GRADES:
            return _GRADES[value]
        if value.strip().lower() in _WORDS:
            return _WORDS[value.strip().lower()]
        try:
            value = float(value)
        except ValueError:
            return value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | bool) else None


def _facts(sample: dict[str, Any]) -> dict[str, Any]:
    """Label-free facts that may serve as signals, and the sample's metadata."""
    usage = [entry.get("output_tokens") for entry in (sample.get("model_usage") or {}).values()]
    text = _completion(sample.get("output") or {})
    row: dict[str, Any] = {
        "answer_chars": len(text) if text else None,
        "output_tokens": sum(count for count in usage if count is not None) if usage else None,
        "seconds": sample.get("working_time") if sample.get("working_time") is not None else sample.get("total_time"),
    }
    for key, value in (sample.get("metadata") or {}).items():
        if isinstance(value, int | float | bool) or (isinstance(value, str) and len(value) <= _META_CHARS):
            row["meta_" + tidy_name(str(key))] = value
    return row
