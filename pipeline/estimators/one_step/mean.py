"""The one-step estimator of a mean outcome."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.checks import Interval, check_interval, check_matrix, check_vector, is_binary
from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import check_level
from pipeline.estimators.means import interval_of_mean, mean_and_variance, sample_variance
from pipeline.estimators.one_step import control_variate as cv
from pipeline.estimators.one_step.correction import (
    DEFAULT_SEED,
    Corrected,
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
from pipeline.estimators.results import Correction, Estimate
from pipeline.estimators.worth import with_worth


def one_step_mean(
    phi: ArrayLike,
    tau: ArrayLike,
    *,
    power: Power = 1.0,
    power_from: Sequence[tuple[ArrayLike, ArrayLike]] | None = None,
    pool_tau: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    folds: int = 5,
    rng: np.random.Generator | int | None = None,
    level: float = 0.95,
    interval: Interval = "auto",
    inclusion_probabilities: ArrayLike | None = None,
    target: Target | None = None,
) -> Estimate:
    """The one-step (efficient influence function) estimate of E φ(Y, G), equations 3.1 and 3.5 with a power λ.

    ψ_i = φ_i − λ D_i with D_i = τ_i0 − (1/M) Σ_{j≥1} τ_ij and θ̂ = mean ψ_i; the paper's estimator has λ = 1. With
    ``pool_tau`` the contrast is D_i = τ̄_i − mean_F τ̄ instead, the target is the mean over the F items of the pool,
    and SE² = s²/N·(1 − N/F).

    It reduces the variance only where draw 0 shares randomness with Y_i. For draws from separate stateless calls the
    within-item contrast is pure noise: λ = 1 then raises the variance, and the diagnostics show it.

    Args:
        phi: (N,) outcomes.
        tau: (N, M + 1) predicted E[φ | x_i, z_ij]; column 0 belongs to the episode that produced φ_i. M ≥ 1.
        power: λ as a number, or
            ``tuned``: the least-squares slope of φ on D (SE = s√(1/N + D̄²/S_DD), N − 2 degrees of freedom);
            ``loo``: the slope without the item (its cluster), clipped to [0, 1];
            ``cross-fit``: the slope from the other folds, never clipped; exactly unbiased;
            ``pooled``: the slope over ``power_from``; exactly unbiased.
        power_from: (phi, tau) of other targets, for ``pooled``.
        pool_tau: (F, M + 1) predictions for the whole pool, the N labeled rows among them.
        clusters: (N,) labels; whole clusters are independent, left out and folded together.
        folds: number of folds of ``cross-fit``: ``np.array_split(rng.permutation(N), folds)``.
        rng: generator or seed of folds and bootstrap; None is ``default_rng(20260)``.
        level: nominal coverage.
        interval: ``auto`` is Wilson's at n_eff = s²_φ/SE² where every outcome is 0 or 1, else Student's t.
        inclusion_probabilities: (N,) chance in (0, 1] of each of these items to be labeled: θ̂ = Σ w_i ψ_i with
            w ∝ 1/chance. None means equal.
        target: with ``pool_tau``, "pool" (these F items, the default) or "population" (items like these):
            SE² then grows by s²/F.

    Returns:
        Estimate; its diagnostics hold naive_value, naive_se (of the same target), power (mean λ), power_se,
        variance_reduction = 1 − SE²/SE²_naive with a bootstrap interval over items, n_effective,
        within_item_test_p (of λ = 0, by relabeling the draws), and facts about the fit; ``correction`` holds those
        that a report prints.

    Raises:
        ValueError: wrong shapes, missing values, unknown rule, ``pooled`` without ``power_from``, a pool smaller
            than the labeled set, one cluster, ``tuned`` with fewer than 3 items.
        TypeError: values that are not numbers.

    References:
        Dong, Zhang, Zhou, Jin, Wu and Zhang, "Evaluating LLMs When They Do Not Know the Answer: Statistical
            Evaluation of Mathematical Reasoning via Comparative Signals" (2026), arXiv 2602.03061, equations 3.1
            and 3.5.
        Chernozhukov et al., "Double/Debiased Machine Learning for Treatment and Structural Parameters" (2018),
            arXiv 1608.00060.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> tau = rng.uniform(size=(100, 11))
        >>> phi = (rng.uniform(size=100) < tau[:, 0]).astype(float)
        >>> estimate = one_step_mean(phi, tau, power='tuned')
        >>> estimate.se < estimate.naive_se
        True
    """
    outcome = check_vector(phi, "phi")
    draws = check_matrix(tau, "tau", rows=len(outcome), min_columns=2)
    check_level(level)
    kind = check_interval(interval, outcome)
    check_power(power, power_from)
    contrast, pool_size = contrast_of(draws, pool_tau, "pool_tau")
    n = len(outcome)
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
    fit = correct(outcome, contrast[:, None], design)
    naive_value, naive_variance, _ = design.mean(outcome)
    rest = pool_spread(outcome, design, pool_size, about)
    naive_se = math.sqrt(naive_variance + rest) if naive_variance >= 0.0 else math.nan
    phi_variance = sample_variance(outcome)
    if design.fpc == 0.0:
        fit = Corrected(outcome, naive_value, 0.0, fit.df, fit.power, fit.power_se)
    if rest > 0.0:
        fit = replace(fit, se=math.hypot(fit.se, math.sqrt(rest)))
    if design.fpc == 0.0 and about == "pool":
        low, high, n_effective = naive_value, naive_value, math.inf
    else:
        low, high, n_effective = interval_of_mean(
            fit.value, fit.se, fit.df, phi_variance=phi_variance, n=n, level=level, interval=kind,
            clustered=clusters is not None and fit.df < n - 2,
        )  # fmt: skip
    tuned = cv.least_squares(outcome, contrast[:, None])
    correction = Correction(
        power=float(fit.power[0]) if isinstance(power, str) else float(power),
        power_rule=power if isinstance(power, str) else "fixed",
        **variance_reduction(fit, naive_se, outcome, design, level),
        n_effective=n_effective,
        within_item_test_p=cv.within_item_test(outcome, draws),
    )
    diagnostics: dict[str, Any] = {
        "naive_value": naive_value,
        "naive_se": naive_se,
        "power_se": float(fit.power_se[0]),
        **asdict(correction),
        "tuned_power": float(tuned.power[0]),
        "tuned_power_se": float(tuned.power_se[0]),
        "target": about,
        "pool_size": pool_size,
        "draws": draws.shape[1] - 1,
        "phi_variance": phi_variance,
        "tau_within_variance": float(np.mean(np.var(draws, axis=1, ddof=1))),
        "interval": kind,
        "df": fit.df,
    }
    if clusters is not None:
        diagnostics["clusters"] = cluster_index(clusters, n)[1]
    estimate = Estimate(
        fit.value, fit.se, low, high, float(level), n, "one_step", diagnostics,
        target=about, pool_size=pool_size, df=fit.df, interval=kind,
        outcome_variance=phi_variance, naive_value=naive_value, naive_se=naive_se, binary=is_binary(outcome),
        design_effect=mean_and_variance(outcome, clusters)[1] * n / phi_variance if phi_variance > 0.0 else 1.0,
        correction=correction,
    )  # fmt: skip
    return with_worth(estimate)


def one_step_values(
    phi: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    power: Power = 1.0,
    power_from: Sequence[tuple[ArrayLike, ArrayLike]] | None = None,
    pool_tau: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    folds: int = 5,
    rng: np.random.Generator | int | None = None,
) -> FloatArray:
    """ψ_i = φ_i − λ_i D_i, (N,): the per-item values whose mean :func:`one_step_mean` reports.

    What :func:`pipeline.estimators.paired_differences` and :func:`pipeline.estimators.rank_sets` take, one column per
    model. Without ``tau`` they are the outcomes. Arguments and errors as in :func:`one_step_mean`.

    References:
        Dong, Zhang, Zhou, Jin, Wu and Zhang, "Evaluating LLMs When They Do Not Know the Answer: Statistical
            Evaluation of Mathematical Reasoning via Comparative Signals" (2026), arXiv 2602.03061, equation 3.5.

    Example:
        >>> one_step_values([1.0, 0.0], [[0.9, 0.5, 0.7], [0.2, 0.4, 0.4]]).round(2)
        array([0.7, 0.2])
    """
    outcome = check_vector(phi, "phi")
    if tau is None:
        return outcome
    draws = check_matrix(tau, "tau", rows=len(outcome), min_columns=2)
    check_power(power, power_from)
    contrast, pool_size = contrast_of(draws, pool_tau, "pool_tau")
    others = other_targets(power_from, pool_size is not None) if power == "pooled" else ()
    generator = np.random.default_rng(DEFAULT_SEED if rng is None else rng)
    return correct(outcome, contrast[:, None], Design(power, others, clusters, folds, 1.0, generator)).psi
