"""The verdict of a gate as a page: what may ship first, every metric and slice against its margin below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.evaluation.gate_verdict import GateReport, GateRow
from pipeline.report.page import write_page
from pipeline.report.page_values import Listed, Page, Prose, Section, parts_of
from pipeline.report.values import Axis, Cell, Figure, Series, Table, number, quantity, range_of, span, table


def _percent(report: GateReport) -> bool:
    return all(abs(row.gap) <= 1.0 for row in report.rows if row.gap == row.gap)


def _named(row: GateRow) -> str:
    return row.metric + ("" if row.column is None else f", {row.column} = {row.level}")


def gate_table(report: GateReport) -> Table:
    """Every metric and slice: its difference, the margin, what it says by itself."""
    percent = _percent(report)
    says = {(True, False): "ships", (False, True): "blocks", (False, False): "open"}
    rows: list[list[Cell]] = [
        [
            row.metric, "" if row.column is None else f"{row.column} = {row.level}", row.n,
            quantity(row.gap, percent=percent),
            "" if row.low != row.low else range_of(row.low, row.high, percent=percent),
            quantity(row.margin, percent=percent),
            "" if row.ships is None or row.blocks is None else says[row.ships, row.blocks],
        ]
        for row in report.rows
    ]  # fmt: skip
    of = "items like these" if report.target == "population" else "these very items"
    unit = "points" if percent else "the metric's unit"
    title = f"candidate − base: {report.candidate} − {report.base}, {report.items} shared items, about {of} ({unit})"
    columns = ["metric", "slice", "items", "difference", "95 % interval", "margin", "says"]
    return table(title, columns, rows, numeric=(2, 3, 4, 5), source="auxeval gate --json")


def _figure(report: GateReport) -> Figure:
    percent = _percent(report)
    tone = {True: 4, False: 0}
    names = tuple(_named(row) for row in report.rows)
    series = tuple(
        Series("", [row.gap], [float(k)], [row.low], [row.high], across=True, tone=tone[bool(row.blocks)])
        for k, row in enumerate(report.rows)
    )
    marks = (0.0, *sorted({-row.margin for row in report.rows}))
    beside = tuple(f"{number(r.gap, percent=percent)} {span(r.low, r.high, percent=percent)}" for r in report.rows)
    caption = "Right of zero the candidate is better; dotted: the margin that it may lose."
    return Figure(
        "Candidate − base", series, Axis(percent=percent, marks=marks), Axis(names=names, beside=beside), caption
    )


def write_gate_page(
    folder: Path, report: GateReport, reason: str, more: Sequence[str], provenance: Sequence[tuple[str, Cell]]
) -> None:
    """Write ``report.html`` into the folder.

    Args:
        folder: where to; it is made.
        report: the verdict.
        reason: why, in a sentence.
        more: further sentences: items left out, noise of the runs.
        provenance: sources, command, version.

    Raises:
        DataError: the folder cannot be written.
    """
    headline = f"*{report.verdict}*: {reason}" if report.verdict is not None else reason
    parts = parts_of(_figure(report), gate_table(report), [Prose(line) for line in more])
    sections = (
        Section("verdict", "May the candidate replace the base?", "Verdict", parts),
        Section("methods", "Provenance", "Provenance", (Listed(tuple(provenance)),)),
    )
    title = f"{report.candidate} against {report.base}"
    write_page(folder, Page(title, headline, tuple(report.notes), (), sections, "This page needs no network."))
