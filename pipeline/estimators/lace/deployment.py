"""The mean outcome under a deployment distribution, from items drawn from the benchmark's."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import BoolArray, FloatArray, as_floats
from pipeline.estimators.intervals import check_level
from pipeline.estimators.lace.adaptive.candidates import (
    AdaptiveLabels,
    PointWeights,
    average_at_points,
    left_out_errors,
)
from pipeline.estimators.lace.adaptive.fit import cross_fit, no_guess
from pipeline.estimators.lace.adaptive.rules import heaviest, prepared
from pipeline.estimators.lace.core import LabeledSample, ridge_inverse
from pipeline.estimators.lace.fixed import DEFAULT_RIDGE, check_options, check_ridge_number
from pipeline.estimators.lace.interval import Interval, Target, adjusted_r2, verdicts
from pipeline.estimators.lace.scalar import ScalarFit, degrees_of, scalar_estimate
from pipeline.estimators.results import Estimate
from pipeline.estimators.sampling import LabelDraw, Sampling, resolve_draw
from pipeline.estimators.signals import scale_of
from pipeline.estimators.validation import (
    check_outcome,
    check_probabilities,
    check_signals,
    is_binary,
    warn_caller,
    warn_if_unscaled,
)


def lace_deployment(
    y: ArrayLike,
    signals: ArrayLike,
    ratio: ArrayLike,
    *,
    labeled: ArrayLike | None = None,
    ridge: float = DEFAULT_RIDGE,
    standardize: bool = False,
    adapt: Literal["average"] | None = None,
    learner: Literal["logistic"] | None = None,
    rng: np.random.Generator | int | None = None,
    target: Target = "pool",
    interval: Interval = "auto",
    level: float = 0.95,
    inclusion_probabilities: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    sampling: Sampling | None = None,
) -> Estimate:
    """Ψ̂(Q) = Ȳ^Q_L − β̂'(S̄^Q_L − S̄^Q_T): equation 4 of the paper.

    Means are self-normalised with ρ_i = dQ/dP(Z_i); β̂ = (Γ_SS + λI)⁻¹Γ_SY from the influence values
    φ_S = ρ(S − S̄^Q_T) and φ_Y = ρ(Y − Ȳ^Q_L), averaged over T (1/M) and over L (1/n).

    Args:
        y: (M,) outcomes, NaN where not labeled; never read outside ``labeled``.
        signals: (M, K) finite numbers.
        ratio: (M,) density ratios ρ ≥ 0 of deployment to benchmark; they should average about 1, because the ridge
            is on the scale of ρ².
        labeled: (M,) booleans; None means where ``y`` is finite.
        ridge: λ ≥ 0.
        standardize: divide the signals by their pool sd first.
        adapt: None for equation 4, "average" for the adaptive rule at one point with weights ∝ ρ.
        learner: "logistic" adds cross-fitted logistic candidates to the adaptive rule (outcomes that are 0 or 1).
        rng: generator or seed of their folds; None means folds fixed by the data.
        target: "pool" for these M items reweighted, "population" for what they were drawn from.
        interval, level, inclusion_probabilities, clusters, sampling: as in ``lace_mean``.

    Raises:
        ValueError: shapes that do not fit, negative or non-finite ratios, no labeled item with ρ > 0.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 4.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> y = (signals[:, 0] + rng.normal(size=200) > 0).astype(float)
        >>> labeled = np.arange(200) < 50
        >>> ratio = np.where(signals[:, 1] > 0, 1.5, 0.5)
        >>> round(lace_deployment(y, signals, ratio, labeled=labeled).value, 3)
        0.575
    """
    check_options(target, interval, None, ridge)
    check_level(level)
    if learner not in (None, "logistic"):
        raise ValueError(f"learner must be None or 'logistic', got {learner!r}")
    if learner is not None and adapt is None:
        raise ValueError("learner needs adapt='average'")
    penalty = check_ridge_number(ridge)
    values = check_signals(signals)
    rows = len(values)
    outcome, mask = check_outcome(y, labeled, rows)
    rho = _check_ratio(ratio, mask)
    inclusion = check_probabilities(inclusion_probabilities, rows)
    draw = resolve_draw(sampling, mask, clusters, inclusion)
    if adapt is None:
        fit = _influence_fit(values, outcome, mask, rho, draw, penalty, standardize)
    elif adapt != "average":
        raise ValueError(f"adapt must be None or 'average', got {adapt!r}")
    elif ridge is not DEFAULT_RIDGE:
        raise ValueError("adapt='average' chooses its own ridge; leave it out")
    else:
        fit = _averaged_fit(values, outcome, mask, rho, draw, learner, rng)
    method = "lace_deployment" if adapt is None else "lace_deployment_average"
    estimate = scalar_estimate(
        fit, outcome[mask], target, interval, level, method, wilson_form=False, noun="deployment mean"
    )
    return replace(estimate, target="deployment")


def _check_ratio(ratio: ArrayLike, mask: BoolArray) -> FloatArray:
    rho = as_floats(ratio, "ratio")
    if rho.shape != mask.shape:
        raise ValueError(f"ratio must have shape {mask.shape}, got {rho.shape}")
    if not np.isfinite(rho).all() or np.any(rho < 0.0):
        raise ValueError("ratio must be finite and >= 0")
    if rho[mask].sum() <= 0.0:
        raise ValueError("no labeled item has a positive ratio: the deployment mean cannot be estimated")
    if not 0.5 <= rho.mean() <= 2.0:
        warn_caller(f"density ratios average {rho.mean():.3g} over the pool instead of 1; divide them by their mean")
    return rho


def _influence_fit(
    signals: FloatArray,
    outcome: FloatArray,
    mask: BoolArray,
    rho: FloatArray,
    draw: LabelDraw,
    ridge: float,
    standardize: bool,
) -> ScalarFit:
    centre, scale = scale_of(signals)
    if standardize:
        signals = (signals - centre) / scale
    else:
        warn_if_unscaled(signals.std(axis=0))
        signals = signals - centre
    y, own, weights = _labels(signals, outcome, mask, rho, draw)
    shares = draw.shares
    pool_weights = rho / rho.sum()
    pool_mean = pool_weights @ signals
    phi = rho[:, None] * (signals - pool_mean)
    naive = float(weights @ y)
    label_mean = weights @ own
    gap = np.zeros_like(label_mean) if mask.all() else label_mean - pool_mean
    inverse = ridge_inverse((phi.T @ phi / len(phi))[None], ridge)[0][0]
    # Derivative of Γ_SY with respect to each label, the label's share in the centring mean included.
    product = (shares * rho[mask])[:, None] * phi[mask]
    slope_part = product - weights[:, None] * product.sum(axis=0)
    beta = inverse @ (product.T @ (y - naive))
    from_mean = own - label_mean
    linear = weights - slope_part @ (inverse @ gap)
    leverage = np.clip(weights + np.vecdot(from_mean @ inverse, slope_part), 0.0, 0.95)
    residual = y - naive - from_mean @ beta
    total = float(weights @ (y - naive) ** 2)
    raw = np.array([1.0 - float(weights @ residual**2) / total if total > 0.0 else 0.0])
    count = np.array([1.0 / float(weights @ weights)])
    r2 = adjusted_r2(raw, count, signals.shape[1])
    diagnostics = {"ridge": ridge, "beta": beta, "standardized": standardize}
    return ScalarFit(
        naive - float(gap @ beta), naive, linear * residual / np.sqrt(1.0 - leverage), weights * (y - naive), 0.0,
        weights, draw, float(pool_weights @ pool_weights), degrees_of(linear**2 / (1.0 - leverage)),
        float(r2[0]), verdicts(raw, r2, count, signals.shape[1])[0], diagnostics,
    )  # fmt: skip


def _labels(
    signals: FloatArray, outcome: FloatArray, mask: BoolArray, rho: FloatArray, draw: LabelDraw
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(y, S, deployment weights) of the labeled items."""
    weights = draw.shares * rho[mask]
    return outcome[mask], signals[mask], weights / weights.sum()


