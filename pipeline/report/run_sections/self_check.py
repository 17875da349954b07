"""Self-check of a simulated run: are the known truths inside the intervals."""

from __future__ import annotations

import math

from pipeline.estimators import Estimate
from pipeline.evaluation.methods import method_label
from pipeline.report.document_tables import is_share
from pipeline.report.page_values import Part
from pipeline.report.run_folder import RunFolder
from pipeline.report.values import Cell, Number, quantity, range_of, table


def self_check(run: RunFolder) -> tuple[Part, ...]:
    """The parts; none where no target is simulated."""
    percent = is_share(run.estimates)
    rows: list[list[Cell]] = []
    inside = 0
    for target, methods in run.estimates.items():
        expected, whole = _truth(run, target), methods.get("gold_all")
        if expected is None:
            continue
        for method, estimate in methods.items():
            if not isinstance(estimate, Estimate) or estimate.interval == "none" or not math.isfinite(estimate.low):
                continue
            pool = estimate.target == "pool" and isinstance(whole, Estimate)
            truth = whole.value if pool and isinstance(whole, Estimate) else expected
            covered = estimate.low <= truth <= estimate.high
            inside += covered
            off = (estimate.value - truth) / estimate.se if estimate.se > 0 else math.nan
            rows.append(
                [
                    target,
                    method_label(method),
                    "mean of these items" if pool else "expected value",
                    quantity(truth, percent=percent),
                    quantity(estimate.value, percent=percent),
                    range_of(estimate.low, estimate.high, percent=percent),
                    Number(off, f"{off:+.1f}" if math.isfinite(off) else "–"),
                    "inside" if covered else "outside",
                ]
            )
    if not rows:
        return ()
    note = (
        f"{inside} of {len(rows)} intervals hold the truth they are about. They share labels, so they fail together;"
        " one run shows little. Coverage over many runs is measured in the project's studies."
    )
    unit = ", %" if percent else ""
    made = table(
        "Estimates against the simulated truth",
        ["target", "method", "truth about", f"truth{unit}", f"estimate{unit}", "interval", "off by, SE", "truth is"],
        rows,
        numeric=range(3, 7),
        note=note,
        source="estimates.json, simulated and targets → target → gold_all",
    )
    return (made,)


def _truth(run: RunFolder, target: str) -> float | None:
    """The true accuracy of a simulated target; None for any other, and where outcomes are no right or wrong."""
    grading = str(run.benchmark.get("grading") or "")
    if grading == "squared_error" or grading.startswith("python:"):
        return None
    world = (run.estimates.extra.get("simulated") or {}).get(target) or {}
    truth = world.get("true_accuracy")
    return float(truth) if isinstance(truth, int | float) else None
