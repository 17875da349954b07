"""What a plan may expect: the chance of a decision, labels until then, and the largest number of labels it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipeline.errors import InputError
from pipeline.estimators.looks import chance_of_decision, critical_values, next_critical, spent
from pipeline.evaluation.plans.ledger import Ledger, Promise, StatisticEntry

GUESS = 0.5
"""s² of a difference of two 0/1 scores where no pilot tells it."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What becomes of a gap plan if the truth is ``gap``: chance of a decision by n_max, and labels on average."""

    gap: float
    chance: float
    labels: float


def expectation(promise: Promise, residual: float, gap: float) -> Expectation:
    """Before the first look.

    Args:
        promise: of a gap plan.
        residual: s_R², the variance that the signals leave of the difference, per label.
        gap: the truth that is supposed.
    """
    sizes = _sizes(promise, 0)
    critical = critical_values([n / promise.n_max for n in sizes], sizes, promise.alpha, promise.spending)
    boundary = _boundary(promise)
    drift = (gap - boundary) / math.sqrt(max(residual, 1e-12))
    above, below, each = chance_of_decision(0.0, 0.0, sizes, critical, drift)
    labels = sum(n * chance for n, chance in zip(sizes, each, strict=True))
    return Expectation(gap, above + below, labels + (1.0 - above - below) * promise.n_max)


def _sizes(promise: Promise, now: int) -> list[float]:
    step = max(promise.sheet, 1)
    sizes = [n for n in range(now + step, promise.n_max, step) if n >= promise.first]
    return [float(n) for n in (*sizes, promise.n_max) if n > now]


def _boundary(promise: Promise) -> float:
    """The value of the gap at which the question turns, for the more likely of its two answers."""
    return -promise.goal.margin if promise.goal.question == "noninferior" else promise.goal.margin


def largest_n(
    residual: float, detect: float, power: float, items: int, *, alpha: float = 0.05, spending: str = "power:2"
) -> int:
    """Labels with which a gap of ``detect`` is decided with chance ``power``, looked at eight times on the way.

    Raises:
        InputError: numbers out of range.
    """
    if not (detect > 0.0 and 0.0 < power < 1.0):
        raise InputError(f"--detect must be positive and --power between 0 and 1, got {detect:g} and {power:g}")
    times = [k / 8.0 for k in range(1, 9)]
    critical = critical_values(times, times, alpha, spending)

    def chance(n: float) -> float:
        drift = detect * math.sqrt(n / max(residual, 1e-12))
        above, below, _ = chance_of_decision(0.0, 0.0, times, critical, drift)
        return above + below

    low, high = 1.0, 16.0
    while chance(high) < power and high < items:
        low, high = high, 2.0 * high
    while high - low > 0.5:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if chance(middle) < power else (low, middle)
    return min(max(math.ceil(high), 15), items)


@dataclass(frozen=True, slots=True)
class Outlook:
    """After a look: labels at which it would be decided if the estimate stays (None: not by n_max), and the chance."""

    labels: int | None
    chance: float


def outlook(ledger: Ledger) -> Outlook | None:
    """Of an undecided gap plan about superiority or noninferiority; None where it does not apply."""
    promise = ledger.promised
    if promise is None or promise.goal.kind != "gap" or promise.goal.question == "equivalent" or not ledger.looks:
        return None
    look = ledger.looks[-1]
    sizes = _sizes(promise, look.n)
    if not sizes or not look.estimates or look.estimates[0].variance <= 0.0:
        return None
    row = look.estimates[0]
    boundary = _nearest(promise, row)
    z = (row.value - boundary) / math.sqrt(row.variance)
    walk, critical, before = (
        [entry.information for entry in ledger.looks],
        [e.critical for e in ledger.looks],
        look.spent,
    )
    later = []
    for n in sizes:
        walk.append(n)
        until = max(spent(n / promise.n_max, promise.alpha, promise.spending), before)
        critical.append(next_critical(walk, critical, until - before))
        later.append(critical[-1])
        before = until
    above, below, _ = chance_of_decision(z, look.information, sizes, later, z / math.sqrt(look.information))
    # within one standard error of the boundary "as it is now" says nothing
    steady = abs(z) >= 1.0
    reached = [n for n, c in zip(sizes, later, strict=True) if abs(z) * math.sqrt(n / look.information) >= c]
    return Outlook(int(reached[0]) if steady and reached else None, above + below)


def _nearest(promise: Promise, row: StatisticEntry) -> float:
    if promise.goal.question == "noninferior":
        return -promise.goal.margin
    return math.copysign(promise.goal.margin, row.value)


def width_labels(promise: Promise, n: int, width: float, wanted: float) -> int | None:
    """Labels until ±wanted from ±width at n; None where the pool is too small.

    Args:
        promise: of a width plan.
        n: labels now. width: half-width now. wanted: that is to be reached.
    """
    needed = (width / wanted) ** 2 * n
    if promise.target == "pool":  # width² ∝ 1/n − 1/M
        rest = (1.0 / n - 1.0 / promise.items) * (wanted / width) ** 2
        needed = 1.0 / (rest + 1.0 / promise.items)
    return None if needed > promise.items else max(math.ceil(needed), n)
