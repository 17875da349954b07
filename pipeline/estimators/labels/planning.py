"""How many labels a wanted interval needs, where to put them, and what each family of signals is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.intervals import check_level, normal_quantile, t_quantile
from pipeline.estimators.labels.family_worth import FamilyWorth as FamilyWorth
from pipeline.estimators.labels.family_worth import family_worth as family_worth
from pipeline.estimators.results import Estimate, Profile, Result

Target = Literal["pool", "population"]

_MIN_LABELS = 3


@dataclass(frozen=True, slots=True)
class LabelPlan(Result):
    """Labels needed for an interval of a wanted half-width.

    Attributes:
        labels: smallest n, None where no number of labels reaches the half-width.
        half_width: wanted w, in units of the outcome.
        expected_half_width: what n labels give; of all M labels where it is not reachable.
        quantile: the t quantile at n.
        residual_variance: s_R², what the signals leave of the outcome's variance.
        outcome_variance: s_Y².
        pool: M, or None for an endless pool.
        target: "pool" or "population".
        at: the profile point that decides; None for a mean.
        reason: why it is not reachable; None where it is.
    """

    labels: int | None
    half_width: float
    expected_half_width: float
    quantile: float
    residual_variance: float
    outcome_variance: float
    pool: int | None
    target: str
    at: Any = None
    reason: str | None = None


def half_width(
    n: float,
    residual: float,
    *,
    pool: float | None = None,
    target: Target = "pool",
    outcome_variance: float | None = None,
    level: float = 0.95,
) -> float:
    """Half-width of the interval from n labels: t_{n−1} · √V.

    Pool target: V = s_R²(1/n − 1/M). Population target: V = s_R²(1/n − 1/M) + s_Y²/M.

    Args:
        n: labels, > 1.
        residual: s_R² ≥ 0.
        pool: M; None means endless.
        target: "pool" or "population".
        outcome_variance: s_Y²; needed for a population target with a finite pool.
        level: coverage.

    Raises:
        ValueError: numbers out of range.
    """
    return float(t_quantile(max(n - 1.0, 1.0), level)) * math.sqrt(
        _variance(n, residual, pool, target, outcome_variance)
    )


def _variance(n: float, residual: float, pool: float | None, target: Target, outcome_variance: float | None) -> float:
    if not (math.isfinite(residual) and residual >= 0.0):
        raise ValueError(f"the residual variance must be at least 0, got {residual!r}")
    if n <= 0.0 or (pool is not None and pool <= 0.0):
        raise ValueError(f"labels and pool must be positive, got {n!r} and {pool!r}")
    if target not in ("pool", "population"):
        raise ValueError(f"target must be 'pool' or 'population', got {target!r}")
    if pool is None:
        return residual / n
    within = residual * max(1.0 / n - 1.0 / pool, 0.0)
    if target == "pool":
        return within
    if outcome_variance is None:
        raise ValueError("a population target needs outcome_variance, the variance of the outcome itself")
    return within + outcome_variance / pool


def labels_needed(
    residual: float,
    width: float,
    *,
    pool: float | None = None,
    target: Target = "pool",
    outcome_variance: float | None = None,
    level: float = 0.95,
    share: float = 1.0,
    at: Any = None,
) -> LabelPlan:
    """Smallest n whose interval has at most the wanted half-width w.

    Pool target n = s_R²/((w/q)² + s_R²/M); population target n = s_R²/((w/q)² + (s_R² − s_Y²)/M); q starts at the
    normal quantile and is iterated to the t quantile with n − 1 degrees of freedom.

    Args:
        residual: s_R², the outcome's variance that the signals leave (``residual_variance``).
        width: w > 0.
        pool: M, the size of the pool; None means endless.
        target: what the interval is about.
        outcome_variance: s_Y²; needed for the population target with a finite pool, else only reported.
        level: coverage.
        share: effective labels per label, in (0, 1]: 1 for a mean, n_eff/n at a profile point.
        at: the profile point, only reported.

    Raises:
        ValueError: numbers out of range.
    """
    check_level(level)
    if not (math.isfinite(width) and width > 0.0):
        raise ValueError(f"the half-width must be positive, got {width!r}")
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share must lie in (0, 1], got {share!r}")
    spread = residual if outcome_variance is None else outcome_variance
    local = None if pool is None else pool * share
    options: dict[str, Any] = {"pool": local, "target": target, "outcome_variance": spread}
    _variance(1.0, residual, local, target, spread)
    size = None if pool is None else int(pool)

    def plan(labels: int | None, effective: float, reason: str | None) -> LabelPlan:
        reached = half_width(effective, residual, level=level, **options)
        quantile = float(t_quantile(max(effective - 1.0, 1.0), level))
        return LabelPlan(labels, width, reached, quantile, residual, spread, size, target, at, reason)

    count = _iterated(residual, width, local, target, spread, level)
    if count is None or (pool is not None and math.ceil(count / share) > pool):
        if pool is not None and half_width(local or 1.0, residual, level=level, **options) <= width:
            return plan(size, local or 1.0, None)
        floor = half_width(local or 1.0, residual, level=level, **options)
        reason = f"even all {size} items labeled give ±{floor:.3g}: {_more_items(target)}"
        return plan(None, local or 1.0, reason)
    labels = max(math.ceil(count / share), math.ceil(_MIN_LABELS / share))
    while (
        labels > math.ceil(_MIN_LABELS / share)
        and half_width((labels - 1) * share, residual, level=level, **options) <= width
    ):
        labels -= 1
    while half_width(labels * share, residual, level=level, **options) > width and (pool is None or labels < pool):
        labels += 1
    return plan(labels if size is None else min(labels, size), labels * share, None)


def _more_items(target: str) -> str:
    return "more items are needed, not more labels" if target == "population" else "the pool itself is too small"


def _iterated(
    residual: float, width: float, pool: float | None, target: Target, outcome_variance: float, level: float
) -> float | None:
    """The formula's fixed point over the quantile; None where the denominator is not positive."""
    quantile = normal_quantile(level)
    count = math.nan
    for _ in range(100):
        denominator = (width / quantile) ** 2
        if pool is not None:
            denominator += (residual if target == "pool" else residual - outcome_variance) / pool
        if denominator <= 0.0:
            return None
        new = max(residual / denominator, float(_MIN_LABELS))
        if abs(new - count) < 1e-9 * new:
            break
        count = new
        quantile = float(t_quantile(max(count - 1.0, 1.0), level))
    return count


