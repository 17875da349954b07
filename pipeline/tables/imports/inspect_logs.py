"""Reads Inspect AI logs (.eval and .json): scores of every scorer, targets, metadata, epochs as repeats of an item."""

from __future__ import annotations

import json
import math
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from pipeline.errors import DataError
from pipeline.tables.imports.imported import ImportedTable, files_below, frame_of_rows, tidy_name
from pipeline.tables.table_source import decompress_zstd

__all__ = ["read_inspect_logs"]

_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_ZSTANDARD = 93
_META_CHARS = 200


def read_inspect_logs(path: str | Path) -> ImportedTable:
    """One log, or every log in a folder and below it.

    Of two logs of the same task, model, item and epoch the later one counts. Letter grades become C = 1, P = 0.5,
    I = N = 0; a score that is a mapping becomes one column per key; a sample that failed keeps its row, with null
    scores and the reason ``failed``.

    Raises:
        DataError: no logs, a damaged log, a log without samples.
    """
    root = Path(path)
    notes: list[str] = []
    logs = []
    for file in files_below(root, ("*.eval", "*.json")):
        log = _open_log(file, required=root.is_file())
        if log is not None:
            logs.append(log)
    if not logs:
        raise DataError(f"{root} holds no Inspect AI logs (.eval or .json with 'eval' and 'samples')")
    logs.sort(key=lambda log: str(log[1]["eval"].get("created", "")))
    scores: dict[str, None] = {}
    rows = (row for file, header in logs for row in _rows(file, header, scores, notes))
    frame, replaced = frame_of_rows(rows)
    if frame.height == 0:
        raise DataError(f"{root}: the logs hold no samples (were they made with log_samples off?)")
    if replaced:
        notes.append(f"{replaced} samples stood in several logs; the latest log counts")
    return ImportedTable(frame, tuple(name for name in scores if frame[name].dtype.is_numeric()), tuple(notes))


def _open_log(file: Path, required: bool) -> tuple[Path, dict[str, Any]] | None:
    """The header of a log, or None if a file found in a folder is no log."""
    try:
        header = _eval_header(file) if zipfile.is_zipfile(file) else _load(file.read_bytes())
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        if file.suffix == ".eval" or required:
            raise DataError(f"{file} is no readable Inspect AI log ({error}); is it still being written?") from error
        return None
    if isinstance(header, dict) and isinstance(header.get("eval"), dict):
        return file, {key: header[key] for key in ("eval", "status") if key in header}
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
    return json.loads(data.decode("utf-8", errors="replace"))


def _rows(file: Path, header: dict[str, Any], scores: dict[str, None], notes: list[str]) -> Iterator[dict[str, Any]]:
    spec = header["eval"]
    if header.get("status") not in (None, "success"):
        notes.append(f"{file.name}: the evaluation's status is {header['status']}; its finished samples were read")
    task = str(spec.get("task") or file.stem)
    model = str(spec.get("model") or "unknown")
    skipped: set[str] = set()
    for sample in _samples(file):
        yield {**_identity(sample, task, model), **_scores(sample, scores, skipped), **_facts(sample)}
    notes.extend(f"{file.name}: scorer {name} gives lists, not single values; skipped" for name in sorted(skipped))


def _identity(sample: dict[str, Any], task: str, model: str) -> dict[str, Any]:
    item = str(sample.get("id"))
    attachments = sample.get("attachments") or {}
    scored = any(_value(score) is not None for score in (sample.get("scores") or {}).values())
    return {
        "task": task,
        "model": model,
        "item_id": item,
        "epoch": int(sample.get("epoch") or 1),
        "cluster": f"{task}/{item}",
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
