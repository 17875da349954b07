"""The mean of an outcome over a pool, from few labels and many signals: one number with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.clusters import cluster_index, cluster_variance
from pipeline.estimators.intervals import check_level, normal_quantile, t_quantile, wilson_interval
from pipeline.estimators.lace import DEFAULT_RIDGE, ProfileProblem, check_options, unit_or_spread
from pipeline.estimators.lace_adaptive_mean import adaptive_mean
from pipeline.estimators.lace_core import fit_points
from pipeline.estimators.lace_interval import Interval, Target, adjusted_r2, labels_agree, verdicts
from pipeline.estimators.lace_pool import pool_moments
from pipeline.estimators.localities import Categorical, ProfileAxis
from pipeline.estimators.results import Estimate
from pipeline.estimators.validation import (
    check_outcome,
    check_probabilities,
    check_signals,
    is_binary,
    warn_if_unscaled,
)

__all__ = ["lace_mean"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _MeanFit:
    """A mean before its interval: influence values and the facts the interval is built from.

    ``influence`` (n,) are c_i e_i, ``naive_influence`` w_i times the plain mean's errors; V sums their squares with
    the finite-population factors, ``naive_weight`` times the naive part added.
    """

    value: float
    naive: float
    influence: FloatArray
    naive_influence: FloatArray
    naive_weight: float
    shares: FloatArray
    unsampled: FloatArray
    df: float
    r2: float
    verdict: str
    facts: dict[str, Any]


def lace_mean(
    y: ArrayLike,
    signals: ArrayLike,
    *,
    labeled: ArrayLike | None = None,
    ridge: float | Literal["cv"] = DEFAULT_RIDGE,
    adapt: Literal["average"] | None = None,
    learner: Literal["logistic"] | None = "logistic",
    rng: np.random.Generator | int | None = None,
    clusters: ArrayLike | None = None,
    standardize: bool = False,
    target: Target = "pool",
    interval: Interval = "auto",
    level: float = 0.95,
    inclusion_probabilities: ArrayLike | None = None,
) -> Estimate:
    """Mean outcome of the pool: θ̂ = Ȳ_L − β̂'(S̄_L − S̄_T).

    With ``adapt=None`` β̂ is the ridge coefficient (Σ_SS + λI)⁻¹Σ_SY of the paper with one category;
    ``adapt="average"`` averages ridge, single-signal and logistic candidates by how well they predict left-out
    labels, and is the rule to use on real data.

    Args:
        y: (M,) outcomes, NaN where not labeled; never read outside ``labeled``.
        signals: (M, K) or (M,) finite numbers.
        labeled: (M,) booleans; None means where ``y`` is finite.
        ridge: λ ≥ 0 on the scale of the signals, or "cv".
        adapt: None or "average" (standardises the signals; takes no ridge).
        learner: "logistic" adds cross-fitted logistic candidates to the adaptive rule where y is binary.
        rng: seed of their folds; None means folds fixed by the data.
        clusters: (M,) labels of groups that were sampled together: the variance is then cluster-robust.
        standardize: divide the signals by their pool sd first (``adapt=None``).
        target: "pool" for the mean of these M items, "population" for the mean of what they were drawn from.
        interval: "t", "wilson" or "auto".
        level: coverage in (0, 1).
        inclusion_probabilities: (M,) in (0, 1], the chance each item had of being labeled (Hájek weights); None
            means equal.

    Returns:
        Estimate; ``diagnostics`` hold the degrees of freedom, the local R², the verdict and the rule.

    Raises:
        ValueError: shapes that do not fit, non-finite signals, no labels, options that exclude each other.
    """
    check_options(target, interval, None, ridge)
    check_level(level)
    values = check_signals(signals)
    rows = len(values)
    outcome, mask = check_outcome(y, labeled, rows)
    inclusion = check_probabilities(inclusion_probabilities, rows)
    if inclusion is not None and not mask[inclusion == 1.0].all():
        raise ValueError("items with inclusion probability 1 are not labeled; give the share that was labeled")
    groups = None if clusters is None else _labeled_clusters(clusters, mask)
    if adapt is None:
        fit = _fixed_mean(values, outcome, mask, inclusion, ridge, standardize, rng)
    elif adapt != "average":
        raise ValueError(f"adapt must be None or 'average', got {adapt!r}")
    elif ridge is not DEFAULT_RIDGE:
        raise ValueError("adapt='average' chooses its own ridge; leave it out")
    else:
        if learner not in (None, "logistic"):
            raise ValueError(f"learner must be None or 'logistic', got {learner!r}")
        fit = _averaged_mean(values, outcome, mask, inclusion, learner, rng, groups)
    return _estimate(fit, outcome[mask], rows, groups, target, interval, level, wilson_form=adapt is not None)


def _labeled_clusters(clusters: ArrayLike, labeled: NDArray[np.bool_]) -> NDArray[np.intp]:
    labels: NDArray[Any] = np.asarray(clusters)
    if labels.shape != labeled.shape:
        raise ValueError(f"clusters must have shape {labeled.shape}, got {labels.shape}")
    return cluster_index(labels[labeled], int(labeled.sum()))[0]


def _shares(inclusion: FloatArray | None, mask: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Label weights that sum to 1, and the finite-population factor of each label."""
    count = int(mask.sum())
    if inclusion is None:
        return np.full(count, 1.0 / count), np.full(count, 1.0 - count / len(mask))
    weights = 1.0 / inclusion[mask]
    return weights / weights.sum(), 1.0 - inclusion[mask]


