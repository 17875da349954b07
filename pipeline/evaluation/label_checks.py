"""Looks over the labels of a target before anything is estimated: what the reader of the numbers must know."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pipeline.benchmark.axes import tags_of
from pipeline.estimators import check_draw, cluster_components
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.results import heavy_share
from pipeline.evaluation.options import Options
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.evaluation.profiles import has_tag
from pipeline.tables.signal_checks import Notice

MIN_VARIANCE_LABELS = 8.0
"""Below this many labels behind the variance, intervals of a skewed outcome are known to be too short."""
_FEW = 20
_SKEW = 0.8
"""Skewness above which a label that carries much of the variance is no accident of a symmetric outcome."""
_NOT_RANDOM, _SURELY = 1e-3, 1e-6
"""Chances of such a difference under the draw, below which the reader is told, and told more firmly."""
_MOST_LEVELS = 30
_DISTRIBUTION_TOLERANCE = 0.02


def look_over(pool: Pool, options: Options) -> list[Notice]:
    """The notices of every target, and those about all."""
    notices = [notice for target in pool.targets for notice in _of(target, options)]
    total = sum(options.distribution.values())
    if options.distribution and abs(total - 1.0) > _DISTRIBUTION_TOLERANCE:
        notices.append(Notice("distribution_rescaled", f"the deployment shares sum to {total:.3g}; divided by it"))
    return notices


def _of(target: TargetPool, options: Options) -> list[Notice]:
    notices = []
    n, name = target.n, target.name
    if target.complete and options.target == "pool":
        text = (
            "every item is labeled, so the mean of these items is known and intervals about it have no width; leave"
            " --target pool out to learn about items like these"
        )
        notices.append(Notice("all_labeled", text, name))
    elif n < _FEW:
        notices.append(Notice("few_labels", f"{n} labels are few; intervals may be too short below {_FEW}", name))
    y = target.y[target.labeled]
    if target.clusters is not None:
        notices += [Notice("cluster_components", text, name) for text in _components(target)]
    squares = (y - y.mean()) ** 2
    largest = float(squares.max() / squares.sum()) if squares.any() else 0.0
    worth = _variance_labels(y)
    lopsided = largest > heavy_share(n) and abs(float(np.mean((y - y.mean()) ** 3))) > _SKEW * squares.mean() ** 1.5
    if not target.binary and n >= _FEW and (worth < MIN_VARIANCE_LABELS or lopsided):
        text = (
            f"the gold is very skewed: its spread rests on about {worth:.0f} of the {n} labels ({largest:.0%} of the"
            " variance on one), so intervals may be too short; more labels are the only cure for the mean; the mean of"
            " the logarithm, or of values cut at a limit, is another question that fewer answer"
        )
        notices.append(Notice("skewed_gold", text, name))
    if target.sampling.probabilities is not None or target.sampling.rounds:
        notices.append(
            Notice("unequal_chances", "labels were drawn with unequal chances, which are weighted for", name)
        )
    notices += [Notice("labels_not_random", text, name) for text in _draw(target)]
    return notices


def _draw(target: TargetPool) -> Iterator[str]:
    """Whether the labels differ from the pool by more than their draw explains, and what to do."""
    signals, names = target.filled()
    columns, labels = [*signals.T], [f"{name!r}" for name in names]
    for axis in target.profiles:
        if axis.kind == "categorical":
            levels = np.unique(axis.values).tolist()[:_MOST_LEVELS]
            columns += [(axis.values == level).astype(float) for level in levels]
            labels += [f"{axis.column!r} = {level}" for level in levels]
        elif axis.kind == "tags":
            tags = tags_of(axis.values.tolist())[:_MOST_LEVELS]
            columns += [has_tag(axis.values, tag).astype(float) for tag in tags]
            labels += [f"{axis.column!r} holds {tag}" for tag in tags]
        elif np.isfinite(axis.values).all():
            columns.append(axis.values)
            labels.append(f"{axis.column!r}")
    if not columns:
        return
    check = check_draw(np.column_stack(columns), target.labeled, clusters=target.clusters, **target.design)
    if check.column is None or check.p >= _NOT_RANDOM:
        return
    phrase = "cannot have been" if check.p < _SURELY else "do not look"
    how = "as the chances say" if target.drawn == "known" else "at random"
    mend = (
        "check --inclusion, or that later labels were drawn from the same pool"
        if target.drawn == "known"
        else "give --inclusion if they were drawn with known probabilities, else the estimate may be biased"
    )
    yield (
        f"the labels {phrase} drawn {how} (p = {check.p:.1g}; they differ most in {labels[check.column]},"
        f" z = {check.z[check.column]:.1f}): {mend}"
    )


def _components(target: TargetPool) -> Iterator[str]:
    """Where the variance of clustered labels lies, and what more rows or more clusters would buy."""
    assert target.clusters is not None
    clusters = target.clusters[target.labeled]
    if len(np.unique(clusters)) < 2:
        return
    parts = cluster_components(target.y[target.labeled], clusters)
    if parts is None:
        return

    def error(count: float, size: float) -> str:
        return f"{math.sqrt((parts['between'] + parts['within'] / size) / count):.4f}"

    count, size = parts["clusters"], parts["size"]
    yield (
        f"{count:.0f} labeled clusters of about {size:.1f} rows: {parts['share']:.0%} of the variance lies between"
        f" them; the plain mean's SE is about {error(count, size)}, and would be {error(count, 2 * size)} with twice"
        f" the rows in each, {error(2 * count, size)} with twice the clusters"
    )


def _variance_labels(y: FloatArray) -> float:
    """How many labels the variance rests on: 2n/(kurtosis − 1), n for normal outcomes, few for heavy tails."""
    centred = y - y.mean()
    second = float(np.mean(centred**2))
    kurtosis = float(np.mean(centred**4)) / second**2 if second > 0.0 else 0.0
    return min(2.0 * len(y) / (kurtosis - 1.0), float(len(y))) if kurtosis > 1.0 else float(len(y))
