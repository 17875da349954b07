"""Rows that nobody said how to read: refused with the line to add, or said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.errors import InputError


def table(extra: dict[str, Any], ids: int = 30) -> pl.DataFrame:
    """Every id once for each entry of ``extra``'s lists."""
    rng = np.random.default_rng(1)
    width = len(next(iter(extra.values())))
    return pl.DataFrame(
        {
            "question": [f"q{k}" for k in range(ids) for _ in range(width)],
            "gold": rng.integers(0, 2, ids * width),
            "chars": rng.integers(1, 10_000, ids * width),
            **{name: list(values) * ids for name, values in extra.items()},
        }
    )


def codes(found: Any) -> set[str]:
    return {warning.code for warning in found.warnings}


@pytest.mark.parametrize("given", [{}, {"id": "question"}])
def test_rows_of_several_models_are_refused_with_the_line_to_add(given: dict[str, str]) -> None:
    data = table({"Model name": ["gpt", "llama", "qwen"]})
    with pytest.raises(InputError, match=re.escape("add --model 'Model name' (or --pool-models")):
        pipeline.estimate(data, gold="gold", **given)
    assert len(pipeline.estimate(data, gold="gold", model="Model name", id="question")) == 3
    assert pipeline.estimate(data, gold="gold", id="question", pool_models=True)["all"]["naive"].n == 30


def test_the_same_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table({"system": ["a", "b"]}).write_csv(path)
    with pytest.raises(InputError, match="add --model system"):
        pipeline.estimate(path, gold="gold", id="question")


@pytest.mark.parametrize("column", ["epoch", "nr"])
def test_repeats_are_said_and_not_refused(column: str) -> None:
    found = pipeline.estimate(table({column: [1, 2, 3, 4]}), gold="gold", id="question")
    assert "repeats" in codes(found)
    assert found["all"]["naive"].n == 30
    clustered = pipeline.estimate(table({column: [1, 2, 3, 4]}), gold="gold", cluster="question")
    assert clustered["all"]["naive"].to_dict() == found["all"]["naive"].to_dict()


def test_a_row_per_judge_is_said_with_the_mend() -> None:
    data = table({"judge": ["x", "y"], "model": ["m", "m"]}).with_columns(pl.col("chars").alias("score"))
    found = pipeline.estimate(data, gold="gold", signals="score", model="model", id="question")
    assert any("give --rater judge" in warning.message for warning in found.warnings)


def test_columns_in_use_and_columns_of_items_are_no_models() -> None:
    data = table({"score": [0.1, 0.9]})
    assert pipeline.estimate(data, gold="gold", signals="score", id="question")["all"]["naive"].n == 30
    rng = np.random.default_rng(0)
    topics = pl.DataFrame({"id": range(60), "gold": rng.integers(0, 2, 60), "topic": rng.choice(["a", "b"], 60)})
    assert codes(pipeline.estimate(topics, gold="gold", id="id")) == set()


def test_copies_and_contradictions_are_said() -> None:
    rng = np.random.default_rng(2)
    data = pl.DataFrame({"gold": rng.integers(0, 2, 40), "text": [f"t{k}" for k in range(40)]})
    assert "duplicate_rows" in codes(pipeline.estimate(pl.concat([data, data[:5]]), gold="gold"))
    assert "duplicate_rows" not in codes(pipeline.estimate(data, gold="gold"))
    contradicting = pl.DataFrame({"id": ["a", "a", *"bcdef"], "gold": [0, 1, 1, 0, 1, 0, 1]})
    found = pipeline.estimate(contradicting, gold="gold", id="id")
    assert any("the gold of 1 items differs" in warning.message for warning in found.warnings)
    assert found["all"]["naive"].n == 6


def test_a_frame_of_another_library_is_the_same_table() -> None:
    data = table({"model": ["a", "b"]})

    class Foreign:
        """Columns and item access, as pandas has them."""

        columns = tuple(data.columns)

        def __getitem__(self, name: str) -> list[Any]:
            return data[name].to_list()

    options: dict[str, Any] = {"gold": "gold", "signals": "chars", "model": "model", "id": "question"}
    assert pipeline.estimate(Foreign(), **options).to_dict() == pipeline.estimate(data, **options).to_dict()
    assert pipeline.estimate(data.to_arrow() if hasattr(data, "to_arrow") and _arrow() else data, **options).targets
    with pytest.raises(InputError, match="a path or a polars, pandas or Arrow frame is needed"):
        pipeline.estimate(3, gold="gold")


def _arrow() -> bool:
    try:
        import pyarrow  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        return False
    return True
