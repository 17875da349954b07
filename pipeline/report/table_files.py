"""Writes the estimates of a table into a folder: estimates.json, estimates.csv, the page and its figures."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.csv_guard import guard
from pipeline.errors import DataError
from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.document import EstimateSet
from pipeline.giving_way import refuse_to_replace
from pipeline.report.document_page import document_sections, warnings
from pipeline.report.document_tables import trace
from pipeline.report.page import write_document
from pipeline.report.page_values import Folded, Listed, Page, Part
from pipeline.report.run_sections.repeats import repeats
from pipeline.report.values import Cell

_COLUMNS = ("target", "method", "at", "value", "se", "low", "high", "level", "n", "worth", "verdict")
_HEAD = ",".join(_COLUMNS).encode()
_EVERY = "Every estimate: what it is about, from how many labels, by which rule"


def table_page(
    estimates: EstimateSet,
    *,
    title: str,
    provenance: Sequence[tuple[str, Cell]] = (),
    parts: Mapping[str, Sequence[Part]] | None = None,
) -> Page:
    """The page of a document that comes from no run.

    Args:
        estimates: the document.
        title: what was evaluated.
        provenance: file, hash, command, seed, versions, date: as (name, value).
        parts: section → what is to stand at its end: the items.
    """
    made = (Listed(tuple(provenance)),) if provenance else ()
    more = {
        **dict(parts or {}),
        "repeats": repeats(estimates),
        "methods": (*made, Folded(_EVERY, (trace(estimates),))),
    }
    return Page(
        title, estimates.headline, warnings(estimates), (), document_sections(estimates, more),
        "This page needs no network; estimates and figures lie beside it.",
    )  # fmt: skip


def write_table_report(
    folder: Path,
    estimates: EstimateSet,
    *,
    title: str,
    provenance: Sequence[tuple[str, Cell]] = (),
    parts: Mapping[str, Sequence[Part]] | None = None,
) -> tuple[Path, ...]:
    """Write the files; what was written, without the figures.

    Raises:
        DataError: the folder cannot be written, or holds other files of these names, the input of the command perhaps.
    """
    refuse_to_replace(folder / "estimates.csv", lambda text: text.startswith(_HEAD), "table of estimates")
    refuse_to_replace(folder / "estimates.json", lambda text: b'"schema"' in text[:40], "document of estimates")
    contents = {"estimates.json": estimates.to_json(), "estimates.csv": csv_text(estimates)}
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            path = folder / name
            draft = path.with_name(name + ".draft")
            draft.write_text(text, encoding="utf-8", newline="\n")
            draft.replace(path)
            paths.append(path)
    except OSError as error:
        raise DataError(f"--out {folder} cannot be written: {error.strerror or error}") from error
    write_document(folder, table_page(estimates, title=title, provenance=provenance, parts=parts), estimates)
    return (*paths, folder / "report.html")


def _rows(estimates: EstimateSet) -> Iterator[dict[str, Any]]:
    """One row per number: means, profile points, gaps and best-of-N values."""
    for target, methods in estimates.items():
        for method, estimate in methods.items():
            yield from _estimate_rows(target, method, estimate)
    for gap in estimates.gaps:
        yield from _estimate_rows(f"{gap.a} − {gap.b}", gap.method, gap.estimate)
    for entry in estimates.best_of_n:
        method = f"best_of_{entry.n}_by_{entry.j}_{entry.measure}"
        yield from _estimate_rows(entry.target, method, entry.estimate)


def _estimate_rows(target: str, method: str, estimate: Estimate | Profile) -> Iterator[dict[str, Any]]:
    shared = {"target": target, "method": method, "level": estimate.level}
    if isinstance(estimate, Estimate):
        numbers = {name: getattr(estimate, name) for name in ("value", "se", "low", "high", "n", "worth", "verdict")}
        yield {**shared, "at": None, **numbers}
        return
    for k, at in enumerate(estimate.at.tolist()):
        numbers = {name: float(getattr(estimate, name)[k]) for name in ("value", "se", "low", "high", "worth")}
        yield {**shared, "at": at, **numbers, "n": None, "verdict": estimate.verdict[k]}


def csv_text(estimates: EstimateSet) -> str:
    """Every number with its interval; an empty cell where there is none."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in _rows(estimates):
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, str):
        return guard(value)
    return repr(value) if isinstance(value, float) else value
