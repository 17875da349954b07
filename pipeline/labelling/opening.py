"""Opens a table or run to label in: its columns, its plan, its desk; and the labels of the page for the other doors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline.collection.stages import is_rated
from pipeline.errors import InputError
from pipeline.evaluation.plans.doors import ledger_beside
from pipeline.evaluation.plans.ledger import Ledger, read_ledger
from pipeline.evaluation.plans.table_plans import TableLabels
from pipeline.labelling.asked import Gold, LabelSource
from pipeline.labelling.desk import Desk, desk_beside, read_desk
from pipeline.labelling.planned import PlanDesk, open_planned
from pipeline.labelling.run_sources import AnswerSource, RatingSource
from pipeline.labelling.table_source import ShownColumns, TableSource, columns_of, store_of_table
from pipeline.runs.directory import find_run
from pipeline.runs.label_plans import RunLabels
from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.table_source import inspect_source


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person said of how to label; None: as it was said before.

    Attributes:
        raters, overlap, seed, bounds: as of ``Desk``.
        visible: of a table. roles: of its columns, without a plan.
    """

    raters: tuple[str, ...] | None = None
    overlap: float | None = None
    seed: int | None = None
    bounds: tuple[float, float] | None = None
    visible: ShownColumns | None = None
    roles: ColumnRoles | None = None

    def over(self, before: Desk) -> Desk:
        """The desk with what was said now."""
        given = {
            name: value
            for name in ("raters", "overlap", "seed", "bounds")
            if (value := getattr(self, name)) is not None
        }
        if self.roles is not None:
            given["columns"] = self.roles.to_dict()
        return replace(before, **given)


@dataclass(frozen=True)
class Opened:
    """A table or run that is ready to be labelled.

    Attributes:
        source: what is asked. desk: of whom. place: where the desk is kept. plan: None without one.
    """

    source: LabelSource
    desk: Desk
    place: Path
    plan: PlanDesk | None = None
    roles: ColumnRoles | None = field(default=None)


def open_to_label(source: str, runs_dir: str, wanted: Wanted | None = None, *, plan_file: Path | None = None) -> Opened:
    """The source, with its desk and plan.

    Args:
        source: a table's path, or a run.
        runs_dir: where runs are.
        wanted: what was said now; None takes the desk that is there.
        plan_file: the ledger, where it is not beside the source.

    Raises:
        InputError: nothing is there, columns are missing, or the plan is about something else.
    """
    wanted = wanted or Wanted()
    path = Path(source)
    where = path if path.is_file() else find_run(source, Path(runs_dir)).path
    place = desk_beside(where)
    desk = wanted.over(read_desk(place) or Desk())
    desk.check()
    ledger_file = plan_file or ledger_beside(where)
    ledger = read_ledger(ledger_file)
    planned = ledger is not None and ledger.promised is not None
    plan = None
    if planned:
        plan = PlanDesk(ledger_file, lambda now: open_planned(source, runs_dir, now), path)
    if path.is_file():
        labels = _table(source, runs_dir, ledger if planned else None, desk)
        promised = ledger.promised.columns.get("shown", ()) if ledger is not None and ledger.promised else ()
        kept = ShownColumns(str(desk.visible[0]), *desk.visible[1:]) if desk.visible else None
        columns = columns_of(path, inspect_source(path).columns, wanted.visible or kept, promised)
        desk = replace(desk, visible=(columns.answer, columns.question, columns.context))
        return Opened(TableSource(labels, columns, desk.bounds), desk, place, plan, labels.roles)
    directory = find_run(source, Path(runs_dir))
    if is_rated(directory.config()):
        if planned:
            raise InputError(f"{ledger_file}: a plan is about right answers or a table's scores; this run is rated")
        return Opened(RatingSource(directory), desk, place)
    models = ledger.promised.goal.models if ledger is not None and ledger.promised else ()
    return Opened(AnswerSource(RunLabels(directory, models)), desk, place, plan)


def _table(source: str, runs_dir: str, ledger: Ledger | None, desk: Desk) -> TableLabels:
    if ledger is not None:
        labels = open_planned(source, runs_dir, ledger)
        assert isinstance(labels, TableLabels)
        return labels
    if not desk.columns:
        raise InputError(f"{source}: --id COL is needed, and --gold, --model, --signals as for auxeval estimate")
    return TableLabels(Path(source), ColumnRoles.from_dict(dict(desk.columns)))


def labelled_in_page(source: str, runs_dir: str, items: Sequence[str], plan_file: Path | None = None) -> Gold:
    """What was said of these items in the page, for a sheet that asks for them; nothing where nobody was there."""
    path = Path(source)
    store = store_of_table(path) if path.is_file() else find_run(source, Path(runs_dir)).path / "labels.jsonl"
    if not store.is_file():
        return {}
    opened = open_to_label(source, runs_dir, plan_file=plan_file)
    gold: Mapping[tuple[str, str], Any] = opened.source.gold(items, opened.source.store.read())
    opened.source.close()
    return gold
