"""The adaptive rule for a mean: ridge, single-signal and logistic candidates averaged by left-out error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.floats import BoolArray, FloatArray, IntArray
from pipeline.estimators.folds import balanced_folds
from pipeline.estimators.lace.adaptive.curved import curved_candidates
from pipeline.estimators.lace.adaptive.rules import (
    CURVED_SOURCES,
    RIDGES,
    SOURCES,
    MeanCandidates,
    average_weights,
    candidate_labels,
    curved_log_prior,
    effective_labels,
    heaviest,
    log_error,
    prepared,
)
from pipeline.estimators.lace.pool import row_chunks
from pipeline.estimators.logistic import fit_logistic, predict_logistic
from pipeline.estimators.signals import PreparedSignals

_SINGLE_RIDGE = 0.1
_LOGISTIC_C = (1.0, 0.1)
_POWER = 0.7


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
    labeled: BoolArray,
    signals: FloatArray | PreparedSignals,
    shares: FloatArray,
    learner: Literal["logistic"] | None,
    rng: np.random.Generator | int | None,
    clusters: NDArray[Any] | None = None,
    *,
    curved: bool = False,
) -> AdaptiveMean:
    """Candidates weighted by (Σe²)^(−0.7·n_e/2).

    Args:
        y: (n,) labels in pool order; labeled: (M,) where they are; signals: (M, K).
        shares: (n,) label weights that sum to 1.
        learner: "logistic" adds cross-fitted logistic candidates where y is binary.
        rng: seed of their folds; None means folds fixed by the data.
        clusters: (n,) cluster codes: folds then keep clusters whole.
        curved: adds the candidates of ``curved_candidates``, of less prior weight where labels are few.
    """
    pool = prepared(signals)
    naive = float(y[0]) if y.min() == y.max() else float(shares @ y)  # equal labels leave no rounding residue
    centred = y - naive
    most = np.minimum(shares, 0.95)  # below 1 even for a single label
    naive_error = centred / (1.0 - most)
    own = np.stack(pool.scales(np.flatnonzero(labeled)))
    one = shares[None, :]
    groups = [
        MeanCandidates(
            candidate_labels("none", ("none",), (None,)), np.array([naive]), one, naive_error[None, :], most[None, :]
        )
    ]
    count = own.shape[2]
    if count:
        groups += [_all_signals(own, centred, naive, shares), _single_signals(own, centred, naive, shares)]
    straight = len(groups)
    if count and curved:
        squares = pool.curves.squares(own)
        groups += [
            _all_signals(np.concatenate([own, squares], axis=2), centred, naive, shares, CURVED_SOURCES),
            *curved_candidates(pool.curves, own[1], squares[1], centred, naive, shares),
        ]
    curves = len(groups)
    if learner == "logistic" and count and np.all((y == 0.0) | (y == 1.0)):
        fold = _folds(y, own[0], rng, clusters)
        groups.append(_logistic(pool, own, y, fold, centred, naive, shares))
    prior = np.zeros(sum(len(group.value) for group in groups))
    first = sum(len(group.value) for group in groups[:straight])
    last = sum(len(group.value) for group in groups[:curves])
    prior[first:last] = curved_log_prior(shares)
    return _average(groups, prior, naive, naive_error, shares)


def _all_signals(
    own: FloatArray, centred: FloatArray, naive: float, shares: FloatArray, sources: tuple[str, ...] = SOURCES
) -> MeanCandidates:
    """Ridge of Y on all signals over L, on both scales (2, n, K) and for all λ from one eigendecomposition each.

    Pool means are 0, so that S̄_L is the gap to the pool.
    """
    middle = shares @ own
    around = own - middle[:, None, :]
    weighted = np.swapaxes(around * shares[:, None], 1, 2)
    values, vectors = np.linalg.eigh(weighted @ around)
    rotated = np.swapaxes(around @ vectors, 1, 2)
    cross = (weighted @ centred)[:, None, :] @ vectors
    shift = middle[:, None, :] @ vectors
    inverse = 1.0 / (np.maximum(values, 0.0)[:, None, :] + np.array(RIDGES)[:, None])
    slope = inverse * cross
    leverage = np.minimum(shares * (1.0 + inverse @ rotated**2), 0.95)
    linear = shares * (1.0 - (inverse * shift) @ rotated)
    error = (centred - slope @ rotated) / (1.0 - leverage)
    value = naive - (slope * shift).sum(axis=2)
    flat = (2 * len(RIDGES), -1)
    return MeanCandidates(
        candidate_labels("ridge", sources, RIDGES), value.ravel(), linear.reshape(flat), error.reshape(flat),
        leverage.reshape(flat),
    )  # fmt: skip


def _single_signals(own: FloatArray, centred: FloatArray, naive: float, shares: FloatArray) -> MeanCandidates:
    """The same for every column of both scales alone, with λ = 0.1."""
    columns = np.swapaxes(own, 1, 2).reshape(-1, own.shape[1])
    middle = columns @ shares
    around = columns - middle[:, None]
    weighted = around * shares
    inverse = 1.0 / (np.vecdot(weighted, around) + _SINGLE_RIDGE)
    slope = inverse * (weighted @ centred)
    leverage = np.minimum(shares + weighted * around * inverse[:, None], 0.95)
    linear = shares - weighted * (inverse * middle)[:, None]
    error = (centred - around * slope[:, None]) / (1.0 - leverage)
    names = tuple(f"{source} of signal {column}" for source in SOURCES for column in range(own.shape[2]))
    return MeanCandidates(
        candidate_labels("single", names, (_SINGLE_RIDGE,)), naive - slope * middle, linear, error, leverage
    )


def _folds(
    y: FloatArray, own: FloatArray, rng: np.random.Generator | int | None, clusters: NDArray[Any] | None
) -> IntArray:
    if clusters is None:
        return balanced_folds(y, own, 5, rng)
    count = int(clusters.max()) + 1
    size = np.bincount(clusters, minlength=count).astype(np.float64)
    means = np.stack([np.bincount(clusters, weights=column, minlength=count) / size for column in (y, *own.T)], axis=1)
    return np.asarray(balanced_folds(means[:, 0], means, 5, rng)[clusters])


def _logistic(
    pool: PreparedSignals,
    own: FloatArray,
    y: FloatArray,
    fold: IntArray,
    centred: FloatArray,
    naive: float,
    shares: FloatArray,
) -> MeanCandidates:
    """Cross-fitted predictors on both scales, each centred on its own pool mean so that their intercepts cancel."""
    used, position = np.unique(fold, return_inverse=True)
    training = fold[None, :] != used[:, None]
    coefficients = np.stack([np.concatenate([fit_logistic(part, y, C, training) for C in _LOGISTIC_C]) for part in own])
    total = np.zeros(coefficients.shape[:2])
    for chunk in row_chunks(len(pool), 2 * coefficients.shape[1] + 2 * own.shape[2]):
        for scale, part in enumerate(pool.scales(chunk)):
            total[scale] += predict_logistic(part, coefficients[scale]).sum(axis=1)
    middle_of_fold = (total / len(pool))[:, :, None]
    predicted = np.stack([predict_logistic(part, fitted) for part, fitted in zip(own, coefficients, strict=True)])
    by_rule = (predicted - middle_of_fold).reshape(2 * len(_LOGISTIC_C), len(used), -1)
    guess = by_rule[:, position.reshape(-1), np.arange(len(y))]
    middle = guess @ shares
    most = np.minimum(shares, 0.95)
    error = (centred - guess + middle[:, None]) / (1.0 - most)
    same, leverage = np.broadcast_to(shares, guess.shape), np.broadcast_to(most, guess.shape)
    ridges = tuple(1.0 / C for C in _LOGISTIC_C)
    return MeanCandidates(candidate_labels("logistic", SOURCES, ridges), naive - middle, same, error, leverage)


def _average(
    groups: list[MeanCandidates], prior: FloatArray, naive: float, naive_error: FloatArray, shares: FloatArray
) -> AdaptiveMean:
    error = np.concatenate([group.error for group in groups])
    power = _POWER * effective_labels(naive_error, shares) / 2.0
    weights = average_weights(log_error(len(shares) * (error**2 @ shares)), power, prior)
    return AdaptiveMean(
        # About the plain mean, so that equal labels give exactly their value.
        value=naive + float(weights @ (np.concatenate([group.value for group in groups]) - naive)),
        naive=naive,
        linear=weights @ np.concatenate([group.linear for group in groups]),
        error=weights @ error,
        leverage=weights @ np.concatenate([group.leverage for group in groups]),
        naive_error=naive_error,
        shares=shares,
        rule=heaviest([label for group in groups for label in group.labels], weights),
    )
