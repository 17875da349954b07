"""Rehearses labelling where the gold is known: hide labels at random, many times, and see how far off one would be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import InputError
from pipeline.estimators import Estimate, lace_mean
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.results import Result
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.options import RULE
from pipeline.evaluation.pool import Pool, TargetPool

BUDGETS = (20, 50, 100, 200)
"""Label budgets that are rehearsed where the table is at least twice as large."""
_PLAIN, _LACE = "naive", "lace"


@dataclass(frozen=True, slots=True)
class Rehearsed(Result):
    """What one method did over all rehearsals of one target with one budget.

    Attributes:
        target: the target.
        labels: n, how many labels were left visible.
        method: ``naive`` (with its finite-pool interval) or ``lace``.
        reps: B, how often.
        pool: M, rows with gold; the truth is their mean.
        bias: mean error.
        rmse: root of the mean squared error.
        coverage: share of intervals that held the truth.
        half_width: mean half-width of the intervals.
        efficiency: MSE of the plain mean over MSE of this method.
        efficiency_low: lower end of its 95 % interval over rehearsals (paired, on the log scale).
        efficiency_high: upper end of the same.
    """

    target: str
    labels: int
    method: str
    reps: int
    pool: int
    bias: float
    rmse: float
    coverage: float
    half_width: float
    efficiency: float
    efficiency_low: float
    efficiency_high: float


def rehearsed_of(estimates: EstimateSet) -> tuple[Rehearsed, ...]:
    """The rehearsals that a document holds."""
    rehearsals = estimates.extra.get("rehearsal") or ()
    filled: list[dict[str, Any]] = [{k: math.nan if v is None else v for k, v in entry.items()} for entry in rehearsals]
    return tuple(Rehearsed(**entry) for entry in filled)


def rehearse(
    inputs: Pool, reps: int, *, budgets: Sequence[int] = BUDGETS, level: float = 0.95, seed: int = 0
) -> tuple[Rehearsed, ...]:
    """Rehearse every target of a table.

    Raises:
        InputError: no target has enough labels for any budget.
    """
    if reps < 2:
        raise InputError(f"--rehearse needs at least 2 repetitions, got {reps}")
    rehearsals = [
        row
        for target in inputs.targets
        for row in rehearse_target(target, reps, budgets=budgets, level=level, seed=seed)
    ]
    if not rehearsals:
        most = max(int(target.labeled.sum()) for target in inputs.targets)
        raise InputError(
            f"a rehearsal hides known labels: with budgets of {', '.join(map(str, budgets))} it needs twice as many "
            f"labeled rows of one target, and there are {most}"
        )
    return tuple(rehearsals)


def rehearse_target(
    target: TargetPool, reps: int, *, budgets: Sequence[int] = BUDGETS, level: float = 0.95, seed: int = 0
) -> list[Rehearsed]:
    """One target; budgets above half of its labeled rows are passed over. Clusters are hidden as wholes."""
    labeled = target.labeled
    y, signals = target.y[labeled], target.filled()[0][labeled]
    clusters = None if target.clusters is None else np.unique(target.clusters[labeled], return_inverse=True)[1]
    rows: list[Rehearsed] = []
    for budget in budgets:
        if 2 * budget > len(y):
            continue
        rng = np.random.default_rng([seed, budget])
        runs: dict[str, list[Estimate]] = {_PLAIN: [], _LACE: []}
        for _ in range(reps):
            visible = _visible(len(y), budget, clusters, rng)
            options: dict[str, Any] = {"labeled": visible, "clusters": clusters, "level": level, "learner": "logistic"}
            runs[_PLAIN].append(lace_mean(y, np.empty((len(y), 0)), adapt=RULE, **options))
            if signals.shape[1]:
                runs[_LACE].append(lace_mean(y, signals, adapt=RULE, **options))
        rows.extend(_summaries(target.name, budget, runs, float(y.mean()), len(y)))
    return rows


def _visible(size: int, budget: int, clusters: NDArray[np.intp] | None, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Rows whose labels stay visible: ``budget`` of them, or whole clusters until there are as many."""
    visible = np.zeros(size, dtype=bool)
    if clusters is None:
        visible[rng.choice(size, budget, replace=False)] = True
        return visible
    order = rng.permutation(int(clusters.max()) + 1)
    enough = int(np.searchsorted(np.cumsum(np.bincount(clusters)[order]), budget)) + 1
    return np.isin(clusters, order[:enough])


def _summaries(target: str, budget: int, runs: dict[str, list[Estimate]], truth: float, pool: int) -> list[Rehearsed]:
    squares = {
        method: np.array([(e.value - truth) ** 2 for e in estimates]) for method, estimates in runs.items() if estimates
    }
    rows = []
    for method, estimates in runs.items():
        if not estimates:
            continue
        errors = np.array([e.value - truth for e in estimates])
        low, high = np.array([e.low for e in estimates]), np.array([e.high for e in estimates])
        efficiency, below, above = _efficiency(squares[_PLAIN], squares[method])
        rows.append(
            Rehearsed(
                target,
                budget,
                method,
                len(estimates),
                pool,
                float(errors.mean()),
                float(np.sqrt((errors**2).mean())),
                float(np.mean((low <= truth) & (truth <= high))),
                float(np.mean(high - low) / 2.0),
                efficiency,
                below,
                above,
            )
        )
    return rows


def _efficiency(plain: FloatArray, other: FloatArray) -> tuple[float, float, float]:
    """MSE ratio and its paired delta-method interval on the log scale."""
    a, b = float(plain.mean()), float(other.mean())
    if a <= 0.0 or b <= 0.0:
        return (1.0, 1.0, 1.0) if a == b else (math.inf if b <= 0.0 else 0.0, math.nan, math.nan)
    spread = float(np.std(plain / a - other / b, ddof=1)) / math.sqrt(len(plain))
    ratio = a / b
    return ratio, ratio * math.exp(-1.96 * spread), ratio * math.exp(1.96 * spread)
