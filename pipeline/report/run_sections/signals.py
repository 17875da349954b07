"""Signals of a run: what each family was worth for what it took, drawn, and how each signal goes with gold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pipeline.evaluation.signal_families import family_costs
from pipeline.report.document_tables import tones
from pipeline.report.page_values import Part, parts_of
from pipeline.report.run_folder import RunFolder
from pipeline.report.values import Axis, Cell, Figure, Number, Series, Table, quantity, table
from pipeline.tables.schemas import signal_columns


def signals(run: RunFolder) -> tuple[Part, ...]:
    """The parts; none where no signal was collected."""
    names = signal_columns(run.signals.columns)
    rows = [row for target in run.targets for row in _rows(run, target, names)]
    if not rows:
        return ()
    columns = ["target", "signal", "correlation with gold", "labels", "mean", "sd", "missing, %"]
    note = (
        "Correlations are over labeled items. A missing value is filled with the signal's mean over all items, and from"
        " 1 % missing an indicator joins the signals; any function of an item that needs no label may be a signal."
    )
    made = table(
        "Signals and gold", columns, rows, numeric=range(2, 7), note=note, source="tables/signals.parquet"
    )  # fmt: skip
    return parts_of(_drawn(run), _worth(run), made)


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
        missing = quantity(frame[name].null_count() / frame.height, percent=True)
        rows.append(
            [target, name, correlation, len(pair), _short(frame[name].mean()), _short(frame[name].std()), missing]
        )
    return rows


def _short(value: Any, digits: int = 3) -> Cell:
    return Number(float(value), f"{value:.{digits}f}") if isinstance(value, int | float) else "–"


def _entries(run: RunFolder) -> list[Mapping[str, Any]]:
    entries: list[Mapping[str, Any]] = run.estimates.extra.get("worth") or []
    return [entry for entry in entries if entry.get("gain") is not None]


def _took(run: RunFolder, entry: Mapping[str, Any]) -> float | None:
    """The share of the signals' money, or tokens, that a family took; None where nothing was counted."""
    costs, _ = family_costs(run.manifest)
    present = {e["family"] for e in _entries(run) if e["target"] == entry["target"]}
    total = sum(amount for family, amount in (costs or {}).items() if family in present)
    return costs.get(entry["family"], 0.0) / total if costs and total > 0 else None


def _drawn(run: RunFolder) -> Figure | None:
    """Every family's gain, with what it took beside it and a line where nothing is gained."""
    entries, tone, (_, unit) = _entries(run), tones(run.estimates), family_costs(run.manifest)
    if not entries:
        return None
    families = list(dict.fromkeys(entry["family"] for entry in entries))
    taken = [next((_took(run, e) for e in entries if e["family"] == family), None) for family in families]
    series = []
    for target in dict.fromkeys(entry["target"] for entry in entries):
        mine = [entry for entry in entries if entry["target"] == target]
        rows = [float(families.index(entry["family"])) for entry in mine]
        gains = [float(entry["gain"]) for entry in mine]
        series.append(Series(target, gains, rows, line=False, tone=tone.get(target, -1)))
    beside = tuple("" if share is None else f"{100 * share:.0f} % of {unit}" for share in taken)
    caption = "How many times the labels each family makes of them; left of the dotted line it cost more than it gave."
    axis = Axis("times the labels", marks=(1.0,))
    rows_axis = Axis(names=tuple(families), beside=beside)
    return Figure("What each family of signals was worth", tuple(series), axis, rows_axis, caption)


def _worth(run: RunFolder) -> Table | None:
    _, unit = family_costs(run.manifest)
    rows: list[list[Cell]] = []
    for entry in _entries(run):
        share = _took(run, entry)
        took: Cell = "–" if share is None else quantity(share, percent=True)
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
        return None
    note = (
        "Free signals (agreement of answers, the other targets' signals, lengths) cost no call: their row is what the"
        " labels are worth with them alone, against the labels. The other rows leave one family out: effective labels"
        " (labels that the plain mean would need for the same standard error) of"
        " the LACE mean with all families, against the others alone. Below 1× the family cost more noise than it took"
        f" away here. Shares are of the signals' {unit}; confidence is asked in the answer itself."
    )
    return table(
        "Families of signals",
        ["target", "family", f"share of {unit}, %", "times the labels", "effective without it", "effective with all"],
        rows,
        numeric=range(2, 6),
        note=note,
        source="estimates.json, worth; manifest.json, calls → stages",
    )
