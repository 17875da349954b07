"""Comparators that average fitted predictions over the pool, with no correction by labels or one per stratum."""

from __future__ import annotations

import numpy as np

from pipeline.estimators.comparators.comparison import UNKNOWN_SHARE, Comparison, numeric_profile
from pipeline.estimators.floats import BoolArray, FloatArray


def plugin_judge(problem: Comparison) -> FloatArray:
    """Σ_T w p(S_judge), (G,)."""
    return np.asarray(problem.pool.weights @ problem.judge_prediction)


def plugin_multi(problem: Comparison) -> FloatArray:
    """Σ_T w p(Z, S) with the predictor fitted on all of L, (G,)."""
    return np.asarray(problem.pool.weights @ problem.composite_refit)


def strat_ppi(problem: Comparison, strata: int = 5) -> FloatArray:
    """A power-tuned scalar correction in each of ``strata`` equal-width strata of Z, interpolated between midpoints.

    η_g = cov_L(P, Y)/var_T(P), both with ddof 1 (0 where the variance is 0). A stratum with fewer than two labeled
    or two pool items is its labeled mean, or 0.5 without any. Outside the outer midpoints the profile is flat.

    Raises:
        ValueError: a profile of several columns, or one without numbers; fewer than one stratum.
    """
    columns, anchors = numeric_profile(problem.pool.axis, "strat_ppi")
    if columns.shape[1] != 1:
        raise ValueError("strat_ppi cuts the range of z into strata, so it needs a profile of one column")
    z, points = columns[:, 0], anchors[:, 0]
    if strata < 1:
        raise ValueError(f"strata must be at least 1, got {strata}")
    edges = np.linspace(z.min(), z.max(), strata + 1)
    stratum = np.clip(np.digitize(z, edges[1:-1]), 0, strata - 1)
    prediction = problem.composite_prediction
    values = np.array([_stratum_value(problem, prediction, stratum == index) for index in range(strata)])
    return np.asarray(np.interp(points, (edges[:-1] + edges[1:]) / 2.0, values))


def _stratum_value(problem: Comparison, prediction: FloatArray, members: BoolArray) -> float:
    inside = members[problem.rows]
    y = problem.y[inside]
    if not len(y):
        return UNKNOWN_SHARE
    shares = problem.shares[inside] / problem.shares[inside].sum()
    mean = float(shares @ y)
    if len(y) < 2 or members.sum() < 2:
        return mean
    labeled, pool = prediction[problem.rows][inside], prediction[members]
    variance = float(pool.var(ddof=1))
    middle = float(shares @ labeled)
    covariance = float(shares @ ((labeled - middle) * (y - mean))) * len(y) / (len(y) - 1)
    eta = covariance / variance if variance > 1e-28 else 0.0
    return float(mean - eta * (middle - pool.mean()))
