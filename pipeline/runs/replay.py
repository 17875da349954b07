"""Replay of a run, or of a cassette, from recorded responses alone."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.enclosure import refuse_ways_out
from pipeline.errors import InputError
from pipeline.evaluation.plans.doors import RUN_LEDGER, ledger_at_door
from pipeline.models.cache import ReplyCache, default_cache_dir
from pipeline.models.types import Failed
from pipeline.runs.audit import AUDIT_FILE, stored_audit
from pipeline.runs.call_log import recorded_failures
from pipeline.runs.cassettes import RecordedRun, open_cassette
from pipeline.runs.directory import RunDirectory, find_run, write_atomically
from pipeline.runs.drive import replay_collection
from pipeline.runs.interface import RunResult, result_of
from pipeline.runs.labels import LABELS_FILE, stored_labels
from pipeline.runs.manifest import Manifest
from pipeline.runs.ratings import ERRORS_FILE, STORE_FILE, run_labels_store
from pipeline.runs.setup import prepare, save_prompts

PERSONS_FILES = (AUDIT_FILE, LABELS_FILE, STORE_FILE, ERRORS_FILE, RUN_LEDGER)
"""What people said of a run: corrections, right answers, ratings; and how often they looked, which decides."""


async def replay_async(
    source: str | Path,
    *,
    out: str | Path | None = None,
    runs_dir: str | Path = "runs",
    cache_dir: str | Path | None = None,
    command: str = "pipeline.replay",
) -> RunResult:
    """See :func:`pipeline.replay`."""
    path = Path(source)
    if path.is_file():
        return await _replay_cassette(path, Path(out) if out else None, Path(runs_dir), command)
    original = find_run(source, Path(runs_dir))
    ledger_at_door(original.path)
    target = RunDirectory(Path(out) if out else original.path.with_name(f"{original.path.name}-replay"))
    if target.path.resolve() == original.path.resolve():
        raise InputError("--out names the run itself; choose another directory")
    with ReplyCache(Path(cache_dir) if cache_dir else default_cache_dir()) as cache:
        await _replay(original, target, cache, recorded_failures(original.calls_file), command)
    manifest = Manifest(target)
    if original.manifest().get("state") == "done":
        manifest.update(replay_of=str(original.path), identical=_identical(original, target))
    return result_of(target)


async def _replay_cassette(path: Path, out: Path | None, runs_dir: Path, command: str) -> RunResult:
    with tempfile.TemporaryDirectory(prefix="auxeval-") as folder:
        recorded: RecordedRun = open_cassette(path, Path(folder))
        name = str(recorded.run_id or path.name.partition(".")[0])
        target = RunDirectory(out or runs_dir / f"{name}-replay")
        with ReplyCache(recorded.cache_dir) as cache:
            await _replay(recorded.directory, target, cache, recorded.failures, command)
        Manifest(target).update(replay_of=str(path))
    return result_of(target)


async def _replay(
    original: RunDirectory,
    target: RunDirectory,
    cache: ReplyCache,
    failures: Mapping[str, Failed],
    command: str,
) -> None:
    config = original.own_config()
    if target.path.exists():
        refuse_ways_out(target.path)
    if target.config_file.exists() and target.config().digest() != config.digest():
        raise InputError(f"{target.path}: holds a run with another configuration; choose another --out")
    prepared = prepare(config, original, need_keys=False)
    negotiated: dict[str, Any] = original.manifest().get("negotiated") or {}
    with target.locked():
        save_prompts(prepared.prompts, target.path / "prompts")
        stored_audit(original.path)
        stored_labels(original.path)
        run_labels_store(original).read()
        for name in PERSONS_FILES:  # what people said is part of what was recorded
            if (original.path / name).exists():
                write_atomically(target.path / name, (original.path / name).read_text(encoding="utf-8"))
        await replay_collection(target, prepared, cache, failures=failures, negotiated=negotiated, command=command)


def _identical(original: RunDirectory, replayed: RunDirectory) -> bool:
    """Whether tables and estimates are the same bytes."""
    files = [*sorted(original.tables.glob("*.parquet")), original.estimates_file]
    return all(
        file.exists()
        and (replayed.path / file.relative_to(original.path)).exists()
        and _digest(file) == _digest(replayed.path / file.relative_to(original.path))
        for file in files
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
