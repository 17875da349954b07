"""Self-check of a simulated run: are the known truths inside the intervals."""

from __future__ import annotations

import math

from pipeline.estimators import Estimate
from pipeline.evaluation.methods import method_label
from pipeline.report.markup import Cell, Number, section, table
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.values import between, is_share, truth, value


def self_check(run: RunFolder) -> str:
    """The section; empty where no target is simulated."""
    percent = is_share(run)
    rows: list[list[Cell]] = []
    inside = 0
    for target, methods in run.estimates.items():
        expected, whole = truth(run, target), methods.get("gold_all")
        if expected is None:
            continue
        for method, estimate in methods.items():
            if not isinstance(estimate, Estimate) or estimate.interval == "none" or not math.isfinite(estimate.low):
                continue
            pool = estimate.target == "pool" and isinstance(whole, Estimate)
            reference = whole.value if pool and isinstance(whole, Estimate) else expected
            covered = estimate.low <= reference <= estimate.high
            inside += covered
            off = (estimate.value - reference) / estimate.se if estimate.se > 0 else math.nan
            rows.append(
                [
                    target,
                    method_label(method),
                    "mean of these items" if pool else "expected value",
                    value(reference, percent=percent),
                    value(estimate.value, percent=percent),
                    between(estimate.low, estimate.high, percent=percent),
                    Number(off, f"{off:+.1f}" if math.isfinite(off) else "–"),
                    "inside" if covered else "outside",
                ]
            )
    if not rows:
        return ""
    note = (
        f"{inside} of {len(rows)} intervals hold the truth they are about. They share labels, so they fail together;"
        " one run shows little. Coverage over many runs is measured in the project's studies."
    )
    unit = ", %" if percent else ""
    made = table(
        ["target", "method", "truth about", f"truth{unit}", f"estimate{unit}", "interval", "off by, SE", "truth is"],
        rows,
        caption="Estimates against the simulated truth",
        numeric=range(3, 7),
        note=note,
        source="estimates.json, simulated and targets → target → gold_all",
    )
    return section("self-check", "Self-check against the simulated truth", made)
