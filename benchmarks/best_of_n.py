"""Speed of Best-of-N against the argsort floor of the same run, and of pass@k against the usual loops.

    python benchmarks/best_of_n.py [--repeats 5]

The floor of a matrix is ``np.argsort(R.T.copy(), axis=1)``; ratios below one beat it. Each figure is the best of the
repeats, floor and estimator timed in turn so that both see the same machine.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators import best_of_n, best_of_n_batch, pass_at_k_mean

CANDIDATES, DRAWS = 100_000, 64


def main() -> None:
    """Print one line per case: seconds, floor, ratio, and what the project asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    rng = np.random.default_rng(0)
    continuous = rng.standard_normal((CANDIDATES, DRAWS))
    levels = rng.integers(1, 11, (CANDIDATES, DRAWS))
    prompts = rng.standard_normal((1000, 1000, 32))
    print(f"{'case':58s} {'seconds':>8s} {'floor':>8s} {'ratio':>7s}  wanted")

    def against_floor(name: str, wanted: str, run: Callable[[], object], floor: Callable[[], object]) -> None:
        seconds, reference = alternate(run, floor, repeats)
        print(f"{name:58s} {seconds:8.3f} {reference:8.3f} {seconds / reference:7.2f}  {wanted}")

    def floor_of(scores: NDArray[np.float64]) -> Callable[[], object]:
        return lambda: np.argsort(scores.T.copy(), axis=1)

    floor = floor_of(continuous)
    size = f"M=1e5 K={DRAWS}"
    against_floor(f"{size} continuous, Holdout N=4", "<= 1.5", lambda: best_of_n(continuous, 4), floor)
    against_floor(f"{size} continuous, J=8 N=16", "<= 1.5", lambda: best_of_n(continuous, 16, 8), floor)
    against_floor(f"{size} continuous, N=1000", "<= 1.0", lambda: best_of_n(continuous, 1000), floor)
    as_floats = levels.astype(np.float64)
    integer_floor = floor_of(as_floats)
    against_floor(f"{size} integers 1..10, N=4", "<= 1.0", lambda: best_of_n(levels, 4), integer_floor)
    against_floor(f"{size} 1.0..10.0 as floats, N=4", "<= 1.0", lambda: best_of_n(as_floats, 4), integer_floor)
    tenths = levels / 10
    against_floor(f"{size} tenths 0.1..1.0, N=4", "<= 1.0", lambda: best_of_n(tenths, 4), floor_of(tenths))
    against_floor(f"{size} integers 1..10, N=1000", "<= 1.0", lambda: best_of_n(levels, 1000), integer_floor)

    def batch_floor() -> object:
        return [np.argsort(matrix.T.copy(), axis=1) for matrix in prompts]

    listed = list(prompts)
    against_floor("1000 prompts of 1000 x 32, array, N=4", "<= 1.5", lambda: best_of_n_batch(prompts, 4), batch_floor)
    against_floor("1000 prompts of 1000 x 32, list, N=4", "<= 1.5", lambda: best_of_n_batch(listed, 4), batch_floor)
    for items in (1_000, 100_000):
        against_loops(items, rng, repeats)


def against_loops(items: int, rng: np.random.Generator, repeats: int) -> None:
    """pass@k of many items, 200 samples each, k = 10."""
    samples, k = 200, 10
    correct = rng.binomial(samples, rng.uniform(0, 0.2, items))
    ours = pass_at_k_mean(correct, samples, k).value
    for name, loop in (("np.prod per item", product_loop), ("log-gamma per item", gamma_loop)):
        reference = loop(correct, samples, k)
        assert abs(reference - ours) < 1e-9, (reference, ours)
        rounds = max(repeats, 20) if items <= 1000 else 3
        # Calls in a row, as a study makes them: one of 30 µs after milliseconds of a loop finds cold caches.
        ours_in_a_row = partial(in_a_row, partial(pass_at_k_mean, correct, samples, k), 20)
        seconds, slow = alternate(ours_in_a_row, partial(loop, correct, samples, k), rounds)
        seconds /= 20
        print(f"pass@{k}, {items} items, against {name:30s} {seconds:8.5f} {slow:8.3f} {slow / seconds:6.0f}x  >= 100x")


def in_a_row(call: Callable[[], object], times: int) -> None:
    """The same call several times."""
    for _ in range(times):
        call()


def product_loop(correct: NDArray[np.int64], samples: int, k: int) -> float:
    """The product formula, one item at a time."""
    values = []
    for c in correct:
        left = samples - c
        values.append(1.0 if left < k else 1.0 - float(np.prod(1.0 - k / np.arange(left + 1, samples + 1))))
    return float(np.mean(values))


def gamma_loop(correct: NDArray[np.int64], samples: int, k: int) -> float:
    """Binomial coefficients by log-gamma, one item at a time."""
    from scipy.special import gammaln

    def log_choose(top: int) -> float:
        return float(gammaln(top + 1) - gammaln(k + 1) - gammaln(top - k + 1))

    total = log_choose(samples)
    values = [1.0 if samples - c < k else 1.0 - np.exp(log_choose(samples - c) - total) for c in correct]
    return float(np.mean(values))


def alternate(run: Callable[[], object], floor: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Best seconds of both, timed in turn."""
    best = [float("inf"), float("inf")]
    for _ in range(repeats):
        for at, call in enumerate((run, floor)):
            start = time.perf_counter()
            call()
            best[at] = min(best[at], time.perf_counter() - start)
    return best[0], best[1]


if __name__ == "__main__":
    main()
