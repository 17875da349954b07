"""LACE profiles: the estimator a caller sees, with the paper's fixed rule or the adaptive one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import BoolArray, FloatArray, IntArray
from pipeline.estimators.intervals import check_level
from pipeline.estimators.lace.core import LabeledSample, fit_points, label_weights, point_blocks
from pipeline.estimators.lace.interval import (
    FittedProfile,
    Interval,
    PointSummary,
    Target,
    join_summaries,
    summarise,
    verdicts,
)
from pipeline.estimators.lace.localities import Locality, ProfileAxis, resolve_axis
from pipeline.estimators.lace.pool import PoolMoments, pool_moments
from pipeline.estimators.results import Profile
from pipeline.estimators.sampling import LabelDraw, Sampling, labeled_clusters, resolve_draw
from pipeline.estimators.signals import PreparedSignals
from pipeline.estimators.validation import (
    check_outcome,
    check_probabilities,
    check_signals,
    is_binary,
    labels_differ_on_profile,
    warn_if_labels_not_random,
    warn_if_unscaled,
)

DEFAULT_RIDGE: float = 0.3  # compared by identity: an omitted ridge is not the same as an explicit 0.3


@dataclass(frozen=True, slots=True, eq=False)
class ProfileProblem:
    """Checked input of a profile: the axis, the pool's signals, the labels and where they are.

    Attributes:
        axis: profile values and points as numbers.
        signals: (M, K) finite signals as given.
        y: (M,) outcomes, NaN outside the labeled set; labeled: (M,) the labeled set.
        inclusion: (M,) label inclusion probabilities, or None.
        draw_p: p-value of the hypothesis that the labels are a random part of the pool on z.
        prepared: the signals on both scales of the adaptive rule, where the caller had them ready.
        clusters: (n,) codes of the labels' clusters, or None; draw: of strata or rounds, or None.
    """

    axis: ProfileAxis
    signals: FloatArray
    y: FloatArray
    labeled: BoolArray
    inclusion: FloatArray | None
    draw_p: float
    prepared: PreparedSignals | None = None
    clusters: IntArray | None = None
    draw: LabelDraw | None = None

    def sample(self, centre: FloatArray, scale: FloatArray | float = 1.0) -> LabeledSample:
        """The labeled items with signals (S − centre)/scale."""
        rows = np.flatnonzero(self.labeled)
        picked = (self.signals[rows] - centre) / scale
        inclusion = None if self.inclusion is None else self.inclusion[rows]
        return LabeledSample(
            self.axis.z[rows], self.y[rows], picked, inclusion, len(self.labeled), self.clusters, self.draw
        )


def pose_problem(
    z: ArrayLike,
    y: ArrayLike,
    signals: ArrayLike | PreparedSignals,
    labeled: ArrayLike | None,
    at: ArrayLike | None,
    locality: Locality | Sequence[Locality] | None,
    inclusion_probabilities: ArrayLike | None,
    *,
    clusters: ArrayLike | None = None,
    sampling: Sampling | None = None,
    check_draw: bool = True,
) -> ProfileProblem:
    """Check the arrays against each other and warn where the labels do not look drawn at random."""
    axis = resolve_axis(z, at, locality)
    rows = len(axis.z)
    outcome, mask = check_outcome(y, labeled, rows)
    values = check_signals(signals, rows)
    inclusion = check_probabilities(inclusion_probabilities, rows)
    drawn = None
    if sampling is not None:
        drawn = resolve_draw(sampling, mask, None, inclusion)
        inclusion = sampling.chances(mask)
    if inclusion is not None and not mask[inclusion == 1.0].all():
        raise ValueError("items with inclusion probability 1 are not labeled; give the share that was labeled")
    draw_p = 1.0
    if check_draw and inclusion is None and clusters is None and not mask.all():
        draw_p = labels_differ_on_profile(
            axis.z, mask, tuple(column_levels is not None for column_levels in axis.levels)
        )
        warn_if_labels_not_random(draw_p)
    prepared = signals if isinstance(signals, PreparedSignals) else None
    groups = None if clusters is None else labeled_clusters(clusters, mask)
    return ProfileProblem(axis, values, outcome, mask, inclusion, draw_p, prepared, groups, drawn)


def lace_profile(
    z: ArrayLike,
    y: ArrayLike,
    signals: ArrayLike | PreparedSignals,
    *,
    labeled: ArrayLike | None = None,
    at: ArrayLike | None = None,
    locality: Locality | Sequence[Locality] | None = None,
    ridge: float | Literal["cv"] = DEFAULT_RIDGE,
    coefficient_locality: Locality | Sequence[Locality] | None = None,
    standardize: bool = False,
    coefficients: ArrayLike | None = None,
    adapt: Literal["average"] | None = None,
    learner: Literal["logistic"] | None = None,
    rng: np.random.Generator | int | None = None,
    empty: Literal["pooled"] | None = None,
    target: Target = "pool",
    interval: Interval = "auto",
    level: float = 0.95,
    inclusion_probabilities: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    sampling: Sampling | None = None,
) -> Profile:
    """Conditional mean of an outcome along a profile, with cheap signals as local control variates.

    θ̂(z) = Ȳ_L(z) − β̂(z)'{S̄_L(z) − S̄_T(z)}, β̂(z) = {Σ_SS(z) + λI}⁻¹Σ_SY(z): labels L give the local mean,
    the pool T ⊇ L the local means and covariances of the signals (equation 2 of the paper). ``adapt="average"``
    replaces the one coefficient by an average over many coefficient rules, weighted by how well each predicts
    left-out labels.

    Args:
        z: (M,) or (M, q) profile values of the pool; numbers, booleans or strings.
        y: (M,) outcomes, NaN where not labeled; never read outside ``labeled``.
        signals: (M, K) finite numbers, or ``prepare_signals`` of them.
        labeled: (M,) booleans; None means where ``y`` is finite.
        at: (G,) or (G, q) points; None means 20 points from the 5th to the 95th percentile, or the levels.
        locality: Gaussian, Ordinal or Categorical, one for all columns or one per column; None means Categorical
            for strings and booleans, else Gaussian with the rule-of-thumb bandwidth.
        ridge: λ ≥ 0 on the scale of the signals, or "cv" (within-L, three folds).
        coefficient_locality: locality of the coefficient; None means the profile's.
        standardize: divide the signals by their pool sd first.
        coefficients: (G, K) fixed β on the scale of the signals used: the oracle.
        adapt: None for the fixed rule, "average" for the adaptive one (standardises; takes no ridge,
            coefficient_locality or coefficients).
        learner: "logistic" adds cross-fitted logistic candidates to the adaptive rule (binary outcomes).
        rng: seed of the random folds of ``learner`` and "cv"; None means folds fixed by the data.
        empty: "pooled" gives a level without labels a synthetic value, labeled so in the diagnostics.
        target: "pool" for the profile of these M items, "population" for the kernel-smoothed population profile.
        interval: "t", "wilson" or "auto" (t with Wilson's where labels in reach agree or are few).
        level: pointwise coverage in (0, 1).
        inclusion_probabilities: (M,) in (0, 1], the chance each item had of being labeled; None means equal.
        clusters: (M,) labels of groups that were sampled together; intervals then count clusters, not items.
        sampling: how the labels were drawn (strata, rounds), in place of ``inclusion_probabilities``.

    Returns:
        Profile. ``diagnostics`` name the interval and the verdict (signals help, neutral, hurt) per point.

    Raises:
        ValueError: shapes that do not fit, non-finite signals or profiles, options that exclude each other.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 2.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> y = (signals[:, 0] + rng.normal(size=200) > 0).astype(float)
        >>> labeled = np.arange(200) < 50
        >>> z = signals[:, 1]
        >>> profile = lace_profile(z, y, signals, labeled=labeled, at=[-0.5, 0.5])
        >>> profile.value.round(2)
        array([0.52, 0.57])
    """
    check_options(target, interval, empty, ridge)
    check_level(level)
    problem = pose_problem(
        z, y, signals, labeled, at, locality, inclusion_probabilities, clusters=clusters, sampling=sampling
    )
    fitted = fit_profile(
        problem, ridge=ridge, coefficient_locality=coefficient_locality, standardize=standardize,
        coefficients=coefficients, adapt=adapt, learner=learner, rng=rng, empty=empty,
    )  # fmt: skip
    return fitted.profile(target, interval, level)


def fit_profile(
    problem: ProfileProblem,
    *,
    ridge: float | Literal["cv"] = DEFAULT_RIDGE,
    coefficient_locality: Locality | Sequence[Locality] | None = None,
    standardize: bool = False,
    coefficients: ArrayLike | None = None,
    adapt: str | None = None,
    learner: str | None = None,
    rng: np.random.Generator | int | None = None,
    empty: Literal["pooled"] | None = None,
    binary: bool | None = None,
    keep_influence: bool = False,
    curved: bool = False,
) -> FittedProfile:
    """The rule asked for, on checked input; ``binary=False`` keeps a difference from being read as a share.

    ``curved`` lets ``adapt="curved"`` in, which is for gaps.
    """
    if adapt is None:
        if learner is not None:
            raise ValueError("learner needs adapt='average'")
        return fixed_profile(
            problem, ridge, coefficient_locality, standardize, coefficients,
            rng=rng, empty=empty, binary=binary, keep_influence=keep_influence,
        )  # fmt: skip
    if adapt == "curved" and not curved:
        raise ValueError("adapt='curved' is for means and gaps; a profile takes adapt='average'")
    if adapt not in ("average", "curved"):
        raise ValueError(f"adapt must be None or 'average', got {adapt!r}")
    if ridge is not DEFAULT_RIDGE or coefficient_locality is not None or coefficients is not None:
        raise ValueError(
            f"adapt={adapt!r} chooses its own ridge, coefficient_locality and coefficients; leave them out"
        )
    from pipeline.estimators.lace.adaptive.fit import adaptive_profile

    return adaptive_profile(
        problem, learner=learner, rng=rng, empty=empty, binary=binary, keep_influence=keep_influence,
        curved=adapt == "curved",
    )  # fmt: skip


def check_options(target: str, interval: str, empty: str | None, ridge: float | str) -> None:
    """ValueError for an option that is none of its choices."""
    if target not in ("pool", "population"):
        raise ValueError(f"target must be 'pool' or 'population', got {target!r}")
    if interval not in ("auto", "t", "wilson"):
        raise ValueError(f"interval must be 'auto', 't' or 'wilson', got {interval!r}")
    if empty not in (None, "pooled"):
        raise ValueError(f"empty must be None or 'pooled', got {empty!r}")
    if ridge == "cv":
        return
    if isinstance(ridge, str) or not np.isfinite(ridge) or ridge < 0.0:
        raise ValueError(f"ridge must be a number >= 0 or 'cv', got {ridge!r}")


def check_ridge_number(ridge: float | str) -> float:
    """λ as a float, where "cv" is not on offer."""
    if isinstance(ridge, str):
        raise ValueError(f"ridge must be a number >= 0 here, got {ridge!r}")
    check_options("pool", "auto", None, ridge)
    return float(ridge)


def fixed_profile(
    problem: ProfileProblem,
    ridge: float | Literal["cv"],
    coefficient_locality: Locality | Sequence[Locality] | None,
    standardize: bool,
    coefficients: ArrayLike | None,
    *,
    rng: np.random.Generator | int | None,
    empty: Literal["pooled"] | None,
    binary: bool | None = None,
    keep_influence: bool = False,
    method: str = "lace",
) -> FittedProfile:
    """The paper's rule on checked input."""
    axis, signals = problem.axis, problem.signals
    moments = pool_moments(axis, signals)
    scale = unit_or_spread(moments, standardize, signals)
    if standardize:
        moments = moments.rescaled(scale)
    else:
        warn_if_unscaled(moments.spread)
    coefficient_axis, gram = axis, moments.gram
    if coefficient_locality is not None:
        coefficient_axis = coefficient_axis_of(axis, coefficient_locality)
        wider = pool_moments(coefficient_axis, signals)
        gram = wider.gram / np.outer(scale, scale)
    sample = problem.sample(moments.centre, scale)
    fixed = check_coefficients(coefficients, len(axis.points), signals.shape[1])
    chosen: dict[str, Any] = {}
    if ridge == "cv":
        from pipeline.estimators.lace.adaptive.ridge import select_ridge

        ridge, chosen = select_ridge(axis, coefficient_axis, sample, moments, gram, rng)
    summary, influence = fit_all_points(
        axis, coefficient_axis, sample, moments, gram, float(ridge), fixed, keep_influence
    )
    diagnostics: dict[str, Any] = {
        "ridge": None if fixed is not None else float(ridge),
        "standardized": standardize,
        "label_draw_p": problem.draw_p,
        "locality": axis.names,
        **chosen,
    }
    if empty == "pooled":
        from pipeline.estimators.lace.empty import pooled_mean_at_empty

        summary, diagnostics["synthetic"] = pooled_mean_at_empty(summary, sample, moments.square)
    verdict = verdicts(summary.raw_r2, summary.r2, summary.n_effective, signals.shape[1])
    share = is_binary(sample.y) if binary is None else binary
    name = method if fixed is None else "lace_oracle"
    return FittedProfile(
        axis.at, summary, sample, share, moments.square, summary.df, verdict, name, diagnostics, influence
    )


def unit_or_spread(moments: PoolMoments, standardize: bool, signals: FloatArray) -> FloatArray:
    """(K,) pool sds to divide by, 1 for constant signals; ones when not standardised."""
    spread = moments.spread
    if not standardize:
        return np.ones_like(spread)
    # Rounding leaves a constant signal with an sd of about 1e-16 of its offset: that is not a scale.
    floor = 1e-13 * (np.abs(moments.centre) + np.abs(signals).max(axis=0, initial=0.0))
    return np.where(spread > floor, spread, 1.0)


def coefficient_axis_of(axis: ProfileAxis, locality: Locality | Sequence[Locality]) -> ProfileAxis:
    """The same values and points under the coefficient's locality."""
    kinds = resolve_axis(axis.z, axis.points, locality).localities
    return ProfileAxis(axis.z, axis.points, axis.at, kinds, axis.levels)


def check_coefficients(coefficients: ArrayLike | None, points: int, signals: int) -> FloatArray | None:
    """Given coefficients as (G, K)."""
    if coefficients is None:
        return None
    values = np.asarray(coefficients, dtype=np.float64)
    if values.shape != (points, signals):
        raise ValueError(f"coefficients must have shape ({points}, {signals}), got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("coefficients must be finite")
    return values


def fit_all_points(
    axis: ProfileAxis,
    coefficient_axis: ProfileAxis,
    sample: LabeledSample,
    moments: PoolMoments,
    gram: FloatArray,
    ridge: float,
    fixed: FloatArray | None,
    keep_influence: bool = False,
) -> tuple[PointSummary, FloatArray | None]:
    """Summaries of all points, a block of points at a time, and the influence values (G, n) if asked for."""
    parts, influence = [], []
    for block in point_blocks(len(axis.points), len(sample.y), sample.signals.shape[1]):
        weights = label_weights(axis, sample, axis.points[block])
        wider = weights if coefficient_axis is axis else label_weights(coefficient_axis, sample, axis.points[block])
        fit = fit_points(
            sample, weights, wider, moments.mean[block], gram[block], ridge, None if fixed is None else fixed[block]
        )
        parts.append(summarise(sample, fit))
        if keep_influence:
            influence.append(sample.sums(fit.linear * fit.residual / np.sqrt(1.0 - fit.leverage)))
    return join_summaries(parts), np.concatenate(influence) if keep_influence else None
