"""Replicates: independent of workers and order, resumable, refusing another study's checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import InputError
from pipeline.report.values import Figure, Series
from pipeline.studies.registry import Study, StudyOptions, load_study, study_summaries
from pipeline.studies.results import ResultTable, StudyResult
from pipeline.studies.runner import map_replicates, run_study, task_generator, write_result

TASKS = {f"task-{index}": index for index in range(6)}


def draw(payload: int, rng: np.random.Generator) -> dict[str, object]:
    return {"payload": payload, "numbers": rng.standard_normal(3)}


def counted(payload: Path, rng: np.random.Generator) -> float:
    with payload.open("a") as stream:
        stream.write("x")
    return float(rng.random())


def test_results_depend_neither_on_workers_nor_on_order_nor_on_other_tasks() -> None:
    alone = map_replicates(draw, TASKS, seed=3)
    assert map_replicates(draw, TASKS, seed=3, jobs=2) == alone
    backwards = map_replicates(draw, dict(reversed(TASKS.items())), seed=3)
    assert backwards == alone
    assert list(backwards) == list(reversed(TASKS))
    assert map_replicates(draw, {"task-4": 4}, seed=3)["task-4"] == alone["task-4"]
    assert map_replicates(draw, TASKS, seed=4) != alone


def test_task_generators_differ() -> None:
    first = {task_generator(0, f"{index}").integers(2**63) for index in range(100)}
    assert len(first) == 100


def test_a_checkpoint_spares_finished_tasks_and_a_torn_tail_is_cut(tmp_path: Path) -> None:
    checkpoint, log = tmp_path / "study.partial.jsonl", tmp_path / "log"
    tasks = dict.fromkeys(("a", "b", "c"), log)
    full = map_replicates(counted, tasks, seed=1, checkpoint=checkpoint)
    assert log.read_text() == "xxx"
    lines = checkpoint.read_bytes().splitlines(keepends=True)
    checkpoint.write_bytes(b"".join(lines[:3]) + lines[3][:9])
    seen: list[int] = []
    again = map_replicates(
        counted, tasks, seed=1, checkpoint=checkpoint, progress=lambda _label, done, _total: seen.append(done)
    )
    assert again == full
    assert log.read_text() == "xxxx"
    assert seen == [2, 3]
    assert checkpoint.read_bytes() == b"".join(lines)


def test_a_checkpoint_of_other_options_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "x.partial.jsonl"
    map_replicates(draw, TASKS, seed=1, checkpoint=checkpoint, signature="reps=3")
    with pytest.raises(InputError, match="other options"):
        map_replicates(draw, TASKS, seed=2, checkpoint=checkpoint, signature="reps=3")
    with pytest.raises(InputError, match="other options"):
        map_replicates(draw, TASKS, seed=1, checkpoint=checkpoint, signature="reps=4")


def test_jobs_below_one_and_values_no_checkpoint_can_hold() -> None:
    with pytest.raises(InputError, match="--jobs"):
        map_replicates(draw, TASKS, seed=1, jobs=0)
    with pytest.raises(TypeError, match="checkpoint cannot hold"):
        map_replicates(lambda _payload, _rng: {1, 2}, TASKS, seed=1)


def test_a_missing_dask_extra_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(InputError, match=r"auxeval\[dask\]"):
        map_replicates(draw, TASKS, seed=1, dask="tcp://127.0.0.1:1")


def test_dask_gives_the_same_numbers() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        assert map_replicates(draw, TASKS, seed=3, dask=cluster.scheduler_address) == map_replicates(
            draw, TASKS, seed=3
        )


def _nothing(options: StudyOptions) -> StudyResult:
    return StudyResult("nothing", (ResultTable("t", ("a",), ((1,),)),))


def test_options_are_checked_before_a_study_runs(tmp_path: Path) -> None:
    study = Study("X", _nothing, 10, needs_table=True)
    with pytest.raises(InputError, match="needs a table"):
        run_study(study, StudyOptions())
    with pytest.raises(InputError, match="there is no table"):
        run_study(study, StudyOptions(table=tmp_path / "absent.csv"))
    with pytest.raises(InputError, match="--reps"):
        run_study(Study("X", _nothing, 10), StudyOptions(reps=1))


def test_results_are_written_with_their_figures_and_checkpoints_go(tmp_path: Path) -> None:
    out = tmp_path / "sub" / "result.txt"
    options = StudyOptions(out=out)
    checkpoint = options.checkpoint("stage")
    assert checkpoint is not None
    checkpoint.parent.mkdir()
    checkpoint.write_text("{}\n")
    result = StudyResult(
        "T",
        (ResultTable("t", ("a", "b"), (("x", 1.0),)),),
        {"figure": Figure("f", (Series("s", [1.0], [2.0]),))},
        ("note",),
        "auxeval study x",
    )
    assert write_result(result, out) == [out, out.with_name("figure.svg")]
    assert "Made by: auxeval study x" in out.read_text()
    assert not checkpoint.exists()
    write_result(result, tmp_path / "result.json")
    assert '"schema": 1' in (tmp_path / "result.json").read_text()


def test_every_registered_study_loads_and_agrees_with_its_entry() -> None:
    summaries = study_summaries()
    assert {"lace-a", "lace-b", "lace-c", "lace-repeated-pool", "lace-real"} <= set(summaries)
    for name, summary in summaries.items():
        study = load_study(name)
        assert (study.name, bool(study.title and summary)) == (name, True)
        assert study.default_reps >= 1


def test_an_unknown_study_names_its_neighbours() -> None:
    with pytest.raises(InputError, match="lace-repeated-pool"):
        load_study("lace-repeatd-pool")
