"""The store of labels: who said what of which question and response by which criterion, appended and never changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from pipeline.errors import InputError
from pipeline.foreign_json import read_json

SCHEMA = 1
ADJUDICATOR = "adjudicator"
"""The rater whose word settles what others disagree on."""
PATIENCE = 30.0
"""Seconds to wait for another writer; a line takes milliseconds, so that whoever holds the lock longer is stuck."""

_Word = TypeVar("_Word", float, str)


def label_unit(question: str, response: str, context: str = "") -> str:
    """What a label is about, as a digest: the same response to the same question is the same unit in every version.

    Args:
        question: as a person sees it, with its choices.
        response: the text that is rated; of a right answer, nothing.
        context: what the response was to be based on.
    """
    text = json.dumps([question, context, response], ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Label:
    """One word of one person: a rating, a right answer, why there is none, or that the word before is taken back.

    Attributes:
        unit: of :func:`label_unit`.
        criterion: what was rated.
        value: a rating on the criterion's own scale (yes and no are 1 and 0), or a right answer's text; None without.
        rater: who.
        at: when it was taken in, UTC, ISO 8601.
        skipped: why no value is given; with neither, what the rater said before is taken back.
        note: what the rater wrote beside it.
    """

    unit: str
    criterion: str
    value: float | str | None
    rater: str
    at: str
    skipped: str = ""
    note: str = ""

    @property
    def about(self) -> tuple[str, str]:
        """Unit and criterion."""
        return self.unit, self.criterion

    @property
    def withdrawn(self) -> bool:
        """Whether it takes the word before back."""
        return self.value is None and not self.skipped

    @property
    def content(self) -> tuple[float | str | None, str, str]:
        """What a word says, whenever it was said."""
        return self.value, self.skipped, self.note


@dataclass(frozen=True, slots=True)
class Labels:
    """All labels of a store, the last word of each rater on each unit and criterion.

    Attributes:
        by_rater: (unit, criterion) → rater → rating.
        texts: (unit, criterion) → rater → right answer.
        words: (unit, criterion, rater) → the last word, skips too, in the order in which they were said.
    """

    by_rater: Mapping[tuple[str, str], Mapping[str, float]]
    texts: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    words: Mapping[tuple[str, str, str], Label] = field(default_factory=dict)

    def settled(self) -> dict[tuple[str, str], float]:
        """The label of each unit and criterion: the adjudicated one, else that of one of its raters, taken by lot.

        The lot hangs on unit and rater alone. So a rating that two people disagree on is neither averaged away nor left
        out, which would drop the hard responses; it has the noise of one rater, as every other.
        """
        return _settled(self.by_rater)

    def settled_texts(self) -> dict[tuple[str, str], str]:
        """The right answer of each unit and criterion, settled as ratings are."""
        return _settled(self.texts)

    def contradictions(self) -> tuple[tuple[str, str], ...]:
        """Units and criteria on which raters disagree and nobody has decided, sorted."""
        return tuple(
            sorted(
                about
                for about, words in (*self.by_rater.items(), *self.texts.items())
                if ADJUDICATOR not in words and len(set(words.values())) > 1
            )
        )

    def pairs(self, criterion: str) -> dict[tuple[str, str], list[tuple[float, float]]]:
        """Two raters → what both said of each unit that both rated, in the order of units."""
        made: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for about in sorted(about for about in self.by_rater if about[1] == criterion):
            words = self.by_rater[about]
            for pair in combinations(sorted(name for name in words if name != ADJUDICATOR), 2):
                made.setdefault(pair, []).append((words[pair[0]], words[pair[1]]))
        return made


def _settled(by_rater: Mapping[tuple[str, str], Mapping[str, _Word]]) -> dict[tuple[str, str], _Word]:
    return {about: words[_drawn(about, words)] for about, words in by_rater.items()}


def _drawn(about: tuple[str, str], raters: Iterable[str]) -> str:
    def lot(rater: str) -> bytes:
        return hashlib.sha256("\x1f".join([*about, rater]).encode("utf-8", "backslashreplace")).digest()

    names = set(raters)
    return ADJUDICATOR if ADJUDICATOR in names else min(names, key=lot)


class LabelStore:
    """Labels in one file of JSON lines; each is on disk before :meth:`add` returns.

    Sheets and pages write and read it alike, several programs at once: one appends at a time, under a lock that goes
    with its holder. A line that a crash cut off is no label, and does not spoil the next one. What was read once is not
    read again, so that a label costs the same in a store of ten thousand.

    Attributes:
        path: the file, which need not be there.
        lines_read: lines that were taken in until now.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines_read = 0
        self._forget()

    def _forget(self) -> None:
        self._words: dict[tuple[str, str, str], Label] = {}
        self._end, self._last, self._number = 0, b"", 0

    def read(self) -> Labels:
        """Every rater's last word; nothing where there is no file.

        Raises:
            InputError: a line is damaged or newer; it is named.
        """
        self._catch_up()
        by_rater: dict[tuple[str, str], dict[str, float]] = {}
        texts: dict[tuple[str, str], dict[str, str]] = {}
        for (unit, criterion, rater), label in self._words.items():
            if isinstance(label.value, str):
                texts.setdefault((unit, criterion), {})[rater] = label.value
            elif label.value is not None:
                by_rater.setdefault((unit, criterion), {})[rater] = label.value
        return Labels(by_rater, texts, dict(self._words))

    def _catch_up(self) -> None:
        """Take in what was appended since the last time; all of it where the file is another one."""
        try:
            with self.path.open("rb") as file:
                if self._end:
                    file.seek(self._end - len(self._last))
                    if file.read(len(self._last)) != self._last:
                        self._forget()
                        file.seek(0)
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            self._forget()
            return
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from None
        for line in lines[:-1]:  # what follows the last line break was cut off
            if line.strip():
                self._take(self._label(line.decode("utf-8", "replace"), self._number + 1))
            self._number += 1
            self._end += len(line) + 1
            self._last = line + b"\n"
            self.lines_read += 1

    def _take(self, label: Label) -> None:
        key = (*label.about, label.rater)
        self._words.pop(key, None)  # so that the order is that of the last words
        if not label.withdrawn:
            self._words[key] = label

    def _label(self, line: str, number: int) -> Label:
        try:
            data = read_json(line)
            schema = data.pop("schema")
            if schema > SCHEMA:
                raise InputError(f"{self.path}: line {number} is of schema {schema}, newer than {SCHEMA}; upgrade")
            value = data["value"]
            label = Label(**{**data, "value": value if value is None or isinstance(value, str) else float(value)})
            if not all(
                isinstance(text, str) for text in (*label.about, label.rater, label.at, label.skipped, label.note)
            ):
                raise TypeError
            return label
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{self.path}: line {number} is damaged ({type(error).__name__}); remove the line and import its sheet"
                " again"
            ) from None

    def add(self, labels: Iterable[Label]) -> int:
        """Append what is new: a rater's word that stands already is not said twice; how many were added.

        Raises:
            InputError: the file is damaged, or cannot be written.
        """
        with self._locked():
            self._catch_up()
            fresh = [label for label in labels if self._new(label)]
            text = "".join(json.dumps({"schema": SCHEMA, **_stored(label)}, allow_nan=False) + "\n" for label in fresh)
            if text:
                self._append(text.encode("ascii"))
            self._catch_up()
        return len(fresh)

    def _new(self, label: Label) -> bool:
        before = self._words.get((*label.about, label.rater))
        return not label.withdrawn if before is None else before.content != label.content

    def _append(self, data: bytes) -> None:
        try:
            created = not self.path.exists()
            with self.path.open("ab+") as file:
                file.truncate(self._end)  # behind it stands a line that a crash cut off
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if created and os.name == "posix":  # the name too, or a power cut loses the file with its synced lines
                folder = os.open(self.path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror or error}") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = FileLock(f"{self.path}.lock", timeout=PATIENCE)
        try:
            lock.acquire()
        except Timeout:
            raise InputError(f"{self.path} is being written by another program; try again when it is done") from None
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror or error}") from None
        try:
            yield
        finally:
            lock.release()


def _stored(label: Label) -> dict[str, float | str | None]:
    """As a line holds it: what is empty is left out, so that older programs read plain ratings."""
    return {name: value for name, value in asdict(label).items() if value != "" or name not in ("skipped", "note")}
