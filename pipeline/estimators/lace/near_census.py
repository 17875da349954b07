"""Few wrong answers left to find: the exact interval of a share of a pool that is mostly labeled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pipeline.estimators.floats import FloatArray


def near_census_interval(y: FloatArray, rows: int, value: float, level: float) -> tuple[float, float] | None:
    """Hypergeometric inversion about the labels' mean, extended to the estimate; None where it is not called for.

    Called for where n/M ≥ .5 and n·min(p̂, 1 − p̂) < 5: with 80 of 100 labeled and one wrong, no normal-type interval of
    the pool's share covers (.81 at a nominal .95). A number K of ones among the M items is kept while neither tail of
    the ones seen has less than half of 1 − level (the mid-p tail, so that the interval is not wider than it need be).

    Args:
        y: (n,) labels, 0 or 1, a simple random part of the pool.
        rows: M.
        value: the estimate.
        level: nominal coverage.
    """
    n, seen = len(y), round(float(y.sum()))
    if not (n < rows and 2 * n >= rows and min(seen, n - seen) < 5):
        return None
    possible = np.arange(seen, rows - n + seen + 1)
    tail = (1.0 - level) / 2.0
    kept = [total for total in possible.tolist() if min(_tails(seen, n, total, rows)) >= tail]
    point = min(max(value, 0.0), 1.0)
    ends = (min(kept) / rows, max(kept) / rows) if kept else (seen / n, seen / n)
    return min(ends[0], point), max(ends[1], point)


def _tails(seen: int, n: int, total: int, rows: int) -> tuple[float, float]:
    """P(X ≤ seen), P(X ≥ seen), half the weight of ``seen`` itself; X ones among n of ``rows`` with ``total``."""
    support = np.arange(max(0, n - (rows - total)), min(n, total) + 1)
    logs = _log_choose(total, support) + _log_choose(rows - total, n - support) - _log_choose(rows, np.array([n]))
    mass = np.exp(logs)
    own = float(mass[support == seen].sum()) / 2.0
    return float(mass[support < seen].sum()) + own, float(mass[support > seen].sum()) + own


def _log_choose(n: int, k: NDArray[np.integer]) -> FloatArray:
    return np.asarray(math.lgamma(n + 1) - gammaln(k + 1.0) - gammaln(n - k + 1.0), dtype=np.float64)
