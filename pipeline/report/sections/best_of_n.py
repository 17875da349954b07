"""Best of N: what the policies are worth in judge score, in gain and in gold, and the curve over N."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.report.charts import Curve, curve_chart
from pipeline.report.markup import Cell, figure, section, table
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.values import between, value


def best_of_n(run: RunFolder) -> str:
    """The section; empty where no policy was evaluated."""
    if not run.estimates.best_of_n:
        return ""
    rows: list[list[Cell]] = [
        [
            entry.target,
            entry.measure.replace("_", " "),
            entry.n,
            entry.j,
            value(entry.estimate.value, percent=False, digits=2),
            value(entry.estimate.se, percent=False, digits=2),
            between(entry.estimate.low, entry.estimate.high, percent=False),
            entry.estimate.n,
        ]
        for entry in run.estimates.best_of_n
    ]
    charts = [figure(svg, f"{target}: value of the best of N.") for target, svg in best_of_n_curves(run).items()]
    note = (
        "score: expected judge score of the winner; no score both selects a candidate and values it. gain: against one"
        " random candidate. gold: φ of the selected candidate, gold gain likewise against a random one. Intervals are"
        " over prompts."
    )
    made = table(
        ["target", "measure", "N", "J", "value", "SE", "interval", "prompts"],
        rows,
        caption="Best of N by the mean of J scores",
        numeric=range(2, 8),
        note=note,
        source="estimates.json, best_of_n",
    )
    return section("best-of-n", "Best of N", *charts, made)


def best_of_n_curves(run: RunFolder) -> Mapping[str, str]:
    """Target → SVG of its value over N."""
    curves: Mapping[str, list[dict[str, Any]]] = run.estimates.extra.get("best_of_n_curves") or {}
    return {target: _chart(target, curve) for target, curve in curves.items() if curve}


def _chart(target: str, curve: list[dict[str, Any]]) -> str:
    ends = {name: tuple(_float(point["estimate"][name]) for point in curve) for name in ("value", "low", "high")}
    x = tuple(float(point["n"]) for point in curve)
    line = Curve(f"judge score of the best by J = {curve[0]['j']}", x, ends["value"], ends["low"], ends["high"])
    return curve_chart([line], title=f"{target}: value of the best of N", x_label="N candidates", percent=False)


def _float(number: Any) -> float:
    return float("nan") if number is None else float(number)
