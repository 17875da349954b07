"""Speed of LACE against the bare NumPy floor, loops and a straightforward PPCI, all in one run.

    python benchmarks/lace.py [--repeats 7]

Times are CPU seconds of one thread, best of the repeats, floor and estimator in turn. The bare floor of a large pool is
20 M ``exp`` plus the (G × M)·(M × 28) product on buffers that are already filled; the plain floor also forms the
exponents and the 28 columns, as any implementation must.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators import (
    Gaussian,
    ProfilePool,
    lace_gap,
    lace_gaps,
    lace_mean,
    lace_profile,
    lace_profile_from_pool,
    lace_profile_splits,
)

FloatArray = NDArray[np.float64]
POINTS, SIGNALS, CHUNK = 20, 6, 8_000


def main() -> None:
    """Print one line per case: seconds, reference, ratio, and what the project asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    print(f"{'case':66s} {'seconds':>9s} {'reference':>9s} {'ratio':>7s}  wanted")
    small(repeats)
    adaptive(repeats)
    fresh_pool(repeats)
    large(repeats)
    many_draws(repeats)
    many_models()
    against_ppci(repeats)


def line(name: str, seconds: float, reference: float | None = None, wanted: str = "") -> None:
    """One row of the table."""
    shown = f"{reference:9.4f} {seconds / reference:7.2f}" if reference is not None else f"{'':9s} {'':7s}"
    print(f"{name:66s} {seconds:9.4f} {shown}  {wanted}", flush=True)


