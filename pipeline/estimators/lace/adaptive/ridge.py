"""The ridge chosen within the labeled set: three folds, the paper's rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.estimators.floats import BoolArray, FloatArray
from pipeline.estimators.folds import balanced_folds
from pipeline.estimators.lace.core import LabeledSample, fit_points, label_weights
from pipeline.estimators.lace.localities import ProfileAxis
from pipeline.estimators.lace.pool import PoolMoments

RIDGE_GRID = (0.03, 0.1, 0.3, 1.0, 3.0)


def select_ridge(
    axis: ProfileAxis,
    coefficient_axis: ProfileAxis,
    sample: LabeledSample,
    moments: PoolMoments,
    gram: FloatArray,
    rng: np.random.Generator | int | None,
    *,
    balanced: bool = True,
) -> tuple[float, dict[str, Any]]:
    """λ in {.03, .1, .3, 1, 3} with the smallest held-out error.

    L is split into three outcome-balanced folds. Each candidate is fitted on two of them and scored on the third by
    the squared distance between the fitted profile and the smoothed held-out labels, weighted over the points by
    the held-out kernel mass, averaged over folds. The pool's signals stay in use throughout; no other label is read.
    Ties go to the larger λ.

    A mean has one point only: with balanced folds every held-out mean would equal the training mean, so it takes
    ``balanced=False``.

    Returns:
        λ, and diagnostics {"ridge_scores": {λ: score}}; 0.3 when there are fewer than 6 labels.
    """
    if len(sample.y) < 6:
        return 0.3, {"ridge_scores": {}}
    fold = balanced_folds(
        sample.y if balanced else np.zeros(len(sample.y)),
        np.concatenate([sample.z, sample.signals, sample.y[:, None]], axis=1),
        3,
        rng,
    )
    scores = np.zeros(len(RIDGE_GRID))
    for held in range(3):
        train, test = _subset(sample, fold != held), _subset(sample, fold == held)
        mass = _kernel_mass(axis, test)
        weights = label_weights(axis, train, axis.points)
        same = coefficient_axis is axis
        wider = weights if same else label_weights(coefficient_axis, train, axis.points)
        use = (mass > 0.0) & (weights.sum(axis=1) > 0.0)
        held_out = label_weights(axis, test, axis.points) @ test.y
        if not use.any():
            continue
        for position, ridge in enumerate(RIDGE_GRID):
            value = fit_points(train, weights, wider, moments.mean, gram, ridge).value
            scores[position] += np.average((value[use] - held_out[use]) ** 2, weights=mass[use]) / 3.0
    best = int(np.flatnonzero(scores <= scores.min() * (1.0 + 1e-12))[-1])
    return RIDGE_GRID[best], {"ridge_scores": dict(zip(map(str, RIDGE_GRID), scores.tolist(), strict=True))}


def _subset(sample: LabeledSample, rows: BoolArray) -> LabeledSample:
    inclusion = None if sample.inclusion is None else sample.inclusion[rows]
    return LabeledSample(sample.z[rows], sample.y[rows], sample.signals[rows], inclusion, sample.rows)


def _kernel_mass(axis: ProfileAxis, sample: LabeledSample) -> FloatArray:
    return np.asarray(np.exp(axis.log_kernel(sample.z)).sum(axis=1))
