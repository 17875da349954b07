"""The plain mean of graded answers, with one answer per item or several."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.checks import Interval, check_interval, check_matrix, check_vector, is_binary
from pipeline.estimators.clusters import cluster_index, cluster_variance
from pipeline.estimators.components import variance_components
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import check_level, normal_quantile, t_interval, t_quantile, wilson_interval
from pipeline.estimators.results import Estimate
from pipeline.estimators.worth import with_worth

MOST_EFFECTIVE = 50.0
"""Effective labels of an interval at most, in labels that there are."""


def sample_variance(values: FloatArray) -> float:
    """Σ(x − x̄)²/(N − 1); NaN for a single value, exactly 0 for equal values."""
    if len(values) < 2:
        return math.nan
    shifted = values - values[0]
    return float(np.var(shifted, ddof=1))


def mean_and_variance(values: FloatArray, clusters: ArrayLike | None) -> tuple[float, float, float]:
    """Mean, its estimated variance and degrees of freedom; clusters as wholes are independent.

    Without clusters s²/N with N − 1; one item gives NaN and 0.
    """
    mean = float(values[0] + np.mean(values - values[0]))
    if clusters is None:
        return mean, sample_variance(values) / len(values), float(len(values) - 1)
    variance, df = cluster_variance((values - mean) / len(values), clusters)
    return mean, variance, float(df)


def interval_of_mean(
    value: float,
    se: float,
    df: float,
    *,
    phi_variance: float,
    n: int,
    level: float,
    interval: str,
    clustered: bool = False,
) -> tuple[float, float, float]:
    """Interval of a mean and the effective number of labeled items n_eff = s²_φ/SE².

    Student's t: value ± t_df·SE. Wilson's: the score interval of value (clipped to [0, 1]) at n_eff trials, where
    n_eff = N if s²_φ = 0, so that N right answers out of N still leave room for doubt. With clusters its quantile is
    Student's: the SE of a few clusters is itself a guess (6 clusters covered .88 with the normal one).

    Returns:
        (low, high, n_eff); n_eff is at most 50 N. One item has no s²: n_eff = 1.
    """
    n_effective = float(n)
    if n > 1 and phi_variance > 0.0:
        # Clusters whose means happen to agree have SE 0: no reason to claim more than 50 times the labels there are.
        n_effective = min(phi_variance / se**2 if se > 0.0 else math.inf, MOST_EFFECTIVE * n)
    if interval == "t":
        low, high = t_interval(value, se, df, level) if df > 0 else (np.array(math.nan), np.array(math.nan))
    else:
        centre = min(max(value, 0.0), 1.0)
        quantile = float(t_quantile(df, level)) if clustered and df > 0 else normal_quantile(level)
        low, high = wilson_interval(centre, n_effective, quantile)
        low, high = np.minimum(low, centre), np.maximum(high, centre)
    return float(low), float(high), n_effective


def naive_mean(
    phi: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95, interval: Interval = "auto"
) -> Estimate:
    """The mean of graded answers, θ̂ = (1/N) Σ φ_i (equation 2.1), with SE = s/√N.

    Args:
        phi: (N,) outcomes φ(Y_i, G_i), finite.
        clusters: (N,) labels; whole clusters are independent, and the SE is cluster-robust, df = C − 1.
        level: nominal coverage.
        interval: ``auto`` is Wilson's where every outcome is 0 or 1 and Student's t otherwise; ``t``; ``wilson``.

    Raises:
        ValueError: wrong shapes, missing values, fewer than two clusters, unknown interval.
        TypeError: outcomes that are not numbers.

    References:
        Dong, Zhang, Zhou, Jin, Wu and Zhang, "Evaluating LLMs When They Do Not Know the Answer: Statistical
            Evaluation of Mathematical Reasoning via Comparative Signals" (2026), arXiv 2602.03061, equation 2.1.
        Miller, "Adding Error Bars to Evals: A Statistical Approach to Language Model Evaluations" (2024), arXiv
            2411.00640, on clustered standard errors.

    Example:
        >>> naive_mean([1, 0, 1, 1]).value
        0.75
    """
    outcome = check_vector(phi, "phi")
    check_level(level)
    kind = check_interval(interval, outcome)
    value, variance, df = mean_and_variance(outcome, clusters)
    se = math.sqrt(variance) if variance >= 0.0 else math.nan
    phi_variance = sample_variance(outcome)
    low, high, n_effective = interval_of_mean(
        value, se, df, phi_variance=phi_variance, n=len(outcome), level=level, interval=kind,
        clustered=df < len(outcome) - 1,
    )  # fmt: skip
    diagnostics: dict[str, Any] = {"interval": kind, "df": df, "n_effective": n_effective, "phi_variance": phi_variance}
    if clusters is not None:
        diagnostics["clusters"] = cluster_index(clusters, len(outcome))[1]
    estimate = Estimate(
        value, se, low, high, float(level), len(outcome), "naive", diagnostics, df=df, interval=kind,
        outcome_variance=phi_variance, design_effect=_design_effect(variance, phi_variance, len(outcome)),
        naive_value=value, naive_se=se, binary=is_binary(outcome),
    )  # fmt: skip
    return with_worth(estimate)


def _design_effect(variance: float, phi_variance: float, n: int) -> float:
    return variance * n / phi_variance if phi_variance > 0.0 else 1.0


def repeated_decoding_mean(phi_repeats: ArrayLike, *, level: float = 0.95, interval: Interval = "auto") -> Estimate:
    """The mean over R answers per item: the equal-budget baseline of the one-step estimator.

    The item means are the independent units: θ̂ = mean_i φ̄_i, SE = sd(φ̄_i)/√N. More answers shrink the sampling part
    of the variance alone; ``components`` holds both parts.

    Args:
        phi_repeats: (N, R) outcomes, R answers to each of N items.
        level: nominal coverage.
        interval: as in :func:`naive_mean`.

    Raises:
        ValueError, TypeError: as in :func:`naive_mean`.

    References:
        Dong, Zhang, Zhou, Jin, Wu and Zhang, "Evaluating LLMs When They Do Not Know the Answer: Statistical
            Evaluation of Mathematical Reasoning via Comparative Signals" (2026), arXiv 2602.03061, section 5.3.
        Miller, "Adding Error Bars to Evals: A Statistical Approach to Language Model Evaluations" (2024), arXiv
            2411.00640.

    Example:
        >>> repeated_decoding_mean([[1, 1], [0, 1], [0, 0]]).value
        0.5
    """
    outcome = check_matrix(phi_repeats, "phi_repeats")
    check_level(level)
    flat = outcome.ravel()
    kind = check_interval(interval, flat)
    items, repeats = outcome.shape
    value, variance, df = mean_and_variance(outcome.mean(axis=1), None)
    se = math.sqrt(variance) if variance >= 0.0 else math.nan
    low, high, n_effective = interval_of_mean(
        value, se, df, phi_variance=sample_variance(flat), n=items, level=level, interval=kind
    )
    diagnostics: dict[str, Any] = {"interval": kind, "df": df, "n_effective": n_effective, "repeats": repeats}
    components = variance_components(outcome) if items > 1 else None
    if components is not None:
        diagnostics["components"] = components.to_dict()
    spread = sample_variance(outcome[:, 0])
    return Estimate(
        value, se, low, high, float(level), items, "repeated_decoding", diagnostics, df=df, interval=kind,
        outcome_variance=spread, naive_value=float(outcome[:, 0].mean()), naive_se=math.sqrt(spread / items),
        binary=is_binary(flat), components=components,
    )  # fmt: skip
