"""Mean squared errors of Best-of-N estimators that are known exactly, and bounds for bounded scores."""

from __future__ import annotations

from math import atan2, pi, sqrt
from typing import Literal

import numpy as np

from pipeline.estimators.best_of_n.weights import check_integer


def gaussian_pair_risk(j: int, k: int, sigma: float) -> float:
    """Least unbiased MSE at equal means for two Gaussian candidates of known σ: the risk of the UMVU estimator.

    R_{J,K} = (σ²/K)·[½ + (atan2(J, s) + J/s)/π], s = √((K−J)(K+J)).

    Args:
        j: selection scores J, 1 ≤ J < K.
        k: scores per candidate K ≥ 2.
        sigma: standard deviation of one score, > 0.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, equation 4.

    Example:
        >>> round(gaussian_pair_risk(j=3, k=4, sigma=1.0), 4)
        0.2827
    """
    depth, draws = _check(j, k)
    side = sqrt((draws - depth) * (draws + depth))
    return _positive(sigma, "sigma") ** 2 / draws * (0.5 + (atan2(depth, side) + depth / side) / pi)


def holdout_pair_risk(k: int, sigma: float) -> float:
    """MSE of Holdout (J = K−1) at equal means for two Gaussian candidates: σ²/K + σ²(K−1)/(πK√(2K−3)).

    The biased row-mean maximum has σ²/K there.

    Args:
        k: scores per candidate K ≥ 2.
        sigma: standard deviation of one score, > 0.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, equation 5.

    Example:
        >>> round(holdout_pair_risk(k=4, sigma=1.0), 4)
        0.3568
    """
    _, draws = _check(1, k)
    variance = _positive(sigma, "sigma") ** 2
    return variance / draws + variance * (draws - 1) / (pi * draws * sqrt(2 * draws - 3))


def bounded_risk_bound(
    *, j: int, k: int, width: float, kind: Literal["complete", "cyclic", "lower"] = "complete", m: int | None = None
) -> float:
    """Bounds on the MSE for scores in an interval of width B, whatever their laws and the pool's size.

    complete: min(1, (J+1)/K)·B²/4 · cyclic: min(1, (J+1)²/K)·B²/4 · lower (any unbiased estimator): B²/(4MK).

    Args:
        j: selection scores J, 1 ≤ J < K.
        k: scores per candidate K ≥ 2.
        width: B > 0.
        kind: which bound.
        m: number of candidates M ≥ 1; needed by "lower".

    Raises:
        ValueError: J ≥ K, B ≤ 0, unknown kind, or "lower" without m.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 4.2.

    Example:
        >>> bounded_risk_bound(j=1, k=8, width=1.0)
        0.0625
    """
    depth, draws = _check(j, k)
    quarter = _positive(width, "width") ** 2 / 4.0
    if kind == "complete":
        return min(1.0, (depth + 1) / draws) * quarter
    if kind == "cyclic":
        return min(1.0, (depth + 1) ** 2 / draws) * quarter
    if kind != "lower":
        raise ValueError(f'kind must be "complete", "cyclic" or "lower", got {kind!r}')
    if m is None:
        raise ValueError('kind="lower" needs m, the number of candidates')
    candidates = check_integer(m, "m")
    if candidates < 1:
        raise ValueError(f"m must be at least 1, got {candidates}")
    return quarter / (candidates * draws)


def _check(j: int, k: int) -> tuple[int, int]:
    depth, draws = check_integer(j, "j"), check_integer(k, "k")
    if draws < 2:
        raise ValueError(f"k must be at least 2, got {draws}")
    if not 1 <= depth < draws:
        raise ValueError(f"j must lie in 1..k−1 = 1..{draws - 1}: no unbiased estimator exists otherwise, got {depth}")
    return depth, draws


def _positive(value: float, name: str) -> float:
    if not (np.isfinite(value) and value > 0.0):
        raise ValueError(f"{name} must be finite and > 0, got {value!r}")
    return float(value)
