"""Every real table of the shared folder goes through the code of `auxeval estimate`, with few labels visible."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.estimators import Estimate
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.options import Options
from pipeline.evaluation.pool import Pool
from pipeline.evaluation.table_pool import read_pool

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.shared

TABLES = (
    "gsm8k_outcomes", "mmlupro_table", "mmlupro_predictions", "mcq_confidence_mmlu", "mcq_confidence_arc",
    "mcq_confidence_hellaswag", "mcq_confidence_winogrande", "mcq_confidence_truthfulqa", "cotuq_llama31_8b",
    "openqa_sciq", "mtbench_human", "llmbar", "judgebench", "pandalm_testset", "arena_votes", "asset_ratings",
    "civilcomments", "cje_arena_policies", "alpacaeval_prefs", "scienceqa_davinci002",
)  # fmt: skip


def prepared(name: str, shared: Path, folder: Path) -> Pool:
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.real_tables import real_tables
    finally:
        sys.path.remove(str(ROOT))
    table = next(table for table in real_tables(shared) if table.name == name)
    table.build(shared).write_csv(folder / "table.csv")
    return read_pool(folder / "table.csv", table.roles)


def few_labels(target: Any, rng: np.random.Generator) -> Any:
    """At most 100 labels, a fourth of the target's at most."""
    rows = np.flatnonzero(target.labeled)
    labeled = np.zeros(len(target.y), dtype=bool)
    labeled[rng.choice(rows, min(100, len(rows) // 4), replace=False)] = True
    return replace(target, labeled=labeled, y=np.where(labeled, target.y, np.nan))


@pytest.mark.parametrize("name", TABLES)
def test_the_table_is_estimated_and_the_truth_is_in_reach(name: str, shared_path: Path, tmp_path: Path) -> None:
    inputs = prepared(name, shared_path, tmp_path)
    rng = np.random.default_rng(11)
    targets = inputs.targets[:6]
    hidden = Pool(tuple(few_labels(target, rng) for target in targets))
    estimates = evaluate(hidden, Options(("naive", "lace", "lace_profile", "gaps")))
    distances = []
    for target in targets:
        lace = estimates[target.name]["lace"]
        assert isinstance(lace, Estimate)
        truth = float(target.y[target.labeled].mean())
        if target.labeled.all():
            distances.append((lace.value - truth) / lace.se)
    # Standardised errors of up to six targets: |error| > 5 SE would be a fault, not chance.
    assert all(abs(distance) < 5.0 for distance in distances)
