"""A run as one portable file: configuration, prompts, items, and every recorded response or failure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import DataError, InputError
from pipeline.models.cache import ReplyCache, default_cache_dir
from pipeline.models.cassette import ImportReport, import_cassette, write_cassette
from pipeline.models.entries import Entry
from pipeline.models.types import Failed
from pipeline.runs.audit import AUDIT_FILE
from pipeline.runs.call_log import read_calls, recorded_failures
from pipeline.runs.directory import RunDirectory, is_run_id, write_atomically
from pipeline.runs.setup import prepare
from pipeline.tables.compressed import compression_of, refuse_bomb


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A cassette laid out so that it can be replayed.

    Attributes:
        directory: configuration, prompts and manifest as the run had them, and its items as a file.
        cache_dir: a cache that holds the cassette's replies and nothing else.
        failures: request key → recorded failure.
        run_id: the run's name.
    """

    directory: RunDirectory
    cache_dir: Path
    failures: Mapping[str, Failed]
    run_id: str


def export_run(directory: RunDirectory, cassette: Path, *, cache_dir: Path | None = None) -> int:
    """Write a run's responses, with all that a replay elsewhere needs, to one file.

    Returns:
        Number of responses.

    Raises:
        InputError: the cache no longer holds a response of the run, the benchmark has changed, or another file than a
            cassette is there.
    """
    config = directory.own_config()
    prepared = prepare(config, directory, need_keys=False)
    manifest = directory.manifest()
    saved = directory.path / "prompts"
    head = {
        "run_id": directory.path.name,
        "config": config.canonical(),
        "prompts": {
            path.relative_to(saved).as_posix(): path.read_text(encoding="utf-8") for path in sorted(saved.rglob("*.md"))
        },
        "prompt_sha256": prepared.prompts.digests(),
        "benchmark": manifest.get("benchmark"),
        "benchmark_file": _benchmark_file(config.benchmark.path),
        "negotiated": manifest.get("negotiated") or {},
        "versions": manifest.get("versions"),
        "audit": _audit(directory),
    }
    if not directory.calls_file.is_file():
        raise InputError(f"{directory.calls_file}: is gone; {directory.resume_command} tells its calls again")
    told, done = sum(1 for _ in read_calls(directory.calls_file)), (manifest.get("calls") or {}).get("calls", 0)
    if told < done:
        raise InputError(
            f"{directory.calls_file}: is damaged, it tells of {told} calls of {done}; {directory.resume_command} tells"
            " the others again"
        )
    keys = sorted({line["key"] for line in read_calls(directory.calls_file) if line["state"] != "failed"})
    failures = recorded_failures(directory.calls_file)
    with ReplyCache(cache_dir or default_cache_dir()) as cache:
        return write_cassette(cassette, head, _entries(cache, keys), (failures[key] for key in sorted(failures)))


def _audit(directory: RunDirectory) -> str | None:
    """A person's corrections, by request key, as the run keeps them."""
    path = directory.path / AUDIT_FILE
    return path.read_text(encoding="utf-8") if path.exists() else None


def _entries(cache: ReplyCache, keys: list[str]) -> Iterator[Entry]:
    for key in keys:
        entry = cache.get(key)
        if entry is None:
            raise InputError(
                f"{cache.directory}: the reply {key[:16]}… of this run is not in the cache; auxeval resume first"
            )
        yield entry


def _benchmark_file(path: Path | None) -> dict[str, str] | None:
    """The benchmark's own file, so that the cassette needs nothing beside it."""
    if path is None:
        return None
    import base64

    return {"name": path.name, "base64": base64.b64encode(path.read_bytes()).decode("ascii")}


def import_replies(cassette: Path, cache: ReplyCache) -> ImportReport:
    """The replies of a cassette into a cache: data alone, of a size that cassettes have.

    Raises:
        DataError: it is damaged, or unpacks to far more than replies do.
    """
    try:
        with cassette.open("rb") as file:
            compression = compression_of(file.read(6))
    except OSError as error:
        raise DataError(f"{cassette}: cannot be read as a cassette: {error.strerror}") from None
    refuse_bomb(cassette, compression)
    return import_cassette(cassette, cache)


def open_cassette(cassette: Path, folder: Path) -> RecordedRun:
    """Unpack a cassette into ``folder``.

    Raises:
        DataError: it is damaged, or was not exported from a run; names line or field.
    """
    cache_dir = folder / "cache"
    with ReplyCache(cache_dir) as cache:
        report = import_replies(cassette, cache)
    head = report.head.facts
    directory = RunDirectory(folder / "run")
    directory.path.mkdir()
    try:
        config = dict(head["config"])
        if head.get("benchmark_file") is None and (config.get("benchmark") or {}).get("path") is not None:
            raise ValueError("benchmark.path names a file outside the cassette")
        _unpack_benchmark(head.get("benchmark_file"), config, directory.path)
        _unpack_prompts(head["prompts"], config, directory.path / "prompts")
        write_atomically(directory.config_file, json.dumps(config))
        manifest = {"schema": 1, "benchmark": head["benchmark"], "negotiated": head.get("negotiated") or {}}
        manifest["prompts"] = head.get("prompt_sha256") or {}
        write_atomically(directory.manifest_file, json.dumps(manifest))
        if head.get("audit"):
            write_atomically(directory.path / AUDIT_FILE, str(head["audit"]))
        run_id = str(head["run_id"])
        if not is_run_id(run_id):
            raise ValueError("run_id is no name of a run")
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{cassette}: the header does not describe a run ({error})") from None
    return RecordedRun(directory, cache_dir, report.failures, run_id)


def _unpack_benchmark(packed: Any, config: dict[str, Any], folder: Path) -> None:
    if packed is None:
        return
    import base64

    name = Path(str(packed["name"])).name
    if name in ("", ".", ".."):
        raise ValueError("benchmark_file has no usable name")
    target = folder / "benchmark" / name
    target.parent.mkdir()
    target.write_bytes(base64.b64decode(packed["base64"], validate=True))
    config["benchmark"] = {**config["benchmark"], "path": str(target)}


def _unpack_prompts(prompts: Mapping[str, str], config: dict[str, Any], folder: Path) -> None:
    root = folder.resolve()
    for relative, text in prompts.items():
        path = (folder / relative).resolve()
        if root not in path.parents or path.suffix != ".md":
            raise ValueError(f"prompt file {relative!r} lies outside the cassette")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    config["prompts"] = {}
