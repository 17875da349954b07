"""What a rater sees and is asked, and how what was said is read: one item at a time, blind."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pipeline.benchmark.given import Criterion, read_rating
from pipeline.benchmark.presets import BadRow
from pipeline.errors import InputError
from pipeline.tables.label_store import Labels, LabelStore

Kind = Literal["yes-no", "scale", "number", "choice", "text"]
LONGEST_SCALE = 9
"""Steps of a scale that keys 1 to 9 can say; a longer one is typed."""
LONGEST_ANSWER = 2_000
"""Characters of a right answer, a note or a reason."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to the rater about an item.

    Attributes:
        unit: what the answer is about, of :func:`label_unit`.
        criterion: its name in the store.
        question: as it is asked.
        kind: how it is answered.
        choices: what can be said, in the order of the keys; empty where it is typed.
        bounds: least and most of a number.
    """

    unit: str
    criterion: str
    question: str
    kind: Kind
    choices: tuple[str, ...] = ()
    bounds: tuple[float, float] = (0.0, 1.0)

    def read(self, typed: str) -> float | str:
        """What was said as the store holds it.

        Args:
            typed: one of ``choices``, or what was typed.

        Raises:
            InputError: it is no answer to this question.
        """
        text = typed.strip()
        if not text or len(text) > LONGEST_ANSWER:
            raise InputError(f"{self.criterion}: an answer of 1 to {LONGEST_ANSWER:,} characters")
        if self.choices and text not in self.choices:
            raise InputError(f"{self.criterion}: {text[:20]!r} is none of {', '.join(self.choices)}")
        if self.kind in ("choice", "text"):
            return text
        try:
            rating = read_rating(text, self.criterion, self.bounds)
        except BadRow as error:
            raise InputError(str(error)) from None
        if rating is None:
            raise InputError(f"{self.criterion}: {text[:20]!r} is no rating")
        return rating


def asked_of(unit: str, criterion: Criterion) -> Asked:
    """The question that a criterion is for one response."""
    low, high = sorted((criterion.worst, criterion.best))
    if (low, high) == (0.0, 1.0):
        return Asked(unit, criterion.name, criterion.question, "yes-no", ("yes", "no"))
    if low.is_integer() and high.is_integer() and low >= 1 and high <= LONGEST_SCALE:
        steps = tuple(str(step) for step in range(int(low), int(high) + 1))
        return Asked(unit, criterion.name, criterion.question, "scale", steps, (low, high))
    return Asked(unit, criterion.name, criterion.question, "number", (), (low, high))


@dataclass(frozen=True, slots=True)
class Response:
    """A response, or an answer that some model gave; nothing says which model.

    Attributes:
        unit: of the questions about it; "" where none is.
        text: whole.
        context: what it was to be based on, where responses differ in that.
    """

    unit: str
    text: str
    context: str = ""


@dataclass(frozen=True, slots=True)
class ItemToLabel:
    """What is shown at once.

    Attributes:
        name: of the item in its source; the page never sees it.
        question, context, reference: texts, "" where there is none.
        responses: side by side, in an order that says nothing.
        asked: the questions, in order.
    """

    name: str
    question: str
    context: str
    reference: str
    responses: tuple[Response, ...]
    asked: tuple[Asked, ...]

    @property
    def key(self) -> str:
        """What the page calls it: an id can hold the name of a model."""
        return hashlib.sha256(self.name.encode("utf-8", "backslashreplace")).hexdigest()[:16]

    def texts(self) -> tuple[str, ...]:
        """All texts: question, context, reference, then text and context of each response."""
        of_responses = (text for response in self.responses for text in (response.text, response.context))
        return (self.question, self.context, self.reference, *of_responses)


Gold = Mapping[tuple[str, str], str]
"""(item, model) → label as a sheet holds it; model "" where the label is of the item."""


class LabelSource(Protocol):
    """A table or run to label in."""

    @property
    def store(self) -> LabelStore:
        """Where labels go."""

    @property
    def ids(self) -> Sequence[str]:
        """All items, sorted."""

    def labelled(self) -> set[str]:
        """Items whose labels the table or run has."""

    def item(self, name: str) -> ItemToLabel:
        """What is shown of an item."""

    def check(self, item: ItemToLabel, value: float | str) -> None:
        """Refuse an answer that could not be used later.

        Raises:
            InputError: such as a right answer that cannot be graded.
        """

    def gold(self, items: Sequence[str], labels: Labels) -> Gold:
        """What the store says of these items, settled where raters disagree."""

    def close(self) -> None:
        """Let go of what is open."""


def in_blind_order(responses: Sequence[Response], item: str) -> tuple[Response, ...]:
    """Each text once, in an order that hangs on item and text alone, not on which model wrote it."""

    def lot(response: Response) -> bytes:
        return hashlib.sha256(f"{item}\x1f{response.text}".encode("utf-8", "backslashreplace")).digest()

    alike = {(response.unit, response.text): response for response in responses}
    return tuple(sorted(alike.values(), key=lot))
