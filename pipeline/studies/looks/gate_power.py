"""`gate-power [TABLES]`: how often a gate blocks a five-point drop, ships an equal candidate, and errs on A/A."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import wilson_interval
from pipeline.evaluation.gate import chance_of_block, gate, paired_gap
from pipeline.studies.real.tables import is_known, load_cells
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

ITEMS, DROP, REPS = 1319, 0.05, 1000
DISCORDANT = (0.05, 0.10, 0.15, 0.20, 0.30)
MARGINS = (0.0, 0.01, 0.02, 0.03)
CHURN = (0.0, 0.05, 0.10)
FLIPS = (0.1, 0.3)


def drawn_pair(drop: float, discordant: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """(base, candidate), each (ITEMS,) of 0 and 1: the candidate ``drop`` worse, ``discordant`` of them changed."""
    kind = rng.random(ITEMS)
    base = (rng.random(ITEMS) < 0.7).astype(np.float64)
    lost, won = 0.5 * (discordant + drop), 0.5 * (discordant - drop)
    candidate = base.copy()
    base[kind < lost], candidate[kind < lost] = 1.0, 0.0
    gained = (kind >= lost) & (kind < lost + won)
    base[gained], candidate[gained] = 0.0, 1.0
    return base, candidate


def planted(base: FloatArray, churn: float, rng: np.random.Generator) -> FloatArray:
    """A candidate that loses DROP of all items and answers a share ``churn`` of them anew, as often better as worse."""
    candidate = base.copy()
    right, wrong = np.flatnonzero(base == 1.0), np.flatnonzero(base == 0.0)
    swapped = round(0.5 * churn * len(base))
    lost = rng.permutation(right)[: round(DROP * len(base)) + swapped]
    candidate[lost] = 0.0
    candidate[rng.permutation(wrong)[:swapped]] = 1.0
    return candidate


def verdicts(base: FloatArray, candidate: FloatArray) -> list[str]:
    """The verdict at each of ``MARGINS``."""
    gap, se, df, influence = paired_gap(base, candidate)
    entry = {"name": "score", "value": gap, "se": se, "df": df, "influence": influence}
    return [str(gate([{**entry, "margin": margin}])["verdict"]) for margin in MARGINS]


def _chunk(payload: tuple[str, Any, float, int], rng: np.random.Generator) -> list[list[str]]:
    kind, base, value, reps = payload
    rows = []
    for _ in range(reps):
        if kind == "worse":
            pair = drawn_pair(DROP, value, rng)
        elif kind == "equal":
            pair = drawn_pair(0.0, value, rng)
        else:  # a real model, its items drawn anew
            scores = base[rng.integers(0, len(base), len(base))]
            pair = scores, planted(scores, value, rng)
        rows.append(verdicts(*pair))
    return rows


def _share(rows: list[list[str]], k: int, verdict: str) -> Measured:
    values = [row[k] == verdict for row in rows]
    low, high = wilson_interval(float(np.mean(values)), float(len(values)), 1.96)
    return Measured(float(np.mean(values)), float(low), float(high), digits=3)


def _run(options: StudyOptions) -> StudyResult:
    reps = options.reps or REPS
    tasks: dict[str, tuple[str, Any, float, int]] = {}
    tasks |= {f"worse/{d}": ("worse", None, d, reps) for d in DISCORDANT}
    tasks |= {f"equal/{d}": ("equal", None, d, reps) for d in (*DISCORDANT, *FLIPS)}
    bases = _real(options)
    tasks |= {
        f"real/{name}/{churn}": ("real", base, churn, max(2, reps // 20))
        for name, base in bases.items()
        for churn in CHURN
    }
    made = run_tasks(options, _chunk, tasks, stage="gate", signature=f"gate-power reps={reps}", label="cells")
    power: tuple[tuple[Cell, ...], ...] = tuple(
        (d, *(_share(made[f"worse/{d}"], k, "BLOCK") for k in range(3)),
         *(chance_of_block(DROP, d, ITEMS, margin) for margin in MARGINS[:3]),
         *(_share(made[f"equal/{d}"], k, "SHIP") for k in range(1, 4)))
        for d in DISCORDANT
    )  # fmt: skip
    false: tuple[tuple[Cell, ...], ...] = tuple(
        (d, *(_share(made[f"equal/{d}"], k, "BLOCK") for k in range(3))) for d in sorted({*DISCORDANT, *FLIPS})
    )
    blocks = [f"BLOCK, margin {margin:g}" for margin in MARGINS[:3]]
    formula = [f"formula, {margin:g}" for margin in MARGINS[:3]]
    ships = [f"SHIP if equal, {margin:g}" for margin in MARGINS[1:]]
    tables = [
        ResultTable(f"Truly {DROP:g} worse, {ITEMS:,} items", ("discordant", *blocks, *formula, *ships), power),
        ResultTable("Equal: false blocks", ("discordant", *blocks), false),
    ]
    if bases:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (churn, len(together), *(_share(together, k, "BLOCK") for k in range(3)))
            for churn in CHURN
            for together in [[row for name in bases for row in made[f"real/{name}/{churn}"]]]
        )
        tables.append(ResultTable("Real scores with a planted drop", ("churn", "gates", *blocks), rows))
    notes = (f"{reps} pairs a cell; 'formula' is chance_of_block. One metric; 95 %, two-sided.",)
    return StudyResult("The gate: blocks and ships", tuple(tables), notes=notes)


def _real(options: StudyOptions) -> dict[str, FloatArray]:
    """Model → its scores, of the tables with at least as many items as the power table has."""
    if options.table is None:
        return {}
    path = Path(options.table)
    bases: dict[str, FloatArray] = {}
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if is_known(file):
            for cell in load_cells(file, options.columns):
                room = min(cell.y.mean() - DROP, 1.0 - cell.y.mean()) - 0.5 * CHURN[-1] if len(cell.y) >= ITEMS else -1
                if room > 0.0 and np.isin(cell.y, (0.0, 1.0)).all():
                    bases.setdefault(f"{file.name}/{cell.target}", cell.y)
    return bases


study = Study("The gate: blocks and ships", _run, REPS)
