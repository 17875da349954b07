"""What every comparator sees: one pool, and labeled splits of it with the predictors fitted on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.comparators.predictor import LogisticPredictor, fit_standardized
from pipeline.estimators.floats import BoolArray, FloatArray, IntArray
from pipeline.estimators.lace.localities import ProfileAxis

UNKNOWN_SHARE = 0.5
"""What a predictor without any training row says."""


@dataclass(frozen=True, eq=False)
class ComparisonPool:
    """The pool T of a comparison, and what does not depend on labels.

    Attributes:
        axis: profile values, points and kernel.
        signals: (M, K) finite.
        covariates: (M, C) what the composite predictor P(Z, S) is fitted on.
        primary: column of the primary signal.
        raw_judge: (M,) external score of local PPI.
        fold: (M,) 0 or 1, the folds of PPCI.
        conditional_weights: PPCI's weights (G, M) by penalty multiplier, filled on first use.
    """

    axis: ProfileAxis
    signals: FloatArray
    covariates: FloatArray
    primary: int
    raw_judge: FloatArray
    fold: IntArray
    conditional_weights: dict[float, FloatArray] = field(default_factory=dict)

    @cached_property
    def weights(self) -> FloatArray:
        """(G, M) profile weights over T; a row of zeros where nothing is in reach."""
        return self.axis.weights(self.axis.z)

    @cached_property
    def centred(self) -> FloatArray:
        """(M, K) signals minus their pool mean."""
        return np.asarray(self.signals - self.signals.mean(axis=0))

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Local means (G, K) and covariance matrices Σ_SS (G, K, K) of the centred signals over T."""
        size = self.signals.shape[1]
        upper = np.triu_indices(size)
        products = self.centred[:, upper[0]] * self.centred[:, upper[1]]
        sums = self.weights @ np.concatenate([self.centred, products], axis=1)
        mean = sums[:, :size]
        gram = np.empty((len(sums), size, size))
        gram[:, upper[0], upper[1]] = sums[:, size:]
        gram[:, upper[1], upper[0]] = sums[:, size:]
        gram -= mean[:, :, None] * mean[:, None, :]
        return mean, gram


@dataclass(frozen=True, eq=False)
class Comparison:
    """One labeled split of a pool.

    Attributes:
        pool: the pool.
        rows: (n,) pool positions of the labeled items.
        y: (n,) their outcomes.
        fold: (n,) 0 or 1, the labeled items' folds for out-of-fold predictions.
        ridge: λ of the control variates.
        inverse_penalty: C of the logistic predictors.
        inclusion: (M,) chances of being labeled, or None for equal ones.
    """

    pool: ComparisonPool
    rows: IntArray
    y: FloatArray
    fold: IntArray
    ridge: float = 0.3
    inverse_penalty: float = 1.0
    inclusion: FloatArray | None = None

    @cached_property
    def weights(self) -> FloatArray:
        """(G, n) profile weights over L, divided by the chances of being labeled where those are unequal."""
        return self.reweighed(self.pool.axis.weights(self.pool.axis.z[self.rows]))

    @cached_property
    def inverse_chances(self) -> FloatArray | None:
        """(n,) 1/chance of the labeled items, None for equal ones."""
        return None if self.inclusion is None else 1.0 / self.inclusion[self.rows]

    @cached_property
    def shares(self) -> FloatArray:
        """(n,) weights of the labels in an unconditional mean."""
        weights = np.ones(len(self.rows)) if self.inverse_chances is None else self.inverse_chances
        return np.asarray(weights / weights.sum())

    def reweighed(self, weights: FloatArray) -> FloatArray:
        """(G, n) kernel weights over L as the draw weighs them, each row summing to 1 (or 0)."""
        if self.inverse_chances is None:
            return weights
        scaled = weights * self.inverse_chances
        total = scaled.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(scaled, total, out=np.zeros_like(scaled), where=total > 0.0))

    def _predictor(self, covariates: FloatArray, training: BoolArray | None = None) -> LogisticPredictor:
        """Logistic of Y fitted on the labeled items (or some), weighted by the inverse of their chances."""
        used = np.ones(len(self.rows), dtype=np.bool_) if training is None else training
        weights = None if self.inverse_chances is None else self.inverse_chances[used]
        return fit_standardized(covariates[self.rows[used]], self.y[used], self.inverse_penalty, weights)

    @cached_property
    def naive(self) -> FloatArray:
        """Ȳ_L(z), (G,)."""
        return np.asarray(self.weights @ self.y)

    @cached_property
    def judge_prediction(self) -> FloatArray:
        """(M,) logistic of Y on the primary signal, fitted on all of L."""
        column = self.pool.signals[:, [self.pool.primary]]
        return self._predictor(column).predict(column)

    @cached_property
    def composite_refit(self) -> FloatArray:
        """(M,) logistic of Y on (Z, S), fitted on all of L."""
        covariates = self.pool.covariates
        return self._predictor(covariates).predict(covariates)

    @cached_property
    def composite_prediction(self) -> FloatArray:
        """(M,) logistic of Y on (Z, S): out of fold at labeled items, refit on all of L elsewhere."""
        return self._out_of_fold(self.pool.covariates, self.composite_refit)

    @cached_property
    def signal_prediction(self) -> FloatArray:
        """(M,) logistic of Y on S alone: out of fold at labeled items, refit on all of L elsewhere."""
        signals = self.pool.signals
        return self._out_of_fold(signals, self._predictor(signals).predict(signals))

    def _out_of_fold(self, covariates: FloatArray, refit: FloatArray) -> FloatArray:
        prediction = refit.copy()
        for held_out in (0, 1):
            inside, training = self.fold == held_out, self.fold != held_out
            if not inside.any():
                continue
            rows = self.rows[inside]
            if not training.any():
                prediction[rows] = UNKNOWN_SHARE
                continue
            prediction[rows] = self._predictor(covariates, training).predict(covariates[rows])
        return prediction


