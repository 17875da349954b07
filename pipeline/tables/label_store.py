"""The store of labels: who said what of which question and response by which criterion, appended and never changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

from pipeline.errors import InputError
from pipeline.foreign_json import read_json

SCHEMA = 1
ADJUDICATOR = "adjudicator"
"""The rater whose word settles what others disagree on."""


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
    """One rating by one person.

    Attributes:
        unit: of :func:`label_unit`.
        criterion: what was rated.
        value: on the criterion's own scale; yes and no are 1 and 0.
        rater: who.
        at: when it was taken in, UTC, ISO 8601.
    """

    unit: str
    criterion: str
    value: float
    rater: str
    at: str

    @property
    def about(self) -> tuple[str, str]:
        """Unit and criterion."""
        return self.unit, self.criterion


@dataclass(frozen=True, slots=True)
class Labels:
    """All labels of a store, the last word of each rater on each unit and criterion.

    Attributes:
        by_rater: (unit, criterion) → rater → value.
    """

    by_rater: Mapping[tuple[str, str], Mapping[str, float]]

    def settled(self) -> dict[tuple[str, str], float]:
        """The label of each unit and criterion: the adjudicated one, else that of one of its raters, taken by lot.

        The lot hangs on unit and rater alone. So a rating that two people disagree on is neither averaged away nor left
        out, which would drop the hard responses; it has the noise of one rater, as every other.
        """
        return {about: words[_drawn(about, words)] for about, words in self.by_rater.items()}

    def contradictions(self) -> tuple[tuple[str, str], ...]:
        """Units and criteria on which raters disagree and nobody has decided, sorted."""
        return tuple(
            sorted(
                about
                for about, words in self.by_rater.items()
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


def _drawn(about: tuple[str, str], raters: Iterable[str]) -> str:
    def lot(rater: str) -> bytes:
        return hashlib.sha256("\x1f".join([*about, rater]).encode("utf-8", "backslashreplace")).digest()

    names = set(raters)
    return ADJUDICATOR if ADJUDICATOR in names else min(names, key=lot)


class LabelStore:
    """Labels in one file of JSON lines; each is on disk before :meth:`add` returns.

    Sheets and pages write and read it alike. A line that a crash cut off is no label, and does not spoil the next one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Labels:
        """Every rater's last word; nothing where there is no file.

        Raises:
            InputError: a line is damaged or newer; it is named.
        """
        try:
            lines = self.path.read_bytes().decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            return Labels({})
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror or error}") from None
        by_rater: dict[tuple[str, str], dict[str, float]] = {}
        for number, line in enumerate(lines, 1):
            if number == len(lines) or not line.strip():  # what follows the last line break was cut off
                continue
            label = self._label(line, number)
            by_rater.setdefault(label.about, {})[label.rater] = label.value
        return Labels(by_rater)

    def _label(self, line: str, number: int) -> Label:
        try:
            data = read_json(line)
            schema = data.pop("schema")
            if schema > SCHEMA:
                raise InputError(f"{self.path}: line {number} is of schema {schema}, newer than {SCHEMA}; upgrade")
            return Label(**{**data, "value": float(data["value"])})
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
        before = self.read().by_rater
        fresh = [label for label in labels if before.get(label.about, {}).get(label.rater) != label.value]
        text = "".join(json.dumps({"schema": SCHEMA, **asdict(label)}, allow_nan=False) + "\n" for label in fresh)
        if not text:
            return 0
        try:
            with self.path.open("ab+") as file:
                file.truncate(self._whole())
                file.write(text.encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror or error}") from None
        return len(fresh)

    def _whole(self) -> int:
        """Bytes up to the last line break: what stands behind it is a line that a crash cut off."""
        return self.path.read_bytes().rfind(b"\n") + 1
