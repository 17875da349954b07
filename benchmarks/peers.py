"""Estimators of a mean against their peers, side by side in one process: time, relative efficiency, coverage.

    python benchmarks/peers.py [--rounds 5] [--reps 200] [--slow-reps 20] [--only speed rates passk ranking]

Peers that are not installed are said to be absent (``pip install 'auxeval[bench]'``). Times are CPU milliseconds of one
thread, all methods in turn within a round: median (least to most) over the rounds. The synthetic family: binary Y with
mean .6 and six normal signals that shift with it, R² = .78 together and .54 for the best; every draw is a new pool and
the truth is .6, so that ours runs with ``target="population"``.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks.peer_estimators import (
    FloatArray,
    Method,
    absent,
    ends,
    installed,
    our_methods,
    peer_methods,
)
from benchmarks.peer_rates import Rates, rates
from pipeline.estimators import lace_mean, pass_at_k_mean, prepare_signals, rank_sets

SIZES = ((20, 500), (50, 500), (100, 500), (200, 2_000))
LARGE = (10_000, 100_000)
ACCURACY = 0.6
SHIFTS = np.sqrt(np.array([4.6, 3.2, 2.4, 1.8, 1.4, 0.8]) * 0.25 / (ACCURACY * (1 - ACCURACY)))
"""Squared shifts sum to R²/(1 − R²)/(p(1 − p)) with R² = .78."""


def draw(labels: int, rows: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """One pool of the family, its first ``labels`` items labeled; the truth is the mean of the population."""
    rng = np.random.default_rng([seed, labels, rows])
    gold = (rng.random(rows) < ACCURACY).astype(np.float64)
    signals = rng.standard_normal((rows, len(SHIFTS))) + gold[:, None] * SHIFTS
    first = signals[:, 0]
    best = (first - first.mean()) / first.std() * gold.std() + gold.mean()
    return np.where(np.arange(rows) < labels, gold, np.nan), signals, best, ACCURACY


def for_population(method: Method) -> Method:
    """The same method aimed at the population, where it is ours and can be told so."""
    if not method.ours:
        return method
    return Method(
        method.name,
        lambda y, signals, best: method.call(y, signals, best, target="population"),  # type: ignore[call-arg]
        ours=True,
    )


def in_turn(
    calls: Mapping[str, Callable[[], object]], rounds: int, counts: Mapping[str, int]
) -> dict[str, list[float]]:
    """CPU milliseconds of one call of each, all in turn within a round; one warming call first."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            count = counts.get(name, 1)
            start = time.process_time()
            for _ in range(count):
                call()
            found[name].append(1e3 * (time.process_time() - start) / count)
    return found


def shown(values: list[float]) -> str:
    """Median (least to most)."""
    return f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})"


def speed(methods: list[Method], rounds: int, sizes: tuple[tuple[int, int], ...], large: tuple[int, ...]) -> None:
    """One row a method, one column a size; then the ratios that the project asks for."""
    measured: dict[tuple[int, int], dict[str, list[float]]] = {}
    everything = [*sizes, *((200, rows) for rows in large)]
    for labels, rows in everything:
        y, signals, best, _ = draw(labels, rows, 0)
        prepared = prepare_signals(signals)
        calls: dict[str, Callable[[], object]] = {
            method.name: lambda method=method: method.call(y, signals, best)  # type: ignore[misc]  # noqa: B023
            for method in methods
            if not (method.slow and rows > 2_000)
        }
        calls[PREPARED] = lambda: ends(lace_mean(y, prepared, adapt="average", learner=None))  # noqa: B023
        counts = {method.name: 1 if method.slow or rows > 2_000 else 10 for method in methods}
        measured[labels, rows] = in_turn(calls, rounds, {**counts, PREPARED: 10})
    print(f"CPU ms of one call, median (least–most) of {rounds} rounds; six signals")
    print(f"{'':34}" + "".join(f"{f'n={labels} M={rows}':>24}" for labels, rows in everything))
    for name in (PREPARED, *(method.name for method in methods)):
        cells = (measured[size].get(name) for size in everything)
        print(f"{name:34}" + "".join(f"{shown(cell) if cell else '–':>24}" for cell in cells))
    print()
    for rows in large:
        _ratio(measured[200, rows], "glide MultiPPI", PREPARED, f"n=200 M={rows}", ">= 3")
    for size in sizes:
        _ratio(measured[size], DOUBLEML, PLAIN, f"n={size[0]} M={size[1]}", ">= 50")


PREPARED = "auxeval lace_mean, None, prepared"
PLAIN, DOUBLEML = "auxeval lace_mean, learner=None", "DoubleML APO, 5 folds"


def _ratio(found: dict[str, list[float]], theirs: str, ours: str, size: str, wanted: str) -> None:
    if theirs in found:
        ratios = [a / b for a, b in zip(found[theirs], found[ours], strict=True)]
        print(f"{theirs} / {ours}, {size}: {shown(ratios)}, wanted {wanted}")


