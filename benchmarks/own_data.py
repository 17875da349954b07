"""What `auxeval estimate` costs, whether planned labels reach their half-width, and what a stratified draw saves.

python benchmarks/own_data.py [--rows 1000000] [--reps 200]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators import lace_mean
from pipeline.estimators.labels.planning import plan_mean
from pipeline.estimators.labels.strata import Pilot
from pipeline.evaluation.label_draw import draw_labels
from pipeline.tables.labels import realised_inclusion

FloatArray = NDArray[np.float64]

_PROGRAM = """
import resource, sys, time
start = time.perf_counter()
from pipeline.cli import main
try:
    main(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code, stop.code
use = resource.getrusage(resource.RUSAGE_SELF)
peak = use.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
print(f"{use.ru_utime + use.ru_stime:.2f} {time.perf_counter() - start:.2f} {peak:.0f}", file=sys.stderr)
"""


def cost(*arguments: str) -> str:
    """CPU, wall time and peak memory of one command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, check=True, timeout=600
    )
    cpu, wall, peak = done.stderr.split()[-3:]
    return f"{cpu:>6} s CPU  {wall:>6} s  {peak:>5} MB"


def write_table(path: Path, rows: int, text: int) -> None:
    """A table with ``text`` characters of prose a row beside its numbers; one in a thousand (at least 80) labeled."""
    rng = np.random.default_rng(0)
    prose = ("lorem ipsum, dolor sit amet; " * (text // 29 + 1))[:text]
    every = max(rows // max(rows // 1000, 80), 1)
    with path.open("w") as file:
        file.write("id,text,gold,judge,confidence,level\n")
        for first in range(0, rows, 10_000):
            size = min(10_000, rows - first)
            judge, confidence, luck = rng.random(size), rng.random(size), rng.random(size)
            for k in range(size):
                gold = int(luck[k] < judge[k]) if (first + k) % every == 0 else ""
                file.write(f'q{first + k},"{prose}",{gold},{judge[k]:.4f},{confidence[k]:.4f},{k % 5}\n')


def costs(rows: int) -> None:
    """The cost of the command on a small and on a large table."""
    columns = ("--gold", "gold", "--signals", "judge,confidence")
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.csv", Path(folder) / "large.csv"
        write_table(small, 1000, 0)
        print(f"estimate, 1,000 rows                      {cost('estimate', str(small), *columns, '--json')}")
        profiled = cost("estimate", str(small), *columns, "--profile", "level", "--json")
        print(f"estimate, 1,000 rows, profile             {profiled}")
        write_table(large, rows, 900)
        size = large.stat().st_size / 1e9
        print(f"estimate, {rows:,} rows, {size:.2f} GB        {cost('estimate', str(large), *columns, '--json')}")


def correlated(rng: np.random.Generator, size: int, rho: float) -> tuple[FloatArray, FloatArray]:
    """An outcome with correlation ``rho`` to its signal."""
    signal = rng.standard_normal(size)
    return rho * signal + np.sqrt(1.0 - rho**2) * rng.standard_normal(size), signal[:, None]


def hidden(truth: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
    """The outcome where it is labeled."""
    y = np.full(len(truth), np.nan)
    y[rows] = truth[rows]
    return y


def planning(reps: int) -> None:
    """Pilot of 60 labels, plan, draw the planned number: the half-width reached over the half-width wanted."""
    print(f"\nplanned half-width, pilot of 60 labels, M = 3,000, {reps} repetitions")
    for outcome in ("normal", "binary"):
        for rho in (0.0, 0.5, 0.8):
            for target in ("pool", "population"):
                print(f"  {_planned(outcome, rho, target, reps)}")  # type: ignore[arg-type]


def _planned(outcome: str, rho: float, target: Literal["pool", "population"], reps: int) -> str:
    rng = np.random.default_rng([int(10 * rho), len(outcome), len(target)])
    wanted = 0.12 if outcome == "normal" else 0.06
    reached, labels = [], []
    for _ in range(reps):
        truth, signals = correlated(rng, 3000, rho)
        truth = (truth > 0.0).astype(float) if outcome == "binary" else truth
        y = hidden(truth, rng.choice(3000, 60, replace=False))
        pilot = lace_mean(y, signals, adapt="average", learner=None)
        plan = plan_mean(pilot, 3000, wanted, outcome_variance=float(np.nanvar(y, ddof=1)), target=target)
        if plan.labels is None:
            continue
        y = hidden(truth, rng.choice(3000, plan.labels, replace=False))
        final = lace_mean(y, signals, adapt="average", learner=None, target=target)
        reached.append(0.5 * (final.high - final.low) / wanted)
        labels.append(plan.labels)
    return (
        f"{outcome:6} rho {rho:.1f} {target:10} n {np.mean(labels):5.0f}  "
        f"reached/wanted {np.mean(reached):.3f} (sd {np.std(reached):.3f})"
    )


def designs(reps: int) -> None:
    """MSE of the estimate with 80 more labels drawn uniformly or stratified, after a pilot of 80."""
    print(f"\nstratified against uniform labels, 80 after a pilot of 80, M = 2,000, {reps} repetitions")
    for name, quiet in (("residual sd 0.1 to 1.5", 0.1), ("residual sd 0.5 to 1.5", 0.5), ("constant residual", 1.5)):
        rng = np.random.default_rng(4)
        signal = rng.standard_normal(2000)
        truth = signal + np.where(signal > 0.0, 1.5, quiet) * rng.standard_normal(2000)
        ids = [str(k) for k in range(2000)]
        errors: dict[str, list[float]] = {"uniform": [], "stratified": []}
        covered = []
        for rep in range(reps):
            pilot = Pilot(hidden(truth, rng.choice(2000, 80, replace=False)), signal[:, None])
            for kind, found in errors.items():
                design = draw_labels(ids, 80, [pilot], kind=kind, seed=rep)  # type: ignore[arg-type]
                labeled = [*design.before, *design.drawn]
                y = hidden(truth, np.array([int(item) for item in labeled]))
                chances = realised_inclusion(design, labeled) if kind == "stratified" else None
                estimate = lace_mean(y, signal[:, None], adapt="average", learner=None, inclusion_probabilities=chances)
                found.append(estimate.value - float(truth.mean()))
                if kind == "stratified":
                    covered.append(estimate.low <= truth.mean() <= estimate.high)
        ratio = np.mean(np.square(errors["uniform"])) / np.mean(np.square(errors["stratified"]))
        print(f"  {name:24} efficiency {ratio:.2f}  coverage {np.mean(covered):.3f}")


def main() -> None:
    """Print every measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--reps", type=int, default=200)
    given = parser.parse_args()
    costs(given.rows)
    planning(given.reps)
    designs(5 * given.reps)


if __name__ == "__main__":
    main()
