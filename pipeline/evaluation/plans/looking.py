"""One look of a plan: time, error to spend, critical value, intervals over all looks, verdict and state."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.estimators.looks import look_information, next_critical, next_joint_critical, spent
from pipeline.evaluation.options import Options
from pipeline.evaluation.plans.ledger import Ledger, Look, Promise, State, StatisticEntry, Verdict, now
from pipeline.evaluation.plans.statistics import Statistic, Statistics, statistics_of
from pipeline.evaluation.plans.verdicts import verdict_of_look
from pipeline.evaluation.pool import Pool

RESERVE = 2.2
"""Standard errors in a wished half-width at which a width plan's time is full: a smaller one spends everything just
before the width is there (measured: 1.3 to 2.0 times the labels, or the width missed in half of the studies)."""
LATEST = 0.999
PLAIN = 1.959963984540054


def label_digests(labels: Mapping[str, str]) -> dict[str, str]:
    """Item → digest of its labels, to see what was corrected without keeping the labels."""
    return {item: hashlib.sha256(f"{item}\x1f{text}".encode()).hexdigest()[:8] for item, text in labels.items()}


@dataclass(frozen=True, slots=True)
class _Step:
    """What a look spends, and at which value it stands."""

    t: float
    spent: float
    critical: float
    last: bool = False


def looked(ledger: Ledger, pool: Pool, n: int, digests: Mapping[str, str], skipped: int) -> Ledger:
    """The ledger with a look at n labels, or the same ledger where it is no new look.

    Args:
        ledger: with a plan.
        pool: with the labels.
        n: labeled items.
        digests: ``label_digests`` of all labels.
        skipped: items of imported sheets that were left empty.
    """
    promise = ledger.promised
    assert promise is not None
    amended = sum(digests.get(item, digest) != digest for item, digest in ledger.labels.items())
    if n < promise.first or (ledger.looks and n == ledger.looks[-1].n):
        return replace(ledger, labels=dict(digests))
    statistics = statistics_of(pool, promise.goal, Options(target=promise.target))
    information = look_information(n, promise.items, promise.target)
    step, width = _step(ledger, promise, statistics, n, information)
    reached = width is not None and width <= float(promise.goal.half_width or 0.0)
    finished = n >= promise.n_max
    hide = ledger.hidden and not (reached or finished)
    rows = tuple(_entry(ledger, row, step.critical) for row in statistics.rows)
    verdict = Verdict(False, "go on") if hide else verdict_of_look(promise.goal, rows, reached)
    earlier = ledger.first_decision
    if earlier is not None:  # going on does not undo it
        verdict = replace(earlier.verdict, contradiction=verdict.contradiction)
    state: State = "decided" if verdict.decided else "exhausted" if finished else "open"
    digest = hashlib.sha256("\n".join(sorted(f"{k} {v}" for k, v in digests.items())).encode()).hexdigest()
    look = Look(
        len(ledger.looks) + 1, n, now(), information, step.t, step.spent, step.critical, digest, amended, skipped,
        () if hide else rows, verdict, state, width,
    )  # fmt: skip
    return replace(ledger, looks=(*ledger.looks, look), labels=dict(digests), state=state)


def _seen(ledger: Ledger) -> tuple[Look, ...]:
    """Looks that were seen: those of a blind plan before it was opened cost nothing."""
    if ledger.promised is None or not ledger.promised.blind:
        return ledger.looks
    return () if ledger.opened is None else ledger.looks[ledger.opened :]


def _step(
    ledger: Ledger, promise: Promise, statistics: Statistics, n: int, information: float
) -> tuple[_Step, float | None]:
    """What this look spends and its critical value; the half-width reached, of a width plan."""
    seen = _seen(ledger)
    before = seen[-1].spent if seen else 0.0
    if promise.goal.kind != "width":
        t = max([min(n / promise.n_max, 1.0), *(look.t for look in seen)])
        return _spend(promise, seen, statistics, information, t, spent(t, promise.alpha, promise.spending)), None
    wanted = float(promise.goal.half_width or 0.0)
    if ledger.hidden:  # nothing is seen, so nothing is spent: the plain interval is final
        return _Step(0.0, 0.0, PLAIN), max(row.plain for row in statistics.rows)
    final = _spend(promise, seen, statistics, information, 1.0, promise.alpha)
    width = max(row.half_width(final.critical) for row in statistics.rows)
    if width <= wanted or n >= promise.n_max:
        return replace(final, last=True), width
    se = max(row.plain for row in statistics.rows) / 1.96
    t = min(max([(wanted / (RESERVE * se)) ** 2 if se > 0.0 else LATEST, *(look.t for look in seen)]), LATEST)
    now_spent = max(spent(t, promise.alpha, promise.spending), before)
    return _spend(promise, seen, statistics, information, t, now_spent), width


def _spend(
    promise: Promise, seen: tuple[Look, ...], statistics: Statistics, information: float, t: float, until: float
) -> _Step:
    increment = max(until - (seen[-1].spent if seen else 0.0), 0.0)
    walk = [*(look.information for look in seen), information]
    critical = [look.critical for look in seen]
    if promise.goal.kind == "top":
        value = next_joint_critical(walk, critical, increment, statistics.correlation)
    else:  # several means are each about themselves: a width plan promises no joint statement
        value = next_critical(walk, critical, increment)
    return _Step(t, until, value)


def _entry(ledger: Ledger, row: Statistic, critical: float) -> StatisticEntry:
    low, high = row.interval(critical)
    before = [entry for look in _seen(ledger) for entry in look.estimates if entry.name == row.name]
    variance = row.variance if math.isfinite(row.variance) else 0.0
    return StatisticEntry(
        row.name, row.value, variance, row.df, row.naive, row.binary, low, high,
        max([low, *(entry.low_all for entry in before)]), min([high, *(entry.high_all for entry in before)]),
    )  # fmt: skip
