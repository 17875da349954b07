"""One number from influence values: variance, degrees of freedom and interval, for any draw of the labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import normal_quantile, t_quantile, wilson_interval
from pipeline.estimators.lace.core import LabeledSample, fit_points
from pipeline.estimators.lace.interval import Interval, Target, adjusted_r2, labels_agree, verdicts
from pipeline.estimators.lace.near_census import near_census_interval
from pipeline.estimators.means import interval_of_mean
from pipeline.estimators.results import Estimate
from pipeline.estimators.sampling import LabelDraw
from pipeline.estimators.validation import is_binary
from pipeline.estimators.worth import with_worth, worth_spread


@dataclass(frozen=True, slots=True, eq=False)
class ScalarFit:
    """A weighted mean before its interval.

    Attributes:
        value: θ̂; naive: the labels' own weighted mean.
        influence: (n,) c_i e_i; naive_influence: (n,) w_i times the plain mean's errors. V sums their squares with
            the finite-population factors, ``naive_weight`` times the naive part added.
        weights: (n,) label weights w; the draw's own shares for a mean, times the density ratio for a deployment.
        draw: how the labels were drawn.
        pool_square: Σ_T w_T², 1/M for a mean.
        df, r2, verdict, facts: as in a profile.
    """

    value: float
    naive: float
    influence: FloatArray
    naive_influence: FloatArray
    naive_weight: float
    weights: FloatArray
    draw: LabelDraw
    pool_square: float
    df: float
    r2: float
    verdict: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Variances of a fit and of the plain mean beside it, under the same draw, clusters and target.

    Attributes:
        variance: of θ̂; plain: of the labels' weighted mean; rest: what both have from the pool being a sample itself.
        df: degrees of freedom that θ̂'s variance allows.
        outcome: s² of the outcomes; design_effect: of the clusters on the plain mean.
        log_ratio: half width of the 95 % range of log(plain/variance), None where it cannot be told.
    """

    variance: float
    plain: float
    rest: float
    df: float
    outcome: float
    design_effect: float
    log_ratio: float | None


def ridge_scalar(
    sample: LabeledSample, mean: FloatArray, gram: FloatArray, ridge: float, draw: LabelDraw, more: dict[str, Any]
) -> ScalarFit:
    """The mean with the ridge coefficient of the paper, before its interval.

    Args:
        sample: the labeled items.
        mean, gram: (1, K) and (1, K, K) moments of the pool's signals.
        ridge: λ.
        draw: how the labels were drawn.
        more: diagnostics besides λ and β̂.
    """
    shares = draw.shares
    weights = shares[None, :]
    fit = fit_points(sample, weights, weights, mean, gram, ridge)
    error = fit.residual[0] / np.sqrt(1.0 - fit.leverage[0])
    total = float(shares @ fit.centred[0] ** 2)
    raw = np.array([1.0 - float(shares @ fit.residual[0] ** 2) / total if total > 0.0 else 0.0])
    n_effective = np.array([1.0 / float(shares @ shares)])
    r2 = adjusted_r2(raw, n_effective, sample.signals.shape[1])
    return ScalarFit(
        float(fit.value[0]), float(fit.naive[0]), fit.linear[0] * error, shares * fit.centred[0], 0.0, shares, draw,
        1.0 / sample.rows, degrees_of(fit.linear[0] ** 2 / (1.0 - fit.leverage[0])), float(r2[0]),
        verdicts(raw, r2, n_effective, sample.signals.shape[1])[0], {"ridge": ridge, "beta": fit.beta[0], **more},
    )  # fmt: skip


def spread_of(fit: ScalarFit, y: FloatArray, target: Target) -> Spread:
    """V_pool from sums over items or clusters; about a population + s²Σ_T w_T²·d, d the design effect of clusters."""
    draw = fit.draw
    _, plain = draw.plain(y, fit.weights)
    own = draw.units(draw.deviations(fit.influence))
    naive = draw.units(draw.deviations(fit.naive_influence))
    variance = float(own @ own) + fit.naive_weight * float(naive @ naive)
    plain_units = draw.units(draw.deviations(plain)) ** 2
    count = 1.0 / float(fit.weights @ fit.weights)
    # About the pool's own weights w_T: a label stands for 1/share items, each with the square of its weight.
    square = fit.weights**2 / draw.shares
    outcome = float(square @ (y - fit.naive) ** 2) / float(square.sum()) / max(1.0 - 1.0 / count, 0.05)
    effect = draw.design_effect(plain, fit.weights)
    rest = outcome * fit.pool_square * effect if target == "population" else 0.0
    total = float(plain_units.sum())
    range_of = None
    if total > 0.0:
        range_of = worth_spread(own**2 + fit.naive_weight * plain_units, plain_units, rest / total)
    bound = np.inf if draw.clusters is None and draw.strata is None else draw.freedom
    complete = len(y) == draw.rows
    df = draw.freedom if complete and target == "population" else min(fit.df, bound)
    return Spread(variance + rest, total + rest, rest, df, outcome, effect, range_of)


def degrees_of(share: FloatArray) -> float:
    square = float(share @ share)
    return max(float(share.sum()) ** 2 / square - 1.0, 2.0) if square > 0.0 else 2.0


