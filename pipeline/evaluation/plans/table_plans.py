"""Plans of a user's table: declared beside it, sheets in its own column names, labels back into it."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from pipeline.csv_guard import guarded_row
from pipeline.errors import DataError, InputError
from pipeline.estimators.labels.strata import Pilot
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.label_draw import pilot_of
from pipeline.evaluation.label_tables import read_labels_table
from pipeline.evaluation.options import Options
from pipeline.evaluation.plans.doors import at_door, ledger_at_door
from pipeline.evaluation.plans.ledger import Ledger, Promise, ledger_of_table
from pipeline.evaluation.plans.order import sampling_of
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.evaluation.table_pool import table_pool
from pipeline.foreign_json import read_json
from pipeline.tables.cells import label_column, number_column
from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.labels import design_path, score_text, write_plan_design
from pipeline.tables.relabel import relabeled
from pipeline.tables.user_table import UserTable, read_user_table

INSTRUCTIONS = "how good the answer is, as a number (1 = correct, 0 = wrong); leave empty if you cannot tell"


@dataclass(frozen=True)
class TableLabels:
    """A table as a plan sees it: items, models, labels.

    Attributes:
        path: the table. roles: of its columns; ``id`` is needed.
        models: of the goal; empty for all of the table.
    """

    path: Path
    roles: ColumnRoles
    models: tuple[str, ...] = ()

    @cached_property
    def table(self) -> UserTable:
        """The columns in use; gold may be a column that is not there yet."""
        if self.roles.id is None:
            raise InputError("--id COL is needed: a plan draws items by their id")
        return read_labels_table(self.path, self.roles)

    @cached_property
    def keys(self) -> list[tuple[str, str]]:
        """(item, model) of every row; model "" without a model column."""
        assert self.roles.id is not None
        ids = label_column(self.table, self.roles.id).tolist()
        models = label_column(self.table, self.roles.model).tolist() if self.roles.model else [""] * len(ids)
        if "" in ids:
            raise DataError(f"{self.path}: id column {self.roles.id!r} is empty in {ids.count('')} rows")
        return list(zip(ids, models, strict=True))

    @cached_property
    def wanted(self) -> tuple[str, ...]:
        """The models whose labels the plan needs.

        Raises:
            InputError: a model of the goal is not there.
        """
        there = list(dict.fromkeys(model for _, model in self.keys))
        missing = [name for name in self.models if name not in there]
        if missing:
            raise InputError(f"{self.path} holds no model {missing[0]!r}; it has {', '.join(there[:8])}")
        return self.models or tuple(there)

    @cached_property
    def ids(self) -> list[str]:
        """Items that every wanted model has, sorted."""
        of: dict[str, set[str]] = {name: set() for name in self.wanted}
        for item, model in self.keys:
            if model in of:
                of[model].add(item)
        shared = set.intersection(*of.values())
        if len(shared) < 2:
            raise InputError(f"{self.path}: {len(shared)} items have rows of {', '.join(self.wanted)}")
        return sorted(shared)

    def labels(self) -> dict[str, str]:
        """Item → its labels as text, of the items that every wanted model has a label for."""
        gold = self.table.frame[self.roles.gold]
        if gold.is_null().all():
            return {}
        values = number_column(self.table, self.roles.gold, "gold column").values
        of: dict[str, dict[str, str]] = {}
        for (item, model), value in zip(self.keys, values.tolist(), strict=True):
            if model in self.wanted and value == value:
                of.setdefault(item, {})[model] = repr(value)
        inside = set(self.ids)
        return {
            item: "\x1f".join(by_label[name] for name in self.wanted)
            for item, by_label in sorted(of.items())
            if item in inside and len(by_label) == len(self.wanted)
        }

    def pool(self) -> Pool:
        """The wanted models with their labels, estimated from like any table."""
        models = pl.Series([model in self.wanted for _, model in self.keys])
        return table_pool(self.table.subset(models), replace(self.roles, profiles=(), taus=()))

    def filled(self, sheet: Path, items: Sequence[str], out: Path | None) -> tuple[Path, TableLabels]:
        """Where the labels of a sheet go, and the table with them; nothing is written yet.

        Args:
            sheet: filled. items: those that were handed out. out: where to; the table itself is allowed.

        Raises:
            InputError: no place to keep the labels.
        """
        if out is None:
            line = shlex.join(["auxeval", "labels", "import", str(self.path), str(sheet), "--out", str(self.path)])
            raise InputError(f"a plan keeps its labels in a table, the same or another: {line}")
        return out, self.with_gold(read_plan_sheet(sheet, self, items))

    def with_gold(self, gold: Mapping[tuple[str, str], str]) -> TableLabels:
        """The table with labels of (item, model) filled in; nothing is written."""
        cells = self.table.frame[self.roles.gold].cast(pl.String).to_list()
        filled = [gold.get(key, cell) for key, cell in zip(self.keys, cells, strict=True)]
        frame = self.table.frame.with_columns(pl.Series(self.roles.gold, filled, dtype=pl.String))
        with_labels = TableLabels(self.path, self.roles, self.models)
        with_labels.__dict__["table"] = replace(self.table, frame=frame)  # in place of reading it
        return with_labels

    def keep(self, out: Path) -> Path:
        """Write the table with its labels, every other column and row as it was; where its ledger is kept."""
        cells = self.table.frame[self.roles.gold].to_list()
        relabeled(self.path, out, {self.roles.gold: cells}, self.table.rows.to_list())
        return ledger_of_table(out)

    def seen(self) -> EstimateSet:
        """The estimates, where no plan hides them."""
        return evaluate(*at_door(ledger_at_door(self.path), self.pool(), Options()))

    def hide(self) -> None:
        """A table keeps no estimates."""

    def write_sheet(
        self,
        sheet: Path,
        items: Sequence[str],
        visible: Sequence[str],
        plan: str,
        gold: Mapping[tuple[str, str], str] | None = None,
    ) -> int:
        """Write the sheet: one row per item and wanted model, in order; how many rows.

        Args:
            sheet: a new CSV file; ``FILE.design.json`` goes beside.
            items: in the plan's order.
            visible: columns to show (question, answer).
            plan: id of the plan.
            gold: (item, model) → label that was given elsewhere; it stands in the sheet already.

        Raises:
            InputError: the file is there (it may hold someone's work) or cannot be written.
        """
        if sheet.exists():
            raise InputError(f"{sheet} exists and may hold labels; choose another name or remove it")
        texts = read_user_table(self.path, [str(self.roles.id), *visible])
        place = {key: row for row, key in reversed(list(enumerate(self.keys)))}
        columns = [label_column(texts, name).tolist() for name in visible]
        names = [self.roles.id, *([self.roles.model] if self.roles.model else []), self.roles.gold]
        rows = [(item, model) for item in items for model in self.wanted]
        try:
            sheet.parent.mkdir(parents=True, exist_ok=True)
            with sheet.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(guarded_row([*names, *visible, "instructions"]))
                for key in rows:
                    cells = [key[0], *([key[1]] if self.roles.model else []), (gold or {}).get(key, "")]
                    shown_cells = (str(column[place[key]]) for column in columns)
                    writer.writerow(guarded_row([*cells, *shown_cells, INSTRUCTIONS]))
            write_plan_design(sheet, plan, items)
        except OSError as error:
            raise InputError(f"{sheet} cannot be written: {error.strerror or error}") from error
        return len(rows)


def plan_of_sheet(sheet: Path) -> str | None:
    """The id of the plan that a sheet belongs to; None where it is a sheet without a plan."""
    try:
        data = read_json(design_path(sheet).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(data["plan"]) if isinstance(data, dict) and data.get("kind") == "plan-sheet" else None


def read_plan_sheet(sheet: Path, source: TableLabels, items: Sequence[str]) -> dict[tuple[str, str], str]:
    """(item, model) → label of a filled sheet.

    Args:
        sheet: as a spreadsheet saved it. source: the table. items: those that were handed out.

    Raises:
        DataError: rows that are not of the plan's sheets, a row twice, cells that are no numbers, nothing filled in.
    """
    roles = source.roles
    table = read_user_table(sheet, [str(roles.id), *([roles.model] if roles.model else []), roles.gold])
    ids = label_column(table, str(roles.id)).tolist()
    models = label_column(table, roles.model).tolist() if roles.model else [""] * len(ids)
    values = number_column(table, roles.gold, "gold column").values
    wanted = {(item, model) for item in items for model in source.wanted}
    gold: dict[tuple[str, str], str] = {}
    for row, (key, value) in enumerate(zip(zip(ids, models, strict=True), values.tolist(), strict=True)):
        if value != value:
            continue
        if key not in wanted:
            raise DataError(
                f"{sheet}: {' '.join(filter(None, key))!r} in {table.place(row)} is in no sheet of this plan; a chosen "
                "label is no random one"
            )
        if key in gold:
            raise DataError(f"{sheet}: {' '.join(filter(None, key))!r} stands twice, again in {table.place(row)}")
        gold[key] = score_text(value)
    if not gold:
        raise DataError(f"{sheet}: no {roles.gold} is filled in yet")
    return gold


def planned_pool(pool: Pool, ledger: Ledger, promise: Promise, ids: Sequence[str]) -> Pool:
    """The pool as the plan estimates from it: its items, without those left out, with the draw of its sheets."""
    inside = np.array(sorted(set(ids) - set(promise.excluded)))

    def cut(target: TargetPool) -> TargetPool:
        if target.ids is None:
            raise InputError("--id COL is needed: a plan draws items by their id")
        part = target.of(np.isin(target.ids, inside))
        assert part.ids is not None
        sampling = sampling_of(ledger, part.ids, part.labeled)
        if sampling is None:
            return replace(part, drawn="uniform")
        return replace(part, sampling=sampling, drawn="known")

    return replace(pool, targets=tuple(cut(target) for target in pool.targets))


def pilots_of(pool: Pool, promise: Promise, ids: Sequence[str]) -> list[Pilot]:
    """Outcomes and signals on the pool's items, for strata: of a gap the difference, else every model's."""
    targets = [target for target in pool.targets if target.ids is not None and target.ids.tolist() == list(ids)]
    if len(targets) < len(pool.targets) or not targets:
        return []
    pilots = [pilot_of(target) for target in targets]
    if promise.goal.kind == "gap" and len(pilots) == 2:
        by_name = {target.name: pilot for target, pilot in zip(targets, pilots, strict=True)}
        a, b = (by_name[name] for name in promise.goal.models)
        return [Pilot(a.y - b.y, np.column_stack([a.signals, b.signals]))]
    return pilots