def residual_variance(estimate: Estimate, pool: int) -> float:
    """s_R² = SE² · n/(1 − n/M) of a pilot estimate about its pool; 0 where everything is labeled.

    Args:
        estimate: from a pool of ``pool`` items, target the pool.
        pool: M ≥ n.

    Raises:
        ValueError: a pool smaller than the labels.
    """
    if pool < estimate.n:
        raise ValueError(f"the pool ({pool}) is smaller than the labels ({estimate.n})")
    unsampled = 1.0 - estimate.n / pool
    return estimate.se**2 * estimate.n / unsampled if unsampled > 0.0 else 0.0


def plan_mean(
    pilot: Estimate,
    pool: int,
    width: float,
    *,
    outcome_variance: float,
    target: Target = "pool",
    level: float = 0.95,
) -> LabelPlan:
    """Labels for the mean, from a pilot on the same pool.

    Args:
        pilot: a mean from few labels (pool target).
        pool: M.
        width: wanted half-width.
        outcome_variance: s_Y² of the pilot's labels.
        target: what the final interval is about.
        level: its coverage.
    """
    return labels_needed(
        residual_variance(pilot, pool), width, pool=pool, target=target, outcome_variance=outcome_variance, level=level
    )


def plan_profile(pilot: Profile, labels: int, pool: int, width: float, *, level: float = 0.95) -> LabelPlan:
    """Labels for the worst point of a profile, from a pilot on the same pool.

    At z the pilot's variance is s_R²(z)(1 − n/M)/n_eff(z); n labels drawn the same way give n·n_eff(z)/n_pilot
    effective ones. Points without an estimate are passed over.

    Args:
        pilot: a profile from ``labels`` labels (pool target).
        labels: n of the pilot.
        pool: M.
        width: wanted half-width at every point.
        level: pointwise coverage.

    Raises:
        ValueError: no point has an estimate with a positive effective sample.
    """
    worst: LabelPlan | None = None
    unsampled = 1.0 - labels / pool
    for point, variance, effective in zip(pilot.at, pilot.variance, pilot.n_effective, strict=True):
        if not (np.isfinite(variance) and effective > 1.0) or unsampled <= 0.0:
            continue
        residual = float(variance * effective / unsampled)
        share = min(float(effective) / labels, 1.0)
        plan = labels_needed(residual, width, pool=pool, level=level, share=share, at=_plain(point))
        if worst is None or _harder(plan, worst):
            worst = plan
    if worst is None:
        raise ValueError("no profile point has an estimate to plan from: label more items first")
    return worst


