"""The adaptive rule for a mean: ridge, single-signal and logistic candidates averaged by left-out error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.folds import balanced_folds
from pipeline.estimators.lace_pool import row_chunks
from pipeline.estimators.lace_rules import (
    RIDGES,
    SOURCES,
    average_weights,
    effective_labels,
    heaviest,
    log_error,
    two_scales,
)
from pipeline.estimators.logistic import fit_logistic, predict_logistic
from pipeline.estimators.signals import PreparedSignals

__all__ = ["AdaptiveMean", "adaptive_mean"]

FloatArray: TypeAlias = NDArray[np.float64]

_SINGLE_RIDGE = 0.1
_LOGISTIC_C = (1.0, 0.1)
_POWER = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    label: dict[str, Any]
    value: float
    linear: FloatArray
    error: FloatArray
    leverage: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveMean:
    """The averaged candidate and what its interval needs.

    Attributes:
        value: θ; naive: Ȳ_L.
        linear, error, leverage, naive_error: (n,) c, e, H and the errors of the plain mean.
        shares: (n,) label weights, 1/n when all inclusion probabilities are equal.
        rule: the five heaviest candidates.
    """

    value: float
    naive: float
    linear: FloatArray
    error: FloatArray
    leverage: FloatArray
    naive_error: FloatArray
    shares: FloatArray
    rule: list[dict[str, Any]]


def adaptive_mean(
    y: FloatArray,
    labeled: NDArray[np.bool_],
    signals: FloatArray | PreparedSignals,
    shares: FloatArray,
    learner: Literal["logistic"] | None,
    rng: np.random.Generator | int | None,
    clusters: NDArray[Any] | None = None,
) -> AdaptiveMean:
    """Candidates weighted by (Σe²)^(−0.7·n_e/2).

    Args:
        y: (n,) labels in pool order; labeled: (M,) where they are; signals: (M, K).
        shares: (n,) label weights that sum to 1.
        learner: "logistic" adds cross-fitted logistic candidates where y is binary.
        rng: seed of their folds; None means folds fixed by the data.
        clusters: (n,) cluster codes: folds then keep clusters whole.
    """
    pools = two_scales(signals)
    naive = float(y[0]) if y.min() == y.max() else float(shares @ y)  # equal labels leave no rounding residue
    centred = y - naive
    naive_error = centred / (1.0 - np.minimum(shares, 0.95))
    candidates = [_Candidate(_label("none", "none", None), naive, shares, naive_error, shares)]
    for source, pool in zip(SOURCES, pools, strict=True):
        own = pool[labeled]
        if own.shape[1]:
            candidates += _ridge_candidates("ridge", source, own, centred, naive, shares, RIDGES)
        for column in range(own.shape[1]):
            single, name = own[:, [column]], f"{source} of signal {column}"
            candidates += _ridge_candidates("single", name, single, centred, naive, shares, (_SINGLE_RIDGE,))
    if learner == "logistic" and pools[0].shape[1] and np.all((y == 0.0) | (y == 1.0)):
        fold = _folds(y, pools[0][labeled], rng, clusters)
        for source, pool in zip(SOURCES, pools, strict=True):
            candidates += _logistic_candidates(source, pool, labeled, y, fold, centred, naive, shares)
    return _average(candidates, naive, naive_error, shares)


def _label(source: str, signals: str, ridge: float | None) -> dict[str, Any]:
    return {"source": source, "signals": signals, "ridge": ridge}


def _ridge_candidates(
    source: str,
    name: str,
    own: FloatArray,
    centred: FloatArray,
    naive: float,
    shares: FloatArray,
    ridges: tuple[float, ...],
) -> list[_Candidate]:
    """Ridge of Y on the signals over L, all λ from one eigendecomposition; pool means are 0."""
    middle = shares @ own
    around = own - middle
    values, vectors = np.linalg.eigh((around * shares[:, None]).T @ around)
    rotated = around @ vectors
    cross = (shares * centred) @ rotated
    shift = middle @ vectors
    found = []
    for ridge in ridges:
        inverse = 1.0 / (np.maximum(values, 0.0) + ridge)
        slope = inverse * cross
        leverage = np.minimum(shares * (1.0 + rotated**2 @ inverse), 0.95)
        linear = shares * (1.0 - rotated @ (inverse * shift))
        error = (centred - rotated @ slope) / (1.0 - leverage)
        found.append(_Candidate(_label(source, name, ridge), naive - float(slope @ shift), linear, error, leverage))
    return found


def _folds(
    y: FloatArray, own: FloatArray, rng: np.random.Generator | int | None, clusters: NDArray[Any] | None
) -> NDArray[np.intp]:
    if clusters is None:
        return balanced_folds(y, own, 5, rng)
    count = int(clusters.max()) + 1
    size = np.bincount(clusters, minlength=count).astype(np.float64)
    means = np.stack([np.bincount(clusters, weights=column, minlength=count) / size for column in (y, *own.T)], axis=1)
    return np.asarray(balanced_folds(means[:, 0], means, 5, rng)[clusters])


def _logistic_candidates(
    source: str,
    pool: FloatArray,
    labeled: NDArray[np.bool_],
    y: FloatArray,
    fold: NDArray[np.intp],
    centred: FloatArray,
    naive: float,
    shares: FloatArray,
) -> list[_Candidate]:
    """Cross-fitted predictors, each centred on its own pool mean so that their intercepts cancel."""
    own = pool[labeled]
    training = fold[None, :] != np.unique(fold)[:, None]
    position = np.searchsorted(np.unique(fold), fold)
    found = []
    for C in _LOGISTIC_C:
        coefficients = fit_logistic(own, y, C, training)
        total = np.zeros(len(coefficients))
        for chunk in row_chunks(len(pool), 2 * len(coefficients) + pool.shape[1]):
            total += predict_logistic(pool[chunk], coefficients).sum(axis=1)
        predicted = predict_logistic(own, coefficients) - (total / len(pool))[:, None]
        guess = predicted[position, np.arange(len(y))]
        middle = float(shares @ guess)
        error = (centred - guess + middle) / (1.0 - np.minimum(shares, 0.95))
        found.append(_Candidate(_label("logistic", source, 1.0 / C), naive - middle, shares, error, shares))
    return found


def _average(candidates: list[_Candidate], naive: float, naive_error: FloatArray, shares: FloatArray) -> AdaptiveMean:
    errors = np.stack([entry.error for entry in candidates])
    power = _POWER * effective_labels(naive_error, shares) / 2.0
    weights = average_weights(log_error(len(shares) * (errors**2 @ shares)), power)
    return AdaptiveMean(
        value=float(weights @ [entry.value for entry in candidates]),
        naive=naive,
        linear=weights @ np.stack([entry.linear for entry in candidates]),
        error=weights @ errors,
        leverage=weights @ np.stack([entry.leverage for entry in candidates]),
        naive_error=naive_error,
        shares=shares,
        rule=heaviest([entry.label for entry in candidates], weights),
    )