def predictor_covariates(axis: ProfileAxis, signals: FloatArray) -> FloatArray:
    """(M, C) covariates (Z, S): numeric profile columns as they are, text and boolean ones as level indicators."""
    parts = []
    for column, levels in enumerate(axis.levels):
        if levels is None:
            parts.append(axis.z[:, [column]])
        elif levels.dtype.kind in "iuf":
            parts.append(levels[axis.z[:, column].astype(np.intp)].astype(np.float64)[:, None])
        else:
            parts.append(np.equal.outer(axis.z[:, column], np.arange(len(levels))).astype(np.float64))
    return np.concatenate([*parts, signals], axis=1)


def numeric_profile(axis: ProfileAxis, method: str) -> tuple[FloatArray, FloatArray]:
    """Profile values (M, q) and points (G, q) as numbers, numeric levels by their own value.

    Raises:
        ValueError: text or boolean levels.
    """
    if any(levels is not None and levels.dtype.kind not in "iuf" for levels in axis.levels):
        raise ValueError(f"{method} measures distances on the profile, so it needs a numeric one")
    z = [
        axis.z[:, column] if levels is None else levels[axis.z[:, column].astype(np.intp)].astype(np.float64)
        for column, levels in enumerate(axis.levels)
    ]
    points = np.asarray(axis.at, dtype=np.float64)
    return np.stack(z, axis=1), points[:, None] if points.ndim == 1 else points


def split_folds(size: int, rng: np.random.Generator) -> IntArray:
    """(size,) two random folds whose sizes differ by at most one."""
    fold = np.zeros(size, dtype=np.intp)
    fold[rng.permutation(size)[: size // 2]] = 1
    return fold


def check_folds(fold_of: ArrayLike, inside: BoolArray, name: str) -> IntArray:
    """The folds of the items ``inside``, 0 or 1.

    Raises:
        ValueError: wrong shape, or an inside item whose fold is neither 0 nor 1.
    """
    folds = np.asarray(fold_of)
    if folds.shape != inside.shape:
        raise ValueError(f"{name} must have shape {inside.shape}, got {folds.shape}")
    chosen = folds[inside]
    if not np.isin(chosen, (0, 1)).all():
        raise ValueError(f"{name} must be 0 or 1 at every item it covers (and -1 elsewhere)")
    return chosen.astype(np.intp)
