"""What happens to a plan: it is declared, hands out sheets, takes labels in and looks at them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pipeline.errors import InputError
from pipeline.evaluation.options import RULE, Options
from pipeline.evaluation.plans.forecast import GUESS, Expectation, expectation, largest_n
from pipeline.evaluation.plans.ledger import Goal, Ledger, Promise, now
from pipeline.evaluation.plans.looking import label_digests, looked
from pipeline.evaluation.plans.order import (
    LEAST_PILOT,
    NextSheet,
    check_order,
    items_digest,
    next_sheet,
    skipped_items,
    with_imported,
)
from pipeline.evaluation.plans.statistics import statistics_of
from pipeline.evaluation.plans.table_plans import pilots_of, planned_pool
from pipeline.evaluation.pool import Pool

FIRST, LEAST_FIRST, SHEETS = 20, 15, 8


class PlanSource(Protocol):
    """What a plan needs of a table or a run."""

    @property
    def ids(self) -> list[str]:
        """The pool's items, sorted."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """The models whose labels count."""

    def labels(self) -> dict[str, str]:
        """Item → its labels as text."""

    def pool(self) -> Pool:
        """What estimates are made from."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks of a plan; None means: by the goal.

    Attributes:
        goal: what shall be decided.
        most, first, sheet, spending: as in ``Promise``. open: a width plan that shows its numbers.
        fresh: labels that are there serve for planning only.
        detect, power: without ``most``: labels that decide a gap of this size with this chance.
    """

    goal: Goal
    most: int | None = None
    first: int | None = None
    sheet: int | None = None
    spending: str | None = None
    open: bool = False
    design: str = "auto"
    target: str = "population"
    fresh: bool = False
    detect: float | None = None
    power: float = 0.9
    alpha: float = 0.05
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Declaration:
    """A plan, and what it may expect (none for goals without a forecast)."""

    ledger: Ledger
    expected: tuple[Expectation, ...]


def declare(source: PlanSource, wish: Wish, columns: Mapping[str, Any], software: str) -> Declaration:
    """Fix a plan before the labels that it is about.

    Raises:
        InputError: numbers out of range, a decision about a pool, too few items.
    """
    goal, labels = wish.goal, source.labels()
    if goal.kind != "width" and wish.target == "pool":
        raise InputError("a decision is about items like these; --target pool is for --half-width alone")
    if goal.kind == "top":
        goal = replace(goal, models=goal.models or source.wanted)
    if goal.kind != "width" and len(goal.models) < 2:
        raise InputError("a gap or a best model needs at least 2 models: --model COL says which row is of which")
    excluded = tuple(sorted(labels)) if wish.fresh else ()
    items = len(source.ids) - len(excluded)
    first = FIRST if wish.first is None else wish.first
    if first < LEAST_FIRST:
        raise InputError(
            f"--first must be at least {LEAST_FIRST}, got {first}: intervals of fewer labels are too short"
        )
    residual = _residual(source, goal, labels)
    most = wish.most or _most(wish, goal, residual, items)
    if not first <= most <= items:
        raise InputError(f"--max must lie between --first ({first}) and the {items} items, got {most}")
    spending = wish.spending or ("obrien-fleming" if goal.kind == "width" else "power:2")
    promise = Promise(
        goal, "pool" if wish.target == "pool" else "population", items, wish.alpha, spending, most, first,
        wish.sheet or max(math.ceil(most / SHEETS), 1), goal.kind == "width" and not wish.open,
        "auto" if wish.design == "auto" else "uniform", dict(columns), wish.seed,
        0 if wish.fresh else len(labels), items_digest(source.ids),
        {"signals": list(columns.get("signals", ())), "rule": RULE, "learner": "logistic", "seed": wish.seed}, excluded,
    )  # fmt: skip
    kept = {} if wish.fresh else label_digests(labels)
    ledger = Ledger(promise, declared=now(), software=software, labels=kept)
    return Declaration(ledger, _expected(promise, residual))


def _expected(promise: Promise, residual: float) -> tuple[Expectation, ...]:
    if promise.goal.kind != "gap" or promise.goal.question == "equivalent":
        return ()
    size = 0.05 if promise.goal.margin < 0.05 else 2.0 * promise.goal.margin
    return tuple(expectation(promise, residual, gap) for gap in (0.0, size))


def _most(wish: Wish, goal: Goal, residual: float, items: int) -> int:
    if goal.kind == "width":
        width = goal.half_width or 0.0
        spread = residual if residual != GUESS else 0.25
        return min(max(math.ceil(1.3 * spread * (1.96 / width) ** 2), FIRST), items)
    detect = 0.05 if wish.detect is None else wish.detect
    return largest_n(residual, detect, wish.power, items, alpha=wish.alpha, spending=wish.spending or "power:2")


def _residual(source: PlanSource, goal: Goal, labels: Mapping[str, str]) -> float:
    """What the signals leave of the variance of one label, from a pilot of at least 15; a guess without one."""
    if len(labels) < LEAST_FIRST:
        return GUESS
    statistics = statistics_of(source.pool(), goal, Options(target="population"))
    return max(max(row.variance * row.n for row in statistics.rows if math.isfinite(row.variance)), 1e-6)


