"""Estimates as tables for a terminal: 80 columns, plain where nobody looks, text never taken for markup."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pipeline.estimators.results import Estimate, Profile
from pipeline.evaluation.document import Decisions, EstimateSet
from pipeline.evaluation.methods import decides, leads, method_label
from pipeline.evaluation.reading import GradingError
from pipeline.report.text_tables import TextTable, plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_LARGE = 1e6
"""From here on decimals say nothing."""


def number(value: float, *, percent: bool, digits: int = 1) -> str:
    """A number for people: 0.8123 as 81.2 in percent, or with four digits; a dash where there is none."""
    if not math.isfinite(value):
        return "–"
    if not percent and abs(value) >= _LARGE:
        return f"{value:.7g}"
    return f"{100 * value:.{digits}f}" if percent else f"{value:.{digits + 2}f}"


def span(low: float, high: float, *, percent: bool) -> str:
    """An interval for people."""
    return f"[{number(low, percent=percent)}, {number(high, percent=percent)}]"


def _is_share(estimates: Sequence[Estimate]) -> bool:
    """Whether every number is a share, so that percent reads best."""
    return all(0.0 <= e.value <= 1.0 and e.low >= -0.5 and e.high <= 1.5 for e in estimates if math.isfinite(e.value))


def _single(estimates: EstimateSet) -> list[Estimate]:
    return [e for methods in estimates.values() for e in methods.values() if isinstance(e, Estimate)]


def print_estimates(
    console: Console, estimates: EstimateSet, *, title: str = "", profiles: bool = True, judged: bool = False
) -> None:
    """Every estimate: a table of means, one of profiles, one of gaps, the best-of-N values, then the warnings.

    Judges held against the labels stand first where people rated responses (``judged``).
    """
    for block in _blocks(estimates, title=title, profiles=profiles, judged=judged):
        console.print(block)


def _blocks(estimates: EstimateSet, *, title: str, profiles: bool, judged: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    if estimates.headline:
        yield Text(plain(estimates.headline))
    for warning in estimates.warnings:
        yield Text(plain(f"! {warning.message}"), style="yellow")
    for entry in estimates.left_out:
        yield Text(plain(f"! {entry.target}: {entry.method} is left out: {entry.reason}"), style="yellow")
    if judged and estimates.judges:
        yield _judges(estimates)
    if any(isinstance(e, Estimate) for methods in estimates.values() for e in methods.values()):
        yield _means(estimates, title)
    if any(entry.count for entry in estimates.unread.values()):
        yield _unread(estimates)
    if estimates.audit is not None:
        yield Text(plain(audit_sentence(estimates.audit)))
    if profiles:
        for target, methods in estimates.items():
            for method, profile in methods.items():
                if isinstance(profile, Profile) and leads(method):
                    yield _profile(f"{target}: {profile_title(profile)}", profile)
    if any(isinstance(gap.estimate, Estimate) for gap in estimates.gaps):
        yield _gaps(estimates)
    if estimates.decisions is not None and estimates.decisions.rank_sets:
        yield _ranks(estimates.decisions)
    if estimates.best_of_n:
        yield _best_of_n(estimates)
    for name, part in estimates.criteria.items():
        yield from _blocks(part, title=f"criterion {name}", profiles=False, judged=judged)


def _judges(estimates: EstimateSet) -> TextTable:
    """Each judge against the labels: how close, and whether it is kinder to one model."""
    columns = [("judge", False), ("rated", True), ("correlation", True), ("kinder to", False), ("by", True)]
    table = TextTable("Judges against the labels", [*columns, ("95 % interval", True)])
    for judge in estimates.judges:
        told = judge.overall.correlation
        first = (judge.signal, str(judge.overall.n), "–" if told is None else f"{told:.2f}")
        biased = [pair for pair in judge.kindness if pair.biased]
        for pair in biased:
            kinder, other = (pair.a, pair.b) if pair.difference.value > 0 else (pair.b, pair.a)
            low, high = sorted((abs(pair.difference.low), abs(pair.difference.high)))
            table.add(*first, f"{kinder} than {other}", f"{abs(pair.difference.value):.2f}", f"[{low:.2f}, {high:.2f}]")
        if not biased:
            table.add(*first, "nobody shown", "", "")
    return table


def _unread(estimates: EstimateSet) -> TextTable:
    """Answers in which none could be read, per target, with what they could be worth."""
    columns = [("target", False), ("unread", True), ("share", True), ("mean if wrong", True), ("if right", True)]
    table = TextTable("Answers in which none could be read", columns)
    for target, entry in estimates.unread.items():
        bounds = [
            "–" if value is None else number(value, percent=True) for value in (entry.value_low, entry.value_high)
        ]
        table.add(target, str(entry.count), f"{entry.share:.1%}", *bounds)
    return table


def audit_sentence(audit: GradingError) -> str:
    """What a person found in the checked sample."""
    return (
        f"A person checked {audit.checked} answers at random: {audit.wrong} were graded wrong"
        f" ({audit.rate:.1%}, {audit.level:.0%} interval {audit.low:.1%} to {audit.high:.1%})."
    )


def worth(estimate: Estimate) -> str:
    """Labels of the plain mean with the same standard error; with their range, where it can be told."""
    if estimate.worth is None:
        return ""
    if estimate.worth_low is None or estimate.worth_high is None or estimate.worth == estimate.n:
        return f"{estimate.worth:.0f}"
    return f"{estimate.worth:.0f} ({estimate.worth_low:.0f}–{estimate.worth_high:.0f})"


def about(estimates: EstimateSet) -> str:
    """What the numbers are about, where it is not items like these: it stands in titles."""
    pool = any(e.target == "pool" for e in _single(estimates) if e.se > 0.0 or e.interval != "none")
    return "of these very items" if pool else ""


def _means(estimates: EstimateSet, title: str) -> TextTable:
    single = _single(estimates)
    percent = _is_share(single)
    level = f"{100 * single[0].level:.0f} % interval"
    unit = "%" if percent else "value"
    table = TextTable(
        " ".join(part for part in (title, about(estimates)) if part),
        [
            ("target", False),
            ("method", False),
            (unit, True),
            ("SE", True),
            (level, True),
            ("labels", True),
            ("worth", True),
        ],
    )
    for position, (target, methods) in enumerate(estimates.items()):
        if position:
            table.section()
        name = target
        for method, estimate in methods.items():
            if not isinstance(estimate, Estimate):
                continue
            exact = estimate.interval == "none"
            table.add(
                name,
                method_label(method),
                number(estimate.value, percent=percent),
                "" if exact else number(estimate.se, percent=percent, digits=2 if percent else 1),
                "" if exact else span(estimate.low, estimate.high, percent=percent),
                str(estimate.n),
                "" if exact else worth(estimate),
            )
            name = ""
    return table


def profile_title(profile: Profile) -> str:
    """``LACE profile along level``, with what a reader must know of it: whether it is smoothed, what it is about."""
    along = f" along {profile.column}" if profile.column else ""
    smoothed = ", smoothed" if profile.smoothed else ""
    return (
        f"{method_label(profile.method)}{along}{smoothed}{', of these very items' if profile.target == 'pool' else ''}"
    )


def _profile(title: str, profile: Profile) -> TextTable:
    percent = bool(all(-0.5 <= v <= 1.5 for v in profile.value if math.isfinite(v)))
    table = TextTable(
        title,
        [
            ("at", True),
            ("%" if percent else "value", True),
            ("SE", True),
            (f"{100 * profile.level:.0f} % interval", True),
            ("effective labels", True),
            ("signals", False),
        ],
    )
    for position, at in enumerate(profile.at):
        point = str(at) if isinstance(at, str) else f"{float(at):.4g}"
        table.add(
            point,
            number(profile.value[position], percent=percent),
            number(profile.se[position], percent=percent, digits=2 if percent else 1),
            span(profile.low[position], profile.high[position], percent=percent),
            f"{profile.n_effective[position]:.1f}",
            profile.verdict[position],
        )
    return table


def _gaps(estimates: EstimateSet) -> TextTable:
    percent = _is_share(_single(estimates))
    decided = {} if estimates.decisions is None else {(p.a, p.b): p for p in estimates.decisions.pairs}
    level = f"{100 * estimates.decisions.level:g} % jointly" if estimates.decisions is not None else "interval"
    table = TextTable(
        " ".join(part for part in ("Paired gaps", about(estimates)) if part),
        [("a − b", False), ("method", False), ("gap", True), ("SE", True), (level, True), ("verdict", False)],
    )
    for gap in estimates.gaps:
        estimate = gap.estimate
        if not isinstance(estimate, Estimate):
            continue
        pair = decided.get((gap.a, gap.b)) if decides(gap.method) else None
        low, high = (estimate.low, estimate.high) if pair is None else (pair.low, pair.high)
        table.add(
            f"{gap.a} − {gap.b}",
            method_label(gap.method),
            number(estimate.value, percent=percent),
            number(estimate.se, percent=percent, digits=2 if percent else 1),
            span(low, high, percent=percent),
            "" if pair is None else pair.said,
        )
    return table


def _ranks(decided: Decisions) -> TextTable:
    """The ranks each target could hold, all together with the stated probability."""
    table = TextTable(
        f"Ranks ({100 * decided.level:g} %, all comparisons together)",
        [("target", False), ("rank", True), ("could be", True), ("better than", False)],
    )
    for entry in sorted(decided.rank_sets, key=lambda entry: entry.rank):
        reach = str(entry.best) if entry.best == entry.worst else f"{entry.best} to {entry.worst}"
        table.add(entry.name, str(entry.rank), reach, ", ".join(decided.beaten(entry.name)) or "–")
    return table


def _best_of_n(estimates: EstimateSet) -> TextTable:
    table = TextTable(
        "Best of N by the mean of J scores",
        [
            ("target", False),
            ("measure", False),
            ("N", True),
            ("J", True),
            ("value", True),
            ("SE", True),
            ("interval", True),
            ("prompts", True),
        ],
    )
    for entry in estimates.best_of_n:
        estimate = entry.estimate
        table.add(
            entry.target,
            entry.measure,
            str(entry.n),
            str(entry.j),
            number(estimate.value, percent=False),
            number(estimate.se, percent=False),
            span(estimate.low, estimate.high, percent=False),
            str(estimate.n),
        )
    return table
