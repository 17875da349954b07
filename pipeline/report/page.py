"""The page of a run, and the files beside it: one document, one page, whatever door it comes through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from pipeline.errors import DataError
from pipeline.evaluation.document import EstimateSet
from pipeline.report.asked_prompts import AskedPrompts
from pipeline.report.document_page import document_figures, document_sections, document_tables, warnings
from pipeline.report.item_browser import item_parts
from pipeline.report.methods_text import methods_paragraph
from pipeline.report.page_values import Page, Part
from pipeline.report.printers.html import html
from pipeline.report.printers.paper import latex, markdown
from pipeline.report.printers.svg import standalone, svg
from pipeline.report.run_folder import RunFolder
from pipeline.report.run_sections.calls import calls
from pipeline.report.run_sections.judges import judges
from pipeline.report.run_sections.one_step import one_step
from pipeline.report.run_sections.provenance import provenance, run_summary, run_warnings
from pipeline.report.run_sections.repeats import repeats
from pipeline.report.run_sections.self_check import self_check
from pipeline.report.run_sections.signals import signals

_DRAWN = re.compile(r"(forest|gaps|worth|best-of-n|(profiles?|gap-profile|calibration|best-of-n)-\d+)\.(svg|pdf)")
_SECTIONS: Mapping[str, Callable[[RunFolder], tuple[Part, ...]]] = {
    "one-step": one_step, "signals": signals, "judges": judges, "self-check": self_check, "cost": calls,
    "methods": provenance,
}  # fmt: skip


def write_report(folder: Path, asked: AskedPrompts | None = None, *, state: str | None = None) -> None:
    """Write ``report.html`` and ``figures/`` of the run in ``folder``; the same run gives the same bytes.

    Args:
        folder: the run.
        asked: its prompts, so that the page can say what each call was asked.
        state: of the run, where its manifest does not say it yet.

    Raises:
        InputError: the run has no estimates yet, or a file of it is damaged.
    """
    run = RunFolder(folder)
    if state is not None:
        run.manifest["state"] = state
    more: dict[str, tuple[Part, ...]] = {}
    for name, make in _SECTIONS.items():
        more[name] = make(run)
        run.forget()
    estimates = run.estimates
    more |= {"repeats": repeats(estimates), "items": item_parts(run, asked)}
    version = (run.manifest.get("versions") or {}).get("auxeval")
    page = Page(
        str(run.config.get("name")), estimates.headline, (*run_warnings(run), *warnings(estimates)), run_summary(run),
        document_sections(estimates, more),
        f"auxeval {version}, run {run.manifest.get('run_id')}. This page needs no network; the tables, estimates and"
        " figures lie beside it.",
        "simulated models" if run.simulated else "",
    )  # fmt: skip
    texts = {"methods.txt": methods_paragraph(estimates, run.manifest, run.config) + "\n"}
    write_document(folder, page, estimates, texts)


def write_document(folder: Path, page: Page, estimates: EstimateSet, texts: Mapping[str, str] | None = None) -> None:
    """Write ``report.html``, and ``figures/`` with every picture and the tables of a paper.

    Args:
        folder: where to; it is made.
        page: what the page holds.
        estimates: whose figures and tables are written.
        texts: further files beside the figures, name → content.

    Raises:
        DataError: the folder cannot be written.
    """
    target = folder / "figures"
    try:
        target.mkdir(parents=True, exist_ok=True)
        _write(folder / "report.html", html(page))
        drawn = document_figures(estimates)
        for old in target.iterdir():
            if _DRAWN.fullmatch(old.name) and old.stem not in drawn:
                old.unlink()
        for name, figure in drawn.items():
            _write(target / f"{name}.svg", [standalone(svg(figure))])
        made = document_tables(estimates)
        contents = {"tables.md": markdown(made), "tables.tex": latex(made), **(texts or {})}
        for name, content in contents.items():
            _write(target / name, [content])
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror or error}") from error


def write_page(folder: Path, page: Page) -> None:
    """Write ``report.html`` alone, for a document whose numbers stand in no ``EstimateSet``.

    Raises:
        DataError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "report.html", html(page))
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror or error}") from error


def _write(path: Path, content: Iterable[str] | Iterator[str]) -> None:
    """Piece by piece into a draft, which then takes the place of the file."""
    draft = path.with_name(path.name + ".draft")
    with draft.open("wb") as file:
        for part in content:
            file.write(part.encode("utf-8", "backslashreplace"))
    draft.replace(path)
