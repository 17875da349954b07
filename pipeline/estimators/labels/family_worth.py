"""What one family of signals adds to the others, and whether it is worth its price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.estimators.results import Result

LEAST_GAIN = 1.05
"""Times the labels below which a family of signals is not worth a price."""


@dataclass(frozen=True, slots=True)
class FamilyWorth(Result):
    """What one family of signals adds to the others.

    Attributes:
        family: its name.
        gain: effective labels with all signals over effective labels without this family.
        cost_share: its share of the cost, in [0, 1]; None where unknown.
        effective: effective labels with all signals.
        without: effective labels without this family.
        unit: what the cost is in: money, tokens, calls.
        cost: what it cost, in US dollars or in ``unit``; None where unknown.
    """

    family: str
    gain: float
    cost_share: float | None
    effective: float
    without: float
    unit: str = "money"
    cost: float | None = None

    @property
    def idle(self) -> bool:
        """Whether it was paid for and added next to nothing to the others."""
        return bool(self.cost) and self.gain < LEAST_GAIN

    @property
    def sentence(self) -> str:
        """``pairwise comparisons: 62 % of the money, 1.9× the labels``."""
        money = "" if self.cost_share is None else f"{100 * self.cost_share:.0f} % of the {self.unit}, "
        return f"{self.family}: {money}{self.gain:.1f}× the labels"

    @property
    def advice(self) -> str:
        """``; adds 1.04× for $3.10: leave it out next time`` of a family paid for and idle, else nothing."""
        if not self.idle:
            return ""
        price = f"${self.cost:.2f}" if self.unit == "money" else f"{self.cost:,.0f} {self.unit}"
        return f"; adds {self.gain:.2f}× for {price}: leave it out next time"


def family_worth(
    effective: float, without: Mapping[str, float], costs: Mapping[str, float] | None = None, *, unit: str = "money"
) -> tuple[FamilyWorth, ...]:
    """Leave-one-family-out gains, the most valuable family first.

    Args:
        effective: effective labels with all signals.
        without: family → effective labels without it.
        costs: family → what it cost; shares are of their sum.
        unit: what the costs are in.
    """
    total = sum(costs.values()) if costs else 0.0
    worths = []
    for name, rest in without.items():
        share = costs.get(name, 0.0) / total if costs and total > 0.0 else None
        cost = costs.get(name) if costs else None
        gain = effective / rest if rest > 0.0 else math.inf
        worths.append(FamilyWorth(name, gain, share, effective, rest, unit, cost))
    return tuple(sorted(worths, key=lambda worth: (-worth.gain, worth.family)))
