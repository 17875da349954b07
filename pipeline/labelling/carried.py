"""Labels of an earlier version that hold in the next: the same answer to the same question keeps its label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import InputError
from pipeline.evaluation.plans.ledger import now
from pipeline.evaluation.plans.table_plans import TableLabels
from pipeline.labelling.asked import LabelSource
from pipeline.labelling.opening import Opened, open_to_label
from pipeline.labelling.run_sources import AnswerSource
from pipeline.labelling.table_source import TableSource
from pipeline.runs.directory import find_run
from pipeline.runs.label_plans import RunLabels
from pipeline.tables.cells import number_column
from pipeline.tables.label_store import Label

FROM_GOLD = "earlier"
"""Who said what stands in the gold column of the earlier version."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What an earlier version's labels are worth to the next.

    Attributes:
        there: questions that the earlier version has labels for.
        holding: those of them whose question and answer are the same in the next.
        added: words that the next version's store did not have.
        disagreeing: questions of the next version on which raters disagree.
    """

    there: int
    holding: int
    added: int
    disagreeing: int


def carry_labels(earlier: str, later: str, runs_dir: str) -> Carried:
    """Put the labels of an earlier version that still hold into the store of the next.

    Nothing becomes a label of the next version by this: which items count is the draw of its plan, and where that asks
    for an item whose label is here, nobody is asked again. Taken as labels at once, the items whose answers did not
    change would be labelled more often than the others.

    Args:
        earlier: a table or run whose labels are taken.
        later: one with a plan.
        runs_dir: where runs are.

    Raises:
        InputError: the next version has no plan, or the two are labelled with different things.
    """
    opened = open_to_label(later, runs_dir)
    source = opened.source
    try:
        if opened.plan is None:
            raise InputError(f"{later} has no plan, which draws the items that labels count for: auxeval labels plan")
        before = _earlier(earlier, runs_dir, opened)
        about = {(asked.unit, asked.criterion) for name in source.ids for asked in source.item(name).asked}
        words = [word for word in before.store.read().words.values() if word.value is not None]
        told = {word.about for word in words}
        words += [word for word in _gold_words(before) if word.about not in told]
        holding = [word for word in words if word.about in about]
        added = source.store.add(holding)
        apart = set(source.store.read().contradictions()) & about
    finally:
        source.close()
    return Carried(len({word.about for word in words}), len({word.about for word in holding}), added, len(apart))


def _earlier(earlier: str, runs_dir: str, opened: Opened) -> LabelSource:
    """The earlier version, read as the next one is."""
    source, path = opened.source, Path(earlier)
    if isinstance(source, TableSource) and path.is_file():
        labels = TableLabels(path, source.labels.roles, source.labels.models)
        return TableSource(labels, source.columns, source.bounds)
    if isinstance(source, AnswerSource) and not path.is_file():
        return AnswerSource(RunLabels(find_run(earlier, Path(runs_dir)), source.labels.models))
    raise InputError(f"{earlier}: a table's scores and a run's right answers are different labels; give two of a kind")


def _gold_words(source: LabelSource) -> Iterator[Label]:
    """What the earlier version's own gold column says."""
    at = now()
    if isinstance(source, TableSource):
        gold = source.labels.roles.gold
        if source.labels.table.frame[gold].is_null().all():
            return
        values = number_column(source.labels.table, gold, "gold column").values.tolist()
        by_key = {key: value for key, value in zip(source.labels.keys, values, strict=True) if value == value}
        for name in source.ids:
            for model, unit in source.units(name).items():
                if (name, model) in by_key:
                    yield Label(unit.unit, gold, float(by_key[name, model]), FROM_GOLD, at)
    elif isinstance(source, AnswerSource):
        for name, answer in source.labels.labels().items():
            (asked,) = source.item(name).asked
            yield Label(asked.unit, asked.criterion, answer, FROM_GOLD, at)
