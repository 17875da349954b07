"""Ridge logistic regression by Newton's method: ½|b|² + C·Σ logloss with a free intercept."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from pipeline.estimators.floats import BoolArray, FloatArray

_STEPS = 60
_TOLERANCE = 1e-10


def fit_logistic(
    covariates: FloatArray,
    y: FloatArray,
    C: float,
    rows: BoolArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Coefficients of F fits on subsets of the same data, all at once.

    Written here so that the quick paths need no scikit-learn: the problem is smooth, strictly convex and small.

    Args:
        covariates: (n, p) finite numbers.
        y: (n,) zeros and ones.
        C: weight of the loss against the penalty, > 0.
        rows: (F, n) training rows of each fit; None means one fit on all rows.
        weights: (n,) positive weights of the rows in the loss, about 1; None means equal.

    Returns:
        (F, 1 + p): intercept, then slopes. A fit whose training outcomes are all equal predicts that constant:
        intercept ±inf, slopes 0.
    """
    use = np.ones((1, len(y)), dtype=bool) if rows is None else rows
    design = np.concatenate([np.ones((len(y), 1)), covariates], axis=1)
    count = use.sum(axis=1)
    mass = use if weights is None else use * weights
    share = np.where(use, y, 0.0).sum(axis=1) / np.maximum(count, 1)
    varied = (share > 0.0) & (share < 1.0)
    coefficients = np.zeros((len(use), design.shape[1]))
    coefficients[~varied, 0] = np.where(share[~varied] > 0.5, np.inf, -np.inf)
    if varied.any():
        start = np.zeros((int(varied.sum()), design.shape[1]))
        start[:, 0] = logit(share[varied])
        coefficients[varied] = _newton(design, y, C, mass[varied].astype(np.float64), start)
    return coefficients


def predict_logistic(covariates: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Probabilities (F, m) of F fits at covariates (m, p)."""
    score = -coefficients[:, 1:] @ covariates.T
    score -= coefficients[:, :1]
    with np.errstate(over="ignore"):  # 1/(1 + e^-x) by NumPy's vector instructions: half the time of scipy's expit
        np.exp(score, out=score)
    score += 1.0
    return np.asarray(np.reciprocal(score, out=score))


def _newton(design: FloatArray, y: FloatArray, C: float, use: FloatArray, beta: FloatArray) -> FloatArray:
    penalty = np.ones(design.shape[1])
    penalty[0] = 0.0
    loss = _objective(design, y, C, use, beta, penalty)
    for _ in range(_STEPS):
        mu = expit(beta @ design.T)
        gradient = C * ((mu - y) * use) @ design + penalty * beta
        if np.abs(gradient).max() <= _TOLERANCE * max(1.0, C * len(y)):
            break
        curvature = C * mu * (1.0 - mu) * use
        hessian = (design.T[None, :, :] * curvature[:, None, :]) @ design
        hessian[:, np.arange(len(penalty)), np.arange(len(penalty))] += penalty + 1e-12
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        size = np.ones((len(beta), 1))
        for _ in range(30):
            trial = beta - size * step
            new = _objective(design, y, C, use, trial, penalty)
            worse = new > loss + 1e-12 * np.abs(loss)
            if not worse.any():
                break
            size[worse] *= 0.5
        beta, loss = trial, new
    return beta


def _objective(
    design: FloatArray, y: FloatArray, C: float, use: FloatArray, beta: FloatArray, penalty: FloatArray
) -> FloatArray:
    score = beta @ design.T
    loss = np.vecdot(use, np.logaddexp(0.0, score) - y * score)
    return np.asarray(C * loss + 0.5 * (beta**2) @ penalty)
