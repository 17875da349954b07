"""Which tool wrote a file, from what stands in it; and the table of any mixture of files of one tool."""

from __future__ import annotations

import csv
import itertools
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args

from pipeline.errors import DataError
from pipeline.foreign_json import read_json
from pipeline.tables.compressed import compression_of, open_bytes
from pipeline.tables.imports.event_streams import event_stream_run
from pipeline.tables.imports.imported import ImportedTable
from pipeline.tables.imports.inspect_logs import inspect_runs
from pipeline.tables.imports.judged_pairs import alpaca_eval_runs, arena_hard_runs, mt_bench_runs
from pipeline.tables.imports.lm_eval_samples import lm_eval_runs
from pipeline.tables.imports.metric_cases import deepeval_runs, ragas_runs
from pipeline.tables.imports.promptfoo import promptfoo_runs
from pipeline.tables.imports.runs import ToolRun, table_of_runs
from pipeline.tables.json_records import json_rows
from pipeline.tables.table_source import inspect_source

Tool = Literal[
    "inspect", "lm-eval", "promptfoo", "openai-evals", "alpaca-eval", "arena-hard", "mt-bench", "deepeval", "ragas",
    "table",
]  # fmt: skip
TOOLS: tuple[Tool, ...] = get_args(Tool)

_HEAD_BYTES = 1 << 22
MAX_DOCUMENT_BYTES = 1 << 30
_ENDINGS = (".eval", ".json", ".jsonl", ".jsonl.gz", ".csv")


def tool_of(file: Path) -> Tool | None:
    """The tool that wrote a file; ``table`` for a table of no tool, None for what is neither.

    Raises:
        DataError: the file cannot be read.
    """
    if not file.is_file():
        raise DataError(f"no such file or folder: {file}")
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
        return "inspect" if names & {"header.json", "_journal/start.json"} else None
    try:
        with file.open("rb") as raw:
            compression = compression_of(raw.read(8))
        with open_bytes(file, compression) as stream:
            head = stream.read(_HEAD_BYTES).decode("utf-8", errors="replace").lstrip("\ufeff")
    except (OSError, EOFError) as error:
        raise DataError(f"{file} cannot be read ({error})") from error
    if not head.strip():
        return None
    if head.lstrip()[0] in "{[":
        return _json_tool(file, head)
    try:
        header = next(csv.reader(head.splitlines()[:1]), [])
    except csv.Error as error:
        raise DataError(f"{file}: line 1 is no header ({error})") from None
    if {"Status", "Score"} <= set(header) and any(name.startswith("[") and "] " in name for name in header):
        return "promptfoo"
    return "ragas" if _is_ragas(set(header)) else "table"


def _json_tool(file: Path, head: str) -> Tool | None:
    first = _first_value(head)
    if first is None:  # a document of several lines
        first = _document(file)
    if isinstance(first, list):
        first = next((entry for entry in first if isinstance(entry, dict)), {})
        return _record_tool(first) or "table"
    if not isinstance(first, dict):
        return None
    if isinstance(first.get("eval"), dict):
        return "inspect"
    results = first.get("results")
    if isinstance(results, dict) and isinstance(results.get("results"), list):
        return "promptfoo"
    if isinstance(first.get("spec"), dict) and "run_id" in first["spec"]:
        return "openai-evals"
    if isinstance(first.get("testCases") or first.get("test_results"), list):
        return "deepeval"
    # A results file of lm-eval beside its samples holds no items.
    return _record_tool(first) or (None if isinstance(results, dict) and "configs" in first else "table")


def _record_tool(record: dict[str, Any]) -> Tool | None:
    keys = set(record)
    if "doc_id" in keys and keys & {"resps", "filtered_resps"}:
        return "lm-eval"
    if {"generator_1", "generator_2", "preference"} <= keys:
        return "alpaca-eval"
    if "games" in keys and keys & {"question_id", "uid"}:
        return "arena-hard"
    if "question_id" in keys and ({"judge", "score", "model"} <= keys or {"g1_winner", "g2_winner"} <= keys):
        return "mt-bench"
    return "ragas" if _is_ragas(keys) else None


