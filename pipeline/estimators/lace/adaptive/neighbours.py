"""Neighbourhoods inside the labeled set: each item's own surroundings and the reference points of the adaptive rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.lace.core import LabeledSample, label_weights
from pipeline.estimators.lace.localities import Categorical, Gaussian, ProfileAxis, default_points

_ROWS = 512  # labels whose own weights are formed at once
_REFERENCES = 20
_OTHER_LEVEL = 1e6  # bandwidths between items of different levels


@dataclass(frozen=True, slots=True, eq=False)
class OwnMeans:
    """Local means about each labeled item's own z.

    Attributes:
        weight: (n,) w0_ii, the item's weight in its own mean.
        columns: (n, p) Σ_j w0_ij of the columns asked for.
    """

    weight: FloatArray
    columns: FloatArray


def own_means(axis: ProfileAxis, sample: LabeledSample, columns: FloatArray) -> OwnMeans:
    """w0: the kernel at the item's own z; for discrete profiles the mean of the item's own level.

    Args:
        axis: the profile.
        sample: labels.
        columns: (n, p) values to average.
    """
    if axis.discrete:
        return _own_levels(sample, columns)
    count = len(sample.y)
    weight, means = np.empty(count), np.empty(columns.shape)
    for start in range(0, count, _ROWS):
        rows = np.arange(start, min(start + _ROWS, count))
        block = label_weights(axis, sample, sample.z[rows])
        weight[rows] = block[np.arange(len(rows)), rows]
        means[rows] = block @ columns
    return OwnMeans(weight, means)


def _own_levels(sample: LabeledSample, columns: FloatArray) -> OwnMeans:
    levels, index = np.unique(sample.z, axis=0, return_inverse=True)
    index = index.reshape(-1)
    raw = np.ones(len(index)) if sample.inclusion is None else 1.0 / sample.inclusion
    mass = np.bincount(index, weights=raw)
    sums = np.zeros((len(levels), columns.shape[1]))
    np.add.at(sums, index, columns * raw[:, None])
    return OwnMeans(raw / mass[index], (sums / mass[:, None])[index])


def reference_points(axis: ProfileAxis, sample: LabeledSample) -> FloatArray:
    """(R, q) points at which left-out errors take their coefficients; never the points that happen to be asked.

    One continuous column: the default grid of the pool. Discrete profiles: the labeled levels. Several columns:
    20 labeled items far from each other in bandwidths (or 5 per combination of levels, if that is more).
    """
    if axis.discrete:
        return np.unique(sample.z, axis=0)
    if axis.z.shape[1] == 1:
        return default_points(axis.z[:, 0], axis.localities[0])[:, None].astype(np.float64)
    discrete = [column for column, kind in enumerate(axis.localities) if not isinstance(kind, Gaussian)]
    combinations = len(np.unique(sample.z[:, discrete], axis=0)) if discrete else 1
    return _spread_out(axis, sample.z, max(_REFERENCES, 5 * combinations))


def nearest_reference(axis: ProfileAxis, values: FloatArray, references: FloatArray) -> IntArray:
    """(m,) index of the nearest reference; the lower one of two equally near."""
    scaled, anchors = _in_bandwidths(axis, values), _in_bandwidths(axis, references)
    nearest = np.zeros(len(values), dtype=np.intp)
    best = np.full(len(values), np.inf)
    for position, anchor in enumerate(anchors):
        distance = _distance(axis, scaled, anchor)
        closer = distance < best
        nearest[closer], best[closer] = position, distance[closer]
    return nearest


def _in_bandwidths(axis: ProfileAxis, values: FloatArray) -> FloatArray:
    if values.shape[1] == 1:
        return values
    scale = [
        float(np.asarray(kind.bandwidth).reshape(-1)[0]) if isinstance(kind, Gaussian) else 1.0
        for kind in axis.localities
    ]
    return np.asarray(values / np.array(scale))


def _distance(axis: ProfileAxis, values: FloatArray, anchor: FloatArray) -> FloatArray:
    if values.shape[1] == 1:
        return np.asarray(np.abs(values[:, 0] - anchor[0]))
    total = np.zeros(len(values))
    for column, kind in enumerate(axis.localities):
        difference = values[:, column] - anchor[column]
        total += np.where(difference != 0.0, _OTHER_LEVEL, 0.0) if isinstance(kind, Categorical) else difference**2
    return total


def _spread_out(axis: ProfileAxis, values: FloatArray, count: int) -> FloatArray:
    """Farthest-point selection, started at the item nearest the middle; equal items count once."""
    distinct = np.unique(values, axis=0)
    scaled = _in_bandwidths(axis, distinct)
    chosen = [int(np.argmin(_distance(axis, scaled, np.median(scaled, axis=0))))]
    gap = _distance(axis, scaled, scaled[chosen[0]])
    while len(chosen) < min(count, len(distinct)):
        chosen.append(int(np.argmax(gap)))
        gap = np.minimum(gap, _distance(axis, scaled, scaled[chosen[-1]]))
    return np.asarray(distinct[chosen])
