"""Candidate coefficients of the adaptive profile rule, their left-out errors and their average at a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.lace.adaptive.rules import (
    CURVED_SOURCES,
    RIDGES,
    SOURCES,
    average_weights,
    curved_log_prior,
    effective_labels,
    log_error,
)

_RIDGE = np.array(RIDGES)


@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveLabels:
    """The labeled items as the rule sees them.

    Attributes:
        y: (n,) outcomes; own: (n, K) arrays, the signals and their ranks, standardised over the pool; in the curved
            rule also (n, 2K) arrays of both with their squares, whose candidates are `total` alone.
        shares: (n,) label weights, 1/n when drawn with equal chances.
        own_weight: (n,) w0_ii; y_gap, own_gap: y2 (n,) and s2, as ``own``: values minus own local means.
        nearest: (n,) reference point of each item.
        reference_weights: per locality width, (R, n) weights v at the reference points.
        guess: (F, n) centred out-of-fold predictions, one row per learner; guess_gap: the same minus own means.
    """

    y: FloatArray
    own: tuple[FloatArray, ...]
    shares: FloatArray
    own_weight: FloatArray
    y_gap: FloatArray
    own_gap: tuple[FloatArray, ...]
    nearest: IntArray
    reference_weights: tuple[FloatArray, ...]
    guess: FloatArray
    guess_gap: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class PointWeights:
    """A block of g points.

    Attributes:
        weights: (g, n) profile weights w; local: per locality width, (g, n) weights v.
        pool_mean: (g, K) arrays S̄_T, as ``AdaptiveLabels.own``;
        guess_mean: (F, g) Σ_i w_i times the pool profile of i's fold predictor.
    """

    weights: FloatArray
    local: tuple[FloatArray, ...]
    pool_mean: tuple[FloatArray, ...]
    guess_mean: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """Left-out errors e and leverages H of all candidates, (candidates, n), and the power n_e/2 of their weights."""

    error: FloatArray
    leverage: FloatArray
    log_squares: FloatArray
    power: float
    labels: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class AveragedFit:
    """θ̂ (g,), c, e, H (g, n), ω (candidates, g) and the averaged slope per sd (g, K)."""

    value: FloatArray
    linear: FloatArray
    error: FloatArray
    leverage: FloatArray
    weight: FloatArray
    beta: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """Weighted moments of the signals over L at p points, in the eigenbasis of the covariance.

    ``middle`` (p, K), ``vectors`` (p, K, K), ``inverse`` (p, λ, K) = 1/(eigenvalue + λ), ``slope`` (p, λ, K).
    """

    middle: FloatArray
    vectors: FloatArray
    inverse: FloatArray
    slope: FloatArray


def _moments(weights: FloatArray, own: FloatArray, y: FloatArray) -> _Moments:
    middle = weights @ own
    around = own - middle[:, None, :]
    weighted = around * weights[:, :, None]
    values, vectors = np.linalg.eigh(np.swapaxes(weighted, 1, 2) @ around)
    cross = np.einsum("pnk,pn->pk", weighted, y - (weights @ y)[:, None])
    inverse = 1.0 / (np.maximum(values, 0.0)[:, None, :] + _RIDGE[None, :, None])
    slope = inverse * np.einsum("pk,pkl->pl", cross, vectors)[:, None, :]
    return _Moments(middle, vectors, inverse, slope)


def left_out_errors(labels: AdaptiveLabels) -> LeftOut:
    """e_ki = (y2_i − β's2_i)/(1 − H_ki) of every candidate, with β of the item's reference point."""
    plain = np.minimum(labels.own_weight, 0.95)
    errors, leverages = [(labels.y_gap / (1.0 - plain))[None, :]], [plain[None, :]]
    names: list[dict[str, Any]] = [{"source": "none", "signals": "none", "ridge": None}]
    for source, own, gap in zip((*SOURCES, *CURVED_SOURCES), labels.own, labels.own_gap, strict=False):
        if not own.shape[1]:
            continue
        total = _moments(labels.shares[None, :], own, labels.y)
        groups = [("total", total, np.zeros_like(labels.nearest), labels.shares)]
        for position, weights in enumerate(labels.reference_weights if source in SOURCES else ()):
            own_weight = weights[labels.nearest, np.arange(len(labels.y))]
            name = "local" if position == 0 else f"local x{2**position}"
            groups.append((name, _moments(weights, own, labels.y), labels.nearest, own_weight))
        for name, moments, point, weight in groups:
            local = gap if name == "total" else own - moments.middle[point]
            vectors = moments.vectors[point]
            rotated = np.einsum("nk,nkl->nl", local, vectors)
            rotated_gap = rotated if name == "total" else np.einsum("nk,nkl->nl", gap, vectors)
            quadratic = np.einsum("nl,npl->pn", rotated**2, moments.inverse[point])
            leverage = np.minimum(labels.own_weight + weight * quadratic, 0.95)
            fitted = np.einsum("nl,npl->pn", rotated_gap, moments.slope[point])
            errors.append((labels.y_gap - fitted) / (1.0 - leverage))
            leverages.append(leverage)
            names += [{"source": name, "signals": source, "ridge": ridge} for ridge in RIDGES]
    for source, gap in zip(SOURCES, labels.guess_gap, strict=False):
        errors.append(((labels.y_gap - gap) / (1.0 - plain))[None, :])
        leverages.append(plain[None, :])
        names.append({"source": "logistic", "signals": source, "ridge": 1.0})
    error, leverage = np.concatenate(errors), np.concatenate(leverages)
    count = len(labels.shares)
    log_squares = log_error(count * (error**2 @ labels.shares))
    power = effective_labels(error[0], labels.shares) / 2.0
    if power > 0.0:  # a prior weight, in terms of the criterion that is taken to the power
        curved = np.array([name["signals"] in CURVED_SOURCES for name in names])
        log_squares = log_squares - np.where(curved, curved_log_prior(labels.shares) / power, 0.0)
    return LeftOut(error, leverage, log_squares, power, names)


def average_at_points(labels: AdaptiveLabels, left_out: LeftOut, points: PointWeights) -> AveragedFit:
    """The candidates' estimates and linear weights at a block of points, averaged with ω ∝ (P·C)^(−n_e/2)."""
    weights = points.weights
    naive = weights @ labels.y
    values, linears = [naive[None, :]], [weights[None, :, :]]
    slopes = [np.zeros((1, len(naive), labels.own[0].shape[1]))]
    count = labels.own[0].shape[1]
    for position, (own, pool_mean) in enumerate(zip(labels.own, points.pool_mean, strict=True)):
        if not own.shape[1]:
            continue
        shift = weights @ own - pool_mean
        for local in (labels.shares[None, :], *(points.local if position < len(SOURCES) else ())):
            value, linear, slope = _candidate_block(_moments(local, own, labels.y), local, own, shift, naive, weights)
            values.append(value)
            linears.append(linear)
            slopes.append(slope[:, :, :count])
    for guess, mean in zip(labels.guess, points.guess_mean, strict=True):
        values.append((naive - weights @ guess + mean)[None, :])
        linears.append(weights[None, :, :])
        slopes.append(np.zeros_like(slopes[0]))
    linear = np.concatenate(linears)
    log_noise = np.log(np.maximum(np.vecdot(linear, linear), 1e-300))
    omega = average_weights(left_out.log_squares[:, None] + log_noise, left_out.power)
    return AveragedFit(
        value=np.einsum("cg,cg->g", omega, np.concatenate(values)),
        linear=np.einsum("cg,cgn->gn", omega, linear),
        error=omega.T @ left_out.error,
        leverage=omega.T @ left_out.leverage,
        weight=omega,
        beta=np.einsum("cg,cgk->gk", omega, np.concatenate(slopes)),
    )


def _candidate_block(
    moments: _Moments, local: FloatArray, own: FloatArray, shift: FloatArray, naive: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """θ (λ, g), c (λ, g, n) and β (λ, g, K) of one kind of coefficient weights."""
    rotated_shift = (shift[:, None, :] @ moments.vectors)[:, 0, :]
    value = naive[:, None] - np.vecdot(moments.slope, rotated_shift[:, None, :])
    back = np.swapaxes(moments.vectors, 1, 2)
    direction = (moments.inverse * rotated_shift[:, None, :]) @ back
    projected = direction @ own.T - np.vecdot(direction, moments.middle[:, None, :])[:, :, None]
    linear = weights[:, None, :] - local[:, None, :] * projected
    slope = np.broadcast_to(moments.slope @ back, direction.shape)
    return value.T, np.swapaxes(linear, 0, 1), np.swapaxes(slope, 0, 1)
