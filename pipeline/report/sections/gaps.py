"""Paired gaps: with their own and with joint intervals, the decision each allows, and along the profile."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.document import Decisions, Gap, PairDecision
from pipeline.evaluation.methods import decides, method_label
from pipeline.report.charts import Curve, Interval, curve_chart, forest_plot
from pipeline.report.markup import Cell, Number, figure, section, table, text
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.profiles import places
from pipeline.report.sections.values import between, is_share, value


def gaps(run: RunFolder) -> str:
    """The section; empty where no gap was estimated."""
    if not run.estimates.gaps:
        return ""
    decided = run.estimates.decisions
    joint = _joint(decided)
    percent = is_share(run)
    rows = [_row(g, g.estimate, joint, percent) for g in run.estimates.gaps if isinstance(g.estimate, Estimate)]
    columns = ["a − b", "method", "gap, points" if percent else "gap", "SE", "interval", "joint interval", "p (Holm)"]
    level = 0.95 if decided is None else decided.level
    note = (
        f"interval: this pair alone; joint interval: all pairs together, {100 * level:g} %; the verdict is the joint's."
    )
    if decided is not None and decided.target == "pool":
        note += " A difference of these very items is a fact, not an inference: there is no verdict."
    made = table(
        [*columns, "labels", "verdict"],
        rows,
        caption="Paired gaps on shared items",
        numeric=range(2, 8),
        note=note,
        source="estimates.json, gaps and decisions → pairs",
    )
    drawn = gap_chart(run)
    chart = figure(drawn, "LACE gaps with joint intervals, where there are any.") if drawn else ""
    along = [_along(run, gap) for gap in run.estimates.gaps if isinstance(gap.estimate, Profile)]
    more = f"<details><summary>Gaps along {text(run.axis)}</summary>{''.join(along)}</details>" if along else ""
    return section("gaps", "Paired gaps", chart, made, more)


def gap_chart(run: RunFolder) -> str:
    """The LACE gaps as a forest plot; empty where there are none."""
    joint = _joint(run.estimates.decisions)
    rows = []
    for gap in run.estimates.gaps:
        if decides(gap.method) and isinstance(gap.estimate, Estimate):
            pair = joint.get((gap.a, gap.b))
            low, high = (pair.low, pair.high) if pair else (gap.estimate.low, gap.estimate.high)
            rows.append(Interval(f"{gap.a} − {gap.b}", gap.estimate.value, low, high))
    return forest_plot(rows, title="Paired gaps", percent=is_share(run), zero=True) if rows else ""


def _row(gap: Gap, estimate: Estimate, joint: Mapping[tuple[str, str], PairDecision], percent: bool) -> list[Cell]:
    pair = joint.get((gap.a, gap.b)) if decides(gap.method) else None
    return [
        f"{gap.a} − {gap.b}",
        method_label(gap.method),
        value(estimate.value, percent=percent),
        value(estimate.se, percent=percent, digits=2 if percent else 1),
        between(estimate.low, estimate.high, percent=percent),
        between(pair.low, pair.high, percent=percent) if pair else "",
        _p(pair.p_adjusted) if pair else "",
        estimate.n,
        pair.said if pair else "",
    ]


def _p(p: float) -> Cell:
    if not math.isfinite(p):
        return "–"
    return Number(p, "< 0.001" if p < 0.001 else f"{p:.3f}")


def _joint(decided: Decisions | None) -> dict[tuple[str, str], PairDecision]:
    return {} if decided is None else {(pair.a, pair.b): pair for pair in decided.pairs}


def _along(run: RunFolder, gap: Gap) -> str:
    profile = gap.estimate
    assert isinstance(profile, Profile)
    percent, (x, ticks) = is_share(run), places(profile)
    name = f"{gap.a} − {gap.b}"
    curve = Curve(name, x, tuple(profile.value), tuple(profile.low), tuple(profile.high))
    chart = curve_chart(
        [curve], title=f"{name} by {run.axis}", x_label=run.axis, percent=percent, ticks=ticks, zero=True
    )
    rows: list[list[Cell]] = [
        [
            str(at) if isinstance(at, str) else f"{float(at):.4g}",
            value(profile.value[k], percent=percent),
            value(profile.se[k], percent=percent, digits=2 if percent else 1),
            between(profile.low[k], profile.high[k], percent=percent),
        ]
        for k, at in enumerate(profile.at)
    ]
    made = table(
        [run.axis, "gap, points" if percent else "gap", "SE", "interval"],
        rows,
        caption=f"{name} by {run.axis}",
        numeric=(1, 2, 3),
        note=f"Intervals hold point by point, {100 * profile.level:g} %.",
        source=f"estimates.json, gaps, method {gap.method}",
    )
    return figure(chart) + made
