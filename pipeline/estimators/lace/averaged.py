"""The adaptive mean as a fit with influence values, before any interval."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from pipeline.estimators.floats import BoolArray, FloatArray
from pipeline.estimators.lace.adaptive.mean_fit import adaptive_mean
from pipeline.estimators.lace.scalar import ScalarFit, degrees_of
from pipeline.estimators.sampling import LabelDraw
from pipeline.estimators.signals import PreparedSignals
from pipeline.estimators.worth import worth_spread


def averaged_fit(
    signals: FloatArray | PreparedSignals,
    outcome: FloatArray,
    mask: BoolArray,
    draw: LabelDraw,
    learner: Literal["logistic"] | None,
    rng: np.random.Generator | int | None,
    *,
    curved: bool = False,
) -> ScalarFit:
    """The adaptive mean with its influence values, before any interval; arguments are checked by the caller."""
    shares = draw.shares
    y = outcome[np.flatnonzero(mask)]
    fit = adaptive_mean(y, mask, signals, shares, learner, rng, draw.clusters, curved=curved)
    value = fit.naive if len(y) == len(mask) else fit.value
    squares = (fit.linear * fit.error) ** 2
    count = 1.0 / float(shares @ shares)
    total = float(squares.sum())
    bulk = total**2
    heavy = float(squares @ squares) - bulk / count
    by_errors = max(3.0, 2.0 * bulk / heavy) if heavy > 0.0 else np.inf
    df = min(degrees_of(fit.linear**2 / (1.0 - fit.leverage)), by_errors)
    naive_part = float(shares @ fit.naive_error**2)
    r2 = max(0.0, 1.0 - float(shares @ fit.error**2) / naive_part) if naive_part > 0.0 else 0.0
    naive_influence = shares * fit.naive_error
    ratio = total / float(naive_influence @ naive_influence) if naive_part > 0.0 else 1.0
    verdict = "help" if ratio < 0.95 else "neutral"
    if ratio > 1.05 and _hurts(draw, fit.linear * fit.error, naive_influence):
        verdict = "hurt"
    return ScalarFit(
        value, fit.naive, fit.linear * fit.error, naive_influence, 2.0 / count, shares, draw, 1.0 / len(mask),
        df, r2, verdict, {"rule": fit.rule},
    )  # fmt: skip


def _hurts(draw: LabelDraw, influence: FloatArray, naive: FloatArray) -> bool:
    """Whether the signals cost precision beyond doubt: the upper end of the range of V_plain/V lies below 1.

    Seen on one sample, harmless noise looks as if it did in most tables.
    """
    own, plain = draw.units(influence) ** 2, draw.units(naive) ** 2
    spread = worth_spread(own, plain)
    return spread is not None and float(plain.sum()) * math.exp(spread) < float(own.sum())
