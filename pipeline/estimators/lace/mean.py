"""The mean of an outcome over a pool, from few labels and many signals: one number with its interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import BoolArray, FloatArray
from pipeline.estimators.folds import scrambled
from pipeline.estimators.intervals import check_level
from pipeline.estimators.lace.adaptive.ridge import select_ridge
from pipeline.estimators.lace.averaged import averaged_fit
from pipeline.estimators.lace.fixed import DEFAULT_RIDGE, ProfileProblem, check_options, unit_or_spread
from pipeline.estimators.lace.interval import Interval, Target
from pipeline.estimators.lace.localities import Categorical, ProfileAxis
from pipeline.estimators.lace.pool import pool_moments
from pipeline.estimators.lace.scalar import ScalarFit, ridge_scalar, scalar_estimate
from pipeline.estimators.results import Estimate
from pipeline.estimators.sampling import LabelDraw, Sampling, resolve_draw
from pipeline.estimators.signals import PreparedSignals, prepare_signals
from pipeline.estimators.validation import (
    check_outcome,
    check_probabilities,
    check_signals,
    is_binary,
    warn_if_unscaled,
)
from pipeline.estimators.worth import jackknife_worth


def lace_mean(
    y: ArrayLike,
    signals: ArrayLike | PreparedSignals,
    *,
    labeled: ArrayLike | None = None,
    ridge: float | Literal["cv"] = DEFAULT_RIDGE,
    adapt: Literal["average", "curved"] | None = None,
    learner: Literal["logistic"] | None = "logistic",
    rng: np.random.Generator | int | None = None,
    clusters: ArrayLike | None = None,
    standardize: bool = False,
    target: Target = "pool",
    interval: Interval = "auto",
    level: float = 0.95,
    inclusion_probabilities: ArrayLike | None = None,
    sampling: Sampling | None = None,
    worth_range: bool = False,
) -> Estimate:
    """Mean outcome of the pool: θ̂ = Ȳ_L − β̂'(S̄_L − S̄_T).

    With ``adapt=None`` β̂ is the ridge coefficient (Σ_SS + λI)⁻¹Σ_SY of the paper with one category;
    ``adapt="average"`` averages ridge, single-signal and logistic candidates by how well they predict left-out
    labels. ``adapt="curved"`` adds polynomials and quantile bins of every signal to them and gives right and wrong
    answers the degrees of freedom of their plain mean: it is the rule to use on real data.

    Args:
        y: (M,) outcomes, NaN where not labeled; never read outside ``labeled``.
        signals: (M, K) or (M,) finite numbers, or ``prepare_signals`` of them.
        labeled: (M,) booleans; None means where ``y`` is finite.
        ridge: λ ≥ 0 on the scale of the signals, or "cv".
        adapt: None, "average" or "curved" (both standardise the signals and take no ridge).
        learner: "logistic" adds cross-fitted logistic candidates to the adaptive rule where y is binary.
        rng: seed of their folds; None means folds fixed by the data.
        clusters: (M,) labels of groups that were sampled together: the variance is then cluster-robust.
        standardize: divide the signals by their pool sd first (``adapt=None``).
        target: "pool" for the mean of these M items, "population" for the mean of what they were drawn from.
        interval: "t", "wilson" or "auto".
        level: coverage in (0, 1).
        inclusion_probabilities: (M,) in (0, 1], the chance each item had of being labeled (Hájek weights); None
            means equal.
        sampling: how the labels were drawn (strata, rounds), in place of ``inclusion_probabilities``.
        worth_range: ``worth_low`` and ``worth_high`` by a jackknife that fits anew (up to 80 times); without, from the
            influence values of the one fit, about half as wide.

    Returns:
        Estimate; ``diagnostics`` hold the degrees of freedom, the local R², the verdict and the rule.

    Raises:
        ValueError: shapes that do not fit, non-finite signals, no labels, options that exclude each other.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 2 with one category.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> y = (signals[:, 0] + rng.normal(size=200) > 0).astype(float)
        >>> labeled = np.arange(200) < 50
        >>> estimate = lace_mean(y, signals, labeled=labeled, adapt='average')
        >>> round(estimate.value, 3), estimate.se < estimate.naive_se
        (0.56, True)
    """
    check_options(target, interval, None, ridge)
    check_level(level)
    values = check_signals(signals)
    rows = len(values)
    outcome, mask = check_outcome(y, labeled, rows)
    inclusion = check_probabilities(inclusion_probabilities, rows)
    draw = resolve_draw(sampling, mask, clusters, inclusion)
    if adapt is None:
        fit = _fixed_mean(values, outcome, mask, draw, ridge, standardize, rng)
    elif adapt not in ("average", "curved"):
        raise ValueError(f"adapt must be None, 'average' or 'curved', got {adapt!r}")
    elif ridge is not DEFAULT_RIDGE:
        raise ValueError(f"adapt={adapt!r} chooses its own ridge; leave it out")
    else:
        if learner not in (None, "logistic"):
            raise ValueError(f"learner must be None or 'logistic', got {learner!r}")
        ready = signals if isinstance(signals, PreparedSignals) else values
        fit = averaged_fit(ready, outcome, mask, draw, learner, rng, curved=adapt == "curved")
        if adapt == "curved" and is_binary(outcome[mask]):
            # In Wilson's form the fewer degrees of the errors made intervals wider than those of the labels alone.
            fit = replace(fit, df=max(1.0 / float(draw.shares @ draw.shares) - 1.0, 1.0))
    method = "lace" if adapt is None else f"lace_{adapt}"
    estimate = scalar_estimate(
        fit, outcome[np.flatnonzero(mask)], target, interval, level, method, wilson_form=adapt is not None
    )
    if not worth_range or len(outcome) == int(mask.sum()):
        return estimate
    ready = signals if isinstance(signals, PreparedSignals) else prepare_signals(values)
    at = np.flatnonzero(mask)
    chances = None if inclusion is None else np.minimum(inclusion, 1.0 - 1e-9)  # a label left out was not certain

    def refit(kept: BoolArray) -> Estimate:
        fewer = mask.copy()
        fewer[at[~kept]] = False
        return lace_mean(
            outcome, ready, labeled=fewer, ridge=ridge, adapt=adapt, learner=None, rng=rng, clusters=clusters,
            standardize=standardize, target=target, level=level, inclusion_probabilities=chances, sampling=sampling,
        )  # fmt: skip

    units = np.arange(len(at)) if draw.clusters is None else draw.clusters
    return jackknife_worth(estimate, units, scrambled(np.column_stack([outcome[at], values[at]])), refit)


def _fixed_mean(
    signals: FloatArray,
    outcome: FloatArray,
    mask: BoolArray,
    draw: LabelDraw,
    ridge: float | Literal["cv"],
    standardize: bool,
    rng: np.random.Generator | int | None,
) -> ScalarFit:
    axis = one_category(len(signals))
    moments = pool_moments(axis, signals)
    scale = unit_or_spread(moments, standardize, signals)
    if standardize:
        moments = moments.rescaled(scale)
    else:
        warn_if_unscaled(moments.spread)
    sample = ProfileProblem(axis, signals, outcome, mask, None, 1.0).sample(moments.centre, scale)
    diagnostics: dict[str, Any] = {}
    if ridge == "cv":
        ridge, diagnostics = select_ridge(axis, axis, sample, moments, moments.gram, rng, balanced=False)
    more = {"standardized": standardize, **diagnostics}
    return ridge_scalar(sample, moments.mean, moments.gram, float(ridge), draw, more)


def one_category(rows: int) -> ProfileAxis:
    """The axis of an unconditional mean: every item in the same category."""
    return ProfileAxis(np.zeros((rows, 1)), np.zeros((1, 1)), np.array([0]), (Categorical(),), (np.array([0]),))
