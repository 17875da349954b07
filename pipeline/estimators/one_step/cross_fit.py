"""Algorithm 1: the outcome regression τ(x, z), fitted out of fold."""

from __future__ import annotations

import copy
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.checks import check_vector
from pipeline.estimators.floats import FloatArray, as_floats
from pipeline.estimators.one_step.control_variate import random_folds


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
    rng: np.random.Generator | int,
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
        rng: generator of the folds, or its seed.

    Returns:
        (N, M + 1) float64.

    Raises:
        ValueError: wrong shapes, missing values, fewer than 2 folds or more folds than items, or predictions that
            are not finite.
        TypeError: values that are not numbers.

    References:
        Dong, Zhang, Zhou, Jin, Wu and Zhang, "Evaluating LLMs When They Do Not Know the Answer: Statistical
            Evaluation of Mathematical Reasoning via Comparative Signals" (2026), arXiv 2602.03061, Algorithm 1.
        Chernozhukov et al., "Double/Debiased Machine Learning for Treatment and Structural Parameters" (2018),
            arXiv 1608.00060.

    Example:
        >>> features = np.random.default_rng(0).normal(size=(60, 4, 1))
        >>> phi = (features[:, 0, 0] > 0).astype(float)
        >>> cross_fit_tau(phi, features, rng=1).shape
        (60, 4)
    """
    return _cross_fit(phi, features, None, regressor, folds, rng)[0]


def cross_fit_pool_tau(
    phi: ArrayLike,
    features: ArrayLike,
    other_features: ArrayLike,
    *,
    regressor: Regressor | None = None,
    folds: int = 5,
    rng: np.random.Generator | int,
) -> tuple[FloatArray, FloatArray]:
    """:func:`cross_fit_tau`, and the mean prediction of the fold regressors for items without an outcome.

    Args:
        other_features: (U, M + 1, d) features of the unlabeled items, U ≥ 0.
        phi, features, regressor, folds, rng: as in :func:`cross_fit_tau`.

    Returns:
        (N, M + 1) and (U, M + 1): together the ``pool_tau`` of ``one_step_mean``.

    References:
        Dong, Zhang, Zhou, Jin, Wu and Zhang, "Evaluating LLMs When They Do Not Know the Answer: Statistical
            Evaluation of Mathematical Reasoning via Comparative Signals" (2026), arXiv 2602.03061, Algorithm 1.
        Chernozhukov et al., "Double/Debiased Machine Learning for Treatment and Structural Parameters" (2018),
            arXiv 1608.00060.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> features = rng.normal(size=(60, 4, 1))
        >>> phi = (features[:, 0, 0] > 0).astype(float)
        >>> labeled, others = cross_fit_pool_tau(phi, features, rng.normal(size=(40, 4, 1)), rng=1)
        >>> labeled.shape, others.shape
        ((60, 4), (40, 4))
    """
    return _cross_fit(phi, features, other_features, regressor, folds, rng)


def _cross_fit(
    phi: ArrayLike,
    features: ArrayLike,
    others: ArrayLike | None,
    regressor: Regressor | None,
    folds: int,
    rng: np.random.Generator | int,
) -> tuple[FloatArray, FloatArray]:
    outcome = check_vector(phi, "phi")
    cube = _check_cube(features, "features", len(outcome))
    rest = cube[:0] if others is None else _check_cube(others, "other_features", None)
    if rest.shape[1:] != cube.shape[1:]:
        raise ValueError(f"other_features must have shape (U, {cube.shape[1]}, {cube.shape[2]}), got {rest.shape}")
    if folds > len(outcome):
        raise ValueError(f"folds must be at most the number of items {len(outcome)}, got {folds}")
    fold_of = random_folds(len(outcome), folds, np.random.default_rng(rng))
    tau, rest_tau = np.empty(cube.shape[:2]), np.zeros(rest.shape[:2])
    for fold in range(folds):
        inside = fold_of == fold
        model = _fit(regressor, cube[~inside, 0], outcome[~inside])
        constant = float(outcome[~inside][0])
        tau[inside] = _predict(model, constant, cube[inside])
        rest_tau += _predict(model, constant, rest) / folds
    if not (np.isfinite(tau).all() and np.isfinite(rest_tau).all()):
        raise ValueError("the regressor predicted values that are not finite")
    return tau, rest_tau


def _check_cube(features: ArrayLike, name: str, rows: int | None) -> FloatArray:
    cube = as_floats(features, name)
    if cube.ndim != 3 or 0 in cube.shape[1:] or (rows is not None and len(cube) != rows):
        raise ValueError(f"{name} must have shape ({'U' if rows is None else rows}, M + 1, d), got {cube.shape}")
    if not np.isfinite(cube).all():
        raise ValueError(f"{name} have {int((~np.isfinite(cube)).sum())} missing or infinite values")
    return cube


def _predict(model: Any | None, constant: float, cube: FloatArray) -> FloatArray:
    """Predictions (n, M + 1) for features (n, M + 1, d)."""
    if model is None or not len(cube):
        return np.full(cube.shape[:2], constant)
    return _predicted_mean(model, cube.reshape(-1, cube.shape[2])).reshape(cube.shape[:2])