def _is_ragas(keys: set[str]) -> bool:
    metrics = {"faithfulness", "answer_relevancy", "context_precision", "context_recall", "answer_correctness"}
    return bool(keys & metrics) and bool(keys & {"user_input", "question"})


def _first_value(head: str) -> Any:
    line = next(line for line in head.splitlines() if line.strip())
    try:
        return read_json(line)
    except ValueError:
        return None


def _document(file: Path) -> Any:
    with file.open("rb") as raw:
        compression = compression_of(raw.read(8))
    with open_bytes(file, compression) as stream:
        data = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DataError(f"{file} is one JSON document of more than {MAX_DOCUMENT_BYTES >> 30} GiB")
    try:
        return read_json(data.decode("utf-8", errors="replace").lstrip("\ufeff"))
    except ValueError as error:
        raise DataError(f"{file} is no readable JSON ({error})") from error


def read_tool_files(
    paths: Sequence[Path], tool: Tool | None = None, *, id_field: str | None = None
) -> tuple[Tool, ImportedTable | None]:
    """The table of files and folders that one tool wrote; what the tool is, is found out where it is not said.

    Returns:
        The tool, and its table; None for a plain table, which has its own reader.

    Raises:
        DataError: nothing there, files of two tools, no file of the tool.
    """
    files = _files(paths)
    kinds = {file: tool_of(file) for file in files}
    tools = dict.fromkeys(kind for kind in kinds.values() if kind not in (None, "table"))
    if tool is None:
        if len(tools) > 1:
            raise DataError(f"files of {' and '.join(map(str, tools))} stand together; say which with --from")
        tool = cast("Tool", next(iter(tools), "table" if "table" in kinds.values() else None))
        if tool is None:
            raise DataError(f"{paths[0]} holds no results of a tool that is read ({', '.join(TOOLS)})")
    if tool == "table":
        return tool, None
    given = {path for path in paths if path.is_file()}
    chosen = [file for file in files if kinds[file] == tool or file in given]
    if not chosen:
        raise DataError(f"{paths[0]} holds no results of {tool}")
    notes: list[str] = []
    runs = _runs(tool, chosen, notes, id_field)
    if not any(run.rows for run in runs):
        raise DataError(f"{paths[0]}: no samples of {tool} are in it")
    return tool, table_of_runs(runs, notes)


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.is_file() and file.name.endswith(_ENDINGS))
            if not inside:
                raise DataError(f"{path} holds no {', '.join(_ENDINGS)} files")
            files += inside
        elif path.is_file():
            files.append(path)
        else:
            raise DataError(f"no such file or folder: {path}")
    return list(dict.fromkeys(files))


def _runs(tool: Tool, files: Sequence[Path], notes: list[str], id_field: str | None) -> list[ToolRun]:
    if tool == "inspect":
        return inspect_runs(files, notes, required=True)
    if tool == "lm-eval":
        return lm_eval_runs(files, notes, id_field=id_field)
    runs: list[ToolRun] = []
    lists: dict[Tool, Callable[[Path, Sequence[Any]], list[ToolRun]]] = {
        "alpaca-eval": alpaca_eval_runs, "arena-hard": arena_hard_runs, "mt-bench": mt_bench_runs, "ragas": ragas_runs,
    }  # fmt: skip
    for file in files:
        try:
            if tool == "promptfoo":
                runs += promptfoo_runs(file, None if file.suffix == ".csv" else _document(file))
            elif tool == "openai-evals":
                runs.append(event_stream_run(file, _records(file), notes))
            elif tool == "deepeval":
                runs += deepeval_runs(file, _document(file))
            else:
                runs += lists[tool](file, _records(file))
        except (KeyError, TypeError, AttributeError, ValueError, csv.Error) as error:
            raise DataError(f"{file} is not what {tool} writes ({type(error).__name__}: {error})") from error
    return runs


def _records(file: Path) -> list[dict[str, Any]]:
    source = inspect_source(file)
    if source.format == "csv":
        with file.open(encoding=source.encoding, newline="") as text:
            return list(itertools.islice(csv.DictReader(text, delimiter=source.delimiter), 10_000_000))
    return [record for _, record in json_rows(source.json)]
