"""Estimators of a mean against their peers on the real tables: relative efficiency and coverage at 20 to 200 labels.

    python benchmarks/peers_real.py [--shared ../shared] [--reps 40] [--slow-reps 4] [--budgets 20 50 100 200]

Two models of every table (one where it has one), rows with gold as the pool (at most ``--pool``), labels drawn
uniformly, the truth the pool's mean. Signals are filled and standardised for everyone. Per budget: geometric mean over
the cells of the efficiency against the labeled mean on the same draws [worst cell], mean coverage of 95 % intervals
[worst cell], share of draws on which the package raised and the labeled mean was taken instead.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks.peer_estimators import FloatArray, Method, absent, our_methods, peer_methods
from benchmarks.peer_rates import Rates, advantage, rates
from benchmarks.real_tables import real_tables
from pipeline.estimators import standardize_signals
from pipeline.evaluation.pool import TargetPool
from pipeline.evaluation.table_pool import read_pool

BUDGETS = (20, 50, 100, 200)


@dataclass(frozen=True, slots=True)
class Cell:
    """One model of one table with full gold."""

    name: str
    y: FloatArray
    signals: FloatArray
    best: FloatArray


def cells(folder: Path, per_table: int, most: int) -> list[Cell]:
    """The cells, negative controls left out."""
    found: list[Cell] = []
    for table in real_tables(folder):
        if table.control:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "table.csv"
            table.build(folder).write_csv(path)
            targets = read_pool(path, table.roles).targets
        step = max(len(targets) // per_table, 1)
        found += [cell(table.name, target, most) for target in targets[::step][:per_table]]
    return found


def cell(table: str, target: TargetPool, most: int) -> Cell:
    """At most ``most`` rows with gold, outcomes in [0, 1], signals standardised; constant signals are dropped."""
    known = np.flatnonzero(target.labeled)
    if len(known) > most:
        known = np.random.default_rng(0).permutation(known)[:most]
    y = target.y[known]
    y = (y - min(y.min(), 0.0)) / max(y.max() - min(y.min(), 0.0), 1.0)
    signals = standardize_signals(target.filled()[0][known])
    signals = signals[:, signals.std(axis=0) > 0]
    correlation = (signals * (y - y.mean())[:, None]).mean(axis=0)
    first = int(np.argmax(np.abs(correlation)))
    best = np.sign(correlation[first]) * signals[:, first] * y.std() + y.mean()
    return Cell(f"{table}: {target.name}", y, signals, best)


def measure(one: Cell, labels: int, methods: Sequence[Method], reps: int, slow_reps: int) -> dict[str, Rates]:
    """Every method on the same label draws of one cell."""
    truth = float(one.y.mean())

    def draw(number: int) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        rng = np.random.default_rng([labels, number])
        y = np.full(len(one.y), np.nan)
        chosen = rng.choice(len(y), labels, replace=False)
        y[chosen] = one.y[chosen]
        return y, one.signals, one.best, truth

    return rates(methods, draw, reps, slow_reps)


def geometric(values: Sequence[float]) -> float:
    """Geometric mean of the finite, positive ones."""
    kept = [value for value in values if value > 0 and math.isfinite(value)]
    return math.exp(float(np.mean(np.log(kept)))) if kept else math.nan


def summary(rows: Sequence[Rates]) -> str:
    """One cell of the printed table."""
    efficiencies, coverages = [row.efficiency for row in rows], [row.coverage for row in rows]
    failed = sum(row.failed for row in rows) / sum(row.draws for row in rows)
    text = (
        f"{geometric(efficiencies):.2f} [{np.nanmin(efficiencies):.2f}] {np.mean(coverages):.3f} [{min(coverages):.2f}]"
    )
    return f"{text} {failed:4.0%}" if failed else f"{text}     "


def main(argv: list[str] | None = None) -> None:
    """Print one line a method, one column a budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("AUXEVAL_SHARED", "../shared")))
    parser.add_argument("--reps", type=int, default=40)
    parser.add_argument("--slow-reps", type=int, default=4, help="draws of methods that take tens of milliseconds")
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS)
    parser.add_argument("--per-table", type=int, default=2)
    parser.add_argument("--pool", type=int, default=2_000, help="larger pools are cut to this many random rows")
    given: Any = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    methods = [*our_methods(), *peer_methods()]
    tables = cells(given.shared, given.per_table, given.pool)
    found: dict[str, dict[int, list[Rates]]] = {method.name: {} for method in methods}
    for one in tables:
        for labels in given.budgets:
            if 2 * labels <= len(one.y):
                for name, row in measure(one, labels, methods, given.reps, given.slow_reps).items():
                    found[name].setdefault(labels, []).append(row)
                    print(one.name, labels, name, row, sep="\t", file=sys.stderr, flush=True)
    counts = ", ".join(f"{len(found[methods[0].name][labels])} at n = {labels}" for labels in given.budgets)
    print(f"cells: {counts}; {given.reps} draws each, slow methods {given.slow_reps}")
    print("geometric mean of relative efficiency [worst cell], mean coverage [worst cell], draws that raised")
    print(f"{'':34}{'signals':>8}" + "".join(f"{f'n = {labels}':>36}" for labels in given.budgets))
    for method in methods:
        columns = (found[method.name].get(labels) for labels in given.budgets)
        print(
            f"{method.name:34}{method.signals:>8}"
            + "".join(f"{summary(rows) if rows else '–':>36}" for rows in columns)
        )
    print(f"\nmean squared error over that of {REFERENCE} on the same draws, geometric mean over the cells (± 2 se)")
    for method in methods:
        if method.name != REFERENCE and found[method.name]:
            pairs = [(found[method.name][n], found[REFERENCE][n]) for n in given.budgets if n in found[method.name]]
            print(f"{method.name:42}" + "".join(f"{ahead(theirs, ours):>36}" for theirs, ours in pairs))
    if missing := absent():
        print(missing)


REFERENCE = "auxeval lace_mean"


def ahead(theirs: Sequence[Rates], ours: Sequence[Rates]) -> str:
    """How much larger their error is; 1 is a draw."""
    middle, error = advantage(theirs, ours)
    return f"{math.exp(middle):.2f} (±{2 * error:.2f})"


if __name__ == "__main__":
    main()
