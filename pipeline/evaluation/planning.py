"""How many labels wanted half-widths need, and what each family of signals is worth, from a pilot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtri

from pipeline.errors import InputError
from pipeline.estimators import Estimate, Profile
from pipeline.estimators.labels.planning import (
    FamilyWorth,
    LabelPlan,
    family_worth,
    labels_needed,
    plan_mean,
    plan_profile,
    residual_variance,
)
from pipeline.evaluation.document import LeftOut
from pipeline.evaluation.evaluate import target_estimates
from pipeline.evaluation.methods import leading
from pipeline.evaluation.options import Options
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.evaluation.signal_families import NO_CALLS
from pipeline.tables.signal_checks import ALL, Notice

MIN_PILOT = 5
"""Labels from which a pilot's variance is worth planning from."""
_RANGE = 0.95


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
class Planned:
    """What is planned, how many labels it takes, and between how many: a pilot's variance is itself an estimate.

    Attributes:
        what: in words.
        plan: the labels.
        low, high: labels if the variance lay at an end of its 95 % range; None where it cannot be reached, or unknown.
    """

    what: str
    plan: LabelPlan
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class LabelAdvice:
    """The plans of one target, one per wanted half-width and purpose, and the worth of each family."""

    target: str
    plans: tuple[Planned, ...]
    worth: tuple[FamilyWorth, ...]

    def plan_rows(self) -> list[dict[str, Any]]:
        """One mapping per plan: target, what, half_width, labels with their range, note, and the numbers behind it."""
        return [
            {
                **entry.plan.to_dict(), "target": self.target, "about": entry.plan.target, "what": entry.what,
                "labels_low": entry.low, "labels_high": entry.high, "note": entry.plan.reason or _note(entry.plan),
            }
            for entry in self.plans
        ]  # fmt: skip

    def worth_rows(self) -> list[dict[str, Any]]:
        """One mapping per family, its sentence among them."""
        prefix = "" if self.target == ALL else f"{self.target}: "
        return [{"target": self.target, **w.to_dict(), "sentence": prefix + w.sentence} for w in self.worth]


def _note(plan: LabelPlan) -> str:
    return "" if plan.at is None else f"decided at {plan.at}"


def default_widths(pilot: Estimate) -> tuple[float, ...]:
    """Three quarters and half of the pilot's half-width, to two digits."""
    half = 0.5 * (pilot.high - pilot.low)
    return tuple(float(f"{factor * half:.2g}") for factor in (0.75, 0.5))


def advise(
    pool: Pool,
    target: TargetPool,
    widths: Sequence[float] = (),
    families: Sequence[Family] = (),
    *,
    unit: str = "money",
    level: float = 0.95,
) -> LabelAdvice:
    """Plan the labels of one target from those it has.

    For each half-width: the mean of the pool, the mean of the population it was drawn from, and the worst point of
    each profile. Families: labels' worth with all signals over that without the family.

    Args:
        pool: the pool.
        target: a pilot: at least 5 labels on the pool.
        widths: wanted half-widths; none means ``default_widths``.
        families: groups of signals; none means the pool's, or every signal by itself.
        unit: what the families' costs are in.
        level: coverage.

    Raises:
        InputError: too few labels, everything labeled, a half-width that is not positive.
    """
    n, size = target.n, target.size
    if n < MIN_PILOT:
        raise InputError(f"target {target.name}: {n} labels are too few to plan from; label at least {MIN_PILOT}")
    if n == size:
        raise InputError(f"target {target.name}: every item is labeled already; there is nothing to plan")
    if any(not width > 0.0 for width in widths):
        raise InputError(f"--half-width must be positive, got {min(widths):g}")
    options = Options(("naive", "lace", "lace_profile"), level=level, target="pool")
    pilot = _pilot(pool, target, options)
    mean = leading(pilot)
    if mean is None:
        raise InputError(f"target {target.name}: no mean to plan from")
    spread = float(np.var(target.y[target.labeled], ddof=1))
    plans: list[Planned] = []
    for width in widths or default_widths(mean):
        plans += [_of_mean(mean, size, width, spread, level, about) for about in ("pool", "population")]
        plans += [
            Planned(f"worst point along {axis.column}", plan_profile(profile, n, size, width, level=level))
            for axis in target.profiles
            for profile in [pilot.get("lace_profile", pilot.get(f"lace_profile:{axis.column}"))]
            if isinstance(profile, Profile)
        ]
    return LabelAdvice(target.name, tuple(plans), families_worth(pool, target, families, unit=unit, level=level))


