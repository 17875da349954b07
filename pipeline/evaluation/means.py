"""How each method of a mean is run: the arrays of one target, and the options its estimator gets."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.estimators import Estimate, labels_mean, lace_mean
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.worth import with_worth
from pipeline.evaluation.options import RULE, Options, generator
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.tables.user_table import nearest_names

RANGED_TARGETS = 20
"""Targets up to which the range of what signals are worth comes from refits, at about a second each."""
ONE_STEP_FOLDS_FROM = 50
"""Labels from which a cross-fitted power beats the leave-one-out one."""


def known_mean(pool: Pool, target: TargetPool, options: Options) -> Estimate:
    """The mean over all items where every outcome is known: what the other numbers try to reach."""
    assert target.truth is not None
    outcomes = target.truth[np.isfinite(target.truth)]
    value, n = float(outcomes.mean()), len(outcomes)
    return Estimate(value, 0.0, value, value, options.level, n, "gold_all", target="pool", pool_size=n, interval="none")


def naive(pool: Pool, target: TargetPool, options: Options) -> Estimate:
    """The mean of the labels under the draw that made them, about the same target as every other method."""
    return labels_mean(
        target.y, labeled=target.labeled, clusters=target.clusters, target=options.target, level=options.level,
        **target.design,
    )  # fmt: skip


def repeated(pool: Pool, target: TargetPool, options: Options) -> Estimate:
    """The mean over several answers to each labeled item; the item's mean over its answers is its outcome."""
    from pipeline.estimators import repeated_decoding_mean

    assert target.repeats is not None
    outcomes = target.repeats[target.labeled]
    answered = np.isfinite(outcomes)
    outcomes, answered = outcomes[answered.any(axis=1)], answered[answered.any(axis=1)]
    filled = np.where(answered, outcomes, np.nanmean(outcomes, axis=1, keepdims=True))
    shares = bool(np.isin(outcomes[answered], (0.0, 1.0)).all())  # an item's mean over its answers is no outcome
    return repeated_decoding_mean(filled, interval="wilson" if shares else "t", level=options.level)


def lace(pool: Pool, target: TargetPool, options: Options, *, ranged: bool = True) -> Estimate:
    """The adaptive LACE mean, curves among its candidates; of 0/1 outcomes with a learner, folds fixed by the data.

    ``ranged``: with the range of what the signals are worth, which costs most of the time; a look needs none.
    """
    estimate = lace_mean(
        target.y, target.filled()[0], labeled=target.labeled, adapt=RULE,
        learner="logistic" if target.binary else None, clusters=target.clusters, level=options.level,
        target=options.target, worth_range=ranged and len(pool.targets) <= RANGED_TARGETS, **target.design,
    )  # fmt: skip
    return replace(estimate, method="lace")


def lace_cascade(pool: Pool, target: TargetPool, options: Options) -> Estimate:
    """The mean in three layers: signals everywhere, an expensive rater on some items, labels on fewer."""
    from pipeline.estimators import Categorical
    from pipeline.estimators import lace_cascade as cascade

    assert target.ratings is not None
    profile = cascade(
        np.zeros(target.size), target.y, target.ratings, target.filled()[0], labeled=target.labeled,
        locality=Categorical(), standardize=True, target=options.target, level=options.level,
    )  # fmt: skip
    value, se, low, high, df = (
        float(part[0]) for part in (profile.value, profile.se, profile.low, profile.high, profile.df)
    )
    plain = naive(pool, target, options)
    return with_worth(
        Estimate(
            value, se, low, high, options.level, target.n, "lace_cascade", profile.diagnostics, target=profile.target,
            pool_size=target.size, df=df, interval=profile.interval[0], verdict=profile.verdict[0],
            binary=profile.binary, naive_value=plain.value, naive_se=plain.se, outcome_variance=plain.outcome_variance,
        )
    )  # fmt: skip


# --- one step -------------------------------------------------------------------------------------------------------


def one_step(pool: Pool, target: TargetPool, options: Options) -> Estimate:
    """Labeled items, corrected within each item; the power from the other targets where there are three or more."""
    return _corrected(pool, target, options, "one_step")


def plain_one_step(pool: Pool, target: TargetPool, options: Options) -> Estimate:
    """The same with power 1, as in the paper."""
    return _corrected(pool, target, options, "one_step_paper", power=1.0)


def one_step_pool(pool: Pool, target: TargetPool, options: Options) -> Estimate:
    """Labeled items, corrected by the predictions for all items."""
    return _corrected(pool, target, options, "one_step_pool", pool_tau=target.taus)


def _corrected(pool: Pool, target: TargetPool, options: Options, method: str, **given: Any) -> Estimate:
    from pipeline.estimators import one_step_mean

    assert target.taus is not None
    labeled, chances = target.labeled, target.chances
    if "pool_tau" in given:  # alone it is about items like these
        given["target"] = options.target
    estimate = one_step_mean(
        target.y[labeled], target.taus[labeled], clusters=None if target.clusters is None else target.clusters[labeled],
        level=options.level, inclusion_probabilities=None if chances is None else chances[labeled],
        rng=generator(options.seed, "one_step", target.name), **{**_power(pool, target), **given},
    )  # fmt: skip
    return replace(estimate, method=method)


def _power(pool: Pool, target: TargetPool) -> dict[str, Any]:
    """The rule of the tuned power: pooled over three or more targets, else leave-one-out below 50 labels, else
    cross-fitted."""
    others = [other for other in pool.targets if other is not target and other.taus is not None and other.n >= 2]
    if len(others) < 2:
        return {"power": "loo" if target.n < ONE_STEP_FOLDS_FROM else "cross-fit"}
    return {
        "power": "pooled",
        "power_from": [(o.y[o.labeled], o.taus[o.labeled]) for o in others if o.taus is not None],
    }


# --- deployment -----------------------------------------------------------------------------------------------------


def lace_deployment(pool: Pool, target: TargetPool, options: Options) -> Estimate:
    """The LACE mean under deployment weights."""
    from pipeline.estimators import lace_deployment as deployed

    signals = target.filled()[0]
    columns = signals if signals.shape[1] else np.zeros((target.size, 1))
    estimate = deployed(
        target.y, columns, _ratio(target, options), labeled=target.labeled, adapt="average", level=options.level,
        target=options.target, clusters=target.clusters, **target.design,
    )  # fmt: skip
    return replace(estimate, method="lace_deployment")


def _ratio(target: TargetPool, options: Options) -> FloatArray:
    """Deployment weight of every item: the weights column, or share in deployment over share in the pool."""
    if target.weights is not None:
        return np.asarray(target.weights / target.weights.mean())
    if not target.profiles or target.profiles[0].kind in ("continuous", "tags"):
        raise InputError("a target distribution over values needs --profile with an ordinal or categorical column")
    axis = target.profiles[0]
    labels = [_level_name(value) for value in axis.values.tolist()]
    counts = Counter(labels)
    unknown = [name for name in options.distribution if name not in counts]
    if unknown:
        close = nearest_names(unknown[0], sorted(counts))
        hint = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(sorted(counts)[:12])}"
        raise InputError(f"--weights: column {axis.column!r} has no value {unknown[0]!r}; {hint}")
    total = sum(options.distribution.values())
    share = {
        name: options.distribution.get(name, 0.0) / total / (count / len(labels)) for name, count in counts.items()
    }
    return np.array([share[name] for name in labels])


def _level_name(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:g}"
    return str(value)
