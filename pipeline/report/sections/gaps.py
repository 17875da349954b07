"""Paired gaps: with their own and with joint intervals, the decision each allows, and along the profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.document import Gap
from pipeline.report.charts import Curve, Interval, curve_chart, forest_plot
from pipeline.report.markup import Cell, Number, figure, section, table, text
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.profiles import places
from pipeline.report.sections.values import between, is_share, value
from pipeline.report.terminal import METHOD_LABELS

__all__ = ["gap_chart", "gaps"]


def gaps(run: RunFolder) -> str:
    """The section; empty where no gap was estimated."""
    if not run.estimates.gaps:
        return ""
    decided = run.estimates.extra.get("decisions") or {"pairs": [], "margin": 0.02, "level": 0.95}
    joint = {(pair["a"], pair["b"]): pair for pair in decided["pairs"]}
    percent = is_share(run)
    rows = [_row(g, g.estimate, joint, percent) for g in run.estimates.gaps if isinstance(g.estimate, Estimate)]
    columns = ["a − b", "method", "gap, points" if percent else "gap", "SE", "interval", "joint interval", "p (Holm)"]
    note = (
        f"interval: this pair alone; joint interval: all pairs together, {100 * decided['level']:g} %. equivalent: the"
        f" joint interval lies within ±{100 * decided['margin']:g} points. undecided: neither a difference nor"
        " equivalence is shown."
    )
    made = table(
        [*columns, "labels", "decision"],
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
    decided = run.estimates.extra.get("decisions") or {"pairs": []}
    joint = {(pair["a"], pair["b"]): pair for pair in decided["pairs"]}
    shown = []
    for gap in run.estimates.gaps:
        if gap.method == "lace_gap" and isinstance(gap.estimate, Estimate):
            pair = joint.get((gap.a, gap.b))
            low, high = (pair["low"], pair["high"]) if pair else (gap.estimate.low, gap.estimate.high)
            shown.append(Interval(f"{gap.a} − {gap.b}", gap.estimate.value, low, high))
    return forest_plot(shown, title="Paired gaps", percent=is_share(run), zero=True) if shown else ""


def _row(gap: Gap, estimate: Estimate, joint: Mapping[tuple[str, str], Mapping[str, Any]], percent: bool) -> list[Cell]:
    pair = joint.get((gap.a, gap.b)) if gap.method == "lace_gap" else None
    return [
        f"{gap.a} − {gap.b}",
        METHOD_LABELS.get(gap.method.removesuffix("_gap"), gap.method).removesuffix(" mean"),
        value(estimate.value, percent=percent),
        value(estimate.se, percent=percent, digits=2 if percent else 1),
        between(estimate.low, estimate.high, percent=percent),
        between(pair["low"], pair["high"], percent=percent) if pair else "",
        _p(pair["p_adjusted"]) if pair else "",
        estimate.n,
        _verdict(pair) if pair else "",
    ]


def _p(p: float | None) -> Cell:
    if p is None:
        return "–"
    return Number(p, "< 0.001" if p < 0.001 else f"{p:.3f}")


def _verdict(pair: Mapping[str, Any]) -> str:
    if pair["low"] > 0:
        return f"{pair['a']} is better"
    if pair["high"] < 0:
        return f"{pair['b']} is better"
    return "equivalent" if pair.get("equivalent") else "undecided"


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