def _of_mean(mean: Estimate, size: int, width: float, spread: float, level: float, about: Any) -> Planned:
    plan = plan_mean(mean, size, width, outcome_variance=spread, target=about, level=level)
    what = "mean of these items" if about == "pool" else "mean of such items"
    if not mean.df > 0.0:
        return Planned(what, plan)
    residual, tail = residual_variance(mean, size), (1.0 - _RANGE) / 2.0
    ends = [residual * mean.df / float(chdtri(mean.df, p)) for p in (tail, 1.0 - tail)]
    low, high = (
        labels_needed(end, width, pool=size, target=about, outcome_variance=spread, level=level).labels for end in ends
    )
    return Planned(what, plan, low, high)


def _pilot(pool: Pool, target: TargetPool, options: Options) -> dict[str, Estimate | Profile]:
    notices: list[Notice] = []
    missing: list[LeftOut] = []
    return target_estimates(pool, target, options, notices, missing)


def families_worth(
    pool: Pool, target: TargetPool, families: Sequence[Family] = (), *, unit: str = "money", level: float = 0.95
) -> tuple[FamilyWorth, ...]:
    """Leave one family out: what the labels are worth with all signals, against without it; empty with one family.

    Args:
        pool, target, unit, level: as in :func:`advise`.
        families: none means the pool's, or every signal by itself.
    """
    chosen = families or paid_families(pool)
    chosen = chosen or [Family(name, (name,)) for name in target.signal_names]
    present = [family for family in chosen if any(name in target.signal_names for name in family.signals)]
    effective = _effective(pool, target, level)
    if effective is None or target.n < 3 or not present:
        return ()
    without: dict[str, float] = {}
    for family in present:
        kept = [k for k, name in enumerate(target.signal_names) if name not in family.signals]
        names = tuple(target.signal_names[k] for k in kept)
        rest = _effective(pool, replace(target, signals=target.signals[:, kept], signal_names=names), level)
        without[family.name] = float(target.n) if rest is None else rest
    costs: Mapping[str, float] | None = {f.name: f.cost for f in present if f.cost is not None} or None
    return family_worth(effective, without, costs, unit=unit)


def paid_families(pool: Pool, costs: Mapping[str, float] | None = None) -> list[Family]:
    """The families that calls were made for, or that a user gave: each is judged by what it adds to all others."""
    return [
        Family(name, tuple(columns), (costs or {}).get(name))
        for name, columns in pool.families.items()
        if name not in NO_CALLS
    ]


def free_worth(pool: Pool, target: TargetPool, *, level: float = 0.95) -> FamilyWorth | None:
    """What the signals that cost no call are worth by themselves, against the labels alone; None without any."""
    free = {name for word in NO_CALLS for name in pool.families.get(word, ())}
    kept = [k for k, name in enumerate(target.signal_names) if name in free]
    if not kept or target.n < 3:
        return None
    names = tuple(target.signal_names[k] for k in kept)
    pilot = _effective(pool, replace(target, signals=target.signals[:, kept], signal_names=names), level)
    return None if pilot is None else FamilyWorth("free signals", pilot / target.n, None, pilot, float(target.n))


def _effective(pool: Pool, target: TargetPool, level: float) -> float | None:
    """What the labels are worth by the recommended mean about the pool: as many as they are where outcomes do not vary.
    None without signals."""
    pilot = leading(_pilot(pool, target, Options(("lace",), level=level, target="pool")))
    return None if pilot is None else float(target.n) if pilot.worth is None else pilot.worth
