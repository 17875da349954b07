"""Local PPI: a local-linear smoother of the judge over the unlabeled pool, corrected by one over the labels."""

from __future__ import annotations

import numpy as np

from pipeline.estimators.comparators.comparison import Comparison
from pipeline.estimators.floats import FloatArray

SINGULAR = 1e-12
"""Smallest eigenvalue of the weighted design, in units of its reach squared, that still gives a slope."""


def local_linear(weights: FloatArray, z: FloatArray, points: FloatArray, outcome: FloatArray) -> FloatArray:
    """Local-linear fit at each point; the local constant where the weighted design is singular.

    Args:
        weights: (G, m) kernel weights that sum to 1 (rows of zeros give NaN).
        z: (m, q) profile values.
        points: (G, q).
        outcome: (m,).

    Returns:
        (G,) fitted values at the points.
    """
    reached = weights.any(axis=1)
    mean = weights @ outcome
    centre = weights @ z
    slope = _slopes(weights, z, points, centre, outcome, mean)
    return np.where(reached, mean - (slope * (centre - points)).sum(axis=1), np.nan)


def _slopes(
    weights: FloatArray, z: FloatArray, points: FloatArray, centre: FloatArray, outcome: FloatArray, mean: FloatArray
) -> FloatArray:
    """Weighted least-squares slopes (G, q), 0 where the design is singular."""
    if z.shape[1] == 1:
        spread = z[:, 0] - centre
        weighted = weights * spread
        square = np.vecdot(weighted, spread)
        reach = np.abs(z[:, 0] - points).max(axis=1)
        regular = square > SINGULAR * reach**2
        cross = weighted @ outcome - weighted.sum(axis=1) * mean
        return np.asarray(np.divide(cross, square, out=np.zeros_like(cross), where=regular))[:, None]
    slopes = np.zeros_like(points)
    for index, row in enumerate(weights):
        spread = z - centre[index]
        weighted = spread.T * row
        gram = weighted @ spread
        reach = np.abs(z - points[index]).max(axis=0)
        scale = np.where(reach > 0.0, reach, 1.0)
        if np.linalg.eigvalsh(gram / np.outer(scale, scale))[0] > SINGULAR:
            slopes[index] = np.linalg.solve(gram, weighted @ (outcome - mean[index]))
    return slopes


def local_ppi(problem: Comparison, multiple: float = 1.0) -> FloatArray:
    """Smoother of the raw judge over T \\ L minus that of (judge − Y) over L, the same bandwidth; (G,).

    With every item labeled the first smoother runs over T. ``multiple`` widens the profile's bandwidth. Unequal chances
    p weigh the labels by 1/p and the others by 1/(1 − p).
    """
    axis, judge = problem.pool.axis, problem.pool.raw_judge
    outside = np.ones(len(axis.z), dtype=np.bool_)
    outside[problem.rows] = False
    if not outside.any():
        outside[:] = True
    weights = axis.weights(axis.z[outside], multiple=multiple)
    if problem.inclusion is not None and not outside.all():
        weights = weights / (1.0 - problem.inclusion[outside])
        total = weights.sum(axis=1, keepdims=True)
        weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0.0)
    predicted = local_linear(weights, axis.z[outside], axis.points, judge[outside])
    labeled = axis.z[problem.rows]
    wider = multiple != 1.0
    weights = problem.reweighed(axis.weights(labeled, multiple=multiple)) if wider else problem.weights
    return predicted - local_linear(weights, labeled, axis.points, judge[problem.rows] - problem.y)