def _fixed_mean(
    signals: FloatArray,
    outcome: FloatArray,
    mask: NDArray[np.bool_],
    inclusion: FloatArray | None,
    ridge: float | Literal["cv"],
    standardize: bool,
    rng: np.random.Generator | int | None,
) -> _MeanFit:
    axis = one_category(len(signals))
    moments = pool_moments(axis, signals)
    scale = unit_or_spread(moments, standardize, signals)
    if standardize:
        moments = moments.rescaled(scale)
    else:
        warn_if_unscaled(moments.spread)
    sample = ProfileProblem(axis, signals, outcome, mask, inclusion, 1.0).sample(moments.centre, scale)
    facts: dict[str, Any] = {}
    if ridge == "cv":
        from pipeline.estimators.lace_ridge import select_ridge

        ridge, facts = select_ridge(axis, axis, sample, moments, moments.gram, rng, balanced=False)
    shares, unsampled = _shares(inclusion, mask)
    weights = shares[None, :]
    fit = fit_points(sample, weights, weights, moments.mean, moments.gram, float(ridge))
    error = fit.residual[0] / np.sqrt(1.0 - fit.leverage[0])
    share = fit.linear[0] ** 2 / (1.0 - fit.leverage[0])
    total = float(shares @ fit.centred[0] ** 2)
    raw = 1.0 - float(shares @ fit.residual[0] ** 2) / total if total > 0.0 else 0.0
    n_effective = np.array([1.0 / float(shares @ shares)])
    r2 = adjusted_r2(np.array([raw]), n_effective, signals.shape[1])
    said = verdicts(np.array([raw]), r2, n_effective, signals.shape[1])[0]
    return _MeanFit(
        float(fit.value[0]), float(fit.naive[0]), fit.linear[0] * error, shares * fit.centred[0], 0.0, shares,
        unsampled, _degrees(share), float(r2[0]), said,
        {"ridge": float(ridge), "beta": fit.beta[0], "standardized": standardize, **facts},
    )  # fmt: skip


def _averaged_mean(
    signals: FloatArray,
    outcome: FloatArray,
    mask: NDArray[np.bool_],
    inclusion: FloatArray | None,
    learner: Literal["logistic"] | None,
    rng: np.random.Generator | int | None,
    groups: NDArray[np.intp] | None,
) -> _MeanFit:
    shares, unsampled = _shares(inclusion, mask)
    y = outcome[mask]
    fit = adaptive_mean(y, mask, signals, shares, learner, rng, groups)
    value = fit.naive if mask.all() else fit.value
    squares = (fit.linear * fit.error) ** 2
    count = 1.0 / float(shares @ shares)
    total = float(squares.sum())
    bulk = total**2
    heavy = float(squares @ squares) - bulk / count
    by_errors = max(3.0, 2.0 * bulk / heavy) if heavy > 0.0 else np.inf
    df = min(_degrees(fit.linear**2 / (1.0 - fit.leverage)), by_errors)
    naive_part = float(shares @ fit.naive_error**2)
    r2 = max(0.0, 1.0 - float(shares @ fit.error**2) / naive_part) if naive_part > 0.0 else 0.0
    naive_influence = shares * fit.naive_error
    ratio = total / float(naive_influence @ naive_influence) if naive_part > 0.0 else 1.0
    said = "help" if ratio < 0.95 else "hurt" if ratio > 1.05 else "neutral"
    return _MeanFit(
        value, fit.naive, fit.linear * fit.error, naive_influence, 2.0 / count, shares, unsampled, df, r2, said,
        {"rule": fit.rule},
    )  # fmt: skip


def _degrees(share: FloatArray) -> float:
    square = float(share @ share)
    return max(float(share.sum()) ** 2 / square - 1.0, 2.0) if square > 0.0 else 2.0


