"""Every handled cell of the evaluation: a small seeded slice of the study whose results are kept."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pipeline.studies.coverage.matrix import DRAWS, TARGETS, CellSums, cells, chunk, replicate
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


def test_every_handled_cell_is_kept_with_nominal_coverage() -> None:
    """The kept run: .93 to .98 over the draws of each method and budget, within Monte Carlo error."""
    kept = {}
    for line in KEPT.read_text().splitlines():
        parts = re.split(r"\s{2,}", line.strip())
        if len(parts) >= 7 and parts[1] in DRAWS:
            kept[parts[0], parts[1], int(parts[2]), parts[3]] = float(parts[-1].split("[")[0])
    assert set(kept) == set(cells())
    found: dict[tuple[str, int], list[float]] = {}
    for (method, _, n, _), coverage in kept.items():
        found.setdefault((method, n), []).append(coverage)
    for cell, values in found.items():
        assert 0.93 <= np.mean(values) <= 0.985, (cell, values)
        assert min(values) >= 0.885, (cell, values)  # .95 less three Monte Carlo standard errors of 100 pools
