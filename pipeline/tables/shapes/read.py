"""Reads a table of any shape: the files, the layout, and the roles of the columns that come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from pipeline.errors import DataError, InputError
from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.shapes.files import InputFile, input_files, model_name, plain_files
from pipeline.tables.shapes.shape import TableShape
from pipeline.tables.shapes.turned import (
    MODEL,
    ROW,
    computed_gold,
    long_by_model,
    mapped,
    one_row_per_item,
    only_rows,
    shifted,
    wide_columns,
)
from pipeline.tables.table_source import TableSource, inspect_source
from pipeline.tables.user_table import UserTable, read_user_table


def read_shaped_table(
    paths: Sequence[str | Path], roles: ColumnRoles, shape: TableShape | None = None
) -> tuple[UserTable, ColumnRoles]:
    """The table of the files, one row per item and model, and the roles of its columns.

    Args:
        paths: files, globs, folders; ``-`` is standard input.
        roles: as the user named them; with ``shape.wide`` the gold may be the role ``gold``.
        shape: how the table is laid out.

    Raises:
        InputError: options that do not fit together.
        DataError: a file, a column or a cell cannot be used.
    """
    shape = shape or TableShape()
    files = input_files(paths)
    with plain_files(files, shape.sheet) as plain:
        try:
            table, roles = _joined(plain, files, roles, shape)
        except DataError as error:
            raise DataError(_renamed(str(error), plain)) from error
        return replace(table, source=replace(table.source, path=Path(plain[0].name))), roles


def sources_of(plain: Sequence[InputFile], shape: TableShape) -> list[TableSource]:
    """What each file is."""
    return [
        inspect_source(file.path, header_line=shape.header_line, records=shape.records, explode=shape.explode)
        for file in plain
    ]


def _renamed(message: str, plain: Sequence[InputFile]) -> str:
    """A message about a copy names what the user gave."""
    for file in plain:
        message = message.replace(str(file.path), file.name)
    return message


def _joined(
    plain: Sequence[InputFile], files: Sequence[Path], roles: ColumnRoles, shape: TableShape
) -> tuple[UserTable, ColumnRoles]:
    tables: list[UserTable] = []
    shaped = roles
    if shape.model_from_file and roles.model is not None:
        raise InputError("--model-from-file names the models by file and --model by column; give one of them")
    for source, path, file in zip(sources_of(plain, shape), files, plain, strict=True):
        read = partial(read_user_table, source)
        table, shaped = shaped_columns(source.columns, read, roles, shape, str(source.path))
        if shape.model_from_file:
            name = model_name(path if str(path) != "-" else Path(file.name), files)
            table = replace(table, frame=table.frame.with_columns(pl.lit(name).alias(MODEL)))
            shaped = replace(shaped, model=MODEL)
        tables.append(table)
    return (tables[0] if len(tables) == 1 else _stacked(tables, plain)), shaped


def shaped_columns(
    columns: Sequence[str],
    read: Callable[[list[str]], UserTable],
    roles: ColumnRoles,
    shape: TableShape,
    place: str = "the frame",
) -> tuple[UserTable, ColumnRoles]:
    """The columns that are needed, read, turned into one row per item and model, and mapped.

    Args:
        columns: all names of the table.
        read: reads some of them.
        roles: as the user named them.
        shape: how the table is laid out.
        place: what messages call the table.

    Raises:
        InputError, DataError: as :func:`read_shaped_table`.
    """
    models = wide_columns(shape.wide, columns, place) if shape.wide else {}
    if shape.wide:
        roles = _wide_roles(roles, shape)
    gold, operation = computed_gold(roles.gold, [*columns, *shape.wide])
    named = [gold if name == roles.gold else name for name in roles.columns()]
    by_person = shape.rater is not None and gold not in columns  # --gold names one of the raters then
    kept = [name for name in named if name not in shape.wide and not (shape.wide and name == MODEL)]
    kept = [name for name in kept if not (by_person and name == gold)]
    kept += [shape.rater] if shape.rater and shape.rater not in kept else []
    kept += [column for column, _ in shape.where if column not in kept]
    inside = [column for columns in models.values() for column in columns.values()]
    table = only_rows(read([*kept, *inside]), shape.where)
    if models:
        used = [role for role in shape.wide if role in named]
        if roles.id is None:  # a row is an item, for all models
            table = replace(table, frame=table.frame.with_columns(table.rows.cast(pl.String).alias(ROW)))
            kept, roles = [*kept, ROW], replace(roles, id=ROW)
        table = long_by_model(table, models, used, kept)
    table = mapped(table, shape.maps)
    if operation is not None:
        table = shifted(table, gold, operation, roles.gold)
    return one_row_per_item(table, roles, shape.rater) if shape.rater else (table, roles)


def _wide_roles(roles: ColumnRoles, shape: TableShape) -> ColumnRoles:
    """The roles that the patterns fill: ``gold``, and all others as signals where the user names none."""
    if roles.model is not None:
        raise InputError("--wide names the models by column and --model by a column's values; give one of them")
    signals = roles.signals or tuple(role for role in shape.wide if role not in ("gold", roles.gold))
    return replace(roles, model=MODEL, signals=signals)


def _stacked(tables: Sequence[UserTable], plain: Sequence[InputFile]) -> UserTable:
    frames = [table.frame for table in tables]
    kinds = {name: {frame.schema[name] for frame in frames} for name in frames[0].columns}
    texts = [name for name, types in kinds.items() if len(types) > 1]
    alike = [frame.with_columns(pl.col(texts).cast(pl.String)) for frame in frames]
    files = [pl.Series([Path(file.name).name] * table.frame.height) for file, table in zip(plain, tables, strict=True)]
    notes = tuple(dict.fromkeys(note for table in tables for note in table.notes))
    return UserTable(
        tables[0].source, pl.concat(alike), pl.concat([table.rows for table in tables]), notes, pl.concat(files)
    )