def _averaged_fit(
    signals: FloatArray,
    outcome: FloatArray,
    mask: BoolArray,
    rho: FloatArray,
    draw: LabelDraw,
    learner: str | None,
    rng: np.random.Generator | int | None,
) -> ScalarFit:
    """The adaptive rule with one point: w ∝ ρ for the target, one level for left-out errors."""
    pool = prepared(signals)
    y, _, weights = _labels(signals, outcome, mask, rho, draw)
    shares = draw.shares
    own = pool.scales(np.flatnonzero(mask))
    pool_weights = rho / rho.sum()
    everywhere = pool.scales(slice(None))
    sample = LabeledSample(rho[mask][:, None], y, own[0], None, len(mask))
    if learner and not is_binary(y):
        raise ValueError("learner='logistic' needs outcomes that are all 0 or 1")
    guess, predictors, fold = cross_fit(pool, own, sample, rng) if learner else no_guess(sample)
    over_pool = [
        pool_weights @ predictor.over_pool(part) for predictor, part in zip(predictors, everywhere, strict=False)
    ]
    labels = AdaptiveLabels(
        y=y,
        own=own,
        shares=shares,
        own_weight=shares,
        y_gap=y - shares @ y,
        own_gap=(own[0] - shares @ own[0], own[1] - shares @ own[1]),
        nearest=np.zeros(len(y), dtype=np.intp),
        reference_weights=(weights[None, :],),
        guess=guess,
        guess_gap=guess - (guess @ shares)[:, None],
    )
    left_out = left_out_errors(labels)
    point = PointWeights(
        weights[None, :],
        (weights[None, :],),
        ((pool_weights @ everywhere[0])[None, :], (pool_weights @ everywhere[1])[None, :]),
        np.array([[weights @ predicted[fold]] for predicted in over_pool]).reshape(-1, 1),
    )
    fit = average_at_points(labels, left_out, point)
    linear, error, leverage = fit.linear[0], fit.error[0], fit.leverage[0]
    naive = float(weights @ y)
    # Errors are about the benchmark's mean, and the estimate varies with those about the deployment's: where the
    # ratio goes with difficulty the two differ, and the variance was half again too large.
    error = error - (weights - shares) @ error
    plain_error = left_out.error[0] - (weights - shares) @ left_out.error[0]
    plain = weights * plain_error
    before = float(weights @ plain_error**2)
    r2 = max(0.0, 1.0 - float(weights @ error**2) / before) if before > 0.0 else 0.0
    noise = float(plain @ plain)
    ratio = float(((linear * error) ** 2).sum()) / noise if noise > 0.0 else 1.0
    verdict = "help" if ratio < 0.95 else "hurt" if ratio > 1.05 else "neutral"
    return ScalarFit(
        naive if mask.all() else float(fit.value[0]), naive, linear * error, plain, float(weights @ weights), weights,
        draw, float(pool_weights @ pool_weights), degrees_of(linear**2 / (1.0 - leverage)), r2, verdict,
        {"rule": heaviest(left_out.labels, fit.weight[:, 0]), "standardized": True, "learner": learner},
    )  # fmt: skip
