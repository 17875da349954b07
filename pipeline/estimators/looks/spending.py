"""What may be spent by when, what labels inform, and the two one-line critical values."""

from __future__ import annotations

import math
from typing import Literal

from scipy.special import ndtr, ndtri, stdtr, stdtrit

SPENDINGS = ("obrien-fleming", "power:2", "pocock")


def spent(t: float, alpha: float, spending: str) -> float:
    """The error that may be spent until time t: 0 at 0, alpha at 1, never falling.

    Args:
        t: share of the plan that is over; clipped to [0, 1].
        alpha: two-sided error in (0, 1).
        spending: ``obrien-fleming`` 4(1 − Φ(z_{α/4}/√t)), ``power:P`` αt^P, or ``pocock`` α log(1 + (e − 1)t).

    Raises:
        ValueError: an unknown spending, alpha outside (0, 1), a time that is no number.
    """
    check_alpha(alpha)
    if math.isnan(t):
        raise ValueError("a time must be a number, got nan")
    time = min(max(float(t), 0.0), 1.0)
    power = _power_of(spending)
    if time == 0.0:
        return 0.0
    if time == 1.0:
        return float(alpha)
    if power is not None:
        return float(alpha * time**power)
    if spending == "pocock":
        return float(alpha * math.log1p((math.e - 1.0) * time))
    return float(4.0 * ndtr(ndtri(alpha / 4.0) / math.sqrt(time)))


def _power_of(spending: str) -> float | None:
    """The exponent of ``power:P``; None for the other two."""
    if spending in ("obrien-fleming", "pocock"):
        return None
    name, _, number = spending.partition(":")
    try:
        power = float(number) if name == "power" else math.nan
    except ValueError:
        power = math.nan
    if not (power > 0.0 and math.isfinite(power)):
        raise ValueError(f"spending must be obrien-fleming, pocock or power:P with P > 0, got {spending!r}")
    return power


def check_alpha(alpha: float) -> None:
    """ValueError unless 0 < alpha < 1."""
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha!r}")


def look_information(labels: float, items: float | None, target: Literal["population", "pool"]) -> float:
    """Information of n labels: n about a population, n/(1 − n/M) about a pool of M items (∞ where all are labeled)."""
    if target not in ("population", "pool"):
        raise ValueError(f"target must be 'population' or 'pool', got {target!r}")
    if target == "population" or items is None:
        return float(labels)
    return math.inf if labels >= items else labels / (1.0 - labels / items)


def tail_quantile(critical: float, df: float) -> float:
    """Student's t quantile with the upper tail of a normal one: c = 1.96 gives the usual t of a 95 % interval."""
    if not math.isfinite(critical) or not math.isfinite(df):
        return float(critical)
    return float(-stdtrit(df, ndtr(-critical)))


def normal_of(statistic: float, df: float) -> float:
    """The normal statistic with the same tail as a t statistic on df."""
    if not math.isfinite(df):
        return statistic
    tail = max(float(stdtr(df, -abs(statistic))), 1e-300)
    return math.copysign(-float(ndtri(tail)), statistic)


def asymptotic_critical(information: float, planned: float, alpha: float = 0.05) -> float:
    """Critical value of an asymptotic confidence sequence: θ̂ ± c·se holds at every look together, however many.

    c² = 2(x + 1)/x · log(√(x + 1)/α) with x = ρ²I/I₀ and ρ² = −2 log α + log(1 − 2 log α), narrowest near I₀.

    Args:
        information: I > 0 now.
        planned: I₀, fixed before looking.
        alpha: two-sided error of the sequence.
    """
    check_alpha(alpha)
    if not (information > 0.0 and planned > 0.0):
        raise ValueError(f"information must be positive, got {information!r} and {planned!r}")
    if not math.isfinite(information):
        return math.inf
    x = (-2.0 * math.log(alpha) + math.log(1.0 - 2.0 * math.log(alpha))) * information / planned
    return math.sqrt(2.0 * (x + 1.0) / x * math.log(math.sqrt(x + 1.0) / alpha))
