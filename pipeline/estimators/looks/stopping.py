"""What is left after a plan stopped, and the chance that it still will."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from pipeline.estimators.looks.spending import check_alpha, normal_of
from pipeline.estimators.looks.walk import crossings, increasing, starting_at


def after_stopping(
    value: float,
    variance: float,
    df: float,
    label_information: ArrayLike,
    critical: Sequence[float],
    side: int,
    alpha: float = 0.05,
) -> tuple[float, float, float]:
    """Median-unbiased estimate and stagewise interval of a plan that its own rule stopped.

    The stagewise order: whoever crosses earlier is further out; at one look the larger statistic is. The three
    numbers solve P_θ(as high or higher) = ½, α/2, 1 − α/2.

    Args:
        value: what was estimated at the stop (shifted by the margin where one was tested).
        variance: its variance.
        df: its degrees of freedom; the t statistic becomes the normal one of the same tail.
        label_information: (k,) information of all looks, ours last.
        critical: (k − 1) values of the looks before.
        side: +1 stopped above, −1 below, 0 at the plan's end.
        alpha: two-sided error of the interval.

    Returns:
        (estimate, low, high) in the unit of ``value``.

    Raises:
        ValueError: a variance that is not positive, lengths that do not fit, another side.
    """
    check_alpha(alpha)
    if side not in (-1, 0, 1):
        raise ValueError(f"side must be 1, −1 or 0, got {side!r}")
    if not (variance > 0.0 and math.isfinite(variance) and math.isfinite(value)):
        raise ValueError(f"after_stopping needs a finite value and a positive variance, got {value!r}, {variance!r}")
    rising = increasing(label_information)
    if len(critical) != len(rising) - 1:
        raise ValueError(f"{len(rising)} looks need the critical values of {len(rising) - 1}, got {len(critical)}")
    if side < 0:  # mirrored, so that small tails are upper tails
        estimate, low, high = after_stopping(-value, variance, df, rising, critical, 1, alpha)
        return -estimate, -high, -low
    se = math.sqrt(variance)
    scaled = [information / rising[-1] for information in rising]
    statistic = normal_of(value / se, df)

    def higher(theta: float) -> float:
        above, _, paths = crossings(starting_at(), scaled, critical, theta)
        return sum(above) + paths.above(statistic, scaled[-1] - paths.information, theta)

    low, estimate, high = (_rise(higher, chance, statistic) for chance in (alpha / 2.0, 0.5, 1.0 - alpha / 2.0))
    return estimate * se, low * se, high * se


def _rise(chance_of: Callable[[float], float], wanted: float, near: float) -> float:
    """θ with chance_of(θ) = wanted, for a chance that rises with θ."""
    low, high, width = near - 1.0, near + 1.0, 1.0
    while chance_of(low) > wanted:
        low, width = low - width, 2.0 * width
    width = 1.0
    while chance_of(high) < wanted:
        high, width = high + width, 2.0 * width
    return float(brentq(lambda theta: chance_of(theta) - wanted, low, high, xtol=1e-7))


def chance_of_decision(
    z: float, information: float, later: ArrayLike, critical: Sequence[float], drift: float
) -> tuple[float, float, list[float]]:
    """Chance that a walk that stands at z is decided at one of the later looks.

    Args:
        z: the statistic now.
        information: where it stands; 0 for a plan that has not begun.
        later: (J,) information of the looks to come.
        critical: (J,) their critical values.
        drift: θ with E Z_j = θ√I_j; z/√information is "as it looks now".

    Returns:
        (above, below, each): leaves upward, downward, and the chance to be decided at each later look.
    """
    rising = increasing(np.r_[information, np.asarray(later, dtype=np.float64)] if information > 0.0 else later)
    rising = rising[1:] if information > 0.0 else rising
    if len(critical) != len(rising):
        raise ValueError(f"{len(rising)} later looks need as many critical values, got {len(critical)}")
    above, below, _ = crossings(starting_at(z * math.sqrt(information), information), rising, critical, drift)
    return sum(above), sum(below), [up + down for up, down in zip(above, below, strict=True)]
