"""What the intervals over all looks decide, in the words of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.evaluation.plans.ledger import Goal, StatisticEntry, Verdict


def verdict_of_look(goal: Goal, rows: Sequence[StatisticEntry], precise: bool) -> Verdict:
    """The verdict from ``low_all`` and ``high_all`` of every statistic.

    Args:
        goal: what shall be decided.
        rows: the statistics of this look.
        precise: of a width plan, whether every interval is narrow enough.
    """
    if any(row.low_all > row.high_all for row in rows):
        return Verdict(False, "go on", True)
    if goal.kind == "width":
        return Verdict(precise, "precise enough" if precise else "go on")
    says = _of_gap(goal, rows[0]) if goal.kind == "gap" else _of_top(goal, rows)
    return Verdict(says is not None, says or "go on")


def _of_gap(goal: Goal, row: StatisticEntry) -> str | None:
    (a, b), margin = goal.models, goal.margin
    low, high = row.low_all, row.high_all
    if goal.question == "superior":
        by = f" by more than {margin:g}" if margin else ""
        return f"{a} > {b}{by}" if low > margin else f"{a} < {b}{by}" if high < -margin else None
    if goal.question == "noninferior":
        if low > -margin:
            return f"{a} not worse than {b} by {margin:g}"
        return f"{a} worse than {b} by more than {margin:g}" if high < -margin else None
    if -margin < low and high < margin:
        return f"{a} and {b} within {margin:g}"
    return f"{a} and {b} more than {margin:g} apart" if low > margin or high < -margin else None


def _of_top(goal: Goal, rows: Sequence[StatisticEntry]) -> str | None:
    least = lower_bounds(rows)
    best = [
        name for name in goal.models if all(least[name, other] > -goal.margin for other in goal.models if other != name)
    ]
    return f"{best[0]} is best" if best else None


def lower_bounds(rows: Sequence[StatisticEntry]) -> Mapping[tuple[str, str], float]:
    """(a, b) → lower bound of a − b over all looks, in both directions."""
    least: dict[tuple[str, str], float] = {}
    for row in rows:
        a, b = row.name.split(" - ", 1)
        least[a, b], least[b, a] = row.low_all, -row.high_all
    return least
