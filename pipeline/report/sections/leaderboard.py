"""Leaderboard: ranks that each target could hold, the forest plot, every mean by target and method."""

from __future__ import annotations

from typing import Any

from pipeline.estimators import Estimate
from pipeline.report.charts import Interval, forest_plot
from pipeline.report.markup import Cell, Number, figure, section, table
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.values import between, is_share, means, truth, value
from pipeline.report.terminal import METHOD_LABELS, worth

__all__ = ["forest", "leaderboard"]

_ABOUT = {
    "gold_all": "every item's gold answer is known: the mean itself, not an estimate",
    "naive": "plain mean of the labeled items",
    "one_step": "labeled items, corrected within each item; λ tuned",
    "one_step_paper": "the same with λ = 1",
    "one_step_pool": "labeled items, corrected by the predictions τ for all items",
    "lace": "labeled items, corrected by the signals of all items; averaged rule",
    "repeated_decoding": "several answers to each labeled item",
}
_SHOWN = ("gold_all", "naive", "repeated_decoding", "one_step", "one_step_pool", "lace")


def leaderboard(run: RunFolder) -> str:
    """The section; empty where no mean was estimated."""
    if not any(means(run)):
        return ""
    percent = is_share(run)
    rows: list[list[Cell]] = []
    for target, methods in run.estimates.items():
        known = truth(run, target)
        if known is not None:
            shown = value(known, percent=percent)
            rows.append([target, "simulated\u00a0truth", shown, "", "", "", "", "", "expected value over its replies"])
        for method, estimate in methods.items():
            if isinstance(estimate, Estimate):
                rows.append([target, *_cells(method, estimate, methods.get("naive"), percent)])
    unit = "estimate, %" if percent else "estimate"
    level = next((e.level for m in run.estimates.values() for e in m.values() if isinstance(e, Estimate)), 0.95)
    columns = ["target", "method", unit, "SE", f"{100 * level:g} % interval", "labels", "worth", "about", "how"]
    note = (
        "worth: labels that the plain mean would need for the same standard error. about: what the interval covers, the"
        " mean of these items (pool) or of the population they come from."
    )
    made = table(
        columns,
        rows,
        caption="Mean performance by target and method",
        numeric=(2, 3, 4, 5, 6),
        note=note,
        source="estimates.json, targets → target → method",
    )
    chart = figure(forest(run), f"Points and {100 * level:g} % intervals; diamonds are known values.")
    return section("leaderboard", "Leaderboard", _ranks(run), chart, made)


def _cells(method: str, estimate: Estimate, naive: Any, percent: bool) -> list[Cell]:
    known = method == "gold_all"
    name, shown = METHOD_LABELS.get(method, method).replace(" ", "\u00a0"), value(estimate.value, percent=percent)
    if known:
        return [name, shown, "", "", estimate.n, "", "pool", _ABOUT[method]]
    return [
        name,
        shown,
        value(estimate.se, percent=percent, digits=2 if percent else 1),
        between(estimate.low, estimate.high, percent=percent),
        estimate.n,
        worth(estimate, naive),
        str(estimate.diagnostics.get("target") or "population"),
        _ABOUT.get(method, ""),
    ]


def _ranks(run: RunFolder) -> str:
    decided = run.estimates.extra.get("decisions")
    if not decided:
        return ""
    percent = is_share(run)
    rows: list[list[Cell]] = []
    for entry in sorted(decided["rank_sets"], key=lambda found: found["rank"]):
        name = entry["name"]
        beaten = [p["b"] for p in decided["pairs"] if p["a"] == name and p["low"] > 0]
        beaten += [p["a"] for p in decided["pairs"] if p["b"] == name and p["high"] < 0]
        best, worst = entry["best"], entry["worst"]
        reach = str(best) if best == worst else f"{best} to {worst}"
        rows.append([name, entry["rank"], reach, _estimate(entry["value"], percent), ", ".join(beaten) or "–"])
    note = (
        f"All rank sets hold together with probability {decided['level']:g}: they follow from the joint intervals of"
        f" all paired gaps ({decided['adjustment']})."
    )
    columns = ["target", "rank", "could be", "LACE mean, %" if percent else "LACE mean", "better, for certain, than"]
    return table(
        columns, rows, caption="Ranks", numeric=(1, 2, 3), note=note, source="estimates.json, decisions → rank_sets"
    )


def _estimate(amount: float | None, percent: bool) -> Number:
    return value(float("nan") if amount is None else float(amount), percent=percent)


def forest(run: RunFolder) -> str:
    """The forest plot as SVG; empty where no mean was estimated."""
    if not any(means(run)):
        return ""
    rows: list[Interval] = []
    for group, (target, methods) in enumerate(run.estimates.items()):
        rows.append(Interval(target, None))
        known = truth(run, target)
        if known is not None:
            rows.append(Interval("simulated truth", known, group=group))
        for method in _SHOWN:
            estimate = methods.get(method)
            if isinstance(estimate, Estimate):
                low, high = (None, None) if method == "gold_all" else (estimate.low, estimate.high)
                rows.append(Interval(METHOD_LABELS.get(method, method), estimate.value, low, high, group))
    return forest_plot(rows, title="Estimates and intervals by target and method", percent=is_share(run))
