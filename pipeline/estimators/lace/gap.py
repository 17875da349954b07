"""The difference of two models along a profile, estimated directly from paired outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import FloatArray, as_floats
from pipeline.estimators.intervals import check_level, t_quantile
from pipeline.estimators.lace.fixed import DEFAULT_RIDGE, check_options, pose_problem
from pipeline.estimators.lace.interval import Interval, Target
from pipeline.estimators.lace.localities import Locality
from pipeline.estimators.lace.profile import fit_profile
from pipeline.estimators.results import Profile
from pipeline.estimators.sampling import Sampling
from pipeline.estimators.validation import check_outcome, check_signals, is_binary


def lace_gap(
    z: ArrayLike,
    y_a: ArrayLike,
    y_b: ArrayLike,
    signals_a: ArrayLike,
    signals_b: ArrayLike,
    *,
    pairwise: ArrayLike | None = None,
    at: ArrayLike | None = None,
    labeled: ArrayLike | None = None,
    locality: Locality | Sequence[Locality] | None = None,
    ridge: float | Literal["cv"] = DEFAULT_RIDGE,
    coefficient_locality: Locality | Sequence[Locality] | None = None,
    standardize: bool = False,
    adapt: Literal["average", "curved"] | None = None,
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
    """Δ̂(z) = D̄_L(z) − β̂(z)'{H̄_L(z) − H̄_T(z)} with D = Y_a − Y_b and H = (S_a, S_b, S_a − S_b[, pairwise]).

    Equation 3 of the paper. Pairing removes what the two models share item by item.

    Args:
        z: (M,) or (M, q) profile values.
        y_a, y_b: (M,) outcomes of the two models, NaN where not labeled.
        signals_a, signals_b: (M, K) signals of the two models, column by column the same.
        pairwise: (M, P) or (M,) signals of the pair itself.
        labeled: (M,) booleans; None means where both outcomes are finite.
        at, locality, ridge, coefficient_locality, standardize, adapt, rng, empty, target, level,
            inclusion_probabilities, clusters, sampling: as in ``lace_profile``.
            ``adapt="curved"`` adds regressions on the squares of both scales to the candidates of "average".
        learner: as in ``lace_profile``; a difference of right and wrong answers takes three values, so that
            "logistic" is refused unless every difference is 0 or 1.
        interval: "auto" or "t"; a difference has no Wilson interval.

    Returns:
        Profile of the difference; ``beta`` has the columns of H. Where right and wrong answers of the two models agree
        on every label the interval is Agresti and Min's: no difference seen proves no equality.

    Raises:
        ValueError: shapes that do not fit, signals of different width, non-finite signals.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 3.
        Agresti and Min, "Simple Improved Confidence Intervals for Comparing Matched Proportions" (2005), Statistics
            in Medicine 24.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> z = rng.choice(['easy', 'hard'], 200)
        >>> y = np.where(np.arange(200)[:, None] < 80, signals + rng.normal(size=(200, 2)) > [0.0, 0.5], np.nan)
        >>> lace_gap(z, y[:, 0], y[:, 1], signals[:, :1], signals[:, 1:]).value.round(2)
        array([0.05, 0.18])
    """
    check_options(target, interval, empty, ridge)
    check_level(level)
    if interval == "wilson":
        raise ValueError("interval='wilson' is for shares; a gap takes 'auto' or 't'")
    first, second = as_floats(y_a, "y_a"), as_floats(y_b, "y_b")
    if first.shape != second.shape:
        raise ValueError(f"y_a and y_b must have the same shape, got {first.shape} and {second.shape}")
    mask = np.isfinite(first) & np.isfinite(second) if labeled is None else labeled
    first, rows = check_outcome(first, mask)
    second, _ = check_outcome(second, rows)
    features = gap_signals(signals_a, signals_b, pairwise)
    problem = pose_problem(
        z, first - second, features, rows, at, locality, inclusion_probabilities, clusters=clusters, sampling=sampling
    )
    fitted = fit_profile(
        problem, ridge=ridge, coefficient_locality=coefficient_locality, standardize=standardize, adapt=adapt,
        learner=learner, rng=rng, empty=empty, binary=False, curved=True,
    )  # fmt: skip
    fitted.facts["contrast"] = "a - b"
    profile = fitted.profile(target, interval, level)
    return unless_all_agree(profile, first[rows], second[rows], len(rows)) if interval == "auto" else profile


def unless_all_agree(profile: Profile, first: FloatArray, second: FloatArray, pool: int) -> Profile:
    """The profile, but where two models agree on every 0/1 label half a count in each cell (Agresti and Min), no point.

    Args:
        profile: their gap.
        first, second: (n,) outcomes at the labels.
        pool: M.
    """
    sampled = 1.0 - len(first) / pool if profile.target == "pool" else 1.0
    if sampled == 0.0 or not (np.array_equal(first, second) and is_binary(first)):
        return profile
    half = t_quantile(profile.df, profile.level) * np.sqrt(sampled) / (profile.n_effective + 2.0)
    low, high = np.maximum(profile.value - half, -1.0), np.minimum(profile.value + half, 1.0)
    kinds = ["agresti-min" if kind == "t" else kind for kind in profile.interval]
    diagnostics = {**profile.diagnostics, "interval": kinds}
    return replace(profile, low=low, high=high, interval=tuple(kinds), diagnostics=diagnostics)


def gap_signals(signals_a: ArrayLike, signals_b: ArrayLike, pairwise: ArrayLike | None) -> FloatArray:
    """H = (S_a, S_b, S_a − S_b[, pairwise]), (M, 3K + P)."""
    first = check_signals(signals_a, name="signals_a")
    second = check_signals(signals_b, name="signals_b")
    if first.shape != second.shape:
        raise ValueError(f"signals_a and signals_b must have the same shape, got {first.shape} and {second.shape}")
    parts = [first, second, first - second]
    if pairwise is not None:
        parts.append(check_signals(pairwise, len(first), name="pairwise"))
    return np.concatenate(parts, axis=1)
