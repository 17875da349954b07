"""One door to all thirteen methods: arrays and a method's name in, a Profile out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.comparators.comparison import (
    Comparison,
    ComparisonPool,
    check_folds,
    predictor_covariates,
    split_folds,
)
from pipeline.estimators.comparators.conditional import ppci
from pipeline.estimators.comparators.control_variates import (
    aug_plugin,
    global_cv,
    per_signal_cv,
    residual_only,
    scalar_cv,
)
from pipeline.estimators.comparators.local_linear import local_ppi
from pipeline.estimators.comparators.plug_in import plugin_judge, plugin_multi, strat_ppi
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import check_level
from pipeline.estimators.lace.interval import Interval, Target
from pipeline.estimators.lace.localities import Locality, resolve_axis
from pipeline.estimators.lace.profile import lace_profile
from pipeline.estimators.results import Profile
from pipeline.estimators.signals import scale_of, standardize_signals
from pipeline.estimators.validation import check_outcome, check_probabilities, check_signals, is_binary

_PLAIN: dict[str, Callable[[Comparison], FloatArray]] = {
    "plugin_judge": plugin_judge,
    "plugin_multi": plugin_multi,
    "local_ppi": local_ppi,
    "residual_only": lambda problem: residual_only(problem)[0],
}
_CONTROL: dict[str, Callable[[Comparison], tuple[FloatArray, FloatArray]]] = {
    "aug_plugin": aug_plugin,
    "scalar_cv": scalar_cv,
    "global_cv": global_cv,
}
_PREDICTIVE = ("plugin_judge", "plugin_multi", "aug_plugin", "scalar_cv", "strat_ppi", "ppci")

METHODS: tuple[str, ...] = (
    "naive",
    "plugin_judge",
    "plugin_multi",
    "aug_plugin",
    "strat_ppi",
    "scalar_cv",
    "local_ppi",
    "ppci",
    "global_cv",
    "per_signal_cv",
    "residual_only",
    "lace_oracle",
    "lace",
)
"""Every method name, in the paper's order."""


