"""The paired gap of two models' mean outcomes, with or without the one-step correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.checks import check_matrix, check_vector, is_binary
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import check_level, t_interval
from pipeline.estimators.means import mean_and_variance, sample_variance
from pipeline.estimators.one_step.correction import (
    DEFAULT_SEED,
    Design,
    Power,
    Target,
    check_power,
    contrast_of,
    correct,
    covered,
    labels_draw,
    other_targets,
    pool_spread,
    variance_reduction,
)
from pipeline.estimators.results import Estimate
from pipeline.estimators.worth import with_worth


def _gap_contrasts(
    n: int, tau_a: ArrayLike | None, tau_b: ArrayLike | None, pool_a: ArrayLike | None, pool_b: ArrayLike | None
) -> tuple[FloatArray, int | None]:
    """Contrasts (N, 0..2), that of b negated so that both slopes have the sign of a useful τ; and the pool's size."""
    columns, sizes = [], set()
    for name, sign, tau, pool in (("a", 1.0, tau_a, pool_a), ("b", -1.0, tau_b, pool_b)):
        if tau is None:
            if pool is not None:
                raise ValueError(f"pool_tau_{name} needs tau_{name}")
            continue
        draws = check_matrix(tau, f"tau_{name}", rows=n, min_columns=2)
        contrast, size = contrast_of(draws, pool, f"pool_tau_{name}")
        columns.append(sign * contrast)
        sizes.add(size)
    if len(sizes) > 1:
        raise ValueError("pool_tau_a and pool_tau_b must cover the same pool: both given with equal rows, or neither")
    return (np.stack(columns, axis=1) if columns else np.zeros((n, 1))), (sizes.pop() if sizes else None)


def _identical_binary_gap(n: int, level: float) -> tuple[float, float]:
    """Interval of a gap of two models that agree on all n items: Agresti and Min's half-count in each cell."""
    half = math.sqrt(1.0 / (n + 2.0) ** 2)
    low, high = t_interval(0.0, half, max(n - 1.0, 1.0), level)
    return max(float(low), -1.0), min(float(high), 1.0)


def mean_gap(
    phi_a: ArrayLike,
    phi_b: ArrayLike,
    tau_a: ArrayLike | None = None,
    tau_b: ArrayLike | None = None,
    *,
    power: Power = 1.0,
    power_from: Sequence[tuple[ArrayLike, ArrayLike]] | None = None,
    pool_tau_a: ArrayLike | None = None,
    pool_tau_b: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    folds: int = 5,
    rng: np.random.Generator | int | None = None,
    level: float = 0.95,
    interval: Literal["auto", "t"] = "auto",
    inclusion_probabilities: ArrayLike | None = None,
    target: Target | None = None,
) -> Estimate:
    """The paired gap E φ_a − E φ_b on shared items: mean of φ_a − φ_b − λ_a D_a + λ_b D_b, Student's t interval.

    Each τ is optional; a number or ``pooled`` gives both models the same λ, the other rules fit one for each jointly
    (``tuned``: two-regressor least squares with N − 3 degrees of freedom). Where both models agree on every item of a
    0/1 outcome the interval is Agresti and Min's instead of a point, unless ``interval`` is "t".

    Args:
        phi_a, phi_b: (N,) outcomes of the same items in the same order.
        tau_a, tau_b: (N, M + 1) predictions.
        pool_tau_a, pool_tau_b: (F, M + 1) predictions for the same pool.
        power, power_from, clusters, folds, rng, level, inclusion_probabilities, target: as in :func:`one_step_mean`.
        interval: "auto" or "t"; a difference has no Wilson interval.

    Returns:
        Estimate with diagnostics naive_value, naive_se (paired), unpaired_se, power_a, power_b (None without τ),
        variance_reduction with its bootstrap interval, correlation (of φ_a and φ_b) and df.

    Raises:
        ValueError, TypeError: as in :func:`one_step_mean`.

    References:
        Miller, "Adding Error Bars to Evals: A Statistical Approach to Language Model Evaluations" (2024), arXiv
            2411.00640, on paired differences.
        Agresti and Min, "Simple Improved Confidence Intervals for Comparing Matched Proportions" (2005), Statistics
            in Medicine 24.

    Example:
        >>> mean_gap([1, 1, 0, 1], [0, 1, 0, 0]).value
        0.5
    """
    a = check_vector(phi_a, "phi_a")
    b = check_vector(phi_b, "phi_b", length=len(a))
    check_level(level)
    if interval not in ("auto", "t"):
        raise ValueError(f"interval must be 'auto' or 't' for a difference, got {interval!r}")
    check_power(power, power_from)
    n, difference = len(a), a - b
    contrasts, pool_size = _gap_contrasts(n, tau_a, tau_b, pool_tau_a, pool_tau_b)
    about = covered(target, pool_size)
    design = Design(
        power=power,
        power_from=other_targets(power_from, pool_size is not None) if power == "pooled" else (),
        clusters=clusters,
        folds=folds,
        fpc=1.0 - n / pool_size if pool_size else 1.0,
        rng=np.random.default_rng(DEFAULT_SEED if rng is None else rng),
        draw=labels_draw(inclusion_probabilities, clusters, n, pool_size),
    )
    fit = correct(difference, contrasts, design)
    naive_value, naive_variance, _ = design.mean(difference)
    rest = pool_spread(difference, design, pool_size, about)
    naive_se = math.sqrt(naive_variance + rest) if naive_variance >= 0.0 else math.nan
    if rest > 0.0:
        fit = replace(fit, se=math.hypot(fit.se, math.sqrt(rest)))
    kind = "t"
    low, high = (float(end) for end in t_interval(fit.value, fit.se, fit.df if fit.df > 0 else math.nan, level))
    if (
        interval == "auto"
        and is_binary(a)
        and np.array_equal(a, b)
        and fit.se == 0.0
        and (design.fpc > 0.0 or about == "population")
    ):
        (low, high), kind = _identical_binary_gap(n, level), "agresti-min"
    powers = iter(fit.power.tolist())
    spread = math.sqrt(max((sample_variance(a) + sample_variance(b)) / n * design.fpc, 0.0)) if n > 1 else math.nan
    varies = n > 1 and np.ptp(a) > 0.0 and np.ptp(b) > 0.0
    diagnostics: dict[str, Any] = {
        "naive_value": naive_value,
        "naive_se": naive_se,
        "unpaired_se": spread,
        "power_a": None if tau_a is None else next(powers),
        "power_b": None if tau_b is None else next(powers),
        **variance_reduction(fit, naive_se, difference, design, level),
        "correlation": float(np.corrcoef(a, b)[0, 1]) if varies else math.nan,
        "power_rule": power if isinstance(power, str) else "fixed",
        "target": about,
        "pool_size": pool_size,
        "df": fit.df,
    }
    gap_variance = sample_variance(difference)
    estimate = Estimate(
        fit.value, fit.se, low, high, float(level), n, "mean_gap", diagnostics,
        target=about, pool_size=pool_size, df=fit.df, interval=kind,
        outcome_variance=gap_variance, naive_value=naive_value, naive_se=naive_se,
        design_effect=mean_and_variance(difference, clusters)[1] * n / gap_variance if gap_variance > 0.0 else 1.0,
        binary=is_binary(a) and is_binary(b),
    )  # fmt: skip
    return with_worth(estimate)
