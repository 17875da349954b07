"""The document of an evaluation in a terminal: the verdict first, at most a screen or two, all of it with ``every``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.estimators import Estimate, Profile
from pipeline.estimators.worth import MIN_RANGE_LABELS
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.methods import leading, leads
from pipeline.report import document_tables as tables
from pipeline.report import profile_tables
from pipeline.report.document_tables import audit_sentence
from pipeline.report.printers.terminal import TerminalTable
from pipeline.report.values import Table, plain

if TYPE_CHECKING:
    from rich.console import Console


_LINES = 56
"""Lines that a document may take; what its command prints after it makes 60."""
_HELP = 1.05
_MOST_WARNINGS = 6
_SIDE_BY_SIDE = 4
"""Targets whose profiles fit beside each other."""


def print_estimates(
    console: Console, estimates: EstimateSet, *, title: str = "", judged: bool = False, every: bool = False
) -> None:
    """The sentence that answers, what must be known, the leaderboard; then whole tables as long as there is room.

    Args:
        console: where to.
        estimates: the document.
        title: of the table of all methods.
        judged: judges held against the labels stand before the numbers, where people rated responses.
        every: no table is left out for its length.
    """
    room = _Room(console, every)
    for line in [estimates.headline] if estimates.headline else []:
        room.line(line)
    warned = [warning.message for warning in estimates.warnings]
    warned += [f"{entry.target}: {entry.method} is left out: {entry.reason}" for entry in estimates.left_out]
    most = len(warned) if every else _MOST_WARNINGS
    for message in warned[:most]:
        room.line(f"! {message}", style="yellow")
    if warned[most:]:
        room.line(f"! and {len(warned) - most} more (--all prints them)", style="yellow")
    for table in _tables(estimates, title, judged, every):
        room.table(table)
    if estimates.audit is not None:
        room.line(audit_sentence(estimates.audit))
    for sentence in worth_sentences(estimates):
        room.line(sentence, optional=True)
    for name, part in estimates.criteria.items():
        for table in _tables(part, f"criterion {name}", judged, every):
            room.table(table)
    room.close()


def _tables(estimates: EstimateSet, title: str, judged: bool, every: bool) -> Iterator[Table]:
    """In the order in which a reader needs them."""
    if (lost := tables.replies(estimates, tables.LOST)) is not None:
        yield lost
    if judged and (judges := tables.judges(estimates)):
        yield judges
    board = tables.leaderboard(estimates, title)
    if board is not None and len(board.rows) > 1:
        yield board
    if tables.singles(estimates):
        yield tables.means(estimates, title if board is None or len(board.rows) < 2 else "Methods compared")
    for made in (tables.unread(estimates), tables.gaps(estimates), tables.best_of_n(estimates)):
        if made is not None:
            yield made
    along = list(profile_tables.profiles(estimates))
    overview = list(profile_tables.overview(estimates))
    if overview and not every and len(estimates) <= _SIDE_BY_SIDE:
        yield from overview
    else:
        yield from along
    if (rehearsed := tables.rehearsal(estimates)) is not None:
        yield rehearsed


class _Room:
    """The lines that are left; the first table is printed whatever its length."""

    def __init__(self, console: Console, every: bool) -> None:
        self._console, self._every = console, every
        self._used, self._tables = 0, 0
        self._left_out: list[str] = []

    def line(self, text: str, *, style: str = "", optional: bool = False) -> None:
        from rich.text import Text

        made = Text(plain(text), style=style)
        lines = len(made.wrap(self._console, self._console.width))
        if optional and not self._every and self._used + lines > _LINES:
            return
        self._used += lines
        self._console.print(made)

    def table(self, table: Table) -> None:
        made = TerminalTable(table)
        lines = len(self._console.render_lines(made, pad=False))
        if self._tables and not self._every and self._used + lines > _LINES:
            self._left_out.append(plain(table.title))
            return
        self._tables += 1
        self._used += lines
        self._console.print(made)

    def close(self) -> None:
        if self._left_out:
            listed = "; ".join(self._left_out[:3])
            more = f" and {len(self._left_out) - 3} more tables" if len(self._left_out) > 3 else ""
            self.line(f"left out: {listed}{more} (--all prints them; so does the page)")


def worth_sentences(estimates: EstimateSet) -> tuple[str, ...]:
    """Per target: did the signals help, and as how many labels; per profile: at how many of its points."""
    sentences = []
    for target, methods in estimates.items():
        prefix = "" if target == "all" else f"{target}: "
        mean = leading(methods)
        told = _worth(mean) if mean is not None and mean.worth is not None and mean.verdict else ""
        sentences += [f"{prefix}{told}"] if told else []
        for method, profile in methods.items():
            if isinstance(profile, Profile) and leads(method) and any(profile.verdict):
                counts = Counter(profile.verdict)
                listed = ", ".join(f"{counts[word]} {word}" for word in ("help", "neutral", "hurt") if counts[word])
                along = profile.column or "the profile"
                sentences.append(f"{prefix}along {along}: of {len(profile.at)} points the signals {listed}.")
    return tuple(sentences)


def _worth(mean: Estimate) -> str:
    """What the signals did: that they hurt is said only where the whole range of their worth lies below the labels."""
    assert mean.worth is not None
    low, high = mean.worth_low, mean.worth_high
    if low is None or high is None:
        few = f"{mean.n} labels are worth about {mean.worth:.0f}; how far that is noise cannot be told below"
        return f"{few} {MIN_RANGE_LABELS} labels." if mean.n_items < MIN_RANGE_LABELS else ""
    gain = mean.worth / mean.n
    if low > mean.n and gain > _HELP:
        told = "the signals help"
    elif mean.verdict == "hurt":
        told = "the signals hurt"
    else:
        told = "the signals may help" if gain > _HELP else "the signals add nothing that shows"
    return f"{told}: {mean.n} labels are worth about {mean.worth:.0f}, {low:.0f} to {high:.0f}."
