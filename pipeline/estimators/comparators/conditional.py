"""PPCI, prediction-powered conditional inference: localisation by weights in a Matérn-5/2 RKHS."""

from __future__ import annotations

import numpy as np

from pipeline.estimators.comparators.comparison import Comparison, ComparisonPool, numeric_profile
from pipeline.estimators.floats import FloatArray

GRID = 25
"""Points of the L-curve."""
TOLERANCE = 1e-7
"""Largest error of the low-rank kernel, whose diagonal is 1; the smallest penalty is about 1e-4."""
SMALLEST, LARGEST = 1e-4, 10.0
"""Ends of the Tikhonov grid, in units of the largest eigenvalue of the fold's second-moment operator."""


def matern_features(z: FloatArray, points: FloatArray, tolerance: float = TOLERANCE) -> tuple[FloatArray, FloatArray]:
    """Features φ with k(x, x') = φ(x)·φ(x') for the Matérn-5/2 kernel of length-scale sd(Z), per column.

    Pivoted Cholesky on the distinct values, until no kernel value is off by more than ``tolerance``.

    Args:
        z: (M, q) pool values.
        points: (G, q) profile points.
        tolerance: largest error of k(x, x), whose value is 1.

    Returns:
        (M, r) and (G, r).
    """
    spread = z.std(axis=0)
    scale = np.where(spread > 0.0, spread, 1.0)
    distinct, inverse = np.unique(np.concatenate([z, points]) / scale, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    remaining = np.ones(len(distinct))
    factor = np.empty((len(distinct), len(distinct)))
    rank = 0
    while rank < len(distinct):
        pivot = int(np.argmax(remaining))
        if remaining[pivot] <= tolerance:
            break
        distance = np.sqrt(5.0 * ((distinct - distinct[pivot]) ** 2).sum(axis=1))
        column = (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)
        column -= factor[:, :rank] @ factor[pivot, :rank]
        column /= np.sqrt(remaining[pivot])
        factor[:, rank] = column
        remaining -= column**2
        rank += 1
    features = factor[inverse, :rank]
    return features[: len(z)], features[len(z) :]


def ppci(problem: Comparison, multiplier: float = 1.0) -> FloatArray:
    """{mean_L w(Y − P) + mean_T w P} / mean_T w at each point, (G,).

    T is cut into two folds; the weight function of a fold, w = (Σ + λI)⁻¹ k(z, ·), is fitted on the other one, with
    Σ the second-moment operator. λ is the corner of that fold's L-curve times ``multiplier``. The curve runs over 25
    values of λ, evenly spaced on a log scale from 1e-4 to 10 times the largest eigenvalue of Σ: log of the root mean
    square RKHS residual norm ‖Σw − k(z, ·)‖ across, log of the mean of w² over the fold (the variance proxy) up, both
    averaged over the points. It is flat where λ is small and falls steeply where it is large; the corner is the point
    of largest absolute curvature.

    Raises:
        ValueError: a profile without numbers.
    """
    pool = problem.pool
    if multiplier not in pool.conditional_weights:
        pool.conditional_weights[multiplier] = _weights(pool, multiplier)
    weights = pool.conditional_weights[multiplier]
    prediction = problem.composite_prediction
    residual = weights[:, problem.rows] @ (problem.shares * (problem.y - prediction[problem.rows]))
    jacobian = weights.mean(axis=1)
    total = residual + weights @ prediction / len(prediction)
    return np.asarray(np.divide(total, jacobian, out=np.full_like(total, np.nan), where=np.abs(jacobian) > 1e-300))


def _weights(pool: ComparisonPool, multiplier: float) -> FloatArray:
    """(G, M) weights of every pool item, from the fit on the other fold."""
    features, points = matern_features(*numeric_profile(pool.axis, "ppci"))
    weights = np.empty((len(points), len(features)))
    for fold in (0, 1):
        inside = pool.fold == fold
        training = features[~inside] if not inside.all() else features
        weights[:, inside] = _weight_coordinates(training, points, multiplier) @ features[inside].T
    return weights


def _weight_coordinates(training: FloatArray, points: FloatArray, multiplier: float) -> FloatArray:
    """(G, r) coordinates of w_z = (Σ + λI)⁻¹ φ(z) with λ from the L-curve."""
    values, vectors = np.linalg.eigh(training.T @ training / len(training))
    values = np.maximum(values, 0.0)
    rotated = points @ vectors
    grid = values[-1] * np.geomspace(SMALLEST, LARGEST, GRID)
    shrunk = (rotated**2).mean(axis=0) / (values + grid[:, None]) ** 2
    residual = grid**2 * shrunk.sum(axis=1)
    penalty = multiplier * grid[_corner(np.log(residual) / 2.0, np.log(shrunk @ values))]
    return np.asarray((rotated / (values + penalty)) @ vectors.T)


def _corner(across: FloatArray, up: FloatArray) -> int:
    """Index of the largest absolute curvature of a curve given at evenly spaced parameters; never an end."""
    dx, dy = np.gradient(across), np.gradient(up)
    curvature = np.abs(dx * np.gradient(dy) - dy * np.gradient(dx)) / (dx**2 + dy**2) ** 1.5
    return int(np.argmax(curvature[1:-1])) + 1