def scalar_estimate(
    fit: ScalarFit,
    y: FloatArray,
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
        target, interval, level: as in ``lace_mean``.
        method: name of the estimator.
        wilson_form: whether binary outcomes get Wilson's form about the estimate (the adaptive mean) instead of
            t with Wilson's interval of the plain mean where labels are scarce.
        noun: what is estimated, for the diagnostics.
    """
    draw, rows = fit.draw, fit.draw.rows
    spread = spread_of(fit, y, target)
    variance, df = spread.variance, spread.df
    count = 1.0 / float(fit.weights @ fit.weights)
    binary = is_binary(y)
    if interval == "wilson" and not binary:
        raise ValueError("interval='wilson' needs outcomes that are all 0 or 1; use 'auto' or 't'")
    complete = len(y) == rows
    exact = complete and target == "pool"
    still = _without_spread(y, binary, exact)
    if still:  # no spread seen is not certainty
        variance = math.nan
    quantile = float(t_quantile(df, level))
    half = quantile * variance**0.5
    low, high, kind = fit.value - half, fit.value + half, "none" if still else "t"
    if binary:
        low, high = max(0.0, low), min(1.0, high)
        effective = count if draw.clusters is None else _effective_count(fit, y)
        if complete and not exact and wilson_form and interval != "t" and len(y) > 1:
            low, high, _ = interval_of_mean(
                fit.value, variance**0.5, df, phi_variance=spread.outcome, n=len(y), level=level, interval="wilson",
                clustered=draw.clusters is not None,
            )  # fmt: skip
            kind = "wilson"
        elif not exact and wilson_form and interval != "t":
            low, high = _wilson_form(fit, effective, variance, quantile, target)
            kind = "wilson"
        elif not exact and (interval == "wilson" or (interval == "auto" and _scarce(fit, y, effective))):
            low, high = _wilson_naive(fit, effective, level)
            kind = "wilson"
        simple = draw.clusters is None and draw.strata is None and abs(fit.pool_square * rows - 1.0) < 1e-9
        if target == "pool" and simple and wilson_form and interval == "auto" and np.ptp(draw.shares) == 0.0:
            closer = near_census_interval(y, rows, fit.value, level)
            if closer is not None:
                (low, high), kind = closer, "hypergeometric"
    share = len(y) / rows
    verdict = "neutral" if exact else fit.verdict
    diagnostics = {
        "n_pool": rows, "df": df, "n_effective": count, "interval": kind, "target": target,
        "covers": f"{target} {noun}", "binary": binary,
        "naive": fit.naive, "r2": fit.r2, "gain": 1.0 / (1.0 - (1.0 - share) * min(fit.r2, 1.0 - 1e-12)),
        "verdict": verdict, **fit.facts,
    }  # fmt: skip
    if still:
        diagnostics["reason"] = still
    if draw.clusters is not None:
        diagnostics["n_clusters"] = int(draw.clusters.max()) + 1
    several = len(y) > 1 and not still
    estimate = Estimate(
        fit.value, variance**0.5, low, high, level, len(y), method, diagnostics, target=target, pool_size=rows, df=df,
        interval=kind, outcome_variance=spread.outcome if several else math.nan, design_effect=spread.design_effect,
        naive_value=fit.naive, naive_se=spread.plain**0.5 if several else math.nan, verdict=verdict, binary=binary,
        largest_share=_largest_share(fit) if several and not binary else None,
    )  # fmt: skip
    return with_worth(estimate, spread.log_ratio)


def _largest_share(fit: ScalarFit) -> float | None:
    """Share of the variance that one label, or one cluster of them, carries."""
    squares = fit.draw.units(fit.draw.deviations(fit.influence)) ** 2
    total = float(squares.sum())
    return float(squares.max()) / total if total > 0.0 else None


def _without_spread(y: FloatArray, binary: bool, exact: bool) -> str:
    """Why the labels give no standard error; "" where they do."""
    if exact or binary:
        return ""
    if len(y) == 1:
        return "one label gives no standard error"
    return "equal labels give no standard error" if y.min() == y.max() else ""


def _effective_count(fit: ScalarFit, y: FloatArray) -> float:
    """Number of independent labels that the clustered ones are worth; the number of clusters where all agree."""
    values = fit.draw.units(fit.weights * (y - fit.naive))
    variance = float(values @ values)
    worth = fit.naive * (1.0 - fit.naive) / variance if variance > 0.0 else float(len(values))
    return min(1.0 / float(fit.weights @ fit.weights), max(worth, 1.0))


def _scarce(fit: ScalarFit, y: FloatArray, count: float) -> bool:
    agree = bool(labels_agree(fit.weights[None, :], y)[0])
    return agree or count < 8.0 - 1e-9 or count * min(fit.naive, 1.0 - fit.naive) < 2.0 - 1e-9


def _wilson_naive(fit: ScalarFit, count: float, level: float) -> tuple[float, float]:
    low, high = wilson_interval(fit.naive, count, normal_quantile(level))
    point = min(max(fit.value, 0.0), 1.0)
    return min(float(low), point), max(float(high), point)


def _wilson_form(fit: ScalarFit, count: float, variance: float, quantile: float, target: Target) -> tuple[float, float]:
    """Wilson's interval about the clipped estimate with n* = Ȳ(1 − Ȳ)/V labels, between 1 and 50n/f.

    f is 1 for a population: even a wholly labeled pool is a sample of it.
    """
    sampled = float(fit.weights**2 @ fit.draw.unsampled) / float(fit.weights @ fit.weights)
    sampled = 1.0 if target == "population" else sampled
    share = min(max(fit.value, 0.0), 1.0)
    most = 50.0 * count / max(sampled, 1e-12)
    worth = fit.naive * (1.0 - fit.naive) / variance if variance > 0.0 else count / max(sampled, 1e-12)
    low, high = wilson_interval(share, min(max(worth, 1.0), most), quantile)
    return float(low), float(high)