def hand_out(ledger: Ledger, source: PlanSource, count: int | None = None) -> tuple[Ledger, NextSheet]:
    """The next sheet, and the ledger that knows of it.

    Raises:
        InputError: the plan is closed or has had its labels, or the pool changed.
    """
    promise = _checked(ledger, source)
    labeled = frozenset(source.labels())
    counted = len(labeled - set(promise.excluded))
    if ledger.state == "closed":
        raise InputError("this plan is closed")
    if ledger.state == "exhausted" or counted >= promise.n_max:
        raise InputError(f"the plan's {promise.n_max} labels are there; another plan needs unlabeled items (--fresh)")
    wanted = min(count or promise.sheet, promise.n_max - counted)
    pilots = []
    if promise.design == "auto" and ledger.sheets and len(labeled) >= LEAST_PILOT:
        pilots = pilots_of(source.pool(), promise, source.ids)
    following = next_sheet(ledger, source.ids, labeled, wanted, pilots)
    if following.again:
        return ledger, following
    return replace(ledger, sheets=(*ledger.sheets, following.sheet)), following


def first_looks(ledger: Ledger, source: PlanSource) -> Ledger:
    """Charge the labels that were there before the plan as a look, if that has not happened yet."""
    promise = _checked(ledger, source)
    if ledger.looks or not promise.labels_before:
        return ledger
    return _looked(ledger, source, promise)


def take_in(ledger: Ledger, source: PlanSource, *, look: bool = True, peek: bool = False) -> Ledger:
    """The ledger after labels came in: their order checked, and looked at.

    Args:
        ledger: with a plan.
        source: with the new labels.
        look: whether this is a look; without, labels are only counted.
        peek: open a blind plan for good.

    Raises:
        InputError: labels out of the plan's order, fewer than before, or the pool or the rule changed.
    """
    promise = _checked(ledger, source)
    labels = {item: text for item, text in source.labels().items() if item not in promise.excluded}
    check_order(ledger, source.ids, frozenset(labels), frozenset(ledger.labels))
    ledger = with_imported(ledger, set(labels) - set(ledger.labels))
    if peek and promise.blind and ledger.opened is None and ledger.state == "open":
        ledger = replace(ledger, opened=len(ledger.looks))
    if not look:
        return replace(ledger, labels=label_digests(labels))
    return _looked(ledger, source, promise)


def _looked(ledger: Ledger, source: PlanSource, promise: Promise) -> Ledger:
    labels = {item: text for item, text in source.labels().items() if item not in promise.excluded}
    if len(labels) < promise.first:
        return replace(ledger, labels=label_digests(labels))
    pool = planned_pool(source.pool(), ledger, promise, source.ids)
    skipped = len(skipped_items(ledger, frozenset(labels)))
    return looked(ledger, pool, len(labels), label_digests(labels), skipped)


def _checked(ledger: Ledger, source: PlanSource) -> Promise:
    """The promise, if the pool and the rule are still those that it was made about."""
    promise = ledger.promised
    if promise is None:
        raise InputError("there is no plan here: auxeval labels plan declares one")
    size = len(source.ids) - len(promise.excluded)
    if size != promise.items or items_digest(source.ids) != promise.items_sha256:
        raise InputError(
            f"items: the pool has changed since the plan was declared ({promise.items} items then, {size} now); a plan "
            "is about one pool: restore it, or go on without the plan (--forget-plan)"
        )
    if promise.estimator.get("rule") != RULE:
        raise InputError(
            f"estimator.rule: the plan was declared with {promise.estimator.get('rule')!r}, this version estimates by "
            f"{RULE!r}; go on with that version, or without the plan (--forget-plan)"
        )
    return promise


def goal_of(
    models: Sequence[str], half_width: float | None, gap: Sequence[str], top: bool, margins: Mapping[str, float | None]
) -> Goal:
    """The goal that options name.

    Args:
        models: given models; half_width, gap, top: exactly one of them names the goal.
        margins: ``noninferior``, ``equivalent`` and ``margin``, None where not given.

    Raises:
        InputError: none or several goals, or margins that do not fit.
    """
    goals = [half_width is not None, bool(gap), top]
    if sum(goals) != 1:
        raise InputError("a plan has one goal: --half-width W, --gap A,B or --top; two goals are two plans")
    given = {name: value for name, value in margins.items() if value is not None}
    if len(given) > 1:
        raise InputError(f"--{' and --'.join(given)} are different questions; give one of them")
    name, margin = next(iter(given.items()), ("margin", 0.0))
    if not (margin >= 0.0 and math.isfinite(margin)):
        raise InputError(f"--{name} must be at least 0, got {margin:g}")
    if half_width is not None:
        if not (half_width > 0.0 and math.isfinite(half_width)):
            raise InputError(f"--half-width must be positive, got {half_width:g}")
        if given:
            raise InputError(f"--{name} is for --gap and --top")
        return Goal("width", half_width, models=tuple(models))
    if top:
        if name != "margin":
            raise InputError(f"--{name} is for --gap")
        return Goal("top", margin=margin, models=tuple(models))
    if len(gap) != 2 or gap[0] == gap[1]:
        raise InputError(f"--gap takes two different models, A,B; got {','.join(gap)}")
    if name in ("noninferior", "equivalent"):
        if margin == 0.0:
            raise InputError(f"--{name} needs a margin above 0")
        return Goal(
            "gap", question="noninferior" if name == "noninferior" else "equivalent", margin=margin, models=tuple(gap)
        )
    return Goal("gap", question="superior", margin=margin, models=tuple(gap))
