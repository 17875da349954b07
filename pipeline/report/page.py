"""report.html: one self-contained page about a run, and its figures beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pipeline.report.asked_prompts import AskedPrompts
from pipeline.report.charts import standalone
from pipeline.report.figures_pdf import svg_to_pdf
from pipeline.report.item_browser import item_browser
from pipeline.report.markup import text
from pipeline.report.methods_text import methods_paragraph
from pipeline.report.paper_tables import tables_latex, tables_markdown
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.best_of_n import best_of_n, best_of_n_curves
from pipeline.report.sections.calls import calls
from pipeline.report.sections.gaps import gap_chart, gaps
from pipeline.report.sections.header import footer, header
from pipeline.report.sections.judges import judges
from pipeline.report.sections.leaderboard import forest, leaderboard
from pipeline.report.sections.one_step import one_step
from pipeline.report.sections.profiles import profile_chart, profiles
from pipeline.report.sections.provenance import provenance
from pipeline.report.sections.repeats import repeats
from pipeline.report.sections.self_check import self_check
from pipeline.report.sections.signals import signals

_FIGURE = re.compile(r"(forest|gaps|(profile|best-of-n)-\d+)\.(svg|pdf)")
_ASSETS = Path(__file__).resolve().parent / "assets"
_SECTIONS: dict[str, Callable[[RunFolder], str] | None] = {
    "leaderboard": leaderboard,
    "profiles": profiles,
    "gaps": gaps,
    "best-of-n": best_of_n,
    "repeats": repeats,
    "one-step": one_step,
    "signals": signals,
    "judges": judges,
    "self-check": self_check,
    "cost": calls,
    "items": None,  # piece by piece
    "methods": provenance,
}


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
    _write(folder / "report.html", _page(run, asked))
    target = folder / "figures"
    target.mkdir(exist_ok=True)
    drawn = dict(_figures(run))
    for old in target.iterdir():
        if _FIGURE.fullmatch(old.name) and old.stem not in drawn:
            old.unlink()
    for name, svg in drawn.items():
        _write(target / f"{name}.svg", [standalone(svg)])
        _write(target / f"{name}.pdf", [svg_to_pdf(svg)])
    _write(target / "tables.md", [tables_markdown(run.estimates, run.axis)])
    _write(target / "tables.tex", [tables_latex(run.estimates, run.axis)])
    _write(target / "methods.txt", [methods_paragraph(run.estimates, run.manifest, run.config) + "\n"])


def _figures(run: RunFolder) -> Iterator[tuple[str, str]]:
    """(file name without its ending, SVG); targets by number, since a model's name is no file name."""
    for name, chart in (("forest", forest(run)), ("gaps", gap_chart(run))):
        if chart:
            yield name, chart
    for position, target in enumerate(run.estimates):
        chart = profile_chart(run, target)
        if chart:
            yield f"profile-{position}", chart
    for position, svg in enumerate(best_of_n_curves(run).values()):
        yield f"best-of-n-{position}", svg


def _write(path: Path, content: Iterable[str | bytes]) -> None:
    """Piece by piece into a draft, which then takes the place of the file."""
    draft = path.with_name(path.name + ".draft")
    with draft.open("wb") as file:
        for part in content:
            file.write(part if isinstance(part, bytes) else part.encode("utf-8", "backslashreplace"))
    draft.replace(path)


def _page(run: RunFolder, asked: AskedPrompts | None) -> Iterator[str]:
    """The page in pieces: all sections but the items are made first, since the head links to them."""
    style = (_ASSETS / "report.css").read_text(encoding="utf-8")
    script = (_ASSETS / "report.js").read_text(encoding="utf-8")
    sections = {}
    for name, make in _SECTIONS.items():
        sections[name] = "" if make is None else make(run)
        run.forget()
    sections = {name: made for name, made in sections.items() if made or _SECTIONS[name] is None}
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(run.config.get('name'))}: auxeval report</title><style>{style}</style></head><body>"
        f'<a class="skip" href="#main">Skip to the results</a>{header(run, list(sections))}<main id="main">'
    )
    for name, made in sections.items():
        if _SECTIONS[name] is None:
            yield from item_browser(run, asked)
        else:
            yield made
    yield f"</main>{footer(run)}<script>{script}</script></body></html>\n"
