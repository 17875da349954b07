"""Estimates of a table that is there: a file or a frame, with the names of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack

import polars as pl

from pipeline.errors import DataError, InputError
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.guard_rails import guarded
from pipeline.evaluation.options import Options
from pipeline.evaluation.plans.doors import at_door, ledger_at_door
from pipeline.evaluation.pool import Pool
from pipeline.evaluation.rehearsal import rehearse
from pipeline.evaluation.table_pool import table_pool
from pipeline.evaluation.votes import VoteColumns, estimate_votes
from pipeline.foreign_json import read_json
from pipeline.tables.column_roles import GRADED, ColumnRoles, ProfileRole
from pipeline.tables.shapes.read import read_shaped_table, shaped_columns
from pipeline.tables.shapes.shape import ShapeOptions, TableShape, table_shape
from pipeline.tables.table_source import inspect_source
from pipeline.tables.user_table import UserTable, frame_table, read_user_table

SCHEMA = 2
_KINDS = ("continuous", "ordinal", "categorical", "tags", "semantic")


def estimate(
    table: Any,
    *,
    gold: str | None = None,
    signals: Sequence[str] | str = (),
    id: str | None = None,
    model: str | None = None,
    cluster: str | None = None,
    weights: str | Mapping[str, float] | None = None,
    profile: Sequence[str] | str = (),
    labeled: str | None = None,
    inclusion: str | None = None,
    tau: Sequence[str] | str = (),
    rated: Sequence[str] | str = (),
    gold_range: tuple[float, float] | None = None,
    methods: Sequence[str] | str | None = None,
    target: Literal["population", "pool"] | None = None,
    level: float | None = None,
    margin: float | None = None,
    smooth: bool | None = None,
    shrink: bool | None = None,
    baseline: str | None = None,
    rehearse: int | None = None,
    seed: int | None = None,
    pool_models: bool = False,
    answer: str | None = None,
    grading: str = "exact",
    gold_answer: str | None = None,
    pairwise: bool = False,
    model_a: str = "model_a",
    model_b: str = "model_b",
    as_if_once: bool = False,
    forget_plan: bool = False,
    **shape: Unpack[ShapeOptions],
) -> EstimateSet:
    """Estimates of a table's targets, gaps and decisions: ``auxeval estimate`` in Python.

    Args:
        table: a path or several, or a polars, pandas or Arrow frame (through Arrow's C stream or the dataframe
            interchange).
        gold: column of how good each answer is; empty where unknown. None: as the table says of itself, if it is the
            ``signals.parquet`` of a run.
        signals: label-free numbers known on every row; none gives plain means, gaps and ranks.
        id, model, cluster, labeled, inclusion, tau, rated, gold_range: as the options of ``auxeval estimate``.
        weights: a column of deployment weights, or value of the first profile column → its share.
        profile: columns to profile along, each ``COL`` or ``COL:KIND``.
        methods: names of methods or groups; None is everything that the data allow.
        target: "population" for items like these (the default), "pool" for these very items.
        level: nominal coverage (0.95).
        margin: two models whose joint interval lies within ± this are equivalent.
        smooth, shrink, baseline, rehearse, seed, pool_models: as the options of ``auxeval estimate``.
        answer: column of the models' answers, whose agreement becomes signals.
        grading: how two answers are compared: exact, numeric, choice, math.
        gold_answer: column of right answers, which outcomes are graded by in the place of ``gold``.
        pairwise, model_a, model_b: the rows are votes on pairs of models, and the columns of the two sides.
        as_if_once, forget_plan: as the options of ``auxeval estimate``: decide by intervals of one look although there
            were more; show numbers although a blind plan hides them.
        shape: how a file is laid out (``wide``, ``rater``, ``map``, ``records``, …), as those options.

    Returns:
        An ``Evaluation``; its ``to_dict()`` is what ``auxeval estimate --json`` prints.

    Raises:
        InputError: the table, a column or a value cannot be used; one line.
    """
    shares = dict(weights) if isinstance(weights, Mapping) else {}
    given: dict[str, Any] = {
        "as_if_once": as_if_once or None,
        "methods": None if methods is None else _names(methods), "target": target, "level": level, "margin": margin,
        "smooth": smooth, "shrink": shrink, "baseline": baseline, "seed": seed, "distribution": shares or None,
    }  # fmt: skip
    roles = None
    layout = table_shape(shape)
    gold = "gold" if gold is None and "gold" in layout.wide else gold
    if pairwise:
        if gold is None:
            raise InputError("--pairwise needs --gold COL: who won, by people's votes")
        columns = VoteColumns(model_a, model_b, gold, _names(signals), id, cluster)
        voted, _ = _shaped(table, ColumnRoles(gold, (*columns.signals, model_a, model_b), id, cluster=cluster), layout)
        voted = voted if isinstance(voted, UserTable) else table_of(voted, columns.columns())
        return estimate_votes(voted, columns, level=level or 0.95, seed=seed or 0)
    for part in table if isinstance(table, list | tuple) else ():
        ledger_at_door(Path(part), forget=forget_plan)
    gold = GRADED if gold is None and gold_answer is not None else gold
    if gold is not None:
        roles = ColumnRoles(
            gold, _names(signals), id, model, cluster, weights if isinstance(weights, str) else None,
            tuple(_profile(text) for text in _names(profile)), labeled, inclusion, _names(tau), gold_range,
            answer=answer, gold_answer=gold_answer, grading=grading, rated=_names(rated),
        )  # fmt: skip
        table, roles = _shaped(table, roles, layout)
    return estimate_table(table, roles, given, rehearsals=rehearse, pool_models=pool_models, forget_plan=forget_plan)


def _shaped(table: Any, roles: ColumnRoles, shape: TableShape) -> tuple[Any, ColumnRoles]:
    """A file, several, or a frame of any library, read and turned; a frame that needs no turning stays one."""
    if isinstance(table, str | Path):
        return read_shaped_table([table], roles, shape)
    if isinstance(table, list | tuple):
        return read_shaped_table(table, roles, shape)
    frame = table if isinstance(table, pl.DataFrame) else _polars(table)
    if shape == TableShape() and roles.gold in frame.columns:
        return frame, roles
    return shaped_columns(frame.columns, partial(table_of, frame), roles, shape)


def _names(given: Sequence[str] | str) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _profile(text: str) -> ProfileRole:
    name, _, kind = text.rpartition(":")
    return ProfileRole(name, kind) if name and kind in _KINDS else ProfileRole(text)  # type: ignore[arg-type]


def estimate_table(
    table: Any,
    roles: ColumnRoles | None,
    given: Mapping[str, Any],
    *,
    rehearsals: int | None = None,
    pool_models: bool = False,
    forget_plan: bool = False,
) -> EstimateSet:
    """The evaluation of a table under the options that were given.

    Args:
        table: a path, a frame, or a table that has been read.
        roles: of its columns; None: as the table says of itself.
        given: fields of ``Options``; None means not given, so that the table's own or the default holds.
        rehearsals: how often known labels are hidden; None: never.
        pool_models: whether rows that look like those of several models are taken for repeats all the same.
        forget_plan: show numbers although a blind plan beside the table hides them.

    Raises:
        InputError: a blind plan hides the numbers, no roles, bad options, a table that cannot be used.
    """
    ledger = ledger_at_door(place, forget=forget_plan) if (place := _place(table)) is not None else None
    stored = described(table)
    if roles is None:
        if stored is None:
            raise InputError("--gold COL is needed: the column that says how good each answer is")
        roles = stored[0]
        options = stored[1]
    else:
        options = Options()
    chosen = {name: value for name, value in given.items() if value is not None}
    options = replace(options, by_name="methods" in chosen, **chosen)
    if not 0.0 < options.level < 1.0:
        raise InputError(f"--level must lie between 0 and 1, got {options.level:g}")
    if options.margin is not None and not options.margin > 0.0:
        raise InputError(f"--margin must be positive, got {options.margin:g}")
    pool, options = at_door(ledger, _pool(table, roles, pool_models), options)
    estimates = evaluate(pool, options)
    if rehearsals is None:
        return estimates
    rows = rehearse(pool, rehearsals, level=options.level, seed=options.seed)
    return replace(estimates, extra={**estimates.extra, "rehearsal": [row.to_dict() for row in rows]})


def _place(table: Any) -> Path | None:
    """Where a table lies, read already or not; None for a frame."""
    if isinstance(table, UserTable):
        return table.source.path
    return Path(table) if isinstance(table, str | Path) else None


def _pool(table: Any, roles: ColumnRoles, pool_models: bool) -> Pool:
    frame = None
    if isinstance(table, str | Path):
        roles = roles.with_rounds(inspect_source(Path(table)).columns)
        table = read_user_table(table, roles.columns())
    elif not isinstance(table, UserTable):
        frame = table if isinstance(table, pl.DataFrame) else _polars(table)
        roles = roles.with_rounds(frame.columns)
        table = table_of(frame, roles.columns())
    mended, notices = guarded(table, roles, frame=frame, pool_models=pool_models)
    pool = table_pool(table, mended)
    return replace(pool, notices=(*notices, *pool.notices))


def described(table: Any) -> tuple[ColumnRoles, Options] | None:
    """What a run's exported table says of its columns and of how it was estimated; None where it says nothing.

    Raises:
        DataError: it was written by a newer version, or what it says is damaged.
    """
    path = Path(table) if isinstance(table, str | Path) else None
    if path is None or path.suffix != ".parquet" or not path.is_file():
        return None
    try:
        metadata = pl.read_parquet_metadata(path)
    except (pl.exceptions.PolarsError, OSError):
        return None  # the reader says what is wrong with it
    if "auxeval.roles" not in metadata:
        return None
    if int(metadata.get("auxeval.schema", SCHEMA)) > SCHEMA:
        raise DataError(
            f"{path}: schema {metadata['auxeval.schema']} is newer than this program reads ({SCHEMA}); upgrade"
        )
    try:
        families = read_json(metadata.get("auxeval.families", "{}"))
        roles = ColumnRoles.from_dict({**read_json(metadata["auxeval.roles"]), "families": families})
        return roles, Options.from_dict(read_json(metadata["auxeval.options"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: what it says of its columns is damaged ({error}); give --gold and --signals"
        ) from error


def table_of(frame: Any, columns: Sequence[str]) -> UserTable:
    """A frame of any library as a table, the named columns of it.

    Raises:
        DataError: it is no frame, or lacks a column.
    """
    if not isinstance(frame, pl.DataFrame):
        frame = _polars(frame)
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise DataError(f"the frame has no column {missing[0]!r}: it has {', '.join(map(str, frame.columns[:12]))}")
    if not frame.height:
        raise DataError("the frame has no rows")
    chosen = frame.select(list(dict.fromkeys(columns)))
    floats = [name for name, kind in chosen.schema.items() if kind.is_float()]
    return frame_table(chosen.with_columns(pl.col(floats).cast(pl.Float64).fill_nan(None)))


def _polars(frame: Any) -> pl.DataFrame:
    """Through Arrow's C stream, else column by column, so that neither pandas nor pyarrow is imported here."""
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            return pl.DataFrame(frame)
        except (ImportError, TypeError, ValueError, pl.exceptions.PolarsError):
            pass  # pandas exports a stream only where pyarrow is there
    if not hasattr(frame, "columns"):
        raise DataError(f"a path or a polars, pandas or Arrow frame is needed, got {type(frame).__name__}")
    return pl.DataFrame([_series(str(name), list(frame[name])) for name in frame.columns])


def _series(name: str, cells: list[Any]) -> pl.Series:
    plain: list[Any] = [None if cell is None or cell != cell else cell for cell in cells]
    plain = [cell.item() if hasattr(cell, "item") else cell for cell in plain]
    try:
        return pl.Series(name, plain, strict=True)
    except (TypeError, pl.exceptions.PolarsError):
        return pl.Series(name, [None if cell is None else str(cell) for cell in plain], dtype=pl.String)
