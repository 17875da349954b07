"""A user's table whose models' answers are in a column: the free signals of their agreement, and outcomes graded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from pipeline.benchmark.agreement import answer_equality
from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item
from pipeline.errors import InputError
from pipeline.evaluation.free_columns import Voice, free_columns
from pipeline.evaluation.signal_families import FREE_FAMILIES
from pipeline.tables.cells import label_column, number_column
from pipeline.tables.column_roles import GRADED, ColumnRoles
from pipeline.tables.user_table import UserTable


def with_answers(table: UserTable, roles: ColumnRoles) -> tuple[UserTable, ColumnRoles]:
    """The table with free signals (and graded outcomes, if gold answers are given), and the roles that name them.

    The first row of an item and model is its graded answer, later ones are further draws. Neither outcomes nor gold
    answers are read for the signals.

    Raises:
        InputError: no item or model column, a column that is there already.
        DataError: a metric that is unknown, or needs what is not installed.
    """
    assert roles.answer is not None
    if roles.id is None or roles.model is None:
        raise InputError(
            "--answer needs --id and --model: agreement is between the answers of several models to an item"
        )
    grader = Grader(roles.grading)
    texts = [None if text is None else str(text).strip() or None for text in table.frame[roles.answer].to_list()]
    read = [None if text is None else grader.answer(text, Item("", "")) or text for text in texts]
    frame, families = _free(table, roles, read)
    if roles.gold_answer is not None:
        frame = frame.with_columns(_graded(grader, texts, table.frame[roles.gold_answer].to_list()))
        roles = replace(roles, gold=GRADED, gold_answer=None)
    own = {name: (name,) for name in roles.signals}
    names = tuple(name for columns in families.values() for name in columns)
    roles = replace(
        roles, signals=(*roles.signals, *names), families={**(roles.families or own), **families}, answer=None
    )
    return UserTable(table.source, frame, table.rows, table.notes), roles


def _free(
    table: UserTable, roles: ColumnRoles, read: list[str | None]
) -> tuple[pl.DataFrame, dict[str, tuple[str, ...]]]:
    assert roles.id is not None
    assert roles.model is not None
    ids, row = np.unique(label_column(table, roles.id), return_inverse=True)
    labels = label_column(table, roles.model)
    models = list(dict.fromkeys(labels.tolist()))
    column = np.array([models.index(label) for label in labels.tolist()], dtype=np.intp)
    draws: list[list[list[str | None]]] = [[[None] * len(ids)] for _ in models]
    own = {name: np.full((len(ids), len(models)), np.nan) for name in roles.signals}
    numbers = {name: number_column(table, name, "signal").values for name in roles.signals}
    seen: dict[tuple[int, int], int] = {}
    for place, (i, t) in enumerate(zip(row.tolist(), column.tolist(), strict=True)):
        draw = seen[i, t] = seen.get((i, t), -1) + 1
        if draw == len(draws[t]):
            draws[t].append([None] * len(ids))
        draws[t][draw][i] = read[place]
        if draw == 0:
            for name, values in own.items():
                values[i, t] = numbers[name][place]
    voices = [Voice(str(name), tuple(answers)) for name, answers in zip(models, draws, strict=True)]
    made = free_columns(voices, (), (), answer_equality(roles.grading), own=own, words=FREE_FAMILIES)
    if not made.names:
        raise InputError(f"--answer {roles.answer}: one answer to each item agrees with nobody; more models are needed")
    clash = sorted(set(made.names) & set(table.frame.columns))
    if clash:
        raise InputError(f"the table has a column {clash[0]!r}, as one made from --answer is called; rename it")
    added = [pl.Series(name, made.values[row, column, k]) for k, name in enumerate(made.names)]
    return table.frame.with_columns(added), dict(made.families)


def _graded(grader: Grader, texts: list[str | None], golds: list[object]) -> pl.Series:
    """φ of every answer whose gold one is there; an answer that is missing is wrong."""
    outcomes: list[float | None] = []
    for text, gold in zip(texts, golds, strict=True):
        wanted = "" if gold is None else str(gold).strip()
        outcomes.append(grader.grade(text or "", Item("", "", gold=wanted)).phi if wanted else None)
    grader.close()
    return pl.Series(GRADED, outcomes, dtype=pl.Float64)
