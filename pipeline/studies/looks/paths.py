"""`looks-paths TABLES` and `looks-gaps TABLES`: whether the intervals of all looks hold together, on real tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.estimators.floats import BoolArray, FloatArray, IntArray
from pipeline.estimators.intervals import wilson_interval
from pipeline.estimators.looks import critical_values, look_information
from pipeline.evaluation.options import Options
from pipeline.evaluation.plans.ledger import Goal
from pipeline.evaluation.plans.statistics import Statistic, statistics_of
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.studies.real.tables import RealCell, is_known, load_cells, spread_targets
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

RULES = ("plain", "obrien-fleming", "power:2", "pocock")
PLAIN = 1.959963984540054
ITEMS, REPS = 900, 40


@dataclass(frozen=True, slots=True)
class Design:
    """What is looked at, and when.

    Attributes:
        goal: a mean or a gap. sizes: labels at the looks. targets: of one table.
    """

    goal: Goal
    sizes: tuple[int, ...]
    targets: int


MEANS = Design(Goal("width", 0.05), tuple(range(20, 201, 20)), 4)
GAPS = Design(Goal("gap", question="superior", models=("a", "b")), tuple(range(30, 301, 30)), 5)


def _pool(parts: Mapping[str, RealCell], rows: IntArray, labeled: BoolArray) -> Pool:
    """The targets on some rows of their table, of which some are labeled."""
    ids = np.array([f"{row:06d}" for row in range(len(rows))])
    return Pool(tuple(
        TargetPool(
            name, np.where(labeled, cell.y[rows], np.nan), labeled, cell.signals[rows],
            tuple(f"s{k}" for k in range(cell.signals.shape[1])), ids=ids, drawn="uniform",
        )
        for name, cell in parts.items()
    ))  # fmt: skip


def path_of(
    parts: Mapping[str, RealCell], design: Design, rng: np.random.Generator
) -> tuple[float, list[Statistic], int]:
    """(truth, the statistic at every look, items) of one path: fresh items of the table, labeled in a random order."""
    size = min(ITEMS, *(len(cell.y) for cell in parts.values()))
    rows = rng.permutation(min(len(cell.y) for cell in parts.values()))[:size]
    order = rng.permutation(size)
    truths = [float(cell.y[rows].mean()) for cell in parts.values()]
    statistics = []
    for n in design.sizes:
        labeled = np.zeros(size, dtype=bool)
        labeled[order[:n]] = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            looked_at = statistics_of(_pool(parts, rows, labeled), design.goal, Options(target="pool"))
        statistics.append(looked_at.rows[0])
    return truths[0] - truths[1] if len(truths) > 1 else truths[0], statistics, size


def _critical(design: Design, items: int) -> dict[str, list[float]]:
    information = [look_information(n, items, "pool") for n in design.sizes]
    times = [n / design.sizes[-1] for n in design.sizes]
    return {
        rule: [PLAIN] * len(times) if rule == "plain" else critical_values(times, information, 0.05, rule)
        for rule in RULES
    }


def _paths(
    payload: tuple[Mapping[str, RealCell], int], rng: np.random.Generator, *, design: Design
) -> list[list[float]]:
    """Per path: truth, plain interval at the last look right, then all looks right by each rule, and its last width."""
    parts, reps = payload
    rows = []
    for _ in range(reps):
        truth, statistics, items = path_of(parts, design, rng)
        critical = _critical(design, items)
        ends = statistics[-1].interval(PLAIN)
        row = [truth, float(_inside(truth, ends))]
        for rule in RULES:
            intervals = [at.interval(c) for at, c in zip(statistics, critical[rule], strict=True)]
            row.append(float(all(_inside(truth, interval) for interval in intervals)))
        rows.append(row)
    return rows


def _inside(truth: float, interval: tuple[float, float]) -> bool:
    return interval[0] - 1e-12 <= truth <= interval[1] + 1e-12


def _cells(options: StudyOptions, design: Design) -> dict[str, Mapping[str, RealCell]]:
    if options.table is None:
        raise InputError("this study needs a table, or a folder of them")
    path = Path(options.table)
    cells: dict[str, Mapping[str, RealCell]] = {}
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if not is_known(file):
            continue
        known_cells = load_cells(file, options.columns)
        chosen = spread_targets([c for c in known_cells if c.axis == known_cells[0].axis], design.targets)
        chosen = [cell for cell in chosen if len(cell.y) >= 1.5 * design.sizes[-1]]
        if design.goal.kind == "width":
            cells |= {cell.name: {cell.target: cell} for cell in chosen}
        else:
            pairs = [(a, b) for a, b in pairwise(chosen) if len(a.y) == len(b.y)]
            cells |= {f"{a.name} − {b.target}": {"a": a, "b": b} for a, b in pairs}
    if not cells:
        raise InputError(f"{path}: no known table with {round(1.5 * design.sizes[-1])} items of a target")
    return cells


def _share(values: FloatArray) -> Measured:
    mean, count = float(values.mean()), float(len(values))
    low, high = wilson_interval(mean, count, 1.96)
    return Measured(mean, float(low), float(high), digits=3)


def _run(options: StudyOptions, *, design: Design, title: str) -> StudyResult:
    reps = options.reps or REPS
    cells = _cells(options, design)
    tasks = {name: (parts, reps) for name, parts in cells.items()}
    paths = run_tasks(
        options, partial(_paths, design=design), tasks, stage="looks", signature=f"looks {design.sizes} reps={reps}",
        label="cells",
    )  # fmt: skip
    columns = ("paths", "last look alone", *RULES)

    def row(values: Any) -> tuple[Cell, ...]:
        table = np.asarray(values, dtype=np.float64)
        return (len(table), *(_share(table[:, k]) for k in range(1, table.shape[1])))

    everything = [path for name in tasks for path in paths[name]]
    bands = [(0.0, 0.05), (0.05, 0.15), (0.15, 0.85), (0.85, 0.95), (0.95, 1.01)]
    grouped = [
        (f"{low:g} to {min(high, 1.0):g}", *row(inside))
        for low, high in bands
        if design.goal.kind == "width" and (inside := [p for p in everything if low <= p[0] < high])
    ]
    tables = [ResultTable("All paths", ("which", *columns), (("all", *row(everything)), *grouped))]
    tables.append(ResultTable("By cell", ("cell", *columns), tuple((name, *row(paths[name])) for name in tasks)))
    notes = (
        f"Share of paths whose intervals at all {len(design.sizes)} looks ({design.sizes[0]} to {design.sizes[-1]} "
        f"labels) hold together, nominal .95; up to {ITEMS} fresh items of a table a path, about these items.",
        "'plain': the 95 % interval at every look; 'last look alone': that of the last one. Estimated by the rule that "
        "runs, tables and plans use.",
    )
    return StudyResult(title, tuple(tables), notes=notes)


paths_study = Study(
    "Looks at means: do all intervals hold together",
    partial(_run, design=MEANS, title="Looks at means: do all intervals hold together"),
    REPS,
    needs_table=True,
)
gaps_study = Study(
    "Looks at gaps: do all intervals hold together",
    partial(_run, design=GAPS, title="Looks at gaps: do all intervals hold together"),
    REPS,
    needs_table=True,
)
