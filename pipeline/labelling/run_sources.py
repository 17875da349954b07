"""Runs to label in: right answers of their questions, or ratings of their responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.benchmark.grading import Grader
from pipeline.labelling.asked import Asked, Gold, ItemToLabel, Response, asked_of, in_blind_order
from pipeline.runs.directory import RunDirectory
from pipeline.runs.label_plans import RunLabels
from pipeline.runs.labels import allowed_letters, answers_given, item_of, run_grader
from pipeline.runs.ratings import RunUnits, question_shown, run_labels_store
from pipeline.tables.label_store import Labels, LabelStore, label_unit

ANSWER = "answer"
"""The criterion of a right answer."""


@dataclass(frozen=True)
class AnswerSource:
    """A run whose questions want right answers; one serves all of its targets."""

    labels: RunLabels

    @property
    def directory(self) -> RunDirectory:
        """The run."""
        return self.labels.directory

    @cached_property
    def store(self) -> LabelStore:
        """In the run."""
        return run_labels_store(self.directory)

    @cached_property
    def ids(self) -> Sequence[str]:
        """Every item."""
        return self.labels.ids

    def labelled(self) -> set[str]:
        """Items with a right answer."""
        return set(self.labels.labels())

    @cached_property
    def _rows(self) -> Mapping[str, Mapping[str, Any]]:
        return {row["item_id"]: row for row in self.labels.items.iter_rows(named=True)}

    @cached_property
    def _answers(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        return answers_given(self.directory, self.labels.config)

    @cached_property
    def _letters(self) -> Sequence[str] | None:
        return allowed_letters(self.directory)

    @cached_property
    def _grader(self) -> Grader:
        return run_grader(self.directory, self.labels.config)

    def _unit(self, item: str) -> str:
        return label_unit(question_shown(self._rows[item]), "")

    def item(self, name: str) -> ItemToLabel:
        """The question with its choices, and what the targets answered, unnamed."""
        row = self._rows[name]
        letters = tuple(self._letters or ())[: len(row["choices"] or ())]
        asked = Asked(self._unit(name), ANSWER, "What is the right answer?", "choice" if letters else "text", letters)
        answers = [Response("", answer) for _, answer in self._answers.get(name, ())]
        return ItemToLabel(name, question_shown(row), "", "", in_blind_order(answers, name), (asked,))

    def check(self, item: ItemToLabel, value: float | str) -> None:
        """Grade something against it once, so that it is refused now and not after forty labels.

        Raises:
            InputError: it cannot be graded.
        """
        self._grader.grade("Answer: 0", item_of({**self._rows[item.name], "gold": str(value)}))

    def gold(self, items: Sequence[str], labels: Labels) -> Gold:
        """Right answers of the store by item."""
        settled = labels.settled_texts()
        by_item = {item: settled.get((self._unit(item), ANSWER)) for item in items}
        return {(item, ""): text for item, text in by_item.items() if text is not None}

    def close(self) -> None:
        """Let the grader go, if one was needed."""
        if "_grader" in self.__dict__:
            self._grader.close()


@dataclass(frozen=True)
class RatingSource:
    """A run whose responses are rated by its criteria."""

    directory: RunDirectory

    @cached_property
    def store(self) -> LabelStore:
        """In the run."""
        return run_labels_store(self.directory)

    @cached_property
    def _units(self) -> RunUnits:
        return RunUnits(self.directory, self.directory.config())

    @cached_property
    def ids(self) -> Sequence[str]:
        """Items with a response."""
        return self._units.ids

    def labelled(self) -> set[str]:
        """Items with a response that carries a rating."""
        return self._units.rated()

    def item(self, name: str) -> ItemToLabel:
        """Question, context, reference and every target's response; what two targets said alike is rated once."""
        units = list(self._units.of(name).values())
        alike = len({unit.context for unit in units}) == 1
        responses = in_blind_order(
            [Response(unit.unit, unit.response, "" if alike else unit.context) for unit in units], name
        )
        asked = tuple(asked_of(response.unit, part) for response in responses for part in self._units.criteria)
        context = units[0].context if alike else ""
        return ItemToLabel(name, units[0].question, context, units[0].reference, responses, asked)

    def check(self, item: ItemToLabel, value: float | str) -> None:
        """Every rating within the scale can be used."""

    def gold(self, items: Sequence[str], labels: Labels) -> Gold:
        """Ratings go from the store into the run by themselves."""
        return {}

    def close(self) -> None:
        """Nothing is open."""
