"""Estimation at size: LACE from partitioned Parquet, Best-of-N over many prompts, all gaps of many models.

    python benchmarks/estimation_size.py [--rows 100000 1000000 10000000] [--plot docs/growth.svg]

Every case runs in a process of its own, so that peaks do not add up. ``extra MB`` is what the peak lies above the
memory before the case began, imports done. Exponents are slopes of log time, and of log memory, on log size.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from benchmarks.growth_plot import HEAD, Point, draw, exponents, line  # noqa: E402

SIGNALS = ("judge", "weak", "medium", "strong", "confidence", "disagreement")
PART = 500_000
LABELS, POINTS = 500, 20


def write_pool(rows: int, folder: Path) -> None:
    """A partitioned table of ``rows`` items: a profile in (0, 1), six signals, a rare outcome."""
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    labeled = np.random.default_rng(1).choice(rows, LABELS, replace=False)
    for part, start in enumerate(range(0, rows, PART)):
        rng = np.random.default_rng(part)
        size = min(PART, rows - start)
        z, signals = rng.random(size), rng.standard_normal((size, len(SIGNALS)))
        outcome = (signals.sum(axis=1) + rng.standard_normal(size) > 2 * z - 1).astype(float)
        known = np.isin(np.arange(start, start + size), labeled)
        columns = {name: signals[:, k] for k, name in enumerate(SIGNALS)}
        frame = pl.DataFrame({"z": z, **columns, "gold": np.where(known, outcome, np.nan)})
        frame.with_columns(pl.col("gold").fill_nan(None)).write_parquet(folder / f"part-{part:04d}.parquet")


def lace_from_parquet(rows: int, folder: Path) -> None:
    """Mean and profile in one pass over the files."""
    from pipeline.estimators import Gaussian, ProfilePool, lace_mean_from_pool, lace_profile_from_pool
    from pipeline.tables.parquet_stream import ParquetPool

    table = ParquetPool(sorted(folder.glob("*.parquet")), signals=SIGNALS, profile="z", gold="gold")
    pool = ProfilePool.from_chunks(table.chunks(), at=np.linspace(0.025, 0.975, POINTS), locality=Gaussian(0.05))
    z, y, signals = table.labeled()
    mean = lace_mean_from_pool(pool, y, signals)
    profile = lace_profile_from_pool(pool, z, y, signals)
    assert pool.moments.rows == rows
    assert len(y) == LABELS
    assert math.isfinite(mean.value)
    assert len(profile.value) == POINTS


def best_of_n_prompts(prompts: int, folder: Path) -> None:
    """Holdout Best-of-N, 16 candidates by 8 scores, 10,000 prompts at a time."""
    from pipeline.estimators import best_of_n_batch

    total = 0.0
    for start in range(0, prompts, 10_000):
        size = min(10_000, prompts - start)
        total += float(np.sum(best_of_n_batch(np.random.default_rng(start).standard_normal((size, 16, 8)), 4)))
    assert math.isfinite(total)


def all_gaps(models: int, folder: Path) -> None:
    """Every pair of ``models`` models on one pool of 5,000 items, from shared moments."""
    from pipeline.estimators import Gaussian, lace_gaps

    rng = np.random.default_rng(0)
    z, signals = rng.random(5_000), rng.standard_normal((5_000, models, 2))
    y = np.full((5_000, models), np.nan)
    y[:200] = signals[:200].sum(axis=2) + rng.standard_normal((200, models)) > 0
    done = sum(1 for _ in lace_gaps(z, y, signals, at=np.linspace(0.1, 0.9, 5), locality=Gaussian(0.1)))
    assert done == models * (models - 1) // 2


CASES: dict[str, tuple[str, Callable[[int, Path], None]]] = {
    "lace": ("LACE mean and profile from Parquet, rows", lace_from_parquet),
    "bon": ("Best-of-N 16 x 8, prompts", best_of_n_prompts),
    "gaps": ("all paired gaps, models", all_gaps),
}
WRITE = "write"


def peak_mb() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def one(case: str, size: int, folder: Path) -> None:
    """Run one case here and print what it took."""
    import polars  # noqa: F401

    from pipeline.estimators import (  # noqa: F401
        Gaussian,
        ProfilePool,
        best_of_n_batch,
        lace_gaps,
        lace_mean_from_pool,
        lace_profile_from_pool,
    )

    run = write_pool if case == WRITE else CASES[case][1]
    before, cpu, wall = peak_mb(), time.process_time(), time.perf_counter()
    run(size, folder)
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    print(json.dumps({**took, "peak": peak_mb(), "extra": peak_mb() - before}))


def measure(case: str, size: int, folder: Path) -> Point:
    """One case in a process of its own."""
    program = [sys.executable, __file__, "--one", case, str(size), str(folder)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT)
    return Point(size, **json.loads(done.stdout))


def main() -> None:
    """Print one line per case and size, the exponents, and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--prompts", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--models", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--plot", type=Path, help="SVG of time and memory against size")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one[0], int(given.one[1]), Path(given.one[2]))
        return
    sizes = {"lace": given.rows, "bon": given.prompts, "gaps": given.models}
    found: dict[str, list[Point]] = {}
    print(HEAD)
    for case, (title, _) in CASES.items():
        found[title] = []
        for size in sizes[case]:
            with tempfile.TemporaryDirectory() as name:
                if case == "lace":
                    measure(WRITE, size, Path(name))
                found[title].append(measure(case, size, Path(name)))
            print(line(title, found[title][-1]), flush=True)
        print(exponents(found[title]), flush=True)
    if given.plot is not None:
        draw(given.plot, found)


if __name__ == "__main__":
    main()
