"""The examples of a documentation page: its fenced blocks, their commands, and what is said to be printed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("benchmarks.md", "peers.md", "measurements.md", "scale.md", "reference/", "studies/", "history/")
PAGES = [ROOT / "README.md"] + [
    page
    for page in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/README.md")])
    if not page.relative_to(ROOT).as_posix().removeprefix("docs/").startswith(GENERATED)
]

NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
_FENCE = re.compile(r"```(\w*)$")

MASKS: tuple[tuple[str, str], ...] = (
    (r"\$\d+\.\d+ spent, the next call may cost \$\d+\.\d+", "SPENT"),  # by which calls happened to be in flight
    (r'"peak_in_flight": \d+', "IN FLIGHT"),
    (r"\b20\d{6}(?=-[A-Za-z0-9._-]+-[0-9a-f]{6}\b)", "DATE"),
    (r"\b20\d\d-\d\d-\d\d \d\d:\d\d\b", "DATE AND TIME"),
    (r"(answered in) \d+\.\d s", r"\1 TIME"),
    (r"\d+\.\d s (alone, \d+ at once) \d+\.\d s", r"TIME \1 TIME"),
    (r"^(ok +python +)3\.\d+\.\d+", r"\1VERSION"),
    (r"\d+\.\d GiB free", "DISK"),
)
"""What differs from one run or machine to the next, and what stands for it in both texts when they are compared."""

PROGRESS = re.compile(r"auxeval: \d+/\d+ calls · ")
"""Begins a line of progress, of which there are more on a slow machine: left out of what was printed."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command and what the page says it prints.

    Attributes:
        text: the command, continuation lines joined.
        output: the lines that follow it in the block.
        line: number of the first of these lines in the page, from 0.
    """

    text: str
    output: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, its lines, the number of its first line in the page, why it is not run."""

    language: str
    lines: tuple[str, ...]
    line: int
    not_run: str | None = None

    @property
    def commands(self) -> tuple[Command, ...]:
        """The commands of a console block."""
        starts = [k for k, line in enumerate(self.lines) if line.startswith("$ ")]
        found = []
        for start, end in zip(starts, [*starts[1:], len(self.lines)], strict=True):
            last = start
            while self.lines[last].endswith("\\"):
                last += 1
            text = " ".join(line.rstrip("\\").strip() for line in self.lines[start : last + 1])
            found.append(Command(text.removeprefix("$ "), self.lines[last + 1 : end], self.line + last + 1))
        return tuple(found)


def blocks_of(text: str) -> tuple[Block, ...]:
    """The fenced blocks of a page; one that is not closed ends with the page."""
    found: list[Block] = []
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        fence = _FENCE.match(lines[place])
        if fence is None:
            place += 1
            continue
        end = next((k for k in range(place + 1, len(lines)) if lines[k] == "```"), len(lines))
        before = next((line for line in reversed(lines[:place]) if line.strip()), "")
        marker = NOT_RUN.match(before)
        found.append(Block(fence[1], tuple(lines[place + 1 : end]), place + 1, marker[1] if marker else None))
        place = end + 1
    return tuple(found)


def commands_outside(text: str) -> list[str]:
    """Commands that no console block holds, so that nothing would run them."""
    lines = text.splitlines()
    for block in blocks_of(text):
        if block.language == "console":
            lines[block.line : block.line + len(block.lines)] = [""] * len(block.lines)
    return [line for line in lines if re.match(r"(?: {4}|\$ | {4}\$ )?(?:auxeval|make|pip) [\w-]", line)]


def masked(line: str) -> str:
    """A line without what differs between machines, days and runs."""
    for pattern, name in MASKS:
        line = re.sub(pattern, name, line)
    return line.rstrip()


def agrees(documented: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether what was printed is what the page says.

    A line ``…`` stands for any lines, ``…`` within a line for any text. A command without documented output may print
    anything.
    """
    if not documented:
        return True
    parts = [r"(?:.*\n)*?" if line.strip() == "…" else _line_pattern(line) for line in _trimmed(documented)]
    return re.fullmatch("".join(parts), "".join(f"{masked(line)}\n" for line in _trimmed(printed))) is not None


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Without progress, and without empty lines at the ends or two of them in a row."""
    text = "\n".join(line.rstrip() for line in lines if not PROGRESS.match(line)).strip("\n")
    return re.sub(r"\n{3,}", "\n\n", text).split("\n")


def _line_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in masked(line).split("…")) + r"\n"


def difference(documented: Sequence[str], printed: Sequence[str]) -> str:
    """A diff from the page to what was printed."""
    pair = [[masked(line) for line in _trimmed(lines)] for lines in (documented, printed)]
    return "\n".join(difflib.unified_diff(*pair, "page", "printed", lineterm="", n=1))


def refreshed(documented: Sequence[str], printed: Sequence[str]) -> list[str]:
    """The output as the page should show it: what was printed, with the page's omissions kept where they were."""
    fresh = _trimmed(printed)
    if not documented or agrees(documented, printed):
        return list(documented)
    shown: list[str] = []
    start = 0
    for segment in _segments(_trimmed(documented)):
        if segment == ["…"]:
            shown.append("…")
            continue
        places = range(start, max(len(fresh) - len(segment), start) + 1)
        place = max(places, key=lambda k: _alike(segment, fresh[k : k + len(segment)]))
        if shown[-1:] != ["…"]:
            place = start
        shown += [_kept(old, new) for old, new in zip(segment, fresh[place:], strict=False)]
        start = place + len(segment)
    if shown[-1:] != ["…"]:
        shown += fresh[start:]
    return shown


def _kept(old: str, new: str) -> str:
    """The page's own line where it still says what is printed."""
    return old if re.fullmatch(_line_pattern(old), f"{masked(new)}\n") else new.rstrip()


def _segments(lines: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip() == "…":
            found += [["…"], []]
        else:
            found[-1].append(line)
    return [segment for segment in found if segment]


def _alike(a: Sequence[str], b: Sequence[str]) -> float:
    """How much two runs of lines have in common; what a line begins with names its row, and counts as much again."""
    pairs = list(zip(a, b, strict=False))
    same_row = sum(x.split()[:1] == y.split()[:1] for x, y in pairs)
    return same_row + sum(difflib.SequenceMatcher(None, x, y).ratio() for x, y in pairs)
