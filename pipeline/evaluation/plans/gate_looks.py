"""Critical values of a gate whose labels were looked at before: of a plan's look, or such that hold at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.errors import InputError
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.looks import asymptotic_critical, next_joint_critical
from pipeline.evaluation.plans.ledger import Ledger, read_ledger


@dataclass(frozen=True, slots=True)
class GateLooks:
    """How often these labels were looked at.

    Attributes:
        sizes: labels at the looks that were counted without the gate's own.
        plan: the ledger whose look decides, or None.
    """

    sizes: tuple[int, ...] = ()
    plan: Ledger | None = None

    def critical(self, n: int, influence: Sequence[FloatArray], alpha: float) -> tuple[float, float] | None:
        """(of one metric alone, of all upper bounds together), as normal values; None where this is the first look.

        Args:
            n: items with a score on both sides.
            influence: (items,) values of every metric and slice that may block.
            alpha: two-sided error.

        Raises:
            InputError: the plan has no look at n labels.
        """
        if self.plan is None:
            sizes = sorted({*self.sizes, n})
            if len(sizes) < 2:
                return None
            planned = max(100.0, 2.0 * sizes[0])
            alone = asymptotic_critical(float(n), planned, alpha)
            return alone, asymptotic_critical(float(n), planned, alpha / max(len(influence), 1))
        looks = self.plan.looks
        if not looks or looks[-1].n != n:
            last = f"its last look is at {looks[-1].n}" if looks else "it has had no look yet"
            raise InputError(
                f"--plan: {n} items have labels on both sides and {last}; auxeval labels import takes the look"
            )
        rows = np.asarray([row for row in influence if row.any()])
        if len(rows) < 2:
            return looks[-1].critical, looks[-1].critical
        before = looks[-2].spent if len(looks) > 1 else 0.0
        joint = next_joint_critical(
            [look.information for look in looks], [look.critical for look in looks[:-1]],
            looks[-1].spent - before, np.corrcoef(rows),
        )  # fmt: skip
        return looks[-1].critical, max(joint, looks[-1].critical)


def looks_of_plan(path: Path, base: str, candidate: str, margin: float | None) -> tuple[GateLooks, float]:
    """(the plan's looks, its margin) for a gate of these two models.

    Args:
        path: the plan's file.
        base, candidate: names of the models.
        margin: as asked for, or None.

    Raises:
        InputError: no plan there, a plan about something else, another margin than it promised, numbers it hides.
    """
    ledger = read_ledger(path)
    if ledger is None or ledger.promised is None:
        raise InputError(f"{path}: no plan is there; auxeval labels plan … --gap {candidate},{base} declares one")
    goal = ledger.promised.goal
    if goal.kind != "gap" or goal.question == "equivalent" or goal.models != (candidate, base):
        about = ", ".join(goal.models) or "all models"
        raise InputError(
            f"{path}: plan {ledger.promised.id} is about a {goal.kind} ({about}); a gate goes by a plan of "
            f"--gap {candidate},{base} (candidate first)"
        )
    if margin is not None and margin != goal.margin:
        raise InputError(f"--margin {margin:g}: the plan promised {goal.margin:g}; another margin is another plan")
    return GateLooks(plan=ledger), goal.margin
