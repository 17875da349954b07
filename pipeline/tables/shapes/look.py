"""What a file holds: where its rows are, which column may be what, what is odd, and the options to read it with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.tables.cells import label_column, number_column, scale_of
from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.shapes.files import plain_files
from pipeline.tables.shapes.read import sources_of
from pipeline.tables.shapes.shape import TableShape
from pipeline.tables.shapes.turned import mapped
from pipeline.tables.table_source import TableSource
from pipeline.tables.user_table import UserTable, read_user_table

_SHOWN_ROWS = 5
_MOST_COLUMNS = 200
_MOST_SIGNALS = 6
_MOST_MODELS = 60
_PROPOSAL = re.compile(r"add (--records \S+|--header-line \d+|--sheet NAME)")
_GOLD = re.compile(r"gold|correct|human|expert|outcome|^ok$|^y$|right|pass(ed)?$|label$|rating|^truth", re.IGNORECASE)
_ID = re.compile(r"(^|[^a-z])(u?id|item|question|prompt|example|instance|key|trace)s?([^a-z]|$)", re.IGNORECASE)
_MODEL = re.compile(r"model|system|version|target|engine", re.IGNORECASE)
_RATER = re.compile(r"judge|rater|grader|annotator|reviewer", re.IGNORECASE)
_PERSON = re.compile(r"human|expert|people|person|gold", re.IGNORECASE)
_SIDES = (("model_a", "model_b"), ("model_1", "model_2"), ("a", "b"), ("left", "right"))
_VOTE = re.compile(r"winner|vote|human|preference|verdict|judge", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PairRoles:
    """Columns of a table of votes: the two sides, who won by people and by judges."""

    a: str
    b: str
    gold: str
    signals: tuple[str, ...]
    id: str | None


@dataclass(frozen=True, slots=True)
class Guess:
    """Which column may be what.

    Attributes:
        roles: of a table of outcomes; None where no column looks like a gold.
        pairs: of a table of votes; None where there are no two sides.
        question: of a benchmark.
        answer: of a benchmark.
    """

    roles: ColumnRoles | None = None
    pairs: PairRoles | None = None
    question: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class LookedAt:
    """What a file holds.

    Attributes:
        source: format, encoding, delimiter, columns.
        shape: how it is laid out; what had to be proposed is in it.
        rows: their number.
        sample: the first rows of every column that has one value per row, as text.
        guess: the roles.
        odd: what looks odd, one line each.
    """

    source: TableSource
    shape: TableShape
    rows: int
    sample: pl.DataFrame
    guess: Guess
    odd: tuple[str, ...]


def look_at(path: Path) -> LookedAt:
    """Look at one table, benchmark or list of votes.

    Raises:
        DataError: it is no table, or cannot be read.
    """
    shape = TableShape()
    odd: list[str] = []
    for _ in range(4):
        try:
            with plain_files([path], shape.sheet) as plain:
                (source,) = sources_of(plain, shape)
                table = _columns(source, odd)
                break
        except DataError as error:
            mended = _mended(shape, str(error))
            if mended is None:
                raise
            odd.append(str(error).split(": ", 1)[-1].partition("; add")[0])
            shape = mended
    else:
        raise DataError(f"{path}: no rows were found in it")
    wide = _wide(source.columns)
    shape = replace(shape, wide=wide)
    guess, rater = (Guess(roles=_wide_roles(table, wide)), None) if wide else _guess(table)
    shape = replace(shape, rater=rater, maps=_scales(table, guess.roles))
    odd += table.notes
    return LookedAt(source, shape, table.frame.height, _sample(table), guess, tuple(odd))


def _mended(shape: TableShape, message: str) -> TableShape | None:
    """The shape with the option that a message proposes."""
    match = _PROPOSAL.search(message)
    if match is None:
        return None
    option, value = match[1].split()
    if option == "--records":
        return replace(shape, records=value)
    if option == "--header-line":
        return replace(shape, header_line=int(value))
    sheet = re.search(r"\('([^']*)'", message)
    return replace(shape, sheet=sheet[1]) if sheet else None


def _columns(source: TableSource, odd: list[str]) -> UserTable:
    """All columns that hold one value per row; the others are named."""
    names = [name for name, count in Counter(source.columns).items() if name and count == 1][:_MOST_COLUMNS]
    try:
        return read_user_table(source, names)
    except DataError as error:
        whole = str(error)
    tables = {}
    for name in names:
        try:
            tables[name] = read_user_table(source, [name])
        except DataError as error:
            odd.append(str(error).removeprefix(f"{source.path}: "))
    heights = Counter(table.frame.height for table in tables.values())
    if not heights:
        raise DataError(whole)
    height = heights.most_common(1)[0][0]
    kept = [table for table in tables.values() if table.frame.height == height]
    return replace(kept[0], frame=pl.concat([table.frame for table in kept], how="horizontal"))


def _sample(table: UserTable) -> pl.DataFrame:
    head = table.frame.head(_SHOWN_ROWS)
    return head.select(pl.all().cast(pl.String, strict=False).fill_null("").str.slice(0, 40))


def _numeric(table: UserTable, name: str) -> NDArray[np.float64] | None:
    try:
        return number_column(table, name).values
    except DataError:
        return None


def _values(table: UserTable, name: str) -> NDArray[np.float64] | None:
    """The column as numbers, also where its words are those of an answer scale."""
    numbers = _numeric(table, name)
    scale = scale_of(table.frame[name]) if numbers is None else {}
    if not scale:
        return numbers
    return number_column(mapped(table, {name: scale}), name).values


def _scales(table: UserTable, roles: ColumnRoles | None) -> dict[str, dict[str, float]]:
    """The numbers of the words of the columns that are to be read as numbers."""
    read = () if roles is None else (roles.gold, *roles.signals)
    words = [name for name in read if name in table.frame.columns and _numeric(table, name) is None]
    return {name: dict(scale_of(table.frame[name])) for name in words}


def _distinct(table: UserTable, name: str) -> int:
    return int(table.frame[name].drop_nulls().n_unique())


def _guess(table: UserTable) -> tuple[Guess, str | None]:
    names = table.frame.columns
    lowered = {name.lower(): name for name in names}
    for a, b in _SIDES:
        if a in lowered and b in lowered and _distinct(table, lowered[a]) <= _MOST_MODELS * 5:
            pairs = _pairs(table, lowered[a], lowered[b])
            if pairs is not None:
                return Guess(pairs=pairs), None
    numbers = {name: values for name in names if (values := _values(table, name)) is not None}
    model = next((n for n in names if _MODEL.search(n) and 2 <= _distinct(table, n) <= _MOST_MODELS), None)
    items = [n for n in names if _ID.search(n) and n != model and _distinct(table, n) > 1]
    item = max(items, key=lambda n: _as_item(table, n, model), default=None)
    golds = [n for n in numbers if _GOLD.search(n) and n not in (item, model)]
    gold = min(golds, key=lambda n: (not np.isnan(numbers[n]).any(), names.index(n)), default=None)
    asked = _benchmark(names)
    judged = any(_RATER.search(n) or re.search("score|conf|prob", n, re.IGNORECASE) for n in names)
    person = _person(table, numbers, item) if gold is None else None
    if person is not None:
        return person
    if gold is None or (asked.question and asked.answer == gold and model is None and not judged):
        return asked, None
    raters = [n for n in names if _RATER.search(n) and n not in numbers and 2 <= _distinct(table, n) <= 50]
    others = [n for n in numbers if n not in (gold, item, model) and _varies(numbers[n]) and n not in golds]
    signals = tuple(others[:_MOST_SIGNALS])
    rater = raters[0] if raters and signals and item else None
    roles = ColumnRoles(gold, signals[:1] if rater else signals, id=item, model=model)
    return Guess(roles=roles), rater


def _person(table: UserTable, numbers: dict[str, NDArray[np.float64]], item: str | None) -> tuple[Guess, str] | None:
    """One row per rater, people among them: their scores are the gold."""
    scores = [name for name, values in numbers.items() if name != item and _varies(values)]
    for name in table.frame.columns:
        if item is None or not scores or name in numbers or not _RATER.search(name):
            continue
        people = [rater for rater in dict.fromkeys(label_column(table, name).tolist()) if _PERSON.search(rater)]
        if len(people) == 1:
            return Guess(roles=ColumnRoles(people[0], (scores[0],), id=item)), name
    return None


def _as_item(table: UserTable, name: str, model: str | None) -> tuple[bool, bool, int]:
    """How well a column names items: by its name, one row per item and model, and items that the models share."""
    named = bool(re.search("id|key", name, re.IGNORECASE))
    if model is None:
        return named, True, _distinct(table, name)
    single = table.frame.select(name, model).n_unique() == table.frame.height
    return named, single, -_distinct(table, name) if single else _distinct(table, name)


def _varies(values: NDArray[np.float64]) -> bool:
    present = values[np.isfinite(values)]
    return bool(present.size > 1 and np.ptp(present) > 0.0)


def _pairs(table: UserTable, a: str, b: str) -> PairRoles | None:
    names = table.frame.columns
    votes = [n for n in names if n not in (a, b) and _VOTE.search(n) and 2 <= _distinct(table, n) <= _MOST_MODELS]
    human = [n for n in votes if not _RATER.search(n)]
    if not human:
        return None
    item = next((n for n in names if _ID.search(n) and n not in (a, b, *votes)), None)
    return PairRoles(a, b, human[0], tuple(n for n in votes if _RATER.search(n)), item)


def _benchmark(names: Sequence[str]) -> Guess:
    """Questions with answers and nothing that a model said."""

    def first(*wanted: str) -> str | None:
        return next((name for name in names if name.lower() in wanted), None)

    return Guess(
        question=first("question", "prompt", "problem", "input", "query"),
        answer=first("gold", "answer", "target", "solution", "label", "reference", "expected"),
    )


def _wide(columns: Sequence[str]) -> dict[str, str]:
    """One column per model and role: two endings or more (or beginnings) that the same two models or more have."""
    for pattern in (r"(?P<model>.+)(?P<role>[_.\- ][^_.\- ]+)", r"(?P<role>[^_.\- ]+[_.\- ])(?P<model>.+)"):
        groups: dict[str, list[str]] = {}
        for column in columns:
            match = re.fullmatch(pattern, column)
            if match:
                groups.setdefault(match["role"], []).append(match["model"])
        alike = Counter(tuple(models) for models in groups.values() if len(models) > 1)
        models, count = next(iter(alike.most_common(1)), ((), 0))
        roles = [role for role, own in groups.items() if tuple(own) == models]
        gold = next((role for role in roles if _GOLD.search(role.strip("_.- "))), None)
        if count < 2 or gold is None:
            continue
        star = "*{}" if pattern.startswith("(?P<model>") else "{}*"
        signals = {role.strip("_.- "): star.format(role) for role in roles if role != gold}
        if any(_MODEL.fullmatch(role) or _ID.fullmatch(role) for role in signals):
            continue  # what names the row or its model differs from row to row: these are no columns of models
        return {"gold": star.format(gold), **signals}
    return {}


def _wide_roles(table: UserTable, wide: dict[str, str]) -> ColumnRoles:
    item = next((n for n in table.frame.columns if _ID.search(n) and len(set(label_column(table, n))) > 1), None)
    return ColumnRoles("gold", tuple(role for role in wide if role != "gold"), id=item)
