"""Run a study: replicates in parallel, seeded one by one, resumable; results to files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pipeline.errors import InputError
from pipeline.giving_way import refuse_to_replace
from pipeline.report.printers.svg import standalone, svg
from pipeline.studies.registry import Progress, Study, StudyOptions
from pipeline.studies.results import StudyResult

Payload = TypeVar("Payload")
SCHEMA = 1


def task_generator(seed: int, task: str) -> np.random.Generator:
    """The generator of one task: a child of ``seed`` that depends on the task's name alone.

    So results depend neither on the number of workers nor on the order or the set of the other tasks.
    """
    digest = hashlib.sha256(task.encode()).digest()[:16]
    key = tuple(int(word) for word in np.frombuffer(digest, dtype="<u4"))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def map_replicates(
    function: Callable[[Payload, np.random.Generator], Any],
    tasks: Mapping[str, Payload],
    *,
    seed: int,
    jobs: int = 1,
    dask: str | None = None,
    checkpoint: Path | None = None,
    signature: str = "",
    progress: Progress | None = None,
    label: str = "replicates",
) -> dict[str, Any]:
    """``function(payload, generator)`` for every task, in the order of ``tasks``.

    Args:
        function: a module-level function (workers import it); returns JSON values or arrays, which come
            back as lists.
        tasks: task id to payload. The id seeds the task and names it in the checkpoint.
        seed: root seed.
        jobs: worker processes; 1 runs in this process.
        dask: address of a Dask scheduler, used instead of local workers.
        checkpoint: JSON-lines file of finished tasks; those in it are not run again. A torn last line is
            cut off.
        signature: what else the results depend on (sizes, replicates); a checkpoint of another one is
            refused.
        progress: called with (label, done, total).
        label: what is counted.

    Raises:
        InputError: jobs < 1, a checkpoint of other options, or ``dask`` without the dask extra.
    """
    if jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {jobs}")
    header = {"schema": SCHEMA, "seed": seed, "signature": signature}
    done = _read_checkpoint(checkpoint, header) if checkpoint is not None else {}
    done = {name: value for name, value in done.items() if name in tasks}
    todo = {name: payload for name, payload in tasks.items() if name not in done}
    total = len(tasks)
    if progress is not None:
        progress(label, len(done), total)
    with _appender(checkpoint, header) as append:
        for name, line in _execute(function, todo, seed, jobs, dask):
            append(line)
            done[name] = json.loads(line)["value"]
            if progress is not None:
                progress(label, len(done), total)
    return {name: done[name] for name in tasks}


def run_tasks(
    options: StudyOptions,
    function: Callable[[Payload, np.random.Generator], Any],
    tasks: Mapping[str, Payload],
    *,
    stage: str,
    signature: str = "",
    label: str = "replicates",
) -> dict[str, Any]:
    """``map_replicates`` as the options of a study say: its seed, workers and progress, a checkpoint for ``stage``."""
    return map_replicates(
        function, tasks, seed=options.seed, jobs=options.jobs, dask=options.dask, checkpoint=options.checkpoint(stage),
        signature=signature, progress=options.progress, label=label,
    )  # fmt: skip


def run_study(study: Study, options: StudyOptions) -> StudyResult:
    """Check the options against the study, then run it.

    Raises:
        InputError: a table that is missing or not there, too few replicates, or a file of another kind in the place of
            the result, before anything is computed.
    """
    if study.needs_table and options.table is None:
        raise InputError(f"study {study.name} needs a table: auxeval study {study.name} TABLE")
    if options.table is not None and not options.table.exists():
        raise InputError(f"there is no table {options.table}")
    if options.reps is not None and options.reps < 2:
        raise InputError(f"--reps must be at least 2, got {options.reps}")
    if options.out is not None:
        refuse_to_replace(options.out, _is_result, "result of a study")
    return study.run(options)


def _is_result(beginning: bytes) -> bool:
    """A title over its underline, or a JSON document with a schema, as ``write_result`` begins."""
    lines = beginning.split(b"\n", 2)
    return beginning.startswith(b'{\n  "schema"') or (len(lines) > 1 and set(lines[1].strip()) == {ord("=")})


def write_result(result: StudyResult, out: Path) -> list[Path]:
    """Write the result as text (JSON if ``out`` ends in .json), its figures beside it; drop checkpoints."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(result.to_json() if out.suffix == ".json" else result.to_text(), encoding="utf-8")
    written = [out]
    for name, drawn in result.figures.items():
        figure = out.with_name(f"{name}.svg")
        figure.write_text(standalone(svg(drawn)), encoding="utf-8")
        written.append(figure)
    for leftover in out.parent.glob(f"{out.name}.*.partial.jsonl"):
        leftover.unlink()
    return written


