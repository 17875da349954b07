"""How many labels wanted half-widths need, and what each family of signals is worth, from a pilot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.estimators import Estimate, Profile
from pipeline.estimators.planning import FamilyWorth, LabelPlan, family_worth, plan_mean, plan_profile
from pipeline.evaluation.pool import TargetPool
from pipeline.evaluation.table_targets import TableOptions, lace_of_mean, target_estimates
from pipeline.tables.signal_checks import Notice

__all__ = ["Family", "LabelAdvice", "advise", "default_widths"]

MIN_PILOT = 5
"""Labels from which a pilot's variance is worth planning from."""


@dataclass(frozen=True, slots=True)
class Family:
    """Signals that are bought together.

    Attributes:
        name: as shown.
        signals: their columns; indicators of missing values go with them.
        cost: what they cost; None where unknown.
    """

    name: str
    signals: tuple[str, ...]
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class LabelAdvice:
    """The plan of one target: (what for, plan) for every wanted half-width, and the worth of each family."""

    target: str
    plans: tuple[tuple[str, LabelPlan], ...]
    worth: tuple[FamilyWorth, ...]

    def plan_rows(self) -> list[dict[str, Any]]:
        """One mapping per plan: target, what, half_width, labels, note, and the numbers behind it."""
        return [
            {
                **plan.to_dict(),
                "target": self.target,
                "about": plan.target,
                "what": what,
                "note": plan.reason or _note(plan),
            }
            for what, plan in self.plans
        ]

    def worth_rows(self) -> list[dict[str, Any]]:
        """One mapping per family, its sentence among them."""
        prefix = "" if self.target == "all" else f"{self.target}: "
        return [{"target": self.target, **w.to_dict(), "sentence": prefix + w.sentence} for w in self.worth]


def _note(plan: LabelPlan) -> str:
    return "" if plan.at is None else f"decided at {plan.at}"


def default_widths(pilot: Estimate) -> tuple[float, ...]:
    """Three quarters and half of the pilot's half-width, to two digits."""
    half = 0.5 * (pilot.high - pilot.low)
    return tuple(float(f"{factor * half:.2g}") for factor in (0.75, 0.5))


def advise(
    target: TargetPool,
    widths: Sequence[float] = (),
    families: Sequence[Family] = (),
    *,
    unit: str = "money",
    level: float = 0.95,
) -> LabelAdvice:
    """Plan the labels of one target from those it has.

    For each half-width: the mean of the pool, the mean of the population it was drawn from, and the worst point of
    each profile. Families: effective labels with all signals over those without the family.

    Args:
        target: a pilot: at least 5 labels on the pool.
        widths: wanted half-widths; none means ``default_widths``.
        families: groups of signals; none means every signal by itself.
        unit: what the families' costs are in.
        level: coverage.

    Raises:
        InputError: too few labels, everything labeled, a half-width that is not positive, an unknown signal.
    """
    n, pool = int(target.labeled.sum()), len(target.y)
    if n < MIN_PILOT:
        raise InputError(f"target {target.name}: {n} labels are too few to plan from; label at least {MIN_PILOT}")
    if n == pool:
        raise InputError(f"target {target.name}: every item is labeled already; there is nothing to plan")
    if any(not width > 0.0 for width in widths):
        raise InputError(f"--half-width must be positive, got {min(widths):g}")
    pilot = _pilot(target, level)
    mean = pilot["lace"] if "lace" in pilot else pilot["naive"]
    assert isinstance(mean, Estimate)
    spread = float(np.var(target.y[target.labeled], ddof=1))
    plans: list[tuple[str, LabelPlan]] = []
    for width in widths or default_widths(mean):
        if "lace" in pilot:
            plans.append(("mean of these rows", plan_mean(mean, pool, width, outcome_variance=spread, level=level)))
            about = plan_mean(mean, pool, width, outcome_variance=spread, target="population", level=level)
            plans.append(("mean of such rows", about))
        for method, profile in pilot.items():
            if method.startswith("lace_profile") and isinstance(profile, Profile):
                column = profile.diagnostics.get("column", "profile")
                plans.append((f"worst point along {column}", plan_profile(profile, n, pool, width, level=level)))
    return LabelAdvice(target.name, tuple(plans), _worth(target, mean, families, unit, level))


def _pilot(target: TargetPool, level: float) -> dict[str, Estimate | Profile]:
    notices: list[Notice] = []
    return target_estimates(target, TableOptions(("naive", "lace", "lace_profile"), level), notices)


def _worth(
    target: TargetPool, pilot: Estimate, families: Sequence[Family], unit: str, level: float
) -> tuple[FamilyWorth, ...]:
    names = target.signal_names
    chosen = families or [Family(name, (name,)) for name in names]
    effective = pilot.diagnostics.get("effective_labels")
    if effective is None:
        return ()
    without: dict[str, float] = {}
    for family in chosen:
        unknown = [name for name in family.signals if name not in names]
        kept = [k for k, name in enumerate(names) if name not in family.signals]
        if len(unknown) == len(family.signals):
            continue
        rest = replace(
            target, signals=target.signals[:, kept], signal_names=tuple(names[k] for k in kept), profiles=(), taus=None
        )
        without[family.name] = _effective(rest, level)
    costs: Mapping[str, float] | None = {f.name: f.cost for f in chosen if f.cost is not None} or None
    return family_worth(float(effective), without, costs, unit=unit)


def _effective(target: TargetPool, level: float) -> float:
    from pipeline.evaluation.table_targets import filled_signals

    estimate = lace_of_mean(target, filled_signals(target)[0], level)
    return float(estimate.diagnostics["effective_labels"])
