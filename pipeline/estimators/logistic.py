"""Ridge logistic regression by Newton's method: ½|b|² + C·Σ logloss with a free intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

__all__ = ["LogisticPredictor", "fit_logistic", "fit_standardized", "predict_logistic"]

FloatArray: TypeAlias = NDArray[np.float64]

MAX_STEPS = 100
MAX_HALVINGS = 40


def fit_logistic(x: ArrayLike, y: ArrayLike, C: float = 1.0) -> tuple[float, FloatArray]:
    """Minimise ½|b|² + C Σ_i {log(1 + e^{η_i}) − y_i η_i}, η = a + x b, over the free intercept a and b.

    Args:
        x: (n, K) finite covariates, used as given.
        y: (n,) outcomes in [0, 1] (shares are allowed).
        C: inverse penalty, > 0; it multiplies the sum of losses, as in scikit-learn.

    Returns:
        (a, b) with b (K,). An outcome that is 0 or 1 throughout gives a = ∓∞ and b = 0: the constant prediction.

    Raises:
        ValueError: wrong shapes, no row, outcomes outside [0, 1], or C ≤ 0.
    """
    covariates = np.asarray(x, dtype=np.float64)
    outcome = np.asarray(y, dtype=np.float64)
    if covariates.ndim != 2 or outcome.shape != covariates.shape[:1] or len(outcome) == 0:
        raise ValueError(f"x must have shape (n, K) and y (n,) with n >= 1, got {covariates.shape} and {outcome.shape}")
    if not (np.isfinite(covariates).all() and np.all((outcome >= 0.0) & (outcome <= 1.0))):
        raise ValueError("logistic regression needs finite covariates and outcomes in [0, 1]")
    if not C > 0.0:
        raise ValueError(f"C must be positive, got {C!r}")
    share = float(outcome.mean())
    if share in (0.0, 1.0):
        return (np.inf if share == 1.0 else -np.inf), np.zeros(covariates.shape[1])
    design = np.concatenate([np.ones((len(outcome), 1)), covariates], axis=1)
    penalty = np.full(design.shape[1], 1.0 / C)
    penalty[0] = 0.0
    start = np.zeros(design.shape[1])
    start[0] = np.log(share / (1.0 - share))
    solution = _newton(design, outcome, penalty, start)
    return float(solution[0]), solution[1:]


def _newton(design: FloatArray, outcome: FloatArray, penalty: FloatArray, start: FloatArray) -> FloatArray:
    """Newton steps, halved while they do not lower the penalised loss."""
    current, linear = start, design @ start
    loss = _loss(linear, outcome, current, penalty)
    for _ in range(MAX_STEPS):
        fitted = expit(linear)
        gradient = design.T @ (fitted - outcome) + penalty * current
        curvature = fitted * (1.0 - fitted)
        hessian = (design.T * curvature) @ design
        diagonal = np.einsum("ii->i", hessian)
        diagonal += penalty + 1e-12
        step: FloatArray = cho_solve(cho_factor(hessian, check_finite=False), gradient, check_finite=False)
        decrease = float(gradient @ step)
        scale = 1.0
        for _ in range(MAX_HALVINGS):
            proposal = current - scale * step
            moved = design @ proposal
            lower = _loss(moved, outcome, proposal, penalty)
            if lower <= loss - 1e-4 * scale * decrease + 1e-14 * abs(loss):
                break
            scale *= 0.5
        else:
            return current
        current, linear, loss = proposal, moved, lower
        if decrease <= 1e-18 * (1.0 + abs(loss)):
            return current
    return current


def _loss(linear: FloatArray, outcome: FloatArray, point: FloatArray, penalty: FloatArray) -> float:
    softplus = np.logaddexp(0.0, linear).sum()
    return float(softplus - outcome @ linear + 0.5 * (penalty * point) @ point)


def predict_logistic(x: ArrayLike, intercept: float, coefficients: FloatArray) -> FloatArray:
    """Probabilities (m,) at covariates (m, K)."""
    return np.asarray(expit(np.asarray(x, dtype=np.float64) @ coefficients + intercept), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class LogisticPredictor:
    """A fitted logistic regression that standardises covariates as its training rows were.

    Attributes:
        centre, spread: (K,) mean and population sd of the training rows (sd 0 → 1).
        intercept: on the standardised scale; ±∞ for a constant training outcome.
        coefficients: (K,) on the standardised scale.
    """

    centre: FloatArray
    spread: FloatArray
    intercept: float
    coefficients: FloatArray

    def predict(self, x: FloatArray) -> FloatArray:
        """Probabilities (m,) at raw covariates (m, K)."""
        slope = self.coefficients / self.spread
        if not np.isfinite(self.intercept):
            return np.full(len(x), 1.0 if self.intercept > 0 else 0.0)
        return np.asarray(expit((x - self.centre) @ slope + self.intercept), dtype=np.float64)


def fit_standardized(x: FloatArray, y: FloatArray, C: float = 1.0) -> LogisticPredictor:
    """Fit on covariates standardised by the mean and population sd of these rows (an sd of 0 becomes 1)."""
    centre = x.mean(axis=0)
    spread = x.std(axis=0)
    spread = np.where(spread > 1e-13 * np.abs(x).max(axis=0, initial=0.0), spread, 1.0)
    intercept, coefficients = fit_logistic((x - centre) / spread, y, C)
    return LogisticPredictor(centre, spread, intercept, coefficients)
