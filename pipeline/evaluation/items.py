"""One row per item: the rows of one item of one target are averaged, since labels count items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators import Sampling
from pipeline.estimators.floats import FloatArray
from pipeline.evaluation.pool import Axis, TargetPool
from pipeline.tables.signal_checks import Notice


def items_of(target: TargetPool, notices: list[Notice]) -> TargetPool:
    """The target with one row per item, sorted by id; the same where its items have no ids.

    Outcomes are averaged over an item's labeled rows, signals, predictions, weights and chances over all of its rows;
    its cluster and its place on an axis are those of its first row.
    """
    if target.ids is None:
        return target
    ids, first, inverse = np.unique(target.ids, return_index=True, return_inverse=True)
    if len(ids) == target.size:
        return target.of(first)
    return _averaged(target, ids, first, inverse, notices)


def _averaged(
    target: TargetPool, ids: NDArray[np.str_], first: NDArray[np.intp], inverse: NDArray[np.intp], notices: list[Notice]
) -> TargetPool:
    labels = np.bincount(inverse, weights=target.labeled)
    labeled = labels > 0
    filled = np.where(target.labeled, target.y, 0.0)
    y = np.where(labeled, np.bincount(inverse, weights=filled) / np.maximum(labels, 1.0), np.nan)
    highest, lowest = np.full(len(ids), -np.inf), np.full(len(ids), np.inf)
    np.maximum.at(highest, inverse[target.labeled], target.y[target.labeled])
    np.minimum.at(lowest, inverse[target.labeled], target.y[target.labeled])
    differ = int((highest[labeled] > lowest[labeled]).sum())
    text = (
        f"item ids repeat: {target.size} rows are {len(ids)} items; an item's rows are averaged, and labels count items"
    )
    if differ:
        text += f" (the gold of {differ} items differs between their rows)"
    copies = int(_copies(target).sum())
    if copies:
        text += f"; {copies} rows equal another row of their item in every column in use"
    notices.append(Notice("repeated_ids", text, target.name))

    def mean(values: FloatArray | None) -> FloatArray | None:
        return None if values is None else _means(values, inverse, len(ids))

    signals = mean(target.signals)
    assert signals is not None
    return replace(
        target, y=y, labeled=labeled, signals=signals, ids=ids,
        profiles=tuple(Axis(axis.column, axis.kind, axis.values[first]) for axis in target.profiles),
        clusters=None if target.clusters is None else target.clusters[first], weights=mean(target.weights),
        sampling=target.sampling.take(first)
        if target.sampling.rounds
        else Sampling(probabilities=mean(target.sampling.probabilities)), taus=mean(target.taus),
        repeats=mean(target.repeats), truth=mean(target.truth), ratings=mean(target.ratings),
    )  # fmt: skip


def _means(values: FloatArray, groups: NDArray[np.intp], count: int) -> FloatArray:
    """Means over the finite values of each group, (count,) or (count, K); NaN where there is none."""
    columns = values[:, None] if values.ndim == 1 else values
    means = np.empty((count, columns.shape[1]))
    for k, column in enumerate(columns.T):
        there = np.isfinite(column)
        number = np.bincount(groups[there], minlength=count)
        total = np.bincount(groups[there], weights=column[there], minlength=count)
        means[:, k] = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return means[:, 0] if values.ndim == 1 else means


def _copies(target: TargetPool) -> NDArray[np.bool_]:
    """(rows,) whether every value of a row equals those of an earlier row of the same item."""
    parts: list[NDArray[Any]] = [target.y, *target.signals.T]
    parts += [] if target.taus is None else [*target.taus.T]
    parts += [] if target.weights is None else [target.weights]
    codes = [np.unique(part, return_inverse=True)[1] for part in (target.ids, *parts) if part is not None]
    codes += [np.unique(axis.values, return_inverse=True)[1] for axis in target.profiles]
    _, first = np.unique(np.stack(codes, axis=1), axis=0, return_index=True)
    copies = np.ones(target.size, dtype=bool)
    copies[first] = False
    return copies
