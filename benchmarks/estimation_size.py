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


def measure(case: str, size: int, folder: Path) -> dict[str, float]:
    """One case in a process of its own."""
    program = [sys.executable, __file__, "--one", case, str(size), str(folder)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def exponent(sizes: list[int], values: list[float]) -> float:
    """Slope of log value on log size."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def plot(path: Path, found: dict[str, list[tuple[int, dict[str, float]]]]) -> None:
    """CPU time and peak memory against size, both logarithmic, as SVG."""
    width, height, left = 360, 260, 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * (width + left)} {height + 70}"'
        ' font-family="sans-serif" font-size="11">'
    ]
    colours = dict(zip(CASES, ("#1b6ca8", "#c0392b", "#2e8b57"), strict=True))
    for panel, (key, title) in enumerate((("cpu", "CPU seconds"), ("peak", "peak memory, MB"))):
        points = [(size, values[key]) for rows in found.values() for size, values in rows]
        xs, ys = ([math.log10(max(v, 1e-3)) for v in axis] for axis in zip(*points, strict=True))
        low_x, high_x = math.floor(min(xs)), math.ceil(max(xs))
        low_y, high_y = math.floor(min(ys)), max(math.ceil(max(ys)), math.floor(min(ys)) + 1)
        base = panel * (width + left) + left

        def place(size: float, value: float) -> tuple[float, float]:
            x = base + (math.log10(size) - low_x) / (high_x - low_x) * (width - 20)  # noqa: B023
            return x, 30 + (high_y - math.log10(max(value, 1e-3))) / (high_y - low_y) * height  # noqa: B023

        parts.append(f'<text x="{base}" y="18" font-weight="bold">{title} against size</text>')
        for power in range(low_y, high_y + 1):
            x, y = place(10.0**low_x, 10.0**power)
            parts.append(f'<path d="M{x:.1f} {y:.1f}h{width - 20}" stroke="#ddd"/>')
            parts.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
        for power in range(low_x, high_x + 1):
            x, y = place(10.0**power, 10.0**low_y)
            parts.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">1e{power}</text>')
        for number, (case, rows) in enumerate(found.items()):
            dots = [place(size, values[key]) for size, values in rows]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colours[case]}" stroke-width="1.5"/>')
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colours[case]}"/>' for x, y in dots]
            if panel == 0:
                name = f'fill="{colours[case]}">{CASES[case][0]}</text>'
                parts.append(f'<text x="{left + number * 270}" y="{height + 64}" {name}')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


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
    found: dict[str, list[tuple[int, dict[str, float]]]] = {}
    print(f"{'case':<42} {'size':>10} {'CPU s':>8} {'wall s':>8} {'peak MB':>8} {'extra MB':>8}")
    for case, (title, _) in CASES.items():
        found[case] = []
        for size in sizes[case]:
            with tempfile.TemporaryDirectory() as name:
                if case == "lace":
                    measure(WRITE, size, Path(name))
                took = measure(case, size, Path(name))
            found[case].append((size, took))
            print(
                f"{title:<42} {size:>10} {took['cpu']:8.2f} {took['wall']:8.2f} {took['peak']:8.0f}"
                f" {took['extra']:8.0f}",
                flush=True,
            )
        if len(sizes[case]) > 1:
            time_of, memory_of = (exponent(sizes[case], [v[key] for _, v in found[case]]) for key in ("cpu", "peak"))
            print(f"  exponents: CPU time {time_of:.2f}, peak memory {memory_of:.2f}")
    if given.plot is not None:
        plot(given.plot, found)


if __name__ == "__main__":
    main()
