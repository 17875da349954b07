"""One number from influence values: variance, degrees of freedom and interval, clustered or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.clusters import cluster_index, cluster_variance
from pipeline.estimators.intervals import normal_quantile, t_quantile, wilson_interval
from pipeline.estimators.lace_interval import Interval, Target, labels_agree
from pipeline.estimators.results import Estimate
from pipeline.estimators.validation import is_binary
from pipeline.estimators.worth import with_worth, worth_spread

__all__ = [
    "ScalarFit",
    "degrees_of",
    "design_effect",
    "label_shares",
    "labeled_clusters",
    "plain_spread",
    "scalar_estimate",
]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ScalarFit:
    """A weighted mean before its interval.

    Attributes:
        value: θ̂; naive: the labels' own weighted mean.
        influence: (n,) c_i e_i; naive_influence: (n,) w_i times the plain mean's errors. V sums their squares with
            the finite-population factors, ``naive_weight`` times the naive part added.
        shares: (n,) label weights w; unsampled: (n,) finite-population factors.
        pool_square: Σ_T w_T², 1/M for a mean.
        df, r2, verdict, facts: as in a profile.
    """

    value: float
    naive: float
    influence: FloatArray
    naive_influence: FloatArray
    naive_weight: float
    shares: FloatArray
    unsampled: FloatArray
    pool_square: float
    df: float
    r2: float
    verdict: str
    facts: dict[str, Any]


def labeled_clusters(clusters: ArrayLike, labeled: NDArray[np.bool_]) -> NDArray[np.intp]:
    labels: NDArray[Any] = np.asarray(clusters)
    if labels.shape != labeled.shape:
        raise ValueError(f"clusters must have shape {labeled.shape}, got {labels.shape}")
    return cluster_index(labels[labeled], int(labeled.sum()))[0]


def label_shares(inclusion: FloatArray | None, mask: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Label weights that sum to 1, and the finite-population factor of each label."""
    count = int(np.count_nonzero(mask))
    if inclusion is None:
        return np.full(count, 1.0 / count), np.full(count, 1.0 - count / len(mask))
    weights = 1.0 / inclusion[mask]
    return weights / weights.sum(), 1.0 - inclusion[mask]


def degrees_of(share: FloatArray) -> float:
    square = float(share @ share)
    return max(float(share.sum()) ** 2 / square - 1.0, 2.0) if square > 0.0 else 2.0


def _spread_of(influence: FloatArray, groups: NDArray[np.intp] | None) -> tuple[float, float]:
    """(variance, degrees of freedom it allows) of a sum of influence values, cluster-robust where grouped."""
    if groups is None:
        return float(influence @ influence), np.inf
    variance, df = cluster_variance(influence, groups)
    return variance, float(df)


def plain_spread(influence: FloatArray, groups: NDArray[np.intp] | None) -> float:
    """Variance of a sum of independent influence values, whole clusters where grouped."""
    return _spread_of(influence, groups)[0]


def _unit_squares(influence: FloatArray, groups: NDArray[np.intp] | None) -> FloatArray:
    """Squared influence values of the independent units: items, or clusters as sums."""
    return np.square(influence if groups is None else np.bincount(groups, weights=influence).astype(np.float64))


