"""The adaptive rule for profiles: many coefficient rules, averaged by left-out error and noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.folds import balanced_folds
from pipeline.estimators.lace.adaptive.candidates import (
    AdaptiveLabels,
    AveragedFit,
    LeftOut,
    PointWeights,
    average_at_points,
    left_out_errors,
)
from pipeline.estimators.lace.adaptive.neighbours import nearest_reference, own_means, reference_points
from pipeline.estimators.lace.adaptive.rules import heaviest, prepared
from pipeline.estimators.lace.core import LabeledSample, label_weights, point_blocks
from pipeline.estimators.lace.fixed import ProfileProblem, fixed_profile
from pipeline.estimators.lace.interval import (
    FittedProfile,
    PointSummary,
    join_summaries,
    labels_agree,
    outcome_spread,
)
from pipeline.estimators.lace.localities import ProfileAxis
from pipeline.estimators.lace.pool import profile_means, row_chunks
from pipeline.estimators.logistic import fit_logistic, predict_logistic
from pipeline.estimators.signals import PreparedSignals
from pipeline.estimators.validation import is_binary

_PRIOR_DF = 4.0  # degrees of freedom that the points' common error variance is worth, for outcomes that are not binary
_FOLDS = 5


def adaptive_profile(
    problem: ProfileProblem,
    *,
    learner: str | None,
    rng: np.random.Generator | int | None,
    empty: Literal["pooled"] | None,
    binary: bool | None = None,
    keep_influence: bool = False,
    curved: bool = False,
) -> FittedProfile:
    """The adaptive profile of checked input; see ``lace_profile``; ``curved`` adds regressions on squares."""
    method = "lace_curved" if curved else "lace_average"
    if learner not in (None, "logistic"):
        raise ValueError(f"learner must be None or 'logistic', got {learner!r}")
    if problem.labeled.all():  # nothing is left to predict: every rule is the plain local mean
        fitted = fixed_profile(
            problem, 0.3, None, True, None, rng=rng, empty=empty, binary=binary, keep_influence=keep_influence,
            method=method,
        )  # fmt: skip
        plain = {"source": "none", "signals": "none", "ridge": None, "weight": 1.0}
        return replace(fitted, facts={**fitted.facts, "rule": [plain], "ridge": None, "learner": learner})
    axis, mask = problem.axis, problem.labeled
    pool = prepared(problem.signals if problem.prepared is None else problem.prepared)
    sample = problem.sample(np.zeros(problem.signals.shape[1]))
    own = pool.scales(np.flatnonzero(mask))
    if learner == "logistic" and not is_binary(sample.y):
        raise ValueError("learner='logistic' needs outcomes that are all 0 or 1")
    guess, predictors, fold = cross_fit(pool, own, sample, rng) if learner else no_guess(sample)
    width = (4 if curved else 2) * problem.signals.shape[1]

    def columns(chunk: slice) -> FloatArray:
        both = pool.scales(chunk)
        predicted = (predictor.over_pool(part) for predictor, part in zip(predictors, both, strict=False))
        squares = pool.curves.squares(np.stack(both)) if curved else ()
        return np.concatenate([*both, *squares, *predicted], axis=1)

    pooled, square = profile_means(axis, columns, width + sum(len(entry.middle) for entry in predictors))
    squared = tuple(pool.curves.squares(np.stack(own))) if curved else ()
    labels = adaptive_labels(axis, sample, (*own, *squared), guess)
    left_out = left_out_errors(labels)
    widths = (1.0,) if axis.categorical else (1.0, 2.0, 4.0)
    parts, omegas, influence = [], [], []
    for block in point_blocks(len(axis.points), len(sample.y), len(left_out.labels)):
        weights = label_weights(axis, sample, axis.points[block])
        local = (weights, *(label_weights(axis, sample, axis.points[block], width) for width in widths[1:]))
        means = pooled[block]
        guess_mean = _guess_means(means[:, width:], weights, fold, len(predictors))
        points = PointWeights(weights, local, _by_source(means[:, :width], curved), guess_mean)
        fit = average_at_points(labels, left_out, points)
        parts.append(summarise_average(sample, points.weights, fit, left_out))
        omegas.append(fit.weight)
        if keep_influence:
            influence.append(sample.sums(fit.linear * fit.error))
    summary = join_summaries(parts)
    diagnostics: dict[str, Any] = {"label_draw_p": problem.draw_p, "learner": learner, "locality": axis.names}
    if empty == "pooled":
        summary, diagnostics["synthetic"] = _synthetic(summary, labels, left_out, pooled[:, :width], square, sample)
    share = is_binary(sample.y) if binary is None else binary
    omega = np.concatenate(omegas, axis=1)
    kept = np.concatenate(influence) if keep_influence else None
    return finish(axis.at, summary, sample, omega, left_out, square, share, method, diagnostics, kept)


def _by_source(columns: FloatArray, curved: bool) -> tuple[FloatArray, ...]:
    """Values and ranks, and in the curved rule each with its squares, from columns side by side."""
    values, ranks, *squares = np.split(columns, 4 if curved else 2, axis=1)
    together = zip((values, ranks), squares, strict=False)
    return values, ranks, *(np.concatenate(pair, axis=1) for pair in together)


@dataclass(frozen=True, slots=True, eq=False)
class FoldPredictors:
    """One logistic predictor per fold, (F, 1 + K), each to be centred on its own pool mean ``middle`` (F,)."""

    coefficients: FloatArray
    middle: FloatArray

    def over_pool(self, signals: FloatArray) -> FloatArray:
        """(m, F) centred predictions."""
        return predict_logistic(signals, self.coefficients).T - self.middle


def no_guess(sample: LabeledSample) -> tuple[FloatArray, tuple[FoldPredictors, ...], IntArray]:
    """What ``cross_fit`` returns when there is no learner."""
    return np.empty((0, len(sample.y))), (), np.zeros(len(sample.y), dtype=np.intp)


def _guess_means(means: FloatArray, weights: FloatArray, fold: IntArray, learners: int) -> FloatArray:
    """(learners, g): Σ_i w_i times the pool profile of the predictor that did not see item i."""
    if not learners:
        return np.empty((0, len(means)))
    by_fold = means.reshape(len(means), learners, -1)[:, :, fold]
    return np.asarray(np.einsum("gn,gfn->fg", weights, by_fold))


def cross_fit(
    pool: PreparedSignals,
    own: tuple[FloatArray, FloatArray],
    sample: LabeledSample,
    rng: np.random.Generator | int | None,
) -> tuple[FloatArray, tuple[FoldPredictors, ...], IntArray]:
    """Five-fold logistic predictions on both scales, each fold's predictor centred on its pool mean.

    Returns:
        (2, n) out-of-fold predictions at the labels, the predictors of the two scales, and the (n,) folds.
    """
    fold = balanced_folds(sample.y, np.concatenate([sample.z, own[0]], axis=1), _FOLDS, rng)
    used, fold = np.unique(fold, return_inverse=True)
    fold = fold.reshape(-1).astype(np.intp)
    training = fold[None, :] != np.arange(len(used))[:, None]
    coefficients = [fit_logistic(values, sample.y, 1.0, training) for values in own]
    total = np.zeros((len(coefficients), len(used)))
    for chunk in row_chunks(len(pool), 2 * len(used) + 2 * own[0].shape[1]):
        parts = zip(pool.scales(chunk), coefficients, strict=True)
        total += np.stack([predict_logistic(part, fitted).sum(axis=1) for part, fitted in parts])
    predictors = tuple(
        FoldPredictors(fitted, mean) for fitted, mean in zip(coefficients, total / len(pool), strict=True)
    )
    guesses = [
        predictor.over_pool(values)[np.arange(len(fold)), fold]
        for predictor, values in zip(predictors, own, strict=True)
    ]
    return np.stack(guesses), predictors, fold


def adaptive_labels(
    axis: ProfileAxis, sample: LabeledSample, own: tuple[FloatArray, ...], guess: FloatArray
) -> AdaptiveLabels:
    """The labeled items with their own neighbourhoods and reference points; ``own`` with squares makes it curved."""
    width, curved = len(own) * own[0].shape[1], len(own) > 2
    columns = np.concatenate([sample.y[:, None], *own, guess.T], axis=1)
    around = own_means(axis, sample, columns)
    gaps = columns - around.columns
    if sample.y.min() == sample.y.max():
        gaps[:, 0] = 0.0  # equal labels leave no rounding residue
    references = reference_points(axis, sample)
    widths = (1.0,) if axis.categorical else (1.0, 2.0, 4.0)
    shares = np.ones(len(sample.y)) if sample.inclusion is None else 1.0 / sample.inclusion
    return AdaptiveLabels(
        y=sample.y,
        own=_by_source(columns[:, 1 : 1 + width], curved),
        shares=shares / shares.sum(),
        own_weight=around.weight,
        y_gap=gaps[:, 0],
        own_gap=_by_source(gaps[:, 1 : 1 + width], curved),
        nearest=nearest_reference(axis, sample.z, references),
        reference_weights=tuple(label_weights(axis, sample, references, width) for width in widths),
        guess=guess,
        guess_gap=gaps[:, 1 + width :].T,
    )


def summarise_average(sample: LabeledSample, weights: FloatArray, fit: AveragedFit, left_out: LeftOut) -> PointSummary:
    """V = Σ f (c e)² + (1/n_eff) Σ f (w e_0)², its degrees of freedom and the left-out local R²."""
    square = np.vecdot(weights, weights)
    reached = square > 0.0
    n_effective = np.where(reached, 1.0 / np.where(reached, square, 1.0), 0.0)
    naive = weights @ sample.y
    variance = sample.pool_variance(fit.linear * fit.error)
    plain = sample.pool_variance(weights * left_out.error[0])
    variance += plain / np.maximum(n_effective, 1.0)
    share = sample.sums(fit.linear**2 / (1.0 - fit.leverage))
    share_square = np.vecdot(share, share)
    df = np.where(share_square > 0.0, share.sum(axis=1) ** 2 / np.where(share_square > 0.0, share_square, 1.0), 0.0)
    left = np.vecdot(weights, fit.error**2)
    total = weights @ left_out.error[0] ** 2
    r2 = np.maximum(np.where(total > 0.0, 1.0 - left / np.where(total > 0.0, total, 1.0), 0.0), 0.0)
    value = naive if sample.complete else fit.value

    def shown(values: FloatArray) -> FloatArray:
        return np.where(reached, values, np.nan)

    spread = outcome_spread(weights, sample.y - naive[:, None], n_effective)
    ratio = np.where(plain > 0.0, variance / np.where(plain > 0.0, plain, 1.0), 1.0)
    beta = np.where(reached[:, None], fit.beta, np.nan)
    return PointSummary(
        shown(value), shown(naive), beta, shown(variance), spread, shown(np.maximum(df - 1.0, 2.0)), n_effective,
        shown(ratio), shown(r2), labels_agree(weights, sample.y),
        np.vecdot(fit.linear**2, sample.unsampled), sample.design_effect(weights, sample.y - naive[:, None]),
    )  # fmt: skip


def finish(
    at: NDArray[Any],
    summary: PointSummary,
    sample: LabeledSample,
    omega: FloatArray,
    left_out: LeftOut,
    square: FloatArray,
    binary: bool,
    method: str,
    diagnostics: dict[str, Any],
    influence: FloatArray | None,
) -> FittedProfile:
    """Steady the variances of outcomes that are not binary, and name what the rule did."""
    df = summary.df
    if not binary:
        summary, df = _steadied(summary)
    reached = summary.n_effective > 0.0
    ratio = summary.raw_r2  # variance against that of the plain local mean
    verdict = np.where(ratio < 0.95, "help", np.where(ratio > 1.05, "hurt", "neutral"))
    verdict = np.where(reached, verdict, "none")
    weight = omega[:, reached].mean(axis=1) if reached.any() else omega.mean(axis=1)
    diagnostics = {"rule": heaviest(left_out.labels, weight), "standardized": True, **diagnostics}
    return FittedProfile(
        at, summary, sample, binary, square, df, [str(word) for word in verdict], method, diagnostics, influence
    )


def _steadied(summary: PointSummary) -> tuple[PointSummary, FloatArray]:
    """V ← max{V, fΣc²·(νs² + 4σ²)/(ν + 4)} with σ² common to the points, and ν + 4 degrees of freedom."""
    freedom = np.maximum(summary.independent - 1.0, 0.0)
    noise = summary.noise
    local = np.where(noise > 0.0, summary.variance / np.where(noise > 0.0, noise, 1.0), 0.0)
    finite = np.isfinite(summary.variance) & (summary.n_effective > 0.0)
    if not finite.any():
        return summary, summary.df
    mass = freedom[finite].sum()
    common = (freedom[finite] @ local[finite]) / mass if mass > 0.0 else local[finite].mean()
    steady = noise * (freedom * local + _PRIOR_DF * common) / (freedom + _PRIOR_DF)
    df = np.where(finite, freedom + _PRIOR_DF, summary.df)
    return replace(summary, variance=np.where(finite, np.maximum(summary.variance, steady), summary.variance)), df


def _synthetic(
    summary: PointSummary,
    labels: AdaptiveLabels,
    left_out: LeftOut,
    pool_mean: FloatArray,
    square: FloatArray,
    sample: LabeledSample,
) -> tuple[PointSummary, list[bool]]:
    """At points without labels: the rule's estimate for the pool's mean signals there, from all labels.

    The value is the averaged `total` regression at S̄_T(z); its variance adds σ²/M_g to that of the regression.
    """
    empty = (summary.n_effective <= 0.0) & np.isfinite(square)
    if not empty.any():
        return summary, [False] * len(empty)
    means = pool_mean[empty]
    weights = np.broadcast_to(labels.shares, (len(means), len(labels.y)))
    points = PointWeights(
        weights,
        (weights,) * len(labels.reference_weights),
        _by_source(means, len(labels.own) > 2),
        np.zeros((len(labels.guess), len(means))),
    )
    flat = replace(labels, guess=np.zeros_like(labels.guess))
    filled = summarise_average(sample, weights, average_at_points(flat, left_out, points), left_out)
    variance = filled.variance + filled.spread * square[empty]

    def fill(old: FloatArray, new: FloatArray) -> FloatArray:
        out = old.copy()
        out[empty] = new
        return out

    return replace(
        summary,
        value=fill(summary.value, filled.value),
        naive=fill(summary.naive, filled.naive),
        beta=fill(summary.beta, filled.beta),
        variance=fill(summary.variance, variance),
        spread=fill(summary.spread, filled.spread),
        df=fill(summary.df, filled.df),
        raw_r2=fill(summary.raw_r2, np.ones(len(means))),
        r2=fill(summary.r2, np.zeros(len(means))),
    ), [bool(entry) for entry in empty]
