"""The embedded run's signals are as good as real ones, no better: inside the ranges that real tables gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pipeline

REAL = {
    "judge": (0.33, 0.81),
    "confidence": (0.03, 0.47),
    "log_length": (-0.42, -0.02),
    "consensus": (0.40, 0.96),
}
"""Signal → least and greatest correlation with the outcome, over models or judges of real tables."""
REAL_OUTCOMES = (0.12, 0.60)
"""Correlation of two models' outcomes on the same items."""
SAMPLING = 0.2
"""Two standard errors of a correlation near .4 over 100 items."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """Signals and the outcomes of all 100 items, by target."""
    folder = tmp_path_factory.mktemp("signals")
    config: dict[str, Any] = {
        "name": "signals",
        "benchmark": {"preset": "embedded", "limit": 100},
        "models": {name: {"model": f"sim/{name}"} for name in ("strong", "medium", "weak", "judge")},
        "roles": {"targets": ["strong", "medium", "weak"], "judge": "judge"},
        "design": {"labeled": 50},
        "estimate": ["naive", "lace"],
    }
    run = pipeline.run(config, runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True).path
    answers = pl.read_parquet(run / "tables" / "responses.parquet").filter(pl.col("stage") == "answer")
    outcomes = answers.select("item_id", pl.col("model").alias("target"), "phi")
    return pl.read_parquet(run / "tables" / "signals.parquet").join(outcomes, on=["item_id", "target"])


def _correlation(frame: pl.DataFrame, a: str, b: str) -> float:
    pair = frame.select(a, b).drop_nulls().to_numpy().astype(float)
    return float(np.corrcoef(pair.T)[0, 1])


@pytest.mark.parametrize("signal", REAL)
def test_a_signal_is_as_good_as_real_ones(table: pl.DataFrame, signal: str) -> None:
    low, high = REAL[signal]
    told = [_correlation(part, signal, "phi") for _, part in table.group_by("target")]
    assert low <= float(np.median(told)) <= high
    assert all(low - SAMPLING <= value <= high + SAMPLING for value in told)


def test_outcomes_of_models_agree_as_those_of_real_models_do(table: pl.DataFrame) -> None:
    wide = table.pivot(on="target", index="item_id", values="phi").drop("item_id").to_numpy().astype(float)
    told = np.corrcoef(wide.T)[np.triu_indices(3, 1)]
    assert REAL_OUTCOMES[0] - 0.05 <= float(np.median(told)) <= REAL_OUTCOMES[1]


def test_the_page_of_documentation_says_the_same_ranges() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "simulated.md").read_text(encoding="utf-8")
    for low, high in (REAL["judge"], REAL["consensus"], REAL_OUTCOMES):
        assert f"{low:.2f}"[1:] in page
        assert f"{high:.2f}"[1:] in page
