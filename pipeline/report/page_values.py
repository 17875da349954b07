"""A page as values: sections of tables, figures and sentences; one printer makes it HTML, whatever it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.report.values import Cell, Figure, Table


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph; a ``note`` is set smaller, a ``heading`` is one."""

    text: str
    note: bool = False
    heading: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """Names and what they are."""

    pairs: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True, slots=True)
class Quoted:
    """A text as it stands in a file."""

    text: str


@dataclass(frozen=True, slots=True)
class Beside:
    """Figures side by side where there is room."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """Parts that open on demand."""

    summary: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Stream:
    """HTML that is made while the page is written, since all of it would not fit into memory."""

    pieces: Callable[[], Iterator[str]]


Part = Table | Figure | Prose | Listed | Quoted | Beside | Folded | Stream


@dataclass(frozen=True, slots=True)
class Section:
    """A section with a heading that can be linked to.

    Attributes:
        identity: what links name.
        title: its heading.
        menu: how the list of sections calls it.
        parts: from its top.
    """

    identity: str
    title: str
    menu: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One document as a page.

    Attributes:
        title: what was evaluated.
        headline: the sentence that answers; a name between asterisks is set apart.
        warnings: what must be known before the numbers are read.
        summary: a few words on what the numbers come from.
        sections: from the top; those without parts are left out.
        footer: the last line.
        badge: a word beside the title.
    """

    title: str
    headline: str
    warnings: tuple[str, ...]
    summary: tuple[tuple[str, Cell], ...]
    sections: tuple[Section, ...]
    footer: str = ""
    badge: str = ""


def parts_of(*parts: Part | Sequence[Part] | None) -> tuple[Part, ...]:
    """The parts that are there, in their order."""
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, list | tuple):
            kept += part
        elif part is not None:
            kept.append(part)  # type: ignore[arg-type]
    return tuple(kept)
