"""The logistic predictor of the comparison: covariates standardised by its own training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.logistic import fit_logistic


@dataclass(frozen=True, slots=True, eq=False)
class LogisticPredictor:
    """A fitted logistic regression on raw covariates.

    Attributes:
        centre: (K,) mean of the training rows.
        slope: (K,) per raw unit.
        intercept: at the centre; ±∞ for a training outcome that is constant.
    """

    centre: FloatArray
    slope: FloatArray
    intercept: float

    def predict(self, x: FloatArray) -> FloatArray:
        """Probabilities (m,) at raw covariates (m, K)."""
        return np.asarray(expit((x - self.centre) @ self.slope + self.intercept), dtype=np.float64)


def fit_standardized(
    x: FloatArray, y: FloatArray, C: float = 1.0, weights: FloatArray | None = None
) -> LogisticPredictor:
    """½|b|² + C·Σ logloss on covariates standardised by the mean and population sd of these rows (sd 0 → 1).

    Args:
        x: (n, K) raw covariates, n ≥ 1.
        y: (n,) outcomes in [0, 1]; a constant one gives that constant as the prediction.
        C: inverse penalty, > 0.
        weights: (n,) weights of the rows in the loss, scaled to average 1; None means equal.

    Raises:
        ValueError: C ≤ 0.
    """
    if not (np.isfinite(C) and C > 0.0):
        raise ValueError(f"C must be positive, got {C!r}")
    centre = x.mean(axis=0)
    spread = x.std(axis=0)
    spread = np.where(spread > 1e-13 * np.abs(x).max(axis=0, initial=0.0), spread, 1.0)
    scaled = None if weights is None else weights / weights.mean()
    coefficients = fit_logistic((x - centre) / spread, y, C, weights=scaled)[0]
    return LogisticPredictor(centre, coefficients[1:] / spread, float(coefficients[0]))
