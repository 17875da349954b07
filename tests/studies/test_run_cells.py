"""Cells of finished runs: the run's own numbers, and one line where a run cannot carry the study."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.errors import DataError
from pipeline.studies.lace.real import study
from pipeline.studies.real.run_cells import run_cells
from pipeline.studies.registry import StudyOptions
from pipeline.tables.schemas import signal_columns

CONFIG = {
    "name": "small",
    "benchmark": {"preset": "embedded", "limit": 60},
    "models": {"a": {"model": "sim/strong"}, "b": {"model": "sim/weak"}, "j": {"model": "sim/judge"}},
    "roles": {"targets": ["a", "b"], "judge": "j", "anchors": {"weak": "b"}},
    "design": {"labeled": 20, "judge_prompts": 1},
    "estimate": ["naive", "lace"],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    return pipeline.run(CONFIG, runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True).path


def test_every_outcome_is_known_though_the_run_itself_used_twenty_labels(run: Path) -> None:
    cells = run_cells(run)
    assert [cell.target for cell in cells] == ["a", "b"]
    responses = pl.read_parquet(run / "tables" / "responses.parquet")
    answers = responses.filter((pl.col("stage") == "answer") & (pl.col("model") == "a"))
    assert sorted(cells[0].y) == sorted(answers["phi"].to_list())
    assert (cells[0].kind, len(cells[0].y), cells[0].axis) == ("ordinal", 60, "embedded/level")
    assert "pairs" in cells[0].families
    assert "pairs" not in cells[1].families, "a model is not compared with itself"
    assert np.abs(cells[0].signals.mean(axis=0)).max() < 1e-9


def test_two_runs_are_two_tables(run: Path, tmp_path: Path) -> None:
    other = tmp_path / run.name
    shutil.copytree(run, other)
    result = study.run(StudyOptions(reps=2, table=run, more=(other,)))
    assert result.tables[0].title.startswith("Summary")
    assert sum("as Table 2)" in table.title for table in result.tables) == 2


@pytest.mark.parametrize(
    ("table", "column", "message"),
    [
        ("signals", "profile", "the run has no profile axis"),
        ("signals", "*", "the run has no signals; add roles.judge"),
        ("responses", "phi", "of 60 items of a have no graded answer"),
    ],
)
def test_a_run_that_lacks_something_says_what(run: Path, tmp_path: Path, table: str, column: str, message: str) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(run, copied)
    file = copied / "tables" / f"{table}.parquet"
    frame = pl.read_parquet(file)
    names = signal_columns(frame.columns) if column == "*" else [column]
    frame.with_columns(pl.lit(None, dtype=frame[name].dtype).alias(name) for name in names).write_parquet(file)
    with pytest.raises(DataError, match=message):
        run_cells(copied)
