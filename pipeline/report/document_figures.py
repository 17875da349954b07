"""The document of an evaluation as pictures; a target has the same colour in all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.estimators.results import Estimate, Profile
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.methods import SHRUNK, decides, leads, method_label
from pipeline.evaluation.validity import JudgeValidity
from pipeline.report.document_tables import at_text, is_share, ordered, tones, worth
from pipeline.report.values import Axis, Figure, Series, number, span

MOST_CURVES = 8
"""Curves of one picture; more are told apart by nobody."""


def _rows(
    title: str,
    rows: Sequence[tuple[str, float, float, float, int]],
    *,
    x: Axis,
    caption: str,
    beside: Sequence[str] | None = None,
) -> Figure:
    """Intervals below one another, one series per colour: (name, value, low, high, tone)."""
    series = [
        Series("", [r[1] for r in mine], [float(k) for k, r in enumerate(rows) if r[4] == tone],
               [r[2] for r in mine], [r[3] for r in mine], across=True, tone=tone)
        for tone in dict.fromkeys(row[4] for row in rows)
        for mine in [[row for row in rows if row[4] == tone]]
    ]  # fmt: skip
    if beside is None:
        beside = [_shown(value, low, high, x.percent) for _, value, low, high, _ in rows]
    return Figure(title, tuple(series), x, Axis(names=tuple(r[0] for r in rows), beside=tuple(beside)), caption)


def _shown(value: float, low: float, high: float, percent: bool) -> str:
    interval = f" {span(low, high, percent=percent)}" if math.isfinite(low) and math.isfinite(high) else ""
    return f"{number(value, percent=percent)}{interval}"


def forest(estimates: EstimateSet) -> Figure | None:
    """Every mean by target and method; None where there is none."""
    tone = tones(estimates)
    rows = [
        (
            f"{target}: {method_label(method)}", e.value,
            *((math.nan, math.nan) if e.interval == "none" else (e.low, e.high)), tone[target],
        )
        for target, methods in estimates.items()
        for method, e in methods.items()
        if isinstance(e, Estimate)
    ]  # fmt: skip
    caption = "A point without a line is a known value."
    x = Axis(percent=is_share(estimates))
    return _rows("Estimates and intervals by target and method", rows, x=x, caption=caption) if rows else None


def gap_forest(estimates: EstimateSet, most: int = 24) -> Figure | None:
    """The differences that decide, with their joint intervals and a line at zero; None where there is none."""
    joint = {} if estimates.decisions is None else {(p.a, p.b): p for p in estimates.decisions.pairs}
    tone, percent = tones(estimates), is_share(estimates)
    ranks = {name: k for k, (name, _) in enumerate(ordered(estimates))}
    rows = []
    for gap in estimates.gaps:
        if decides(gap.method) and isinstance(gap.estimate, Estimate):
            pair = joint.get((gap.a, gap.b))
            low, high = (pair.low, pair.high) if pair else (gap.estimate.low, gap.estimate.high)
            mine = tone.get(gap.a if gap.estimate.value >= 0 else gap.b, -1)
            near = (min(ranks.get(gap.a, 99), ranks.get(gap.b, 99)), abs(ranks.get(gap.a, 0) - ranks.get(gap.b, 0)))
            rows.append((near, (f"{gap.a} − {gap.b}", gap.estimate.value, low, high, mine)))
    if not rows:
        return None
    kept = [row for _, row in sorted(rows, key=lambda entry: entry[0])][:most]
    more = f" The {most} nearest to the best of {len(rows)}; the table has all." if len(rows) > most else ""
    caption = f"Joint intervals; one that leaves zero out decides, in the colour of the better one.{more}"
    return _rows("Paired gaps", kept, x=Axis(percent=percent, marks=(0.0,)), caption=caption)


def _curve(label: str, profile: Profile, tone: int, band: Profile | None = None, **drawn: Any) -> Series:
    x = [float(k) for k in range(len(profile.at))] if _named(profile) else [float(v) for v in profile.at]
    low, high = (band.low.tolist(), band.high.tolist()) if band is not None else ((), ())
    ends = {"low": profile.low.tolist(), "high": profile.high.tolist(), "outer_low": low, "outer_high": high}
    return Series(label, x, profile.value.tolist(), **ends, tone=tone, **drawn)


def _named(profile: Profile) -> bool:
    return profile.at.dtype.kind in "USO"


def _axis(profile: Profile) -> Axis:
    return Axis(profile.column or "profile", names=tuple(map(at_text, profile.at)) if _named(profile) else ())


def _spanning(made: Sequence[Series], percent: bool, marks: tuple[float, ...] = ()) -> Axis:
    """A vertical axis that several pictures share."""
    ends = [v for s in made for part in (s.y, s.low, s.high) for v in part if math.isfinite(v)] + list(marks)
    if not ends or min(ends) == max(ends):
        return Axis(percent=percent, marks=marks)
    pad = 0.05 * (max(ends) - min(ends))
    return Axis(percent=percent, low=min(ends) - pad, high=max(ends) + pad, marks=marks)


def profiles(estimates: EstimateSet) -> Iterator[tuple[Figure, tuple[Figure, ...]]]:
    """Per axis: all targets overlaid, then each alone on the same scale with its joint band and the labels alone."""
    tone, percent = tones(estimates), is_share(estimates)
    axes: dict[str, list[tuple[str, Profile]]] = {}
    for target, methods in estimates.items():
        for method, profile in methods.items():
            if isinstance(profile, Profile) and leads(method) and method.partition(":")[0] != SHRUNK:
                axes.setdefault(method, []).append((target, profile))
    for method, members in axes.items():
        first = members[0][1]
        levels = {at_text(v) for _, p in members for v in p.at}
        alike = [(t, p) for t, p in members if len(p.at) == len(first.at) and {at_text(v) for v in p.at} == levels]
        kept = alike if _named(first) else members
        ranked = [name for name, _ in ordered(estimates)]
        kept = sorted(kept, key=lambda entry: ranked.index(entry[0]) if entry[0] in ranked else 99)
        discrete = not first.smoothed
        curves = [_curve(t, p, tone[t], whiskers=discrete) for t, p in kept[:MOST_CURVES]]
        axis = _spanning(curves, percent)
        more = f" The {MOST_CURVES} best of {len(kept)}." if len(kept) > MOST_CURVES else ""
        caption = f"{100 * first.level:g} % intervals, point by point.{more}"
        overlay = Figure(f"All targets along {first.column or 'the axis'}", tuple(curves), _axis(first), axis, caption)
        yield overlay, tuple(_alone(estimates[t], t, method, p, tone[t], percent) for t, p in kept[:MOST_CURVES])


def _alone(
    methods: Mapping[str, Estimate | Profile], target: str, method: str, profile: Profile, tone: int, percent: bool
) -> Figure:
    axis = method.partition(":")[2]
    band, naive = (methods.get(f"{n}:{axis}" if axis else n) for n in ("lace_profile_band", "naive_profile"))
    band = band if isinstance(band, Profile) and len(band.at) == len(profile.at) else None
    made = [_curve(target, profile, tone, band)]
    if isinstance(naive, Profile):
        made.append(_curve("labels alone", naive, -1, dashed=True, whiskers=True))
    return Figure(
        f"{target}: profile by {profile.column or 'the axis'}", tuple(made), _axis(profile),
        Axis("", percent=percent, low=-0.05 if percent else None, high=1.05 if percent else None),
        "Dark band: point by point; light: the whole curve.", width=336, height=240,
    )  # fmt: skip


def gap_profiles(estimates: EstimateSet) -> tuple[Figure, ...]:
    """Every difference along an axis, with a line at zero, on one scale."""
    percent = is_share(estimates)
    made = [(g, g.estimate) for g in estimates.gaps if isinstance(g.estimate, Profile)]
    tone = tones(estimates)
    curves = [_curve("", p, tone.get(g.a, -1)) for g, p in made]
    axis = _spanning(curves, percent, (0.0,))
    return tuple(
        Figure(f"{g.a} − {g.b} along {p.column or 'the axis'}", (curve,), _axis(p), axis,
               "Point by point.", width=336, height=220)
        for (g, p), curve in zip(made, curves, strict=True)
    )  # fmt: skip


def labels_worth(estimates: EstimateSet) -> Figure | None:
    """What the labels of each target are worth with the signals, against how many there are; None where untold."""
    tone = tones(estimates)
    rows = [
        (name, mean.worth, math.nan if mean.worth_low is None else mean.worth_low,
         math.nan if mean.worth_high is None else mean.worth_high, tone[name])
        for name, mean in ordered(estimates)
        if mean.worth is not None and mean.verdict
    ]  # fmt: skip
    counts = sorted({mean.n for _, mean in ordered(estimates)})
    if not rows:
        return None
    given = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    caption = f"The dotted line: the {given} labels there are. Right of it the signals save labels."
    beside = [worth(mean) for _, mean in ordered(estimates) if mean.worth is not None and mean.verdict]
    marks = tuple(float(n) for n in counts[:1])
    return _rows("What the labels are worth", rows, x=Axis("labels of the plain mean", marks=marks), caption=caption,
                 beside=beside)  # fmt: skip


def calibration(judge: JudgeValidity) -> Figure | None:
    """What people said of answers that the judge scored alike; None where too few were rated."""
    groups = judge.calibration
    if not groups:
        return None
    gold = [group.gold for group in groups]
    series = Series(
        judge.signal, [g.score for g in groups], [g.value for g in gold], [g.low for g in gold],
        [g.high for g in gold], whiskers=True, tone=0,
    )  # fmt: skip
    return Figure(
        f"{judge.signal}: calibration", (series,), Axis("the judge's score"), Axis("labels"),
        "Fifths of the labeled answers by score; on the dotted diagonal the judge says what people say.",
        diagonal=True, width=336, height=280,
    )  # fmt: skip


def kindness(judge: JudgeValidity) -> Figure | None:
    """Score − label overall, by model and by level, with a line at zero; None where nothing was rated."""
    rows = [
        ("all" if part.by == "all" else f"{part.by} {part.value}", part.bias.value, part.bias.low, part.bias.high, 0)
        for part in judge.slices
    ]
    caption = "Right of zero the judge is kinder than people; the estimates correct for it."
    x = Axis("score − label", marks=(0.0,))
    made = _rows(f"{judge.signal}: kinder than people?", rows[:20], x=x, caption=caption)
    return made if rows else None


def best_of_n(estimates: EstimateSet) -> Figure | None:
    """Every target's value over N; None where no curve was computed."""
    curves: Mapping[str, list[dict[str, Any]]] = estimates.extra.get("best_of_n_curves") or {}
    tone, made = tones(estimates), []
    for target, curve in curves.items():
        ends = {name: [_float(p["estimate"][name]) for p in curve] for name in ("value", "low", "high")}
        x = [float(point["n"]) for point in curve]
        made.append(Series(target, x, ends["value"], ends["low"], ends["high"], tone=tone.get(target, -1)))
    caption = "Judge score of the best, the candidate being picked by other scores than those that value it."
    axes = Axis("N candidates"), Axis("score")
    return Figure("Value of the best of N", tuple(made[:MOST_CURVES]), *axes, caption) if made else None


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)
