"""What the adaptive rules share: both scales of the signals, and weights from left-out errors."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.signals import PreparedSignals, prepare_signals

__all__ = ["RIDGES", "SOURCES", "average_weights", "effective_labels", "heaviest", "prepared"]

FloatArray: TypeAlias = NDArray[np.float64]

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)
SOURCES = ("values", "ranks")
_FLOOR = 1e-14  # of a sum of squared errors


def prepared(signals: FloatArray | PreparedSignals) -> PreparedSignals:
    """The signals on both scales, computed unless the caller had them ready."""
    return signals if isinstance(signals, PreparedSignals) else prepare_signals(signals)


def effective_labels(errors: FloatArray, shares: FloatArray) -> float:
    """n_e = min{n, 2n/(kurt − 1)}: how many labels the sum of squared errors is worth against outliers.

    kurt = m₄/m₂² of the errors (moments about zero, whose squares the rules compare); ∞ if m₂ = 0. With shares
    (weights that sum to 1) n is 1/Σ share².
    """
    count = 1.0 / float(shares @ shares)
    second = float(shares @ errors**2)
    if second <= 0.0:
        return 0.0
    excess = float(shares @ errors**4) / second**2 - 1.0
    return min(count, 2.0 * count / excess) if excess > 0.0 else count


def average_weights(log_criterion: FloatArray, power: float) -> FloatArray:
    """ω ∝ criterion^(−power) over the first axis, from logarithms."""
    score = -power * log_criterion
    score -= score.max(axis=0, keepdims=True)
    weights = np.exp(score)
    return np.asarray(weights / weights.sum(axis=0, keepdims=True))


def log_error(squares: FloatArray) -> FloatArray:
    """log of the candidates' sums of squared errors, the plain mean's first.

    The floor of 1e-14 shrinks with a plain mean's sum below 1, so that outcomes on a tiny scale are not all "exact".
    """
    floor = _FLOOR * min(1.0, float(squares[0])) if squares[0] > 0.0 else _FLOOR
    return np.asarray(np.log(np.maximum(squares, floor)))


def heaviest(labels: list[dict[str, Any]], weights: FloatArray, count: int = 5) -> list[dict[str, Any]]:
    """The ``count`` heaviest candidates as {source, signals, ridge, weight}."""
    order = np.argsort(-weights, kind="stable")[:count]
    return [{**labels[position], "weight": float(weights[position])} for position in order]
