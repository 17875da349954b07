"""Relative efficiency and coverage of estimators over repeated label draws: draws in, one row a method out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.peer_estimators import FloatArray, Interval, Method, plain_mean


@dataclass(frozen=True, slots=True)
class Rates:
    """What one method did: efficiency against the plain mean on the same draws, coverage, draws that raised.

    ``squares`` are the squared errors, draw by draw, so that two methods compare on the draws that both saw.
    """

    draws: int
    efficiency: float
    coverage: float
    half_width: float
    failed: int
    squares: tuple[float, ...] = field(repr=False)


Draw = Callable[[int], tuple[FloatArray, FloatArray, FloatArray, float]]
"""Number of the draw → y with NaN where not labeled, signals, best signal, truth."""


def rates(methods: Sequence[Method], draw: Draw, reps: int, slow_reps: int) -> dict[str, Rates]:
    """Every method on the same draws, slow ones on the first ``slow_reps``.

    A draw on which a method raises, or returns no finite point, counts as failed and falls back on the plain mean.
    """
    found: dict[str, list[tuple[Interval, float, float, bool]]] = {method.name: [] for method in methods}
    for number in range(reps):
        y, signals, best, truth = draw(number)
        plain = plain_mean(y)
        for method in methods:
            if not method.slow or number < slow_reps:
                interval, failed = attempt(method, y, signals, best)
                found[method.name].append((plain if failed else interval, plain[0], truth, failed))
    return {name: _summary(rows) for name, rows in found.items() if rows}


def attempt(method: Method, y: FloatArray, signals: FloatArray, best: FloatArray) -> tuple[Interval, bool]:
    """The interval, and whether the method raised or gave no finite point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            interval = method.call(y, signals, best)
        except Exception:
            return (np.nan, np.nan, np.nan), True
    return interval, not np.isfinite(interval[0])


def _summary(rows: list[tuple[Interval, float, float, bool]]) -> Rates:
    points, lows, highs = (np.array([row[0][k] for row in rows]) for k in range(3))
    plain, truth = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    squares = (points - truth) ** 2
    efficiency = float(np.mean((plain - truth) ** 2) / np.mean(squares)) if squares.any() else np.nan
    covered = float(np.mean((lows <= truth) & (truth <= highs)))
    half, failed = float(np.mean(highs - lows) / 2), sum(row[3] for row in rows)
    return Rates(len(rows), efficiency, covered, half, failed, tuple(squares.tolist()))


def advantage(theirs: Sequence[Rates], ours: Sequence[Rates]) -> tuple[float, float]:
    """Their mean squared error over ours on common draws: mean log over the cells, and its standard error."""
    logs = []
    for one, other in zip(theirs, ours, strict=True):
        count = min(one.draws, other.draws)
        ratio = np.mean(one.squares[:count]) / np.mean(other.squares[:count])
        if np.isfinite(ratio) and ratio > 0:
            logs.append(float(np.log(ratio)))
    return float(np.mean(logs)), float(np.std(logs, ddof=1) / len(logs) ** 0.5)
