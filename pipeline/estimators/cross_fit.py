"""Algorithm 1: the outcome regression τ(x, z), fitted out of fold."""

from __future__ import annotations

import copy
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.checks import check_vector
from pipeline.estimators.control_variate import random_folds

__all__ = ["QuadraticLeastSquares", "Regressor", "cross_fit_tau"]

FloatArray = NDArray[np.float64]


class Regressor(Protocol):
    """What :func:`cross_fit_tau` needs of a regressor: scikit-learn's two methods."""

    def fit(self, X: FloatArray, y: FloatArray) -> Any: ...

    def predict(self, X: FloatArray) -> Any: ...


class QuadraticLeastSquares:
    """Least squares on an intercept, the features, their squares and products.

    The solution of least norm where the terms, 1 + d + d(d + 1)/2 of them, are not determined by the rows; meant for
    a handful of features.
    """

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Fit on X (n, d) and y (n,)."""
        self.center_ = X.mean(axis=0)
        spread = X.std(axis=0)
        self.scale_ = np.where(spread > 0.0, spread, 1.0)
        self.coefficients_ = np.linalg.lstsq(self._terms(X), y, rcond=None)[0]
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Fitted values (n,)."""
        return np.asarray(self._terms(X) @ self.coefficients_)

    def _terms(self, X: FloatArray) -> FloatArray:
        x = (X - self.center_) / self.scale_
        first, second = np.triu_indices(x.shape[1])
        return np.concatenate([np.ones((len(x), 1)), x, x[:, first] * x[:, second]], axis=1)


def _fresh(regressor: Any) -> Any:
    """An unfitted copy; the caller's object is never fitted."""
    if hasattr(regressor, "get_params") and hasattr(regressor, "fit"):
        from sklearn.base import clone

        return clone(regressor)
    return copy.deepcopy(regressor)


def _predicted_mean(model: Any, rows: FloatArray) -> FloatArray:
    """E[φ | features]: the second column of ``predict_proba`` for a classifier of 0/1, else ``predict``."""
    if hasattr(model, "predict_proba"):
        classes = np.asarray(model.classes_, dtype=np.float64)
        return np.asarray(np.asarray(model.predict_proba(rows)) @ classes, dtype=np.float64)
    predicted = np.asarray(model.predict(rows), dtype=np.float64)
    if predicted.shape not in ((len(rows),), (len(rows), 1)):
        raise ValueError(f"the regressor must predict {len(rows)} values, got shape {predicted.shape}")
    return predicted.reshape(len(rows))


def _fit(regressor: Any, rows: FloatArray, outcome: FloatArray) -> Any | None:
    """The fitted regressor; None where the outcome is constant, its own best prediction."""
    if outcome.min() == outcome.max():
        return None
    model = QuadraticLeastSquares() if regressor is None else _fresh(regressor)
    model.fit(rows, outcome)
    return model


def cross_fit_tau(
    phi: ArrayLike,
    features: ArrayLike,
    *,
    regressor: Regressor | None = None,
    folds: int = 5,
    rng: np.random.Generator,
) -> FloatArray:
    """τ̂ of every draw by a regression that never saw the item (lines 2–6 of Algorithm 1).

    For each fold the regressor is fitted on (features[i, 0], φ_i) of the items outside it and predicts all M + 1
    draws of the items inside it.

    Args:
        phi: (N,) outcomes.
        features: (N, M + 1, d) features of (x_i, z_ij); column 0 belongs to the episode that produced φ_i.
        regressor: anything with ``fit`` and ``predict`` (cloned for every fold), or a classifier of 0/1 outcomes with
            ``predict_proba``; None is :class:`QuadraticLeastSquares`. A fold whose training outcomes are all equal
            predicts that value.
        folds: number of folds, ``np.array_split(rng.permutation(N), folds)``.
        rng: generator of the folds.

    Returns:
        (N, M + 1) float64.

    Raises:
        ValueError: wrong shapes, missing values, fewer than 2 folds or more folds than items, or predictions that
            are not finite.
        TypeError: values that are not numbers.
    """
    outcome = check_vector(phi, "phi")
    cube = np.asarray(features, dtype=np.float64)
    if cube.ndim != 3 or len(cube) != len(outcome) or 0 in cube.shape:
        raise ValueError(f"features must have shape ({len(outcome)}, M + 1, d), got {cube.shape}")
    if not np.isfinite(cube).all():
        raise ValueError(f"features have {int((~np.isfinite(cube)).sum())} missing or infinite values")
    if folds > len(outcome):
        raise ValueError(f"folds must be at most the number of items {len(outcome)}, got {folds}")
    fold_of = random_folds(len(outcome), folds, rng)
    items, draws, width = cube.shape
    tau = np.empty((items, draws))
    for fold in range(folds):
        inside = fold_of == fold
        model = _fit(regressor, cube[~inside, 0], outcome[~inside])
        if model is None:
            tau[inside] = outcome[~inside][0]
        else:
            tau[inside] = _predicted_mean(model, cube[inside].reshape(-1, width)).reshape(-1, draws)
    if not np.isfinite(tau).all():
        raise ValueError("the regressor predicted values that are not finite")
    return tau
