"""Coverage of unsmoothed levels on real tables: every level's own accuracy, from many draws of labels.

    python benchmarks/level_coverage.py TABLE … [--draws 60] [--targets 4]

The pool is the whole table, so that the truth of every level is known; levels without a label are not counted.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from pipeline.estimators import Categorical, lace_profile, prepare_signals
from pipeline.studies.real.tables import load_cells, spread_targets
from pipeline.studies.registry import TableColumns

BUDGETS = (50, 100, 200)


def coverage(path: Path, n: int, draws: int, targets: int, seed: int) -> dict[str, tuple[float, int]]:
    """axis → (coverage of the levels' intervals, how many there were)."""
    found: dict[str, tuple[float, int]] = {}
    cells = [cell for cell in load_cells(path, TableColumns()) if cell.kind != "continuous"]
    for axis in sorted({cell.axis for cell in cells}):
        hits = total = 0
        for cell in spread_targets([entry for entry in cells if entry.axis == axis], targets):
            values = cell.z if cell.levels is None else cell.levels
            names, level = np.unique(values, return_inverse=True)
            truth = np.array([cell.y[level == k].mean() for k in range(len(names))])
            ready, rng = prepare_signals(cell.signals), np.random.default_rng(seed)
            for _ in range(draws):
                y = np.full(len(level), np.nan)
                seen = rng.choice(len(level), n, replace=False)
                y[seen] = cell.y[seen]
                profile = lace_profile(level, y, ready, locality=Categorical(), adapt="average")
                known = np.isfinite(profile.low)
                inside = (profile.low - 1e-12 <= truth) & (truth <= profile.high + 1e-12)
                hits, total = hits + int(inside[known].sum()), total + int(known.sum())
        found[axis] = (hits / total, total)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--targets", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for path in given.tables:
        rows = {n: coverage(path, n, given.draws, given.targets, given.seed) for n in BUDGETS}
        for axis in rows[BUDGETS[0]]:
            shown = "  ".join(f"n = {n}: {rows[n][axis][0]:.3f} of {rows[n][axis][1]}" for n in BUDGETS)
            print(f"{axis:<40}  {shown}", flush=True)


if __name__ == "__main__":
    main()
