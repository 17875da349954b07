"""Simulated Best-of-N matrices: estimators and true values of many pools at once, and errors of their averages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.best_of_n.blocks import block_values, cyclic_sums
from pipeline.estimators.best_of_n.weights import rank_weights
from pipeline.estimators.floats import FloatArray
from pipeline.studies.results import Measured


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Three values of the same cyclic selections, one per pool.

    Attributes:
        holdout: (P,) held-out scores of the winners: the estimator.
        reuse: (P,) the winners' own selection scores.
        actual: (P,) the winners' true means.
    """

    holdout: FloatArray
    reuse: FloatArray
    actual: FloatArray


def evaluate(scores: FloatArray, means: FloatArray, n: int, j: int) -> Evaluation:
    """Cyclic J-score selections of continuous scores (P, M, K), evaluated in three ways; means (P, M)."""
    pools, candidates, draws = scores.shape
    columns = np.ascontiguousarray(scores.transpose(0, 2, 1))
    weights = rank_weights(candidates, n)
    keys = cyclic_sums(columns, j, j).reshape(-1, candidates)
    held_out = cyclic_sums(columns, draws - j).reshape(-1, candidates) / (draws - j)
    truth = np.repeat(means, draws, axis=0)
    parts = [
        block_values(keys, values, weights).reshape(pools, draws).mean(axis=1) for values in (held_out, keys / j, truth)
    ]
    return Evaluation(*parts)


def plug_in(scores: FloatArray, n: int) -> FloatArray:
    """(P,) row-mean maxima E_S[max_{m∈S} R̄_m] of scores (P, M, K)."""
    rows = scores.mean(axis=2)
    return block_values(rows, rows, rank_weights(rows.shape[1], n))


def blocks(total: int, size: int) -> dict[str, int]:
    """Task name to number of pools: ``total`` pools, ``size`` at a time."""
    return {f"pools-{start:07d}": min(size, total - start) for start in range(0, total, size)}


def mean_cell(values: FloatArray, *, paper: float | None = None, digits: int | None = None) -> Measured:
    """Mean of independent replicates with ±1.96 standard errors."""
    mean, se = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
    return Measured(mean, mean - 1.96 * se, mean + 1.96 * se, paper, digits)


def jackknife(
    sums: NDArray[Any],
    statistic: Callable[[FloatArray], float],
    *,
    paper: float | None = None,
    digits: int | None = None,
) -> Measured:
    """A statistic of summed moments with the delete-one-block jackknife's 95% interval.

    Args:
        sums: (T, Q) moments summed within each block of replicates.
        statistic: of the (Q,) totals.
    """
    totals = np.asarray(sums, dtype=np.float64).sum(axis=0)
    value, count = statistic(totals), len(sums)
    if count < 2:
        return Measured(value, paper=paper, digits=digits)
    without = np.array([statistic(totals - row) for row in sums])
    se = float(np.sqrt((count - 1) / count * np.sum((without - without.mean()) ** 2)))
    return Measured(value, value - 1.96 * se, value + 1.96 * se, paper, digits)