def _plain(point: Any) -> Any:
    return point.tolist() if isinstance(point, np.ndarray | np.generic) else point


def _harder(plan: LabelPlan, other: LabelPlan) -> bool:
    if (plan.labels is None) != (other.labels is None):
        return plan.labels is None
    if plan.labels is None or other.labels is None:
        return plan.expected_half_width > other.expected_half_width
    return plan.labels > other.labels


def neyman_allocation(sizes: ArrayLike, deviations: ArrayLike, labels: int, *, minimum: ArrayLike = 2) -> IntArray:
    """Labels per stratum, n_h ∝ M_h σ_h, at least ``minimum`` (or M_h) and at most M_h each.

    Args:
        sizes: (H,) stratum sizes M_h ≥ 1.
        deviations: (H,) sds σ_h ≥ 0 of what is to be estimated; all 0 means proportional allocation.
        labels: n in total; must be at least Σ min(minimum, M_h) and at most Σ M_h.
        minimum: labels that every stratum gets, one number or (H,) (what it has already).

    Returns:
        (H,) integers that sum to ``labels``.

    Raises:
        ValueError: shapes or totals that do not fit.
    """
    size = np.asarray(sizes, dtype=np.int64)
    sigma = np.asarray(deviations, dtype=np.float64)
    if size.ndim != 1 or size.shape != sigma.shape or len(size) == 0:
        raise ValueError(f"sizes and deviations must have one shape (H,), got {size.shape} and {sigma.shape}")
    if (size < 1).any() or not np.isfinite(sigma).all() or (sigma < 0.0).any():
        raise ValueError("stratum sizes must be at least 1 and deviations finite and at least 0")
    least = np.minimum(np.broadcast_to(np.asarray(minimum, dtype=np.int64), size.shape), size)
    if not least.sum() <= labels <= size.sum():
        raise ValueError(f"labels must lie between {least.sum()} and {size.sum()} for these strata, got {labels}")
    wish = size * sigma if (size * sigma).any() else size.astype(np.float64)
    return _rounded(_water_filled(wish, least, size, labels), least, size, labels)


def _water_filled(wish: FloatArray, least: NDArray[np.int64], most: NDArray[np.int64], total: int) -> FloatArray:
    """c·wish clipped to [least, most] with the c that makes the sum ``total`` (bisection on log c)."""
    positive = wish[wish > 0.0]
    low, high = math.log(1e-12 * least.min().clip(1) / positive.max()), math.log(2.0 * most.max() / positive.min())
    for _ in range(200):
        middle = 0.5 * (low + high)
        if np.clip(math.exp(middle) * wish, least, most).sum() < total:
            low = middle
        else:
            high = middle
    return np.asarray(np.clip(math.exp(high) * wish, least, most), dtype=np.float64)


def _rounded(wish: FloatArray, least: NDArray[np.int64], most: NDArray[np.int64], total: int) -> IntArray:
    """Largest remainders within the bounds."""
    counts = np.clip(np.floor(wish + 1e-9).astype(np.int64), least, most)
    while counts.sum() != total:
        step = 1 if counts.sum() < total else -1
        free = counts < most if step > 0 else counts > least
        if not free.any():  # zero wishes can leave no room above: anything below its size may grow
            break
        gap = np.where(free, step * (wish - counts), -np.inf)
        counts[int(np.argmax(gap))] += step
    return counts.astype(np.intp)


def inclusion_probabilities(strata: ArrayLike, sizes: ArrayLike, allocation: ArrayLike) -> FloatArray:
    """(M,) chance n_h/M_h of each item to be drawn; ``strata`` (M,) holds stratum numbers 0..H−1."""
    share = np.asarray(allocation, dtype=np.float64) / np.asarray(sizes, dtype=np.float64)
    return np.asarray(share[np.asarray(strata, dtype=np.intp)], dtype=np.float64)