def _run_one(
    function: Callable[[Any, np.random.Generator], Any], name: str, payload: Any, seed: int
) -> tuple[str, str]:
    from threadpoolctl import threadpool_limits

    # The arrays of a replicate are small: threads inside one only get in the way of each other.
    with threadpool_limits(1):
        value = function(payload, task_generator(seed, name))
    return name, json.dumps({"task": name, "value": value}, default=_as_json)


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a task returned {type(value).__name__}, which a checkpoint cannot hold")


def _execute(
    function: Callable[[Any, np.random.Generator], Any],
    tasks: Mapping[str, Any],
    seed: int,
    jobs: int,
    dask: str | None,
) -> Iterable[tuple[str, str]]:
    """(task, checkpoint line) of each task as it finishes."""
    if not tasks:
        return
    if dask is None and jobs == 1:
        for name, payload in tasks.items():
            yield _run_one(function, name, payload, seed)
        return
    from joblib import Parallel, delayed, parallel_config

    calls = (delayed(_run_one)(function, name, payload, seed) for name, payload in tasks.items())
    workers = {"backend": "loky", "n_jobs": jobs, "inner_max_num_threads": 1}
    with _dask_backend(dask, function) if dask is not None else parallel_config(**workers):
        yield from Parallel(return_as="generator_unordered", batch_size=1)(calls)


@contextmanager
def _dask_backend(address: str, function: Callable[..., Any]) -> Iterator[None]:
    """joblib's Dask backend, on the workers of a scheduler.

    It waits for ever where a worker cannot import the function, so a worker is asked to first.

    Raises:
        InputError: no scheduler answers, or a worker cannot import the function.
    """
    from joblib import parallel_config

    from pipeline.dask_client import scheduler_client

    with scheduler_client(address) as client:
        answers = client.run(callable, function, on_error="return")
        wrong = {str(answer) for answer in answers.values() if answer is not True}
        if wrong or not answers:
            problem = f"cannot run the study ({min(wrong)})" if wrong else "are none"
            raise InputError(
                f"the Dask workers at {address} {problem}; start dask worker where the same auxeval is installed"
            )
        with parallel_config(backend="dask", wait_for_workers_timeout=30):
            yield


def _read_checkpoint(path: Path, header: Mapping[str, Any]) -> dict[str, Any]:
    """Finished tasks of an earlier attempt; cuts off a line that was being written when it died."""
    if not path.exists():
        return {}
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if len(whole) < len(raw):
        path.write_bytes(whole)
    if not whole:
        return {}
    first, *lines = whole.splitlines()
    if json.loads(first) != dict(header):
        raise InputError(f"{path} holds replicates of other options; remove it or use another --out")
    records = (json.loads(line) for line in lines)
    return {record["task"]: record["value"] for record in records}


@contextmanager
def _appender(path: Path | None, header: Mapping[str, Any]) -> Iterator[Callable[[str], object]]:
    """A function that appends one line to the checkpoint (or to nothing)."""
    if path is None:
        yield lambda line: None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        if stream.tell() == 0:
            stream.write(json.dumps(header) + "\n")

        def append(line: str) -> None:
            stream.write(line + "\n")
            stream.flush()

        yield append
