"""Comparison of two runs: paired, on shared items, refused where items are not the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.errors import InputError
from pipeline.runs.comparison import compare_runs


def _run(folder: Path, model: str, run_id: str, **benchmark: Any) -> Path:
    config = {
        "name": "compare",
        "benchmark": {"preset": "embedded", "limit": 60, **benchmark},
        "models": {"t": {"model": model}, "w": {"model": "sim/anchor-weak"}, "j": {"model": "sim/judge"}},
        "roles": {"targets": ["t"], "judge": "j", "anchors": {"weak": "w", "medium": "w", "strong": "w"}},
        "design": {"labeled": 30},
        "estimate": ["naive", "lace"],
    }
    return pipeline.run(config, run_id=run_id, runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True).path


def test_the_paired_difference_is_that_of_the_items(tmp_path: Path) -> None:
    strong, weak = _run(tmp_path, "sim/strong", "strong"), _run(tmp_path, "sim/weak", "weak")
    (compared,) = compare_runs(strong, weak).pairs
    phi = [
        pl.read_parquet(run / "tables" / "responses.parquet")
        .filter(pl.col("stage") == "answer")
        .sort("item_id")["phi"]
        .fill_null(0.0)
        .to_numpy()
        for run in (strong, weak)
    ]
    difference = phi[0] - phi[1]
    assert compared.shared == 60
    assert compared.naive.value == pytest.approx(difference.mean())
    assert compared.naive.se == pytest.approx(np.std(difference, ddof=1) / np.sqrt(60), rel=1e-6)
    assert compared.lace is not None
    back = compare_runs(weak, strong).pairs[0]
    assert back.naive.value == pytest.approx(-compared.naive.value)


def test_a_run_against_itself_differs_by_nothing(tmp_path: Path) -> None:
    run = _run(tmp_path, "sim/strong", "one")
    (compared,) = compare_runs(run, run).pairs
    assert compared.naive.value == 0.0
    assert compared.naive.low <= 0.0 <= compared.naive.high


def test_runs_without_a_shared_item_are_refused(tmp_path: Path) -> None:
    data = tmp_path / "other.jsonl"
    data.write_text("".join(f'{{"id": "x{k}", "question": "{k}+1?", "gold": "{k + 1}"}}\n' for k in range(30)))
    first = _run(tmp_path, "sim/strong", "one")
    second = _run(tmp_path, "sim/strong", "two", preset="custom", path=str(data), grading="numeric")
    with pytest.raises(InputError, match="share no item"):
        compare_runs(first, second)