def scalar_estimate(
    fit: ScalarFit,
    y: FloatArray,
    rows: int,
    groups: NDArray[np.intp] | None,
    target: Target,
    interval: Interval,
    level: float,
    method: str,
    *,
    wilson_form: bool,
    noun: str = "mean",
) -> Estimate:
    """The Estimate of a fit.

    Args:
        fit: the number and its influence values.
        y: (n,) labels.
        rows: M.
        groups: (n,) cluster codes, or None.
        target, interval, level: as in ``lace_mean``.
        method: name of the estimator.
        wilson_form: whether binary outcomes get Wilson's form about the estimate (the adaptive mean) instead of
            t with Wilson's interval of the plain mean where labels are scarce.
        noun: what is estimated, for the diagnostics.
    """
    root = np.sqrt(fit.unsampled)
    variance, allowed = _spread_of(fit.influence * root, groups)
    naive_variance, _ = _spread_of(fit.naive_influence * root, groups)
    variance += fit.naive_weight * naive_variance
    df = min(fit.df, allowed)
    count = 1.0 / float(fit.shares @ fit.shares)
    spread = float(fit.shares**2 @ (y - fit.naive) ** 2) * count / max(1.0 - 1.0 / count, 0.05)
    plain = fit.shares * (y - fit.naive) * (1.0 - 1.0 / max(count, 2.0)) ** -0.5
    effect = design_effect(plain, groups)
    plain_variance, _ = _spread_of(plain * root, groups)
    rest = spread * fit.pool_square * effect if target == "population" else 0.0
    variance, plain_variance = variance + rest, plain_variance + rest
    binary = is_binary(y)
    if interval == "wilson" and not binary:
        raise ValueError("interval='wilson' needs outcomes that are all 0 or 1; use 'auto' or 't'")
    exact = len(y) == rows and target == "pool"
    alone = len(y) == 1 and not binary and not exact
    if alone:  # one number shows no spread, and no spread seen is not certainty
        variance = math.nan
    quantile = float(t_quantile(df, level))
    half = quantile * variance**0.5
    low, high, kind = fit.value - half, fit.value + half, "t"
    if binary:
        low, high = max(0.0, low), min(1.0, high)
        effective = count if groups is None else _effective_count(fit, y, groups)
        if not exact and wilson_form and interval != "t":
            low, high = _wilson_form(fit, effective, variance, quantile, target)
            kind = "wilson"
        elif not exact and (interval == "wilson" or (interval == "auto" and _scarce(fit, y, effective))):
            low, high = _wilson_naive(fit, effective, level)
            kind = "wilson"
    share = len(y) / rows
    verdict = "neutral" if exact else fit.verdict
    facts = {
        "n_pool": rows, "df": df, "n_effective": count, "interval": kind, "target": target,
        "covers": f"{target} {noun}", "binary": binary,
        "naive": fit.naive, "r2": fit.r2, "gain": 1.0 / (1.0 - (1.0 - share) * min(fit.r2, 1.0 - 1e-12)),
        "verdict": verdict, **fit.facts,
    }  # fmt: skip
    if alone:
        facts["reason"] = "one label gives no standard error"
    if groups is not None:
        facts["n_clusters"] = int(groups.max()) + 1
    estimate = Estimate(
        fit.value, variance**0.5, low, high, level, len(y), method, facts, target=target, pool_size=rows, df=df,
        interval=kind, outcome_variance=spread if len(y) > 1 else math.nan, design_effect=effect,
        naive_value=fit.naive, naive_se=plain_variance**0.5 if len(y) > 1 else math.nan, verdict=verdict, binary=binary,
    )  # fmt: skip
    plain_units = _unit_squares(plain * root, groups)
    own_units = _unit_squares(fit.influence * root, groups) + fit.naive_weight * plain_units
    total = float(plain_units.sum())
    return with_worth(estimate, worth_spread(own_units, plain_units, rest / total) if total > 0.0 else None)


def design_effect(plain: FloatArray, groups: NDArray[np.intp] | None) -> float:
    """Variance of the plain mean with its clusters over the same without; 1 without clusters or spread."""
    alone = float(plain @ plain)
    return 1.0 if groups is None or alone <= 0.0 else cluster_variance(plain, groups)[0] / alone


def _effective_count(fit: ScalarFit, y: FloatArray, groups: NDArray[np.intp]) -> float:
    """Number of independent labels that the clustered ones are worth; the number of clusters where all agree."""
    variance, df = cluster_variance(fit.shares * (y - fit.naive), groups)
    worth = fit.naive * (1.0 - fit.naive) / variance if variance > 0.0 else df + 1.0
    return min(1.0 / float(fit.shares @ fit.shares), max(worth, 1.0))


def _scarce(fit: ScalarFit, y: FloatArray, count: float) -> bool:
    agree = bool(labels_agree(fit.shares[None, :], y)[0])
    return agree or count < 8.0 - 1e-9 or count * min(fit.naive, 1.0 - fit.naive) < 2.0 - 1e-9


def _wilson_naive(fit: ScalarFit, count: float, level: float) -> tuple[float, float]:
    low, high = wilson_interval(fit.naive, count, normal_quantile(level))
    point = min(max(fit.value, 0.0), 1.0)
    return min(float(low), point), max(float(high), point)


def _wilson_form(fit: ScalarFit, count: float, variance: float, quantile: float, target: Target) -> tuple[float, float]:
    """Wilson's interval about the clipped estimate with n* = Ȳ(1 − Ȳ)/V labels, between 1 and 50n/f.

    f is 1 for a population: even a wholly labeled pool is a sample of it.
    """
    sampled = float(fit.shares**2 @ fit.unsampled) / float(fit.shares @ fit.shares)
    sampled = 1.0 if target == "population" else sampled
    share = min(max(fit.value, 0.0), 1.0)
    most = 50.0 * count / max(sampled, 1e-12)
    worth = fit.naive * (1.0 - fit.naive) / variance if variance > 0.0 else count / max(sampled, 1e-12)
    low, high = wilson_interval(share, min(max(worth, 1.0), most), quantile)
    return float(low), float(high)
