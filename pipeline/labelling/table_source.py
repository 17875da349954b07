"""A user's table to label in: its rows' scores, one item at a time with the answers of all models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from pipeline.benchmark.given import Criterion
from pipeline.errors import InputError
from pipeline.evaluation.plans.table_plans import TableLabels
from pipeline.labelling.asked import Gold, ItemToLabel, Response, asked_of, in_blind_order
from pipeline.tables.label_store import Labels, LabelStore, label_unit
from pipeline.tables.labels import score_text
from pipeline.tables.user_table import read_user_table


@dataclass(frozen=True, slots=True)
class ShownColumns:
    """Which columns a rater sees.

    Attributes:
        answer: what is rated. question, context: beside it, None where the table has none.
    """

    answer: str
    question: str | None = None
    context: str | None = None

    def names(self) -> list[str]:
        """Those that are there."""
        return [name for name in (self.question, self.answer, self.context) if name]


def store_of_table(table: Path) -> Path:
    """Where the labels of a table are kept."""
    return table.with_name(table.name + ".labels.jsonl")


@dataclass(frozen=True)
class TableSource:
    """A table as the page sees it.

    Attributes:
        labels: its items, models and labels.
        columns: what is shown.
        bounds: least and most of a score; 0 and 1 are no and yes.
    """

    labels: TableLabels
    columns: ShownColumns
    bounds: tuple[float, float] = (0.0, 1.0)

    @cached_property
    def store(self) -> LabelStore:
        """Beside the table."""
        return LabelStore(store_of_table(self.labels.path))

    @property
    def ids(self) -> Sequence[str]:
        """Items that every model of the goal has."""
        return self.labels.ids

    def labelled(self) -> set[str]:
        """Items with a score of every model."""
        return set(self.labels.labels())

    @cached_property
    def _texts(self) -> pl.DataFrame:
        # Not as NumPy strings: one answer of a megabyte would make each of five thousand as wide.
        return read_user_table(self.labels.path, self.columns.names()).frame

    @cached_property
    def _rows(self) -> dict[str, list[tuple[str, int]]]:
        """Item → (model, first row) of the models of the goal."""
        rows: dict[str, dict[str, int]] = {}
        for row, (item, model) in enumerate(self.labels.keys):
            if model in self.labels.wanted:
                rows.setdefault(item, {}).setdefault(model, row)
        return {item: list(by_model.items()) for item, by_model in rows.items()}

    def _cell(self, column: str | None, row: int) -> str:
        value = None if column is None else self._texts[column][row]
        return "" if value is None else str(value)

    def units(self, item: str) -> dict[str, Response]:
        """Model → its answer."""
        answers = {}
        for model, row in self._rows[item]:
            answer = self._cell(self.columns.answer, row)
            question = self._cell(self.columns.question, row) or item
            answers[model] = Response(label_unit(question, answer, self._cell(self.columns.context, row)), answer)
        return answers

    def item(self, name: str) -> ItemToLabel:
        """Question and answers; models with the same answer are rated once."""
        row = self._rows[name][0][1]
        responses = in_blind_order(list(self.units(name).values()), name)
        criterion = Criterion(self.labels.roles.gold, "Is the answer right?", *self.bounds)
        if self.bounds != (0.0, 1.0):
            criterion = Criterion(self.labels.roles.gold, "How good is the answer?", *self.bounds)
        return ItemToLabel(
            name, self._cell(self.columns.question, row), self._cell(self.columns.context, row), "", responses,
            tuple(asked_of(response.unit, criterion) for response in responses),
        )  # fmt: skip

    def check(self, item: ItemToLabel, value: float | str) -> None:
        """Every score within the bounds can be used."""

    def gold(self, items: Sequence[str], labels: Labels) -> Gold:
        """Scores of the store by item and model."""
        settled, gold = labels.settled(), {}
        for item in items:
            for model, response in self.units(item).items():
                rating = settled.get((response.unit, self.labels.roles.gold))
                if rating is not None:
                    gold[item, model] = score_text(rating)
        return gold

    def close(self) -> None:
        """Nothing is open."""


def columns_of(path: Path, there: Sequence[str], given: ShownColumns | None, promised: Sequence[str]) -> ShownColumns:
    """What is shown of a table: as given, as the plan promised, or the columns that are called question and answer.

    Raises:
        InputError: nothing says which column holds the answers.
    """
    if given is not None:
        return given
    if promised:
        return ShownColumns(promised[-1], promised[0] if len(promised) > 1 else None)
    by_name = {name.lower(): name for name in there}
    answer = next((by_name[name] for name in ("answer", "response", "output") if name in by_name), None)
    question = next((by_name[name] for name in ("question", "prompt", "input") if name in by_name), None)
    if answer is None:
        raise InputError(f"{path}: --answer COL is needed: what is rated must be seen; columns: {', '.join(there)}")
    return ShownColumns(answer, question, by_name.get("context"))
