"""The sections of the page about estimates: leaderboard, profiles, gaps, best of N; and their figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.estimators import Estimate, Profile
from pipeline.report.charts import Curve, Interval, curve_chart, forest_plot
from pipeline.report.markup import Cell, section, table, text
from pipeline.report.run_folder import RunFolder
from pipeline.report.terminal import METHOD_LABELS, number, span, worth

__all__ = ["figures", "numbers"]


def numbers(run: RunFolder) -> Iterator[str]:
    """Every section about estimates, in reading order."""
    yield _leaderboard(run)
    profiles = "".join(_profile(run, target) for target in run.targets)
    if profiles:
        yield section("profiles", "Profiles", profiles)
    if any(isinstance(gap.estimate, Estimate) for gap in run.estimates.gaps):
        yield _gaps(run)
    if run.estimates.best_of_n:
        yield _best_of_n(run)


def figures(run: RunFolder) -> Iterator[tuple[str, str]]:
    """(file name, SVG) of every figure, for ``figures/``."""
    yield "forest.svg", _forest(run)
    for position, target in enumerate(run.targets):
        if isinstance(run.estimates[target].get("lace_profile"), Profile):
            yield f"profile-{position}.svg", _profile_chart(run, target)
    for position, (target, curve) in enumerate(_curves(run).items()):
        yield f"best-of-n-{position}.svg", _curve_of_n(target, curve)


def _means(run: RunFolder) -> Iterator[tuple[str, str, Estimate]]:
    for target, methods in run.estimates.items():
        for method, estimate in methods.items():
            if isinstance(estimate, Estimate):
                yield target, method, estimate


def _percent(run: RunFolder) -> bool:
    return all(-0.2 <= e.value <= 1.2 for _, _, e in _means(run) if math.isfinite(e.value))


def _truth(run: RunFolder, target: str) -> float | None:
    found = (run.estimates.extra.get("simulated") or {}).get(target) or {}
    value = found.get("true_accuracy")
    return float(value) if isinstance(value, int | float) else None


def _leaderboard(run: RunFolder) -> str:
    percent = _percent(run)
    rows: list[list[Cell]] = []
    for target, methods in run.estimates.items():
        truth = _truth(run, target)
        if truth is not None:
            rows.append(
                [target, "simulated truth", number(truth, percent=percent), "", "", "", "", "the expected value"]
            )
        for method, estimate in methods.items():
            if isinstance(estimate, Estimate):
                rows.append([target, *_mean_cells(method, estimate, methods.get("naive"), percent)])
    unit = "estimate, %" if percent else "estimate"
    columns = ["target", "method", unit, "SE", "interval", "labels", "worth", "about"]
    note = (
        "worth: labels that the plain mean would need for the same standard error. one-step and naive intervals are"
        " about the population the items come from; LACE's about the mean of these items."
    )
    means = table(columns, rows, caption="Mean performance by target and method", numeric=(2, 3, 4, 5, 6), note=note)
    return section("leaderboard", "Leaderboard", _ranks(run), f'<figure class="chart">{_forest(run)}</figure>', means)


_ABOUT = {
    "gold_all": "every item's gold answer is known",
    "naive": "plain mean of the labeled items",
    "one_step": "within-item correction, tuned power",
    "one_step_paper": "within-item correction, power 1",
    "one_step_pool": "correction by the pool's τ",
    "lace": "signals of all items, averaged rule",
    "repeated_decoding": "several answers per labeled item",
}


def _mean_cells(method: str, estimate: Estimate, naive: Any, percent: bool) -> list[Cell]:
    known = method == "gold_all"
    return [
        METHOD_LABELS.get(method, method),
        number(estimate.value, percent=percent),
        "" if known else number(estimate.se, percent=percent, digits=2),
        "" if known else span(estimate.low, estimate.high, percent=percent),
        estimate.n,
        "" if known else worth(estimate, naive),
        _ABOUT.get(method, ""),
    ]


def _ranks(run: RunFolder) -> str:
    decided = run.estimates.extra.get("decisions")
    if not decided:
        return ""
    rows: list[list[Cell]] = []
    for entry in sorted(decided["rank_sets"], key=lambda found: found["rank"]):
        beaten = [p["b"] for p in decided["pairs"] if p["a"] == entry["name"] and p["low"] > 0]
        beaten += [p["a"] for p in decided["pairs"] if p["b"] == entry["name"] and p["high"] < 0]
        reach = str(entry["best"]) if entry["best"] == entry["worst"] else f"{entry['best']} to {entry['worst']}"
        value = number(entry["value"], percent=_percent(run))
        rows.append([entry["name"], entry["rank"], reach, value, ", ".join(beaten) or "–"])
    note = (
        f"All rank sets hold together with probability {decided['level']:g}: they follow from the joint intervals of"
        " all paired gaps below."
    )
    columns = ["target", "rank", "could be", "estimate", "better, for certain, than"]
    return table(columns, rows, caption="Ranks", numeric=(1, 2, 3), note=note)


def _forest(run: RunFolder) -> str:
    shown = ("gold_all", "naive", "one_step", "one_step_pool", "lace", "repeated_decoding")
    rows = []
    for group, (target, methods) in enumerate(run.estimates.items()):
        truth = _truth(run, target)
        if truth is not None:
            rows.append(Interval(f"{target}: simulated truth", truth, None, None, group))
        for method in shown:
            estimate = methods.get(method)
            if isinstance(estimate, Estimate):
                low, high = (None, None) if method == "gold_all" else (estimate.low, estimate.high)
                label = f"{target}: {METHOD_LABELS.get(method, method)}"
                rows.append(Interval(label, estimate.value, low, high, group))
    return forest_plot(rows, title="Estimates and intervals by target and method", percent=_percent(run))


def _places(profile: Profile) -> tuple[tuple[float, ...], list[tuple[float, str]]]:
    """Where the points stand, and the names of levels where they are no numbers."""
    if profile.at.dtype.kind in "US":
        return tuple(float(k) for k in range(len(profile.at))), [(float(k), str(v)) for k, v in enumerate(profile.at)]
    return tuple(float(v) for v in profile.at), []


def _profile_chart(run: RunFolder, target: str) -> str:
    methods = run.estimates[target]
    profile, band, naive = (methods.get(name) for name in ("lace_profile", "lace_profile_band", "naive_profile"))
    assert isinstance(profile, Profile)
    x, ticks = _places(profile)
    outer = (tuple(band.low), tuple(band.high)) if isinstance(band, Profile) else ((), ())
    curves = [Curve("LACE", x, tuple(profile.value), tuple(profile.low), tuple(profile.high), *outer)]
    if isinstance(naive, Profile):
        curves.append(Curve("labels alone", x, tuple(naive.value), dashed=True))
    axis = str((run.manifest.get("benchmark") or {}).get("profile") or "profile")
    return curve_chart(curves, title=f"{target}: profile by {axis}", x_label=axis, percent=_percent(run), ticks=ticks)


def _profile(run: RunFolder, target: str) -> str:
    methods = run.estimates[target]
    profile, band, naive = (methods.get(name) for name in ("lace_profile", "lace_profile_band", "naive_profile"))
    if not isinstance(profile, Profile):
        return ""
    percent = _percent(run)
    verdicts = profile.diagnostics.get("verdict") or [""] * len(profile.at)
    rows: list[list[Cell]] = []
    for k, at in enumerate(profile.at):
        rows.append(
            [
                str(at) if isinstance(at, str) else f"{float(at):.4g}",
                number(profile.value[k], percent=percent),
                number(profile.se[k], percent=percent, digits=2),
                span(profile.low[k], profile.high[k], percent=percent),
                span(band.low[k], band.high[k], percent=percent) if isinstance(band, Profile) else "",
                number(naive.value[k], percent=percent) if isinstance(naive, Profile) else "",
                span(naive.low[k], naive.high[k], percent=percent) if isinstance(naive, Profile) else "",
                f"{profile.n_effective[k]:.1f}",
                str(verdicts[k]),
            ]
        )
    columns = ["at", "LACE", "SE", "interval", "joint band", "labels alone", "interval", "labels in reach", "signals"]
    note = (
        f"interval: this point alone; joint band: the whole curve at once, {100 * profile.level:.0f} %. Both are about"
        f" the {profile.target} profile as the kernel smooths it. signals: whether they help here."
    )
    chart = f'<figure class="chart">{_profile_chart(run, target)}</figure>'
    return f"<h3>{text(target)}</h3>{chart}" + table(
        columns, rows, caption=f"{target}: profile", numeric=range(1, 8), note=note
    )


def _gaps(run: RunFolder) -> str:
    decided = run.estimates.extra.get("decisions") or {"pairs": [], "margin": 0.02, "level": 0.95}
    joint = {(pair["a"], pair["b"]): pair for pair in decided["pairs"]}
    rows: list[list[Cell]] = []
    shown = []
    for gap in run.estimates.gaps:
        estimate = gap.estimate
        if not isinstance(estimate, Estimate):
            continue
        pair = joint.get((gap.a, gap.b)) if gap.method == "lace_gap" else None
        label = METHOD_LABELS.get(gap.method.removesuffix("_gap"), gap.method).removesuffix(" mean")
        rows.append(
            [
                f"{gap.a} − {gap.b}",
                label,
                number(estimate.value, percent=True),
                number(estimate.se, percent=True, digits=2),
                span(estimate.low, estimate.high, percent=True),
                span(pair["low"], pair["high"], percent=True) if pair else "",
                f"{pair['p_adjusted']:.3g}" if pair else "",
                _verdict(pair) if pair else "",
            ]
        )
        if gap.method == "lace_gap":
            shown.append(Interval(f"{gap.a} − {gap.b}", estimate.value, estimate.low, estimate.high))
    chart = forest_plot(shown, title="Paired gaps", percent=True, zero=True) if shown else ""
    columns = ["a − b", "method", "gap, points", "SE", "interval", "joint interval", "p (Holm)", "decision"]
    note = (
        f"joint interval: all pairs together, {100 * decided['level']:g} %. equivalent: it lies within"
        f" ±{100 * decided['margin']:g} points."
    )
    return section(
        "gaps",
        "Paired gaps",
        f'<figure class="chart">{chart}</figure>',
        table(columns, rows, caption="Paired gaps on shared items", numeric=range(2, 7), note=note),
    )


def _verdict(pair: Mapping[str, Any]) -> str:
    if pair["low"] > 0:
        return f"{pair['a']} is better"
    if pair["high"] < 0:
        return f"{pair['b']} is better"
    return "equivalent" if pair.get("equivalent") else "undecided"


def _curves(run: RunFolder) -> Mapping[str, list[dict[str, Any]]]:
    return run.estimates.extra.get("best_of_n_curves") or {}


def _curve_of_n(target: str, curve: list[dict[str, Any]]) -> str:
    value, low, high = (tuple(float(p["estimate"][name]) for p in curve) for name in ("value", "low", "high"))
    line = Curve(f"J = {curve[0]['j']}", tuple(float(point["n"]) for point in curve), value, low, high)
    return curve_chart([line], title=f"{target}: value of the best of N", x_label="N candidates", percent=False)


def _best_of_n(run: RunFolder) -> str:
    rows: list[list[Cell]] = [
        [
            entry.target,
            entry.measure,
            entry.n,
            entry.j,
            number(entry.estimate.value, percent=False),
            number(entry.estimate.se, percent=False),
            span(entry.estimate.low, entry.estimate.high, percent=False),
            entry.estimate.n,
        ]
        for entry in run.estimates.best_of_n
    ]
    charts = "".join(
        f'<figure class="chart">{_curve_of_n(target, curve)}</figure>'
        for target, curve in _curves(run).items()
        if curve
    )
    note = (
        "score: expected judge score of the winner, no score both selecting and valuing it. gain: against one random"
        " candidate. gold: φ of the selected candidate. Intervals are over prompts."
    )
    columns = ["target", "measure", "N", "J", "value", "SE", "interval", "prompts"]
    made = table(columns, rows, caption="Best of N by the mean of J scores", numeric=range(2, 8), note=note)
    return section("best-of-n", "Best of N", charts, made)
