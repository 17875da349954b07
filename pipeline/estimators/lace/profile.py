"""LACE profiles: the estimator a caller sees, with the paper's fixed rule or the adaptive one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.intervals import check_level
from pipeline.estimators.lace.adaptive.fit import adaptive_profile
from pipeline.estimators.lace.fixed import DEFAULT_RIDGE, ProfileProblem, check_options, fixed_profile, pose_problem
from pipeline.estimators.lace.interval import (
    FittedProfile,
    Interval,
    Target,
)
from pipeline.estimators.lace.localities import Locality
from pipeline.estimators.results import Profile
from pipeline.estimators.sampling import Sampling
from pipeline.estimators.signals import PreparedSignals


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
    return adaptive_profile(
        problem, learner=learner, rng=rng, empty=empty, binary=binary, keep_influence=keep_influence,
        curved=adapt == "curved",
    )  # fmt: skip