def family(methods: list[Method], reps: int, slow_reps: int, sizes: tuple[tuple[int, int], ...]) -> None:
    """Efficiency and coverage on the synthetic family."""
    aimed = [for_population(method) for method in methods]
    found: dict[tuple[int, int], dict[str, Rates]] = {}
    for labels, rows in sizes:
        found[labels, rows] = rates(aimed, lambda seed: draw(labels, rows, seed), reps, slow_reps)  # noqa: B023
    print(
        "relative efficiency against the labeled mean / coverage of 95 % intervals;"
        f" {reps} draws, slow methods {slow_reps}"
    )
    print(f"{'':34}{'signals':>8}" + "".join(f"{f'n={labels} M={rows}':>18}" for labels, rows in sizes))
    for method in aimed:
        cells = [found[size][method.name] for size in sizes if method.name in found[size]]
        if cells:
            failed = sum(cell.failed for cell in cells)
            note = f"  raised on {failed} of {sum(cell.draws for cell in cells)} draws" if failed else ""
            text = "".join(f"{f'{cell.efficiency:.2f} / {cell.coverage:.3f}':>18}" for cell in cells)
            print(f"{method.name:34}{method.signals:>8}{text}{note}")


def passk(rounds: int, sizes: tuple[int, ...], samples: int = 200, k: int = 10) -> None:
    """pass@k of every item; ours also forms the mean with its interval."""
    package = installed("passk_inference")
    if package is None:
        print("passk-inference: absent here")
        return
    print(f"pass@{k} of items with {samples} samples each, CPU ms of one call; wanted ratio >= 100")
    print(f"{'items':>8}{'auxeval pass_at_k_mean':>26}{'passk-inference pass_at_k':>28}{'ratio':>24}{'difference':>12}")
    for items in sizes:
        rng = np.random.default_rng(items)
        correct = rng.binomial(samples, rng.random(items))
        ours = lambda: pass_at_k_mean(correct, samples, k).value  # noqa: B023, E731
        theirs = lambda: package.pass_at_k(correct, samples, k)  # noqa: B023, E731
        found = in_turn({"ours": ours, "theirs": theirs}, rounds, {"ours": 20})
        ratios = [a / b for a, b in zip(found["theirs"], found["ours"], strict=True)]
        difference = abs(ours() - float(np.mean(theirs())))
        print(f"{items:>8}{shown(found['ours']):>26}{shown(found['theirs']):>28}{shown(ratios):>24}{difference:>12.0e}")


def ranking(rounds: int, reps: int, models: int = 5, items: int = 200) -> None:
    """Who is better among models of equal accuracy on shared items, with confidence: rank sets against Bradley–Terry.

    Every ordered claim is false here. evalica resamples matches as if they were independent; ours resamples items.
    """
    package = installed("evalica")
    names = [f"model {k}" for k in range(models)]
    pairs = [(a, b) for a in range(models) for b in range(a + 1, models)]

    def outcomes(seed: int) -> FloatArray:
        rng = np.random.default_rng([7, seed])
        ease = rng.normal(size=(items, 1))
        return (ease + rng.normal(size=(items, models)) > 0).astype(np.float64)

    def ours(values: FloatArray) -> bool:
        sets = rank_sets(values, names=names, rng=np.random.default_rng(0))
        return any(row.best > 1 or row.worst < models for row in sets)

    def bradley_terry(values: FloatArray) -> bool:
        assert package is not None
        left = [names[a] for a, _ in pairs for _ in range(items)]
        right = [names[b] for _, b in pairs for _ in range(items)]
        difference = np.concatenate([values[:, a] - values[:, b] for a, b in pairs])
        winners = [
            package.Winner.X if d > 0 else package.Winner.Y if d < 0 else package.Winner.Draw for d in difference
        ]
        found = package.bootstrap(
            package.bradley_terry, left, right, winners, n_resamples=100, bootstrap_method="percentile", random_state=0
        )
        return bool(found.low.max() > found.high.min())

    methods: dict[str, Callable[[FloatArray], bool]] = {"auxeval rank_sets": ours}
    if package is None:
        print("evalica: absent here")
    else:
        methods["evalica bradley_terry, bootstrap of 100"] = bradley_terry
    one = outcomes(0)
    timed = in_turn(
        {name: lambda call=call: call(one) for name, call in methods.items()}, rounds, {"auxeval rank_sets": 3}
    )  # type: ignore[misc]
    print(
        f"ranking {models} models of equal accuracy on {items} shared items: CPU ms; share of {reps} draws with a"
        " false order"
    )
    for name, call in methods.items():
        wrong = sum(call(outcomes(seed)) for seed in range(reps))
        print(f"{name:42}{shown(timed[name]):>24}{wrong / reps:>10.2f}  wanted <= 0.05")


def main(argv: list[str] | None = None) -> None:
    """Print each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--reps", type=int, default=200)
    parser.add_argument("--slow-reps", type=int, default=20)
    parser.add_argument("--rank-reps", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--quick", action="store_true", help="the smallest sizes, for a test")
    given: Any = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    sizes, large = (SIZES[:1], ()) if given.quick else (SIZES, LARGE)
    if missing := absent():
        print(missing, end="\n\n")
    methods = [*our_methods(), *peer_methods()]
    if "speed" in given.only:
        speed(methods, given.rounds, sizes, large)
        print()
    if "rates" in given.only:
        family(methods, given.reps, given.slow_reps, sizes)
        print()
    if "passk" in given.only:
        passk(given.rounds, (1_000,) if given.quick else (1_000, 10_000))
        print()
    if "ranking" in given.only:
        ranking(given.rounds, given.rank_reps)


PARTS = ("speed", "rates", "passk", "ranking")

if __name__ == "__main__":
    main()
