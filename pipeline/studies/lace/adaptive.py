"""`lace-adaptive [TABLE]`: the adaptive rule against the paper's, every comparator and installed peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.studies.lace.adaptive_cells import (
    BUDGETS,
    Record,
    deployment_cell,
    design_cell,
    gap_cell,
    mean_cell,
    profile_cell,
)
from pipeline.studies.lace.designs import Design, repeated_pool, setting_a, setting_b, setting_c
from pipeline.studies.lace.efficiency import LogRatio, geometric_mean, log_ratio
from pipeline.studies.lace.methods import LABELS
from pipeline.studies.lace.peers import installed_peers
from pipeline.studies.real.tables import RealCell, is_known, load_cells, spread_targets
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

CHUNK = 25
TARGETS_PER_AXIS = 3
NAMES: Mapping[str, str] = {
    **LABELS,
    "lace": "LACE (paper's rule)",
    "average": "LACE, adaptive",
    "average + logistic": "LACE, adaptive + logistic",
}
TITLES: Mapping[str, str] = {
    "continuous": "Profiles on continuous and ordered axes of real tables",
    "categorical": "Profiles over categories of real tables",
    "synthetic": "Profiles on the synthetic designs (pool target, signals as given)",
    "gap": "Paired gaps of two targets on the same items",
    "mean": "Pool means on real tables: does the profile rule with one category serve the mean?",
    "deployment": "Deployment scores, density ratio exp(0.7 z) on the standardised axis",
}


def _designs() -> dict[str, Design]:
    return {
        "A, M = 2000": setting_a(2_000, 0.12),
        "B, M = 2000": setting_b(1, 2_000),
        "C, M = 2000": setting_c(1, 2_000),
        "repeated pool, math500": repeated_pool("math500", 1, 200),
        "repeated pool, arc": repeated_pool("arc", 0, 200),
    }


def _one_task(payload: tuple[str, Any, int], rng: np.random.Generator) -> Record:
    """One chunk of replicates of one cell."""
    kind, cell, reps = payload
    if kind == "synthetic":
        return design_cell(_designs()[cell], reps, rng)
    if kind == "gap":
        first, second = cell
        return gap_cell(first, second, reps, rng)
    parts: Mapping[str, Callable[[RealCell, int, np.random.Generator], Record]] = {
        "mean": mean_cell,
        "deployment": deployment_cell,
    }
    return parts.get(kind, profile_cell)(cell, reps, rng)


def _cells(options: StudyOptions) -> dict[str, dict[str, Any]]:
    """Kind of quantity to cell name to cell."""
    by_kind: dict[str, dict[str, Any]] = {kind: {} for kind in TITLES}
    by_kind["synthetic"] = {name: name for name in _designs()}
    if options.table is None:
        return by_kind
    path = Path(options.table)
    files = [file for file in sorted(path.iterdir()) if is_known(file)] if path.is_dir() else [path]
    for file in files:
        axes: dict[str, list[RealCell]] = {}
        for cell in load_cells(file, options.columns):
            if float(np.ptp(cell.y)) > 0.0 and len(cell.y) > BUDGETS[-1]:
                axes.setdefault(cell.axis, []).append(cell)
        for number, cells in enumerate(axes.values()):
            chosen = spread_targets(cells, TARGETS_PER_AXIS)
            kind = "categorical" if chosen[0].kind == "categorical" else "continuous"
            for cell in chosen:
                by_kind[kind][cell.name] = cell
                by_kind["deployment"][cell.name] = cell
                if number == 0:
                    by_kind["mean"][cell.name] = cell
            for first, second in pairwise(chosen):
                if len(first.y) == len(second.y) and np.array_equal(first.z, second.z):
                    by_kind["gap"][f"{first.name} − {second.target}"] = (first, second)
    return by_kind


def run(options: StudyOptions) -> StudyResult:
    """Every quantity on every cell; without TABLE only the synthetic designs."""
    reps = options.reps or study.default_reps
    cells = _cells(options)
    tasks = {
        f"{kind}/{name}/{start}": (kind, cell, min(CHUNK, reps - start))
        for kind, named in cells.items()
        for name, cell in named.items()
        for start in range(0, reps, CHUNK)
    }
    where = "synthetic" if options.table is None else Path(options.table).name
    replicates = run_tasks(
        options,
        _one_task,
        tasks,
        stage="adaptive",
        signature=f"adaptive {where} reps={reps} peers={sorted(installed_peers())}",
        label=f"chunks of {CHUNK} replicates",
    )
    tables: list[ResultTable] = []
    for kind, named in cells.items():
        records = {name: _joined([replicates[f"{kind}/{name}/{s}"] for s in range(0, reps, CHUNK)]) for name in named}
        if records:
            tables += _tables(kind, records)
    peers = ", ".join(installed_peers()) or "none"
    return StudyResult(
        study.title,
        tuple(tables),
        notes=(
            f"{reps} nested splits per cell, seed {options.seed}. Real tables: the targets with the lowest, middle and "
            "highest mean outcome of each axis.",
            f"Peers installed here (bench extra): {peers}. A peer that refuses a split gets the labeled mean.",
            "RE: mean squared error of the naive estimator over the rule's, against the pool quantity. Coverage: share "
            "of (split, point) pairs whose 95% interval holds it. Length: mean length over that of the naive interval.",
        ),
    )


def _joined(parts: list[Record]) -> dict[str, list[FloatArray]]:
    """Rule to budget to (replicates, 3)."""
    rules = dict.fromkeys(rule for part in parts for rule in part)
    return {
        rule: [
            np.array([row for part in parts for row in part.get(rule, [[]] * len(BUDGETS))[index]], dtype=np.float64)
            .reshape(-1, 3)
            for index in range(len(BUDGETS))
        ]
        for rule in rules
    }  # fmt: skip


def _tables(kind: str, records: Mapping[str, Mapping[str, list[FloatArray]]]) -> list[ResultTable]:
    rules = list(dict.fromkeys(rule for record in records.values() for rule in record))
    efficiency: list[tuple[Cell, ...]] = []
    intervals: list[tuple[Cell, ...]] = []
    for rule in rules:
        ratios = [_ratios(records, rule, index) for index in range(len(BUDGETS))]
        finite = [ratio.value for part in ratios for ratio in part if np.isfinite(ratio.value)]
        worst = float(np.exp(min(finite))) if finite else float("nan")
        below = sum(_surely_below(ratio) for part in ratios for ratio in part)
        efficiency.append(
            (NAMES.get(rule, rule), *(geometric_mean(part) for part in ratios), worst, f"{below}/{len(finite)}")
        )
        spans = [_coverage(records, rule, index) for index in range(len(BUDGETS))]
        if any(span is not None for span in spans):
            intervals.append((NAMES.get(rule, rule), *spans))
    columns = tuple(f"n = {n}" for n in BUDGETS)
    return [
        ResultTable(
            f"{TITLES[kind]}: relative efficiency, geometric mean over {len(records)} cells",
            ("Rule", *columns, "Worst cell", "Surely below 1"),
            tuple(efficiency),
            ("'surely': the upper end of the 95% Monte Carlo interval of the cell's RE lies below 1",),
            digits=2,
        ),
        ResultTable(
            f"{TITLES[kind]}: coverage [worst cell], length relative to naive",
            ("Rule", *columns),
            tuple(intervals),
        ),
    ]


def _ratios(records: Mapping[str, Mapping[str, list[FloatArray]]], rule: str, budget: int) -> list[LogRatio]:
    return [
        log_ratio(record["naive"][budget][:, 0], record[rule][budget][:, 0])
        for record in records.values()
        if rule in record and len(record[rule][budget])
    ]


def _surely_below(ratio: LogRatio) -> bool:
    return bool(np.isfinite(ratio.value) and ratio.value + 1.96 * np.sqrt(ratio.variance) < 0.0)


def _coverage(records: Mapping[str, Mapping[str, list[FloatArray]]], rule: str, budget: int) -> str | None:
    """``.953 [.920], 0.71``: mean and smallest cell coverage, mean length over that of naive."""
    covered, lengths = [], []
    for record in records.values():
        if rule not in record or not len(record[rule][budget]):
            continue
        own, naive = record[rule][budget], record["naive"][budget]
        if np.isfinite(own[:, 1]).any():
            covered.append(float(np.nanmean(own[:, 1])))
            lengths.append(float(np.nanmean(own[:, 2]) / np.nanmean(naive[:, 2])))
    if not covered:
        return None
    return f"{np.mean(covered):.3f} [{min(covered):.3f}], {np.mean(lengths):.2f}"


study = Study(
    title="LACE: the adaptive rule for profiles, gaps, means and deployment scores",
    run=run,
    default_reps=100,
)
