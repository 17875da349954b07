"""How a table is laid out, as options say it: where the rows are, which columns are turned, which words are numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from pipeline.errors import InputError

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


@dataclass(frozen=True, slots=True)
class TableShape:
    """How a user's table is laid out; the defaults mean: one row per item and model, names in the first line.

    Attributes:
        records: dotted steps to the rows of a JSON document.
        explode: a nested list whose entries become rows.
        header_line: line of a CSV file or sheet that holds the column names, from 1.
        sheet: name of a workbook's sheet.
        model_from_file: each file is one model, named by the file.
        wide: role → pattern of columns with one ``*`` that stands for the model (``{"gold": "*_correct"}``).
        rater: column that names the judge of a row; rows become one signal per judge.
        maps: column → (value in lower case → number).
        where: (column, value) pairs; only rows that hold all of them are read (an empty value: an empty cell).
    """

    records: str = ""
    explode: str = ""
    header_line: int | None = None
    sheet: str | None = None
    model_from_file: bool = False
    wide: Mapping[str, str] = field(default_factory=dict)
    rater: str | None = None
    maps: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    where: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.header_line is not None and self.header_line < 1:
            raise InputError(f"--header-line counts from 1, got {self.header_line}")
        if self.wide and self.rater:
            raise InputError("--wide and --rater are two shapes of table; give one of them")
        if self.wide and self.model_from_file:
            raise InputError("--wide names the models by column and --model-from-file by file; give one of them")


def parse_wide(text: str) -> dict[str, str]:
    """``gold=*_correct,judge=*_judge`` as role → pattern.

    Raises:
        InputError: a part that is not ROLE=PATTERN with one star, or a role twice.
    """
    wide: dict[str, str] = {}
    for part in text.split(","):
        role, equals, pattern = (piece.strip() for piece in part.partition("="))
        if not role or not equals or pattern.count("*") != 1 or pattern == "*":
            raise InputError(f"--wide: {part.strip()!r} is not ROLE=PATTERN with one *, as in gold=*_correct")
        if role in wide:
            raise InputError(f"--wide: {role!r} is given twice")
        wide[role] = pattern
    return wide


def parse_map(text: str) -> tuple[str, dict[str, float]]:
    """``winner: model_a=1, tie=0.5, model_b=0`` as the column and its numbers, words in lower case.

    Raises:
        InputError: no column, or a part that is not VALUE=NUMBER.
    """
    head, _, _ = text.partition("=")
    column, colon, _ = head.rpartition(":")
    if not colon or not column.strip():
        raise InputError(f"--map: {text!r} is not COL: VALUE=NUMBER, …, as in 'winner: model_a=1, tie=0.5, model_b=0'")
    values: dict[str, float] = {}
    for part in text[len(column) + 1 :].split(","):
        word, _, number = part.rpartition("=")
        if not word.strip() or not re.fullmatch(_NUMBER, number.strip()):
            raise InputError(f"--map {column.strip()}: {part.strip()!r} is not VALUE=NUMBER")
        values[word.strip().casefold()] = float(number)
    return column.strip(), values


def parse_where(text: str) -> tuple[str, str]:
    """``task=easy`` as column and value; ``reason=`` means that the cell is empty.

    Raises:
        InputError: no equals sign, or no column.
    """
    column, equals, value = text.partition("=")
    if not column.strip() or not equals:
        raise InputError(f"--where: {text!r} is not COL=VALUE (COL= for empty cells)")
    return column.strip(), value.strip()


def parse_arithmetic(text: str) -> tuple[str, str, float] | None:
    """``preference-1`` as column, operation and number; None where the text is no column minus or times a number."""
    match = re.fullmatch(rf"(.+?)\s*([-*])\s*({_NUMBER})", text.strip())
    return None if match is None else (match[1], match[2], float(match[3]))


class ShapeOptions(TypedDict, total=False):
    """The shape of a table as keywords, named as the options of ``auxeval estimate``."""

    records: str | None
    explode: str | None
    header_line: int | None
    sheet: str | None
    model_from_file: bool
    wide: str | Mapping[str, str] | None
    rater: str | None
    map: str | Sequence[str] | None
    where: str | Sequence[str] | None


def table_shape(given: ShapeOptions) -> TableShape:
    """The shape that options or keywords say.

    Raises:
        InputError: an option that cannot be read, or two that do not fit together.
    """
    wide, maps = given.get("wide") or {}, given.get("map") or ()
    where = given.get("where") or ()
    return TableShape(
        records=given.get("records") or "",
        explode=given.get("explode") or "",
        header_line=given.get("header_line"),
        sheet=given.get("sheet"),
        model_from_file=bool(given.get("model_from_file")),
        wide=parse_wide(wide) if isinstance(wide, str) else dict(wide),
        rater=given.get("rater"),
        maps=dict(parse_map(text) for text in ([maps] if isinstance(maps, str) else maps)),
        where=tuple(parse_where(text) for text in ([where] if isinstance(where, str) else where)),
    )