def one_category(rows: int) -> ProfileAxis:
    """The axis of an unconditional mean: every item in the same category."""
    return ProfileAxis(np.zeros((rows, 1)), np.zeros((1, 1)), np.array([0]), (Categorical(),), (np.array([0]),))


def _spread_of(influence: FloatArray, groups: NDArray[np.intp] | None) -> tuple[float, float]:
    """(variance, degrees of freedom it allows) of a sum of influence values, cluster-robust where grouped."""
    if groups is None:
        return float(influence @ influence), np.inf
    variance, df = cluster_variance(influence, groups)
    return variance, float(df)


def _estimate(
    fit: _MeanFit,
    y: FloatArray,
    rows: int,
    groups: NDArray[np.intp] | None,
    target: Target,
    interval: Interval,
    level: float,
    *,
    wilson_form: bool,
) -> Estimate:
    root = np.sqrt(fit.unsampled)
    variance, allowed = _spread_of(fit.influence * root, groups)
    naive_variance, _ = _spread_of(fit.naive_influence * root, groups)
    variance += fit.naive_weight * naive_variance
    df = min(fit.df, allowed)
    count = 1.0 / float(fit.shares @ fit.shares)
    spread = float(fit.shares**2 @ (y - fit.naive) ** 2) * count / max(1.0 - 1.0 / count, 0.05)
    if target == "population":
        variance += spread / rows
    binary = is_binary(y)
    if interval == "wilson" and not binary:
        raise ValueError("interval='wilson' needs outcomes that are all 0 or 1; use 'auto' or 't'")
    exact = len(y) == rows and target == "pool"
    half = float(t_quantile(df, level)) * variance**0.5
    low, high, kind = fit.value - half, fit.value + half, "t"
    if binary:
        low, high = max(0.0, low), min(1.0, high)
        effective = count if groups is None else _effective_count(fit, y, groups)
        if not exact and wilson_form and interval != "t":
            low, high = _wilson_form(fit, effective, variance, df, level)
            kind = "wilson"
        elif not exact and (interval == "wilson" or (interval == "auto" and _scarce(fit, y, effective))):
            low, high = _wilson_naive(fit, effective, level)
            kind = "wilson"
    share = len(y) / rows
    facts = {
        "n_pool": rows, "df": df, "n_effective": count, "interval": kind, "target": target,
        "covers": "pool mean" if target == "pool" else "population mean", "binary": binary,
        "naive": fit.naive, "r2": fit.r2, "gain": 1.0 / (1.0 - (1.0 - share) * min(fit.r2, 1.0 - 1e-12)),
        "verdict": "neutral" if exact else fit.verdict, **fit.facts,
    }  # fmt: skip
    if groups is not None:
        facts["n_clusters"] = int(groups.max()) + 1
    method = "lace_average" if wilson_form else "lace"
    return Estimate(fit.value, variance**0.5, low, high, level, len(y), method, facts)


def _effective_count(fit: _MeanFit, y: FloatArray, groups: NDArray[np.intp]) -> float:
    """Number of independent labels that the clustered ones are worth; the number of clusters where all agree."""
    variance, df = cluster_variance(fit.shares * (y - fit.naive), groups)
    worth = fit.naive * (1.0 - fit.naive) / variance if variance > 0.0 else df + 1.0
    return min(1.0 / float(fit.shares @ fit.shares), max(worth, 1.0))


def _scarce(fit: _MeanFit, y: FloatArray, count: float) -> bool:
    agree = bool(labels_agree(fit.shares[None, :], y)[0])
    return agree or count < 8.0 or count * min(fit.naive, 1.0 - fit.naive) < 2.0


def _wilson_naive(fit: _MeanFit, count: float, level: float) -> tuple[float, float]:
    low, high = wilson_interval(fit.naive, count, normal_quantile(level))
    point = min(max(fit.value, 0.0), 1.0)
    return min(float(low), point), max(float(high), point)


def _wilson_form(fit: _MeanFit, count: float, variance: float, df: float, level: float) -> tuple[float, float]:
    """Wilson's interval about the clipped estimate with n* = Ȳ(1 − Ȳ)/V labels, between 1 and 50n/f."""
    sampled = float(fit.shares**2 @ fit.unsampled) / float(fit.shares @ fit.shares)
    share = min(max(fit.value, 0.0), 1.0)
    most = 50.0 * count / max(sampled, 1e-12)
    worth = fit.naive * (1.0 - fit.naive) / variance if variance > 0.0 else count / max(sampled, 1e-12)
    low, high = wilson_interval(share, min(max(worth, 1.0), most), float(t_quantile(df, level)))
    return float(low), float(high)
