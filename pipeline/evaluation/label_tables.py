"""Labels of a user's table: the sheet to fill in, and the table with the filled labels and their inclusion chances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.errors import InputError
from pipeline.estimators.labels.strata import Pilot
from pipeline.evaluation.label_draw import draw_labels, pilot_of, realised_draw, wanted_labels
from pipeline.evaluation.pool import Pool
from pipeline.evaluation.table_pool import table_pool
from pipeline.tables.cells import label_column, number_column
from pipeline.tables.column_roles import INCLUSION, STAGE, STRATUM, ColumnRoles
from pipeline.tables.labels import (
    FilledLabels,
    LabelDesign,
    SheetRow,
    read_design,
    read_label_sheet,
    write_label_sheet,
)
from pipeline.tables.relabel import relabeled
from pipeline.tables.table_source import inspect_source
from pipeline.tables.user_table import UserTable, read_user_table


@dataclass(frozen=True, slots=True)
class LabeledTable:
    """A table with new labels.

    Attributes:
        inputs: ready to be estimated.
        frame: the columns in use, gold filled in, with the inclusion probabilities.
        roles: of its columns.
        filled: what the sheet held.
        before: items of a target, the most of any, that had a label before.
    """

    inputs: Pool
    frame: pl.DataFrame
    roles: ColumnRoles
    filled: FilledLabels
    before: int = 0


def export_table_labels(
    path: Path,
    roles: ColumnRoles,
    sheet: Path,
    labels: int | None = None,
    *,
    kind: Literal["uniform", "stratified"] = "uniform",
    question: str | None = None,
    answer: str | None = None,
    seed: int = 0,
) -> LabelDesign:
    """Draw rows of a table and write the sheet; every model gets its share.

    The table need not have the gold column yet.

    Raises:
        InputError: unreadable table, too few rows or labels, the sheet exists.
    """
    columns = [name for name in (question, answer) if name is not None]
    roles = roles.with_rounds(inspect_source(path).columns)
    table = read_labels_table(path, roles, columns)
    keys = row_keys(table, roles)
    groups = _groups(table, roles)
    pilots = [_pilot(table, roles, rows) for rows in groups]
    free = [int(np.isnan(pilot.y).sum()) for pilot in pilots]
    share = _shares(free, wanted_labels(labels, sum(free)))
    items = keys if roles.id is None else label_column(table, roles.id).tolist()
    stage, strata = _rounds(table, roles)
    parts: list[LabelDesign | None] = []
    for rows, pilot, count in zip(groups, pilots, share, strict=True):
        ids, about = ([names[row] for row in rows.tolist()] for names in (keys, items))
        kept = None if strata is None else np.unique(strata[rows], return_inverse=True)[1].astype(np.intp)
        parts.append(
            draw_labels(ids, count, [pilot], items=about, kind=kind, strata=kept, seed=seed) if count else None
        )
    design = _combined(parts, groups, keys, roles, path, kind, seed, _prior(table, roles), stage)
    place = {key: row for row, key in enumerate(keys)}
    texts = {name: label_column(table, name) for name in columns}
    rows_out = [
        SheetRow(
            key,
            str(texts[question][place[key]]) if question else "",
            str(texts[answer][place[key]]) if answer else "",
        )
        for key in design.drawn
    ]
    write_label_sheet(sheet, rows_out, design)
    return design


def read_labels_table(path: Path, roles: ColumnRoles, more: Sequence[str] = ()) -> UserTable:
    """The columns in use; a gold column that the table does not have yet is a new, empty one."""
    names = [*roles.columns(), *more]
    if roles.gold in inspect_source(path).columns:
        return read_user_table(path, names)
    table = read_user_table(path, [name for name in names if name != roles.gold])
    empty = pl.lit(None, dtype=pl.String).alias(roles.gold)
    return UserTable(table.source, table.frame.with_columns(empty), table.rows, table.notes)


def row_keys(table: UserTable, roles: ColumnRoles) -> list[str]:
    """A name for every row: its id, with the model and a number where that is not enough."""
    if roles.id is None:
        return [f"row {row}" for row in table.rows.to_list()]
    keys = [str(key) for key in label_column(table, roles.id)]
    if roles.model is not None and len(set(keys)) < len(keys):
        keys = [f"{key} [{model}]" for key, model in zip(keys, label_column(table, roles.model).tolist(), strict=True)]
    if len(set(keys)) == len(keys):
        return keys
    seen: Counter[str] = Counter()
    numbered = []
    for key in keys:
        seen[key] += 1
        numbered.append(key if seen[key] == 1 else f"{key} #{seen[key]}")
    return numbered


def _groups(table: UserTable, roles: ColumnRoles) -> list[NDArray[np.intp]]:
    """The rows of each model."""
    if roles.model is None:
        return [np.arange(table.frame.height)]
    models = label_column(table, roles.model)
    return [np.flatnonzero(models == name) for name in dict.fromkeys(models.tolist())]


def _shares(sizes: Sequence[int], total: int) -> list[int]:
    """``total`` split in proportion to sizes, largest remainders first."""
    exact = np.array(sizes) * total / sum(sizes)
    counts = np.floor(exact).astype(int)
    for k in np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())].tolist():
        counts[k] += 1
    return [int(count) for count in counts]


def _pilot(table: UserTable, roles: ColumnRoles, rows: NDArray[np.intp]) -> Pilot:
    """The outcome and signals of some rows; a table without any label yet has an outcome of NaN."""
    part = table.subset(pl.Series(np.isin(np.arange(table.frame.height), rows)))
    if part.frame[roles.gold].is_null().all():
        return Pilot(np.full(len(rows), np.nan), np.zeros((len(rows), 1)))
    single = replace(roles, model=None, profiles=(), taus=(), weights=None, cluster=None, id=None, stage=None)
    return pilot_of(table_pool(part, single).targets[0])


def _combined(
    parts: Sequence[LabelDesign | None],
    groups: Sequence[NDArray[np.intp]],
    keys: Sequence[str],
    roles: ColumnRoles,
    path: Path,
    kind: Literal["uniform", "stratified"],
    seed: int,
    prior: tuple[float, ...],
    stage: tuple[int, ...],
) -> LabelDesign:
    """One design for all models: the strata of each are numbered on."""
    strata = np.zeros(len(keys), dtype=int)
    allocation: list[int] = []
    drawn: list[str] = []
    before: list[str] = []
    for part, rows in zip(parts, groups, strict=True):
        strata[rows] = len(allocation) + (np.array(part.strata) if part is not None else 0)
        allocation += list(part.allocation) if part is not None else [0]
        drawn += list(part.drawn) if part is not None else []
        before += list(part.before) if part is not None else []
    return LabelDesign(
        kind, seed, path.name, "score", tuple(keys), tuple(int(h) for h in strata), tuple(before), tuple(drawn),
        tuple(allocation), roles.to_dict(), prior, stage,
    )  # fmt: skip


def _prior(table: UserTable, roles: ColumnRoles) -> tuple[float, ...]:
    """The chances of the labels that are there, where the table says that they differed."""
    if roles.inclusion is None:
        return ()
    chances = number_column(table, roles.inclusion, "inclusion column").values
    if not ((chances > 0.0) & (chances <= 1.0)).all():
        raise InputError(
            f"inclusion column {roles.inclusion!r} must hold a probability in every row to draw further labels"
        )
    return tuple(chances.tolist())


def _rounds(table: UserTable, roles: ColumnRoles) -> tuple[tuple[int, ...], NDArray[np.intp] | None]:
    """(round of each row's label, stratum of each row) of the draws before; nothing where there was one round."""
    if roles.stage is None or roles.stratum is None:
        return (), None
    stage = np.nan_to_num(number_column(table, roles.stage, "stage column").values).astype(int)
    strata = np.unique(label_column(table, roles.stratum), return_inverse=True)[1].astype(np.intp)
    return tuple(stage.tolist()), strata


def _drawn(
    frame: pl.DataFrame, table: UserTable, design: LabelDesign, labeled: Sequence[str], roles: ColumnRoles
) -> tuple[pl.DataFrame, ColumnRoles]:
    """The table with how its labels were drawn: chances for any tool, rounds and strata for ours."""
    whole = bool(design.prior) and not design.rounds
    groups = [np.arange(frame.height)] if whole else _groups(table, roles)
    chances = np.empty(frame.height)
    stage, strata = np.zeros(frame.height, dtype=np.intp), np.zeros(frame.height, dtype=np.intp)
    rounds = True
    for rows in groups:
        draw = realised_draw(design, labeled, rows)
        chances[rows] = draw.chances
        if draw.stage is None or draw.strata is None:
            rounds = False
        else:
            stage[rows], strata[rows] = draw.stage, draw.strata
    frame = frame.with_columns(pl.Series(INCLUSION, chances))
    if not rounds:
        return frame, replace(roles, inclusion=INCLUSION)
    frame = frame.with_columns(pl.Series(STAGE, stage), pl.Series(STRATUM, strata))
    return frame, replace(roles, inclusion=INCLUSION, stage=STAGE, stratum=STRATUM)


def import_table_labels(path: Path, sheet: Path, out: Path | None = None) -> LabeledTable:
    """Check a filled sheet, put its labels into the table, and make it ready for estimating.

    Labels that were there before stay. Under a stratified design they are a first round and the new ones a second
    inside strata of what was left: the estimators take both as such, and every row gets the chance whose inverse is its
    weight.

    Args:
        path: the table that the sheet was drawn from, unchanged.
        sheet: the filled sheet, its design beside it.
        out: where to write the table with the labels, all other columns and the order of rows as they were; None
            means nowhere.

    Raises:
        InputError: the sheet, its design or the table do not fit together; one line with ids or rows.
    """
    design = read_design(sheet)
    if not design.roles:
        raise InputError(f"{sheet} was drawn from the run {design.source!r}; give that run")
    roles = ColumnRoles.from_dict(design.roles)
    table = read_labels_table(path, roles)
    keys = row_keys(table, roles)
    if tuple(keys) != design.ids:
        raise InputError(
            f"{path} is not the table that {sheet.name} was drawn from ({design.source}, {len(design.ids)} rows): its "
            "rows or ids have changed"
        )
    return _labeled(table, roles, keys, read_label_sheet(sheet, design), design if design.unequal else None, out)


def take_table_gold(
    path: Path, roles: ColumnRoles, gold: Mapping[tuple[str, str], str], out: Path | None = None
) -> LabeledTable:
    """Put labels that were drawn uniformly into the table, and make it ready for estimating.

    Args:
        path: the table.
        roles: of its columns; ``id`` is there.
        gold: (item, model) → label; model "" where the table has one.
        out: as of :func:`import_table_labels`.

    Raises:
        InputError: the labels that are there had unequal chances.
    """
    if roles.with_rounds(inspect_source(path).columns).stage or roles.inclusion:
        raise InputError(f"{path}: its labels were drawn by strata; further ones come from auxeval labels export")
    table = read_labels_table(path, roles)
    keys, ids = row_keys(table, roles), label_column(table, str(roles.id)).tolist()
    models = label_column(table, roles.model).tolist() if roles.model else [""] * len(ids)
    by_key = {key: gold[about] for key, about in zip(keys, zip(ids, models, strict=True), strict=True) if about in gold}
    return _labeled(table, roles, keys, FilledLabels(by_key, (), ()), None, out)


def _labeled(
    table: UserTable,
    roles: ColumnRoles,
    keys: Sequence[str],
    filled: FilledLabels,
    design: LabelDesign | None,
    out: Path | None,
) -> LabeledTable:
    """The table with labels by row key; under a design of unequal chances with those."""
    old = table.frame[roles.gold].cast(pl.String).to_list()
    gold = [filled.gold.get(key, value) for key, value in zip(keys, old, strict=True)]
    frame = table.frame.with_columns(pl.Series(roles.gold, gold, dtype=pl.String))
    if roles.labeled is not None:
        have = set(filled.gold)
        flags = label_column(table, roles.labeled).tolist()
        marks = ["yes" if key in have else flag for key, flag in zip(keys, flags, strict=True)]
        frame = frame.with_columns(pl.Series(roles.labeled, marks, dtype=pl.String))
    estimated = roles
    if design is not None:
        labeled = [key for key, value in zip(keys, gold, strict=True) if value is not None]
        plain = replace(roles, stage=None, stratum=None)
        frame, estimated = _drawn(frame, table, design, labeled, plain)
        roles = replace(plain, inclusion=INCLUSION)
    inputs = table_pool(UserTable(table.source, frame, table.rows, table.notes), estimated)
    if out is not None:
        changed = [roles.gold, *([roles.labeled] if roles.labeled else [])]
        changed += [name for name in (INCLUSION, STAGE, STRATUM) if name in frame.columns]
        cells = {name: frame[name].to_list() for name in changed}
        relabeled(table.source.path, out, cells, table.rows.to_list())  # all other columns and the rows' order stay
    return LabeledTable(inputs, frame, roles, filled, _labeled_before(table, roles, old))


def _labeled_before(table: UserTable, roles: ColumnRoles, old: Sequence[str | None]) -> int:
    items = label_column(table, roles.id).tolist() if roles.id else table.rows.to_list()
    models = label_column(table, roles.model).tolist() if roles.model else [""] * len(items)
    pairs = {pair for pair, cell in zip(zip(models, items, strict=True), old, strict=True) if cell is not None}
    return max(Counter(model for model, _ in pairs).values(), default=0)
