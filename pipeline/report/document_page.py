"""The document of an evaluation as the sections of a page: what every door's page has, in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.evaluation.document import EstimateSet
from pipeline.report import document_figures as figures
from pipeline.report import document_tables as tables
from pipeline.report import profile_tables
from pipeline.report.page_values import Beside, Folded, Part, Prose, Section, parts_of
from pipeline.report.terminal import worth_sentences
from pipeline.report.values import Figure

_MOST_BESIDE = 6
_ORDER = (
    ("replies", "What became of replies", "Replies"),
    ("leaderboard", "Which is better", "Leaderboard"),
    ("profiles", "Along the profile", "Profiles"),
    ("gaps", "Paired gaps", "Gaps"),
    ("best-of-n", "Best of N", "Best of N"),
    ("judges", "Judges against people", "Judges"),
    ("signals", "What the signals were worth", "Signals"),
    ("one-step", "Was the one-step correction worth it?", "One-step"),
    ("repeats", "Repeated answers", "Repeats"),
    ("items", "Items", "Items"),
    ("cost", "Calls, cost and failures", "Cost"),
    ("compared", "Methods compared", "Methods"),
    ("self-check", "Self-check against the simulated truth", "Self-check"),
    ("methods", "Provenance", "Provenance"),
)


def warnings(estimates: EstimateSet) -> tuple[str, ...]:
    """What must be known before the numbers are read."""
    told = [warning.message for warning in estimates.warnings]
    return (*told, *(f"{entry.target}: {entry.method} is left out: {entry.reason}" for entry in estimates.left_out))


def document_sections(
    estimates: EstimateSet, more: Mapping[str, Sequence[Part]], name: str = ""
) -> tuple[Section, ...]:
    """All sections that have something to show, in their order.

    Args:
        estimates: the document.
        more: section → what this door has to add at its end.
        name: of a criterion, which stands before the names of its sections.
    """
    made = _document_parts(estimates)
    sections = [
        Section(identity, title, menu, parts)
        for identity, title, menu in _ORDER
        if (parts := (*made.get(identity, ()), *more.get(identity, ())))
    ]
    for criterion, part in estimates.criteria.items():
        inner = _document_parts(part)
        parts = parts_of(*(inner.get(key, ()) for key in ("leaderboard", "gaps", "judges", "compared")))
        at = len(sections) - sum(section.identity in ("compared", "self-check", "methods") for section in sections)
        identity = f"criterion-{list(estimates.criteria).index(criterion)}"
        sections.insert(at, Section(identity, f"Criterion {criterion}", criterion, parts))
    return tuple(sections)


def _document_parts(estimates: EstimateSet) -> dict[str, tuple[Part, ...]]:
    board, forest, gaps = tables.leaderboard(estimates), figures.forest(estimates), figures.gap_forest(estimates)
    drawn, along = list(figures.profiles(estimates)), figures.gap_profiles(estimates)
    others = parts_of(profile_tables.comparators(estimates))
    along_tables, gap_tables = tuple(profile_tables.profiles(estimates)), tuple(profile_tables.gap_profiles(estimates))
    profile_parts: list[Part] = []
    for overlay, alone in drawn:
        profile_parts += [overlay, _several("Each target alone, with its joint band and the labels alone", alone)]
    judged = [
        part for judge in estimates.judges for part in parts_of(figures.calibration(judge), figures.kindness(judge))
    ]
    sentences = worth_sentences(estimates)
    told: list[Part] = [Prose(sentence) for sentence in sentences[:_MOST_BESIDE]]
    if sentences[_MOST_BESIDE:]:
        rest = tuple(Prose(sentence) for sentence in sentences[_MOST_BESIDE:])
        told.append(Folded(f"{len(rest)} more such sentences", rest))
    lost, much = tables.replies(estimates), tables.replies(estimates, tables.LOST) is not None
    means = tables.means(estimates) if tables.singles(estimates) else None
    return {
        "replies": parts_of(lost if much else None),
        "leaderboard": parts_of(board, None if much else board and lost, tables.unread(estimates)),
        "profiles": parts_of(profile_parts, _folded("The numbers of the profiles", along_tables),
                             _folded("Other profiles on the same labels", others)),
        "gaps": parts_of(gaps, tables.gaps(estimates), _several("Gaps along the profile", along) if along else None,
                         _folded("The numbers of the gaps along the profile", gap_tables)),
        "best-of-n": parts_of(figures.best_of_n(estimates), tables.best_of_n(estimates)),
        "judges": parts_of(tables.judges(estimates), judged),
        "signals": parts_of(figures.labels_worth(estimates), told),
        "compared": parts_of(forest, means, tables.rehearsal(estimates)),
    }  # fmt: skip


def _several(summary: str, made: Sequence[Figure]) -> Part:
    """Side by side; folded where there are many."""
    return Beside(tuple(made)) if len(made) <= _MOST_BESIDE else Folded(summary, (Beside(tuple(made)),))


def _folded(summary: str, parts: Sequence[Part]) -> Folded | None:
    return Folded(summary, tuple(parts)) if parts else None


def document_figures(estimates: EstimateSet) -> dict[str, Figure]:
    """File name without its ending → figure; targets by number, since a model's name is no file name."""
    made: dict[str, Figure | None] = {"forest": figures.forest(estimates), "gaps": figures.gap_forest(estimates)}
    alone = [figure for _, several in figures.profiles(estimates) for figure in several]
    overlaid = [overlay for overlay, _ in figures.profiles(estimates)]
    made |= {f"profile-{k}": figure for k, figure in enumerate(alone)}
    made |= {f"profiles-{k}": figure for k, figure in enumerate(overlaid)}
    made |= {f"gap-profile-{k}": figure for k, figure in enumerate(figures.gap_profiles(estimates))}
    made |= {f"calibration-{k}": figures.calibration(judge) for k, judge in enumerate(estimates.judges)}
    made |= {"best-of-n": figures.best_of_n(estimates), "worth": figures.labels_worth(estimates)}
    return {name: figure for name, figure in made.items() if figure is not None}


def document_tables(estimates: EstimateSet) -> list[Any]:
    """Every table of a paper, in the order of the page."""
    board = tables.leaderboard(estimates)
    means = [tables.means(estimates, "Mean performance")] if tables.singles(estimates) else []
    made = [board, *means, *profile_tables.profiles(estimates), tables.gaps(estimates), tables.best_of_n(estimates)]
    return [table for table in made if table is not None]
