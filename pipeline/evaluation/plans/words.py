"""What a person reads of a plan: the question, every look, what is decided, and what looks without a plan cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pipeline.estimators.looks import after_stopping
from pipeline.evaluation.plans.forecast import Expectation, outlook, width_labels
from pipeline.evaluation.plans.ledger import Goal, Ledger, Look, Promise, StatisticEntry
from pipeline.evaluation.plans.verdicts import lower_bounds


def _number(value: float, digits: int, signed: bool) -> str:
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return text.replace("-", "−")


def _points(value: float) -> str:
    """A margin or width in points: 2, 2.5."""
    return f"{100.0 * value:.3g}"


def _unit(value: float) -> str:
    return f"{_points(value)} point{'' if _points(value) == '1' else 's'}"


def interval(low: float, high: float, *, signed: bool) -> str:
    """[−2.4, +6.0] in points; whole points where it is wide."""
    if math.isinf(low) or math.isinf(high):
        return "not yet"
    digits = 0 if high - low >= 0.2 else 1
    return f"[{_number(100 * low, digits, signed)}, {_number(100 * high, digits, signed)}]"


def question(goal: Goal) -> str:
    """What a plan asks, as a question."""
    if goal.kind == "width":
        who = f" of {', '.join(goal.models)}" if goal.models else ""
        return f"the mean{who} to ±{_unit(goal.half_width or 0.0)}"
    if goal.kind == "top":
        by = f", but for {_unit(goal.margin)}" if goal.margin else ""
        return f"which of {', '.join(goal.models)} is best{by}?"
    a, b = goal.models
    if goal.question == "noninferior":
        return f"is {a} not worse than {b} by more than {_unit(goal.margin)}?"
    if goal.question == "equivalent":
        return f"are {a} and {b} within {_unit(goal.margin)} of each other?"
    by = f" by more than {_unit(goal.margin)}" if goal.margin else ""
    return f"which of {a} and {b} is better{by}?"


def plan_line(promise: Promise, file: str, ratings: int) -> list[str]:
    """The plan in a line or two.

    Args:
        promise: the plan.
        file: where it is kept.
        ratings: labels that one item needs: the models that are rated one by one.
    """
    level = f"{100 * (1 - promise.alpha):.3g} %"
    lines = [
        f"plan {promise.id} ({file}): {question(promise.goal)} at most {promise.n_max} labels, any number of looks "
        f"from {promise.first} on, {level}"
    ]
    if promise.blind:
        lines.append("  the number is shown when it is that precise; until then nobody sees it")
    if ratings > 1:
        lines.append(f"  at most {promise.n_max} items, {promise.n_max * ratings} ratings")
    if promise.labels_before:
        lines.append(f"  {promise.labels_before} labels had been seen before this plan: they are charged as a look")
    if promise.excluded:
        lines.append(f"  {len(promise.excluded)} labels serve for planning only and leave the estimate (--fresh)")
    return lines


def expectation_line(promise: Promise, expectations: Sequence[Expectation]) -> str:
    """``if new is truly equal: decided by 300 in 48 of 100 studies, on average after 261 labels; …``."""
    a = promise.goal.models[0]
    phrases = []
    for k, entry in enumerate(expectations):
        better = f"{_unit(abs(entry.gap))} {'better' if entry.gap > 0 else 'worse'}"
        case = f"if {a} is truly equal" if entry.gap == 0.0 else f"if {better}"
        chance = f"{100 * entry.chance:.0f}"
        if k == 0:
            phrases.append(
                f"{case}: decided by {promise.n_max} in {chance} of 100 studies, on average after "
                f"{entry.labels:.0f} labels"
            )
        else:
            phrases.append(f"{case}: {chance}, after {entry.labels:.0f}")
    return "  " + "; ".join(phrases)


def look_lines(ledger: Ledger) -> list[str]:
    """What the last look says; what is counted where no look is due yet."""
    promise = ledger.promised
    assert promise is not None
    n = len(ledger.labels)
    if not ledger.looks:
        return [f"{n} of at most {promise.n_max} labels: nothing is shown before {promise.first}"]
    look = ledger.looks[-1]
    lines = _hidden(promise, look) if ledger.hidden else _open(ledger, promise, look)
    if look.verdict.contradiction:
        lines.append(f"  two looks of this plan exclude each other (chance ≤ {promise.alpha:g}): was the order random?")
    if look.amended:
        share = look.amended / max(n, 1)
        lines.append(f"  {look.amended} labels were corrected since the look before" + ("!" if share > 0.05 else ""))
    if look.skipped:
        total = look.skipped + look.n
        lines.append(f"  {look.skipped} items of earlier sheets were left empty ({100 * look.skipped / total:.0f} %)")
    return lines


def _hidden(promise: Promise, look: Look) -> list[str]:
    width, wanted = look.half_width or 0.0, promise.goal.half_width or 0.0
    needed = width_labels(promise, look.n, width, wanted)
    about = f", about {needed} labels to ±{_points(wanted)}" if needed else ", more than the pool holds"
    return [
        f"look {look.look}, {look.n} labels: ±{100 * width:.1f} points{about}. The number is shown when it is that "
        "precise (--peek shows it now)."
    ]


def _named(row: StatisticEntry, goal: Goal) -> str:
    return row.name if goal.kind == "width" else row.name.replace(" - ", " − ")


def _open(ledger: Ledger, promise: Promise, look: Look) -> list[str]:
    goal, signed = promise.goal, promise.goal.kind != "width"
    level = f"{100 * (1 - promise.alpha):.3g} %"
    first = ledger.first_decision
    spans = [_span(row, signed) for row in look.estimates]
    head = f"look {look.look}, {look.n} of at most {promise.n_max} labels: "
    values = [
        f"{_named(row, goal)} {_number(100 * row.value, 1, signed)}, plan interval {span}"
        for row, span in zip(look.estimates, spans, strict=True)
    ]
    if first is not None:
        where = f"decided at look {first.look} with {first.n} labels"
        if goal.kind == "width":
            phrase = "; ".join(values)
            return [f"{phrase}: precise enough, {where} ({level}). You can stop; going on does not undo it."]
        span = _span(first.estimates[0], signed) if goal.kind == "gap" else ""
        told = f"plan interval {span}, " if span else ""
        lines = [] if look is first else [head + "; ".join(values)]
        lines.append(
            f"{_said(goal, first)}: {where} ({told}{level} over all looks). You can stop; going on does not undo it."
        )
        return lines + (_corrected(ledger, promise, first) if look is first else [])
    if look.state == "exhausted":
        if goal.kind == "width":
            return [
                f"{look.n} labels, the plan's last: {'; '.join(values)}; ±{_unit(goal.half_width or 0)} was not reached"
            ]
        phrase = f" Interval {spans[0]}." if goal.kind == "gap" else _top_lines(goal, look)
        text = f"{look.n} labels, the plan's last: not decided. That is no evidence that they are equal.{phrase}"
        return [text, *_corrected(ledger, promise, look)]
    if goal.kind == "top":
        return [f"{head}{look.verdict.says}{_top_lines(goal, look)}"]
    lines = [f"{head}{'; '.join(values)}: {look.verdict.says}"]
    ahead = outlook(ledger)
    if ahead is not None:
        stays = f"if it stays there: decided at about {ahead.labels} labels; " if ahead.labels else ""
        lines.append(f"  {stays}chance of a decision by {promise.n_max}: {100 * ahead.chance:.0f} %")
    if goal.kind == "width" and look.half_width:
        needed = width_labels(promise, look.n, look.half_width, goal.half_width or 0.0)
        lines.append(
            f"  about {needed} labels to ±{_points(goal.half_width or 0.0)}" if needed else "  the pool is too small"
        )
    return lines


def _span(row: StatisticEntry, signed: bool) -> str:
    if row.low_all > row.high_all:  # a contradiction: the last interval is printed
        return interval(row.low, row.high, signed=signed)
    return interval(row.low_all, row.high_all, signed=signed)


def _said(goal: Goal, look: Look) -> str:
    """The verdict as a sentence."""
    if goal.kind == "top":
        return look.verdict.says
    (a, b), says, margin = goal.models, look.verdict.says, _unit(goal.margin)
    by = f" by more than {margin}" if goal.margin else ""
    if goal.question == "superior":
        return f"{a} is {'better' if ' > ' in says else 'worse'} than {b}{by}"
    if goal.question == "noninferior":
        return f"{a} is {'not ' if ' not worse ' in says else ''}worse than {b} by more than {margin}"
    apart = " apart" in says
    return f"{a} and {b} are {'more than' if apart else 'within'} {margin}{' apart' if apart else ' of each other'}"


def _top_lines(goal: Goal, look: Look) -> str:
    least = lower_bounds(look.estimates)
    out = [name for name in goal.models if any(least[other, name] > 0.0 for other in goal.models if other != name)]
    left = [name for name in goal.models if name not in out]
    return f" ({', '.join(out)} out; {', '.join(left)} left)" if out else f" ({', '.join(left)} left)"


def _corrected(ledger: Ledger, promise: Promise, look: Look) -> list[str]:
    """The median-unbiased estimate, where the plan's own rule stopped it."""
    goal = promise.goal
    if goal.kind != "gap" or goal.question == "equivalent" or len(ledger.looks) < 2:
        return []
    row = look.estimates[0]
    if row.variance <= 0.0:
        return []
    above = row.value > 0.0 if goal.question == "superior" else row.value > -goal.margin
    shift = (goal.margin if above else -goal.margin) if goal.question == "superior" else -goal.margin
    before = ledger.looks[: look.look]
    side = (1 if above else -1) if look.verdict.decided else 0
    corrected = after_stopping(
        row.value - shift, row.variance, row.df, [entry.information for entry in before],
        [entry.critical for entry in before[:-1]], side, promise.alpha,
    )  # fmt: skip
    value, low, high = (entry + shift for entry in corrected)
    return [f"  corrected for stopping early: {_number(100 * value, 1, True)} {interval(low, high, signed=True)}"]


def status_lines(ledger: Ledger, file: str) -> list[str]:
    """The ledger, without a look."""
    promise = ledger.promised
    if promise is None:
        sizes = [look.n for look in ledger.looks]
        return [f"{file}: no plan; looks at {', '.join(map(str, sizes)) or 'no'} labels"]
    ratings = max(len(promise.goal.models), 1) if promise.columns.get("model") else 1
    lines = plan_line(promise, file, ratings)
    lines.append(
        f"  declared {ledger.declared}, {ledger.state}; {len(ledger.labels)} labels, {len(ledger.looks)} looks"
    )
    for look in ledger.looks:
        rows = [f"{_named(row, promise.goal)} {_span(row, promise.goal.kind != 'width')}" for row in look.estimates]
        width = f"±{100 * look.half_width:.1f}" if look.half_width is not None and not rows else ""
        critical = "∞" if math.isinf(look.critical) else f"{look.critical:.2f}"
        text = "; ".join(rows) or width
        lines.append(f"  look {look.look}: {look.n} labels, t {look.t:.2f}, c {critical}, {text}: {look.verdict.says}")
    waiting = sum(not sheet.imported for sheet in ledger.sheets)
    return lines + ([f"  {waiting} sheet is out"] if waiting else [])
