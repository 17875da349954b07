"""Every handled cell of the evaluation: a small seeded slice of the study whose results are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.studies.evaluation_matrix import DRAWS, TARGETS, CellSums, chunk, replicate
from pipeline.studies.runner import task_generator

KEPT = Path(__file__).parents[2] / "docs" / "studies" / "evaluation-matrix.txt"


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("method", ["labels", "lace", "one_step (pool)", "gap, same labels", "lace levels"])
def test_a_slice_of_the_matrix_covers(method: str, draw: str) -> None:
    rows = []
    for target in TARGETS:
        generator = task_generator(0, f"slice {method} {draw} {target}")
        rows += [replicate(method, draw, 100, target, generator) for _ in range(25)]
    sums = CellSums.of(np.array(rows))
    error = (sums.square / sums.count / len(rows)) ** 0.5
    assert abs(sums.bias) < 4.0 * error
    assert sums.coverage > 0.85  # 50 pools: .95 less three Monte Carlo standard errors


def test_the_sums_are_those_of_the_replicates() -> None:
    rows = chunk(("labels", "simple", 30, "pool", 3), task_generator(0, "three"))["sums"]
    sums = CellSums.of(np.array(rows))
    assert sums.count == 3
    assert 0.0 <= sums.coverage <= 1.0
    assert sums.ratio > 0.0