def alternate(first: Callable[[], object], second: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Best CPU seconds of each, run in turn."""
    best = [np.inf, np.inf]
    for _ in range(repeats):
        for position, call in enumerate((first, second)):
            start = time.process_time()
            call()
            best[position] = min(best[position], time.process_time() - start)
    return best[0], best[1]


def best_of(call: Callable[[], object], repeats: int, inner: int = 1) -> float:
    """Best CPU seconds of one call, ``inner`` calls at a time."""

    def several() -> None:
        for _ in range(inner):
            call()

    return alternate(several, lambda: None, repeats)[0] / inner


def draw(rows: int, labels: int, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A pool whose first items (in random order) are labeled."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=rows)
    gold = (rng.random(rows) < 0.5).astype(np.float64)
    signals = rng.normal(size=(rows, SIGNALS)) + gold[:, None]
    signals = (signals - signals.mean(axis=0)) / signals.std(axis=0)
    return z, np.where(np.arange(rows) < labels, gold, np.nan), signals


def small(repeats: int) -> None:
    """M = 500: milliseconds per profile."""
    for labels in (50, 100, 200):
        z, y, signals = draw(500, labels)
        line(f"profile, M=500, n={labels}", best_of(lambda: lace_profile(z, y, signals), repeats, 50), 1e-3, "<= 1")  # noqa: B023
    line("mean, M=500, n=100", best_of(lambda: lace_mean(y, signals), repeats, 50))


def adaptive(repeats: int) -> None:
    """The adaptive rule at M = 1319."""
    for labels in (50, 200, 1000):
        z, y, signals = draw(1319, labels)
        levels = np.floor(np.clip(z, -2, 2)).astype(int).astype(str)
        call = lambda: lace_profile(z, y, signals, adapt="average")  # noqa: B023, E731
        line(f"adaptive profile, continuous, M=1319, n={labels}", best_of(call, repeats, 3))
        call = lambda: lace_profile(levels, y, signals, adapt="average")  # noqa: B023, E731
        line(f"adaptive profile, categorical, M=1319, n={labels}", best_of(call, repeats, 3))
        call = lambda: lace_mean(y, signals, adapt="average")  # noqa: B023, E731
        line(f"adaptive mean with logistic candidates, M=1319, n={labels}", best_of(call, repeats, 3))


def fresh_pool(repeats: int) -> None:
    """M = 10⁵, as users call it: nothing is prepared, so every column is sorted."""
    _, y, signals = draw(100_000, 200)
    for rule in ("average", "curved"):
        call = lambda: lace_mean(y, signals, adapt=rule)  # noqa: B023, E731
        sorts = lambda: np.argsort(signals, axis=0)  # noqa: E731
        wanted = "<= 1.5" if rule == "average" else ""
        line(f"mean, M=10^5 K=6, adapt={rule}, argsort of its columns", *alternate(call, sorts, repeats), wanted)


def large(repeats: int) -> None:
    """M = 10⁶, streamed in chunks."""
    rows = 1_000_000
    z, y, signals = draw(rows, 200)
    at = np.linspace(-1.6, 1.6, POINTS)
    bandwidth = 1.59 * rows**-0.2

    def bare() -> object:
        return _bare_floor(rows)

    def plain() -> object:
        return _plain_floor(z, signals, at, bandwidth)

    bare(), plain()
    given = lambda: lace_profile(z, y, signals, at=at, locality=Gaussian(bandwidth))  # noqa: E731
    line("profile, M=10^6 G=20 K=6, points given, bare floor", *alternate(given, bare, repeats), "<= 1.5")
    default = lambda: lace_profile(z, y, signals)  # noqa: E731
    line("profile, M=10^6 G=20 K=6, default points and bandwidth, bare floor", *alternate(default, bare, repeats))
    line("profile, M=10^6 G=20 K=6, default points, plain floor", *alternate(default, plain, repeats))
    line("adaptive profile, M=10^6", best_of(lambda: lace_profile(z, y, signals, adapt="average"), 2))
    tracemalloc.start()
    default()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    line("peak extra memory of that profile, MB", peak, 200.0, "<= 1")
    pool = ProfilePool.from_arrays(z, signals, at=at, locality=Gaussian(bandwidth))
    again = lambda: lace_profile_from_pool(pool, z[:200], y[:200], signals[:200])  # noqa: E731
    line("another profile on the prepared pool of 10^6", best_of(again, repeats, 20))


def _bare_floor(rows: int) -> FloatArray:
    rng = np.random.default_rng(0)
    exponents, columns = -rng.random((POINTS, CHUNK)), rng.random((CHUNK, 28))
    weights, total = np.empty_like(exponents), np.zeros((POINTS, 28))
    for _ in range(rows // CHUNK):
        np.exp(exponents, out=weights)
        total += weights @ columns
    return total


def _plain_floor(z: FloatArray, signals: FloatArray, at: FloatArray, bandwidth: float) -> FloatArray:
    total = np.zeros((len(at), 28))
    first, second = np.triu_indices(SIGNALS)
    for start in range(0, len(z), CHUNK):
        part, own = z[start : start + CHUNK], signals[start : start + CHUNK]
        columns = np.concatenate([np.ones((len(part), 1)), own, own[:, first] * own[:, second]], axis=1)
        total += np.exp(-0.5 * ((at[:, None] - part) / bandwidth) ** 2) @ columns
    return total


def many_draws(repeats: int) -> None:
    """500 label draws on one pool, against a loop."""
    rng = np.random.default_rng(1)
    z, _, signals = draw(500, 0)
    y = (rng.random(500) < 0.5).astype(np.float64)
    sets = np.stack([rng.choice(500, 100, replace=False) for _ in range(500)])
    member = np.zeros((500, 500), dtype=bool)
    member[np.arange(500)[:, None], sets] = True

    def loop() -> object:
        return [lace_profile(z, y, signals, labeled=row) for row in member]

    fast, slow = alternate(lambda: lace_profile_splits(z, y, signals, sets), loop, min(repeats, 3))
    line("500 label draws in one product; reference: loop of lace_profile", fast, slow, "<= 0.05")


def many_models() -> None:
    """All gaps of 40 models from one set of moments, against one pass per pair."""
    rng = np.random.default_rng(2)
    rows, models, count = 5_000, 40, 4
    z = rng.normal(size=rows)
    y = (rng.random((rows, models)) < 0.5).astype(np.float64)
    cube = rng.normal(size=(rows, models, count)) + y[:, :, None]
    y[200:] = np.nan
    pairs = models * (models - 1) // 2
    fast = best_of(lambda: list(lace_gaps(z, y, cube)), 1) / pairs
    one = best_of(lambda: lace_gap(z, y[:, 0], y[:, 1], cube[:, 0], cube[:, 1]), 5)
    line(f"gap of one of {pairs} pairs, M=5000, shared moments; reference: alone", fast, one)


def against_ppci(repeats: int) -> None:
    """A profile of 20 points against PPCI as one writes it down: per point, fold and λ of the L-curve one solve."""
    z, y, signals = draw(500, 100)
    at = np.linspace(*np.quantile(z, (0.05, 0.95)), POINTS)
    ours, theirs = alternate(
        lambda: lace_profile(z, y, signals, at=at), lambda: _plain_ppci(z, y, signals[:, 0], at), min(repeats, 2)
    )
    line("profile of 20 points, M=500; reference: straightforward PPCI", ours, theirs, "<= 0.01")


def _plain_ppci(z: FloatArray, y: FloatArray, prediction: FloatArray, at: FloatArray) -> FloatArray:
    scale, labeled = z.std(), np.isfinite(y)
    halves = np.arange(len(z)) % 2

    def kernel(a: FloatArray, b: FloatArray) -> FloatArray:
        distance = np.sqrt(5.0) * np.abs(a[:, None] - b) / scale
        return np.asarray((1.0 + distance + distance**2 / 3.0) * np.exp(-distance))

    values = []
    for point in at:
        weights = np.empty(len(z))
        for half in (0, 1):
            fitted, used = halves != half, halves == half
            right = kernel(z[fitted], np.array([point]))[:, 0]
            tried = []
            for ridge in np.logspace(-6, 1, 25):
                matrix = kernel(z[fitted], z[fitted])
                solution = np.linalg.solve(matrix + ridge * np.eye(len(right)), right)
                residual, size = np.linalg.norm(matrix @ solution - right), np.linalg.norm(solution)
                tried.append((float(residual * size), solution))
            weights[used] = kernel(z[used], z[fitted]) @ min(tried, key=lambda pair: pair[0])[1]
        gap = np.mean(weights[labeled] * (y[labeled] - prediction[labeled])) + np.mean(weights * prediction)
        values.append(gap / np.mean(weights))
    return np.array(values)


if __name__ == "__main__":
    main()
