"""Comparators that subtract a coefficient times (labeled mean − pool mean): one value per profile point."""

from __future__ import annotations

import numpy as np

from pipeline.estimators.comparators.comparison import Comparison
from pipeline.estimators.floats import FloatArray


def local_coefficients(problem: Comparison, columns: slice = slice(None)) -> FloatArray:
    """β(z) = (Σ_SS + λI)⁻¹ Σ_SY of some signals, Σ_SS over T and Σ_SY over L, both with the profile weights; (G, k)."""
    gram = problem.pool.moments[1][:, columns, columns]
    labeled = problem.pool.centred[problem.rows, columns]
    cross = (problem.weights * (problem.y - problem.naive[:, None])) @ labeled
    return np.asarray(np.linalg.solve(gram + problem.ridge * np.eye(gram.shape[1]), cross[:, :, None])[:, :, 0])


def _imbalance(problem: Comparison, columns: slice = slice(None)) -> FloatArray:
    """S̄_L(z) − S̄_T(z), (G, k), from signals centred over the pool."""
    labeled = problem.weights @ problem.pool.centred[problem.rows, columns]
    return np.asarray(labeled - problem.pool.moments[0][:, columns])


def lace_value(problem: Comparison) -> tuple[FloatArray, FloatArray]:
    """LACE's point estimate (G,) and coefficients (G, K), for studies that need no interval."""
    beta = local_coefficients(problem)
    return problem.naive - (beta * _imbalance(problem)).sum(axis=1), beta


def oracle_value(problem: Comparison, coefficients: FloatArray) -> FloatArray:
    """The same with given coefficients (G, K)."""
    return np.asarray(problem.naive - (coefficients * _imbalance(problem)).sum(axis=1))


def per_signal_cv(problem: Comparison) -> tuple[FloatArray, FloatArray]:
    """LACE with the primary signal alone: value (G,) and coefficient (G, 1)."""
    column = slice(problem.pool.primary, problem.pool.primary + 1)
    beta = local_coefficients(problem, column)
    return problem.naive - (beta * _imbalance(problem, column)).sum(axis=1), beta


def global_cv(problem: Comparison) -> tuple[FloatArray, FloatArray]:
    """One coefficient from total covariances (1/M over T, 1/n over L), combined locally."""
    centred = problem.pool.centred
    gram = centred.T @ centred / len(centred)
    gram[np.diag_indices_from(gram)] += problem.ridge
    labeled, shares = centred[problem.rows], problem.shares
    cross = (labeled - shares @ labeled).T @ (shares * (problem.y - shares @ problem.y))
    beta = np.broadcast_to(np.linalg.solve(gram, cross), (len(problem.naive), len(cross)))
    return problem.naive - _imbalance(problem) @ beta[0], beta


def residual_only(problem: Comparison) -> tuple[FloatArray, FloatArray]:
    """Ȳ_L(z) − β(z)'S̄_L(z): LACE without the pool term."""
    beta = local_coefficients(problem)
    return problem.naive - (beta * (problem.weights @ problem.pool.signals[problem.rows])).sum(axis=1), beta


def scalar_cv(problem: Comparison) -> tuple[FloatArray, FloatArray]:
    """Control variate with the prediction P(S): η(z) = cov_{L,z}(P, Y) / var_{T,z}(P), 0 where the variance is 0."""
    prediction = problem.signal_prediction - problem.signal_prediction.mean()
    pool_mean = problem.pool.weights @ prediction
    variance = problem.pool.weights @ prediction**2 - pool_mean**2
    variance = np.where(variance > 1e-14 * (prediction**2).max(initial=0.0), variance, 0.0)
    labeled = prediction[problem.rows]
    labeled_mean = problem.weights @ labeled
    covariance = (problem.weights * (problem.y - problem.naive[:, None])) @ labeled
    eta = np.divide(covariance, variance, out=np.zeros_like(variance), where=variance > 0.0)
    return problem.naive - eta * (labeled_mean - pool_mean), eta[:, None]


def aug_plugin(problem: Comparison) -> tuple[FloatArray, FloatArray]:
    """Σ_T w p + Σ_L w (Y − p), p(Z, S) out of fold at labeled items: a control variate with coefficient 1."""
    prediction = problem.composite_prediction
    value = problem.pool.weights @ prediction + problem.weights @ (problem.y - prediction[problem.rows])
    return np.asarray(value), np.ones((len(value), 1))