def comparator_value(method: str, problem: Comparison, *, strata: int = 5, tikhonov: float = 1.0) -> FloatArray:
    """Point estimates (G,) of a method other than ``lace`` and ``lace_oracle``; NaN where nothing is in reach.

    Args:
        method: a name of ``METHODS``.
        problem: the labeled split.
        strata: number of strata of ``strat_ppi``.
        tikhonov: factor on the L-curve penalty of ``ppci``.

    Raises:
        ValueError: an unknown method.
    """
    if method == "naive":
        value = problem.naive.copy()
    elif method == "per_signal_cv":
        value = per_signal_cv(problem)[0]
    elif method == "strat_ppi":
        return strat_ppi(problem, strata)
    elif method == "ppci":
        return ppci(problem, tikhonov)
    elif method in _CONTROL:
        value = _CONTROL[method](problem)[0]
    elif method in _PLAIN:
        value = _PLAIN[method](problem)
        if method.startswith("plugin"):
            return np.where(problem.pool.weights.any(axis=1), value, np.nan)
    else:
        raise ValueError(f"unknown method {method!r}; choose from {', '.join(METHODS)}")
    return np.where(problem.weights.any(axis=1), value, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOptions:
    """What the predictors and folds of a split are made with; fields as the arguments of ``comparator_profile``."""

    primary: int = 0
    raw_judge: ArrayLike | None = None
    ridge: float = 0.3
    C: float = 1.0
    fold_of: ArrayLike | None = None
    pool_fold_of: ArrayLike | None = None
    rng: np.random.Generator | int | None = None


def build_comparison(
    z: ArrayLike,
    y: ArrayLike,
    signals: ArrayLike,
    options: SplitOptions,
    *,
    labeled: ArrayLike | None = None,
    at: ArrayLike | None = None,
    locality: Locality | Sequence[Locality] | None = None,
    inclusion_probabilities: ArrayLike | None = None,
) -> Comparison:
    """Check the arrays and make the split that every method works on; arguments as in ``comparator_profile``."""
    primary, ridge, fold_of, pool_fold_of = options.primary, options.ridge, options.fold_of, options.pool_fold_of
    outcome, mask = check_outcome(y, labeled)
    size = len(outcome)
    covariates = check_signals(signals, size)
    axis = resolve_axis(z, at, locality)
    if len(axis.z) != size:
        raise ValueError(f"z must have {size} rows like y, got {len(axis.z)}")
    if not 0 <= primary < max(covariates.shape[1], 1):
        raise ValueError(f"primary must be a signal column from 0 to {covariates.shape[1] - 1}, got {primary}")
    if not (np.isfinite(ridge) and ridge >= 0.0):
        raise ValueError(f"ridge must be finite and at least 0, got {ridge!r}")
    if options.raw_judge is None:
        judge = covariates[:, primary] if covariates.shape[1] else np.zeros(size)
    else:
        judge = check_signals(options.raw_judge, size, "raw_judge")[:, 0]
    rows = np.flatnonzero(mask)
    generator = np.random.default_rng(0 if options.rng is None else options.rng)
    everyone = np.ones(size, dtype=np.bool_)
    pool = ComparisonPool(
        axis=axis,
        signals=covariates,
        covariates=predictor_covariates(axis, covariates),
        primary=primary,
        raw_judge=judge,
        fold=(
            split_folds(size, generator)
            if pool_fold_of is None
            else check_folds(pool_fold_of, everyone, "pool_fold_of")
        ),
    )
    folds = split_folds(len(rows), generator) if fold_of is None else check_folds(fold_of, mask, "fold_of")
    inclusion = check_probabilities(inclusion_probabilities, size)
    if inclusion is not None and not mask[inclusion == 1.0].all():
        raise ValueError("items with inclusion probability 1 are not labeled; give the share that was labeled")
    return Comparison(pool, rows, outcome[rows], folds, float(ridge), options.C, inclusion)


def comparator_profile(
    method: str,
    z: ArrayLike,
    y: ArrayLike,
    signals: ArrayLike,
    *,
    labeled: ArrayLike | None = None,
    primary: int = 0,
    raw_judge: ArrayLike | None = None,
    at: ArrayLike | None = None,
    locality: Locality | Sequence[Locality] | None = None,
    ridge: float = 0.3,
    C: float = 1.0,
    fold_of: ArrayLike | None = None,
    pool_fold_of: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    coefficients: ArrayLike | None = None,
    coefficient_locality: Locality | Sequence[Locality] | None = None,
    standardize: bool = False,
    strata: int = 5,
    tikhonov: float = 1.0,
    target: Target = "pool",
    interval: Interval = "auto",
    level: float = 0.95,
    inclusion_probabilities: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> Profile:
    """The profile of one of the thirteen methods of the paper's comparison (section 5.2).

    Args:
        method: a name of ``METHODS``.
        z: (M,) or (M, q) profile of the pool; strings for a categorical one.
        y: (M,) outcomes, NaN where not labeled; the logistic predictors need them in [0, 1].
        signals: (M, K) finite signals, used as given unless ``standardize``.
        labeled: (M,) bool; None means where y is finite. y elsewhere is never read.
        primary: column of the judge signal.
        raw_judge: (M,) score that local PPI takes as its external predictor; None means the primary signal.
        at: profile points; by default 20 from the 5th to the 95th percentile, or the levels.
        locality: kernel; by default Gaussian of the rule-of-thumb bandwidth for numbers, Categorical for strings.
        ridge: λ of the control variates.
        C: inverse penalty of the logistic predictors.
        fold_of: (M,) 0 or 1 at labeled items (−1 elsewhere): the folds of out-of-fold predictions.
        pool_fold_of: (M,) 0 or 1: PPCI's folds of the pool.
        rng: generator or seed that draws folds that are not given; by default a fixed seed.
        coefficients: (G, K) true coefficients of ``lace_oracle``.
        coefficient_locality: kernel of the coefficients of ``lace``.
        standardize: standardise the signals over the pool first (not the raw judge).
        strata: number of strata of ``strat_ppi``.
        tikhonov: factor on the L-curve penalty of ``ppci``.
        target, interval, level: as in ``lace_profile``.
        inclusion_probabilities: (M,) chances of being labeled: every mean and predictor weighs labels by their inverse.
        clusters: (M,) labels of groups sampled together, for the methods that have an interval.

    Returns:
        A Profile. Methods that are control variates with a coefficient (naive, aug_plugin, scalar_cv, global_cv,
        per_signal_cv, lace, lace_oracle) carry LACE's interval for that coefficient; the others have no interval of
        their own: their se, low, high, df and variance are NaN.

    Raises:
        ValueError: unknown method, bad arrays, outcomes outside [0, 1] for a logistic predictor.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            section 5.2.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> z = rng.uniform(size=200)
        >>> y = np.where(np.arange(200) < 80, rng.uniform(size=200) < z, np.nan)
        >>> comparator_profile('scalar_cv', z, y, signals, at=[0.25, 0.75]).value.round(2)
        array([0.26, 0.74])
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose from {', '.join(METHODS)}")
    if (coefficients is not None) != (method == "lace_oracle"):
        raise ValueError("coefficients go with lace_oracle, and lace_oracle needs them")
    check_level(level)
    given = check_signals(signals)
    used = standardize_signals(given) if standardize else given
    if raw_judge is None and 0 <= primary < given.shape[1]:
        raw_judge = given[:, primary]
    common: dict[str, Any] = {
        "labeled": labeled, "at": at, "locality": locality, "inclusion_probabilities": inclusion_probabilities,
    }  # fmt: skip
    interval_options: dict[str, Any] = {"target": target, "interval": interval, "level": level, "clusters": clusters}
    if method in ("lace", "lace_oracle"):
        options: dict[str, Any] = {"coefficients": coefficients, "coefficient_locality": coefficient_locality}
        return replace(lace_profile(z, y, used, ridge=ridge, **options, **common, **interval_options), method=method)
    split = SplitOptions(
        primary=primary, raw_judge=raw_judge, ridge=ridge, C=C, fold_of=fold_of, pool_fold_of=pool_fold_of, rng=rng
    )
    problem = build_comparison(z, y, used, split, **common)
    if method in _PREDICTIVE and np.any((problem.y < 0.0) | (problem.y > 1.0)):
        raise ValueError(f"{method} fits logistic predictors, which need outcomes in [0, 1]")
    control = _as_control_variate(method, problem)
    if control is not None:
        columns, beta = control
        scale = scale_of(columns)[1]  # lace_profile wants unit scale, and the product of the two is what counts
        profile = lace_profile(z, y, columns, coefficients=beta * scale, standardize=True, **common, **interval_options)
        return replace(profile, beta=beta, method=method)
    value = comparator_value(method, problem, strata=strata, tikhonov=tikhonov)
    return _without_interval(method, problem, value, target, level)


def _as_control_variate(method: str, problem: Comparison) -> tuple[FloatArray, FloatArray] | None:
    """The control variate's columns (M, k) and coefficients (G, k), for methods that are one."""
    if method == "naive":
        return problem.pool.signals[:, :0], np.zeros((len(problem.naive), 0))
    if method == "per_signal_cv":
        return problem.pool.signals[:, [problem.pool.primary]], per_signal_cv(problem)[1]
    if method == "global_cv":
        return problem.pool.signals, np.array(global_cv(problem)[1])
    if method == "scalar_cv":
        return problem.signal_prediction[:, None], scalar_cv(problem)[1]
    if method == "aug_plugin":
        return problem.composite_prediction[:, None], aug_plugin(problem)[1]
    return None


def _without_interval(method: str, problem: Comparison, value: FloatArray, target: str, level: float) -> Profile:
    unknown = np.full(len(value), np.nan)
    square = (problem.weights**2).sum(axis=1)
    n_effective = np.divide(1.0, square, out=np.zeros_like(square), where=square > 0.0)
    return Profile(
        at=problem.pool.axis.at,
        value=value,
        se=unknown,
        low=unknown,
        high=unknown,
        n_effective=n_effective,
        df=unknown,
        variance=unknown,
        r2=unknown,
        gain=unknown,
        beta=np.empty((len(value), 0)),
        method=method,
        target=target,
        level=level,
        smoothed=any(name != "categorical" for name in problem.pool.axis.names),
        n=len(problem.y),
        pool_size=len(problem.pool.signals),
        interval=("none",) * len(value),
        localities=tuple(problem.pool.axis.names),
        binary=is_binary(problem.y),
        diagnostics={"interval": "none", "reason": f"{method} defines no interval", "binary": is_binary(problem.y)},
    )
