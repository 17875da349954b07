"""Signals: what each family was worth for what it took, and how each signal goes with gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.evaluation.signal_families import family_costs
from pipeline.report.markup import Cell, Number, section, table
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.values import share
from pipeline.tables.schemas import signal_columns


def signals(run: RunFolder) -> str:
    """The section; empty where no signal was collected."""
    names = signal_columns(run.signals.columns)
    rows = [row for target in run.targets for row in _rows(run, target, names)]
    if not rows:
        return ""
    columns = ["target", "signal", "correlation with gold", "labels", "mean", "sd", "missing, %"]
    note = (
        "Correlations are over labeled items. A missing value is filled with the signal's mean over all items, and from"
        " 1 % missing an indicator joins the signals; any function of an item that needs no label may be a signal."
    )
    made = table(
        columns,
        rows,
        caption="Signals and gold",
        numeric=range(2, 7),
        note=note,
        source="tables/signals.parquet",
    )
    return section("signals", "Signals", _worth(run), made)


def _rows(run: RunFolder, target: str, names: Sequence[str]) -> list[list[Cell]]:
    frame = run.signals.filter(pl.col("target") == target)
    labeled = frame.filter(pl.col("labeled"))
    rows: list[list[Cell]] = []
    for name in names:
        if frame[name].is_null().all():
            continue
        pair = labeled.select("y", name).drop_nulls().to_numpy().astype(float)
        varies = len(pair) > 2 and np.ptp(pair, axis=0).min() > 0
        correlation = _short(float(np.corrcoef(pair.T)[0, 1]), 2) if varies else "–"
        missing = share(frame[name].null_count() / frame.height)
        rows.append(
            [target, name, correlation, len(pair), _short(frame[name].mean()), _short(frame[name].std()), missing]
        )
    return rows


def _short(entry: Any, digits: int = 3) -> Cell:
    return Number(float(entry), f"{entry:.{digits}f}") if isinstance(entry, int | float) else "–"


def _worth(run: RunFolder) -> str:
    entries: list[Mapping[str, Any]] = run.estimates.extra.get("worth") or []
    costs, unit = family_costs(run.manifest)
    rows: list[list[Cell]] = []
    for entry in entries:
        if entry.get("gain") is None:
            continue
        present = {e["family"] for e in entries if e["target"] == entry["target"]}
        total = sum(amount for family, amount in (costs or {}).items() if family in present)
        took: Cell = share(costs.get(entry["family"], 0.0) / total) if costs and total > 0 else "–"
        gain = float(entry["gain"])
        rows.append(
            [
                entry["target"],
                entry["family"],
                took,
                Number(gain, f"{gain:.2f}×"),
                Number(entry["without"], f"{entry['without']:.0f}"),
                Number(entry["effective"], f"{entry['effective']:.0f}"),
            ]
        )
    if not rows:
        return ""
    note = (
        "Free signals (agreement of answers, the other targets' signals, lengths) cost no call: their row is what the"
        " labels are worth with them alone, against the labels. The other rows leave one family out: effective labels"
        " (labels that the plain mean would need for the same standard error) of"
        " the LACE mean with all families, against the others alone. Below 1× the family cost more noise than it took"
        f" away here. Shares are of the signals' {unit}; confidence is asked in the answer itself."
    )
    return table(
        ["target", "family", f"share of {unit}, %", "times the labels", "effective without it", "effective with all"],
        rows,
        caption="What each family of signals was worth",
        numeric=range(2, 6),
        note=note,
        source="estimates.json, worth; manifest.json, calls → stages",
    )
