"""Strata for the next labels: groups of the control variate's prediction, and how far it is off in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.signals import standardize_signals

_RIDGE = 0.3
_SHRINKAGE = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Pilot:
    """One outcome on the pool: y (M,) with NaN where not labeled, and its complete signals (M, K)."""

    y: FloatArray
    signals: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LabelStrata:
    """A partition of the pool and what is left of the outcome in each part.

    Attributes:
        strata: (M,) numbers 0..H−1.
        sizes: (H,) items.
        deviations: (H,) residual sds of the control variate.
    """

    strata: IntArray
    sizes: NDArray[np.int64]
    deviations: FloatArray


def control_variate_fit(pilot: Pilot, ridge: float = _RIDGE) -> tuple[FloatArray, FloatArray]:
    """Ridge of Y on the pool-standardised signals over the labels.

    Returns:
        Predictions of every item (M,), and the leave-one-out residuals (M,), NaN where not labeled.

    Raises:
        ValueError: fewer than 2 labels.
    """
    labeled = np.isfinite(pilot.y)
    n = int(labeled.sum())
    if n < 2:
        raise ValueError(f"a control variate needs at least 2 labels, got {n}")
    scaled = standardize_signals(pilot.signals)
    own, y = scaled[labeled], pilot.y[labeled]
    centre, mean = own.mean(axis=0), float(y.mean())
    around = own - centre
    inverse = np.linalg.inv(around.T @ around / n + ridge * np.eye(scaled.shape[1]))
    slope = inverse @ (around.T @ (y - mean) / n)
    prediction = mean + (scaled - centre) @ slope
    leverage = np.minimum((1.0 + np.einsum("ik,kl,il->i", around, inverse, around)) / n, 0.95)
    residual = np.full(len(pilot.y), np.nan)
    residual[labeled] = (y - prediction[labeled]) / (1.0 - leverage)
    return prediction, residual


def residual_deviations(residuals: Sequence[FloatArray], strata: IntArray, shrinkage: float = _SHRINKAGE) -> FloatArray:
    """Residual sd per stratum, shrunk to the overall one with the weight of ``shrinkage`` labels; (H,).

    Several outcomes are averaged as variances.

    Args:
        residuals: per outcome (M,) residuals, NaN where not labeled.
        strata: (M,) numbers 0..H−1.
        shrinkage: weight of the overall variance, in labels.
    """
    count = int(strata.max()) + 1
    total = np.zeros(count)
    for residual in residuals:
        finite = np.isfinite(residual)
        squares = residual[finite] ** 2
        number = np.bincount(strata[finite], minlength=count)
        sums = np.bincount(strata[finite], weights=squares, minlength=count)
        total += (sums + shrinkage * float(squares.mean())) / (number + shrinkage)
    return np.sqrt(total / len(residuals))


def residual_strata(pilots: Sequence[Pilot], *, groups: int = 5, strata: IntArray | None = None) -> LabelStrata:
    """Quantile groups of the control variate's prediction (or given strata) with their residual sds.

    Args:
        pilots: one or more outcomes on the same items; predictions are averaged.
        groups: number of groups; ties may leave fewer.
        strata: (M,) numbers 0..H−1 to use instead.

    Raises:
        ValueError: no pilot, fewer than 2 labels of an outcome.
    """
    if not pilots:
        raise ValueError("at least one pilot outcome is needed")
    fits = [control_variate_fit(pilot) for pilot in pilots]
    if strata is None:
        prediction = np.mean([fit[0] for fit in fits], axis=0)
        cuts = np.quantile(prediction, np.arange(1, groups) / groups)
        strata = np.unique(np.searchsorted(cuts, prediction, side="right"), return_inverse=True)[1].astype(np.intp)
    sizes = np.bincount(strata).astype(np.int64)
    return LabelStrata(strata, sizes, residual_deviations([fit[1] for fit in fits], strata))
