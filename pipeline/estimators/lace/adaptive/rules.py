"""What the adaptive rules share: both scales of the signals, and weights from left-out errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.signals import PreparedSignals, prepare_signals

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)
SOURCES = ("values", "ranks")
CURVED_SOURCES = ("values and squares", "ranks and squares")
_FEW_LABELS, _CURVED_POWER = 30.0, 2.0
_FLOOR = 1e-14  # of a sum of squared errors


@dataclass(frozen=True, slots=True, eq=False)
class MeanCandidates:
    """Some candidates for a mean: names, θ (c,), and their c, e, H (c, n)."""

    labels: tuple[dict[str, Any], ...]
    value: FloatArray
    linear: FloatArray
    error: FloatArray
    leverage: FloatArray


@lru_cache(maxsize=64)
def candidate_labels(
    source: str, signals: tuple[str, ...], ridges: tuple[float | None, ...]
) -> tuple[dict[str, Any], ...]:
    """What the report calls them: every ridge of the first signals, then of the next."""
    return tuple({"source": source, "signals": name, "ridge": ridge} for name in signals for ridge in ridges)


def ridge_blocks(
    blocks: FloatArray,
    penalty: FloatArray,
    centred: FloatArray,
    naive: float,
    shares: FloatArray,
    labels: tuple[dict[str, Any], ...],
) -> MeanCandidates:
    """One ridge regression over L for each block of columns (B, n, p), whose pool means are 0, with λ (B,)."""
    middle = shares @ blocks
    around = blocks - middle[:, None, :]
    weighted = np.swapaxes(around * shares[:, None], 1, 2)
    gram = weighted @ around + penalty[:, None, None] * np.eye(blocks.shape[2])
    smooth = np.linalg.solve(gram, np.swapaxes(around, 1, 2))
    slope = smooth @ (shares * centred)
    leverage = np.minimum(shares * (1.0 + np.einsum("bnp,bpn->bn", around, smooth)), 0.95)
    linear = shares * (1.0 - (middle[:, None, :] @ smooth)[:, 0])
    error = (centred - (around @ slope[:, :, None])[:, :, 0]) / (1.0 - leverage)
    return MeanCandidates(labels, naive - np.vecdot(slope, middle), linear, error, leverage)


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


def curved_log_prior(shares: FloatArray) -> float:
    """log (n/30)² below 30 labels, else 0: so few do not tell a curve from chance (n is 1/Σ share²)."""
    return _CURVED_POWER * min(0.0, -float(np.log(_FEW_LABELS * float(shares @ shares))))


def average_weights(log_criterion: FloatArray, power: float, log_prior: FloatArray | float = 0.0) -> FloatArray:
    """ω ∝ prior·criterion^(−power) over the first axis, from logarithms."""
    score = log_prior - power * log_criterion
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
