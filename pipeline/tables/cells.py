"""Text cells as people and spreadsheets write them, turned into numbers, yes/no values and labels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.tables.user_table import UserTable

FloatArray = NDArray[np.float64]

MISSING_SPELLINGS = frozenset(
    [
        *("na", "n/a", "n.a.", "nan", "-nan", "null", "none", "nil", "missing", "<na>", "<null>", "-", "--", ".", "?"),
        *("#n/a", "#na", "#n/d", "#value!", "#div/0!", "#ref!", "#name?", "#num!", "#null!", "1.#qnan", "-1.#ind"),
        *("unlabeled", "unlabelled"),
    ]
)
"""Spellings, in lower case, that mean: no value here."""

_YES = frozenset(
    [
        *("true", "yes", "y", "t", "correct", "right", "pass", "passed", "good", "✅", "✔", "✓", "☑", "👍"),
        *("wahr", "ja", "richtig", "vrai", "oui", "correcto", "verdadero", "sí", "si", "vero", "corretto", "sim"),
        *(
            "correto",
            "verdadeiro",
            "tak",
            "да",
            "верно",
            "evet",
            "doğru",
            "是",
            "对",
            "正确",
            "はい",
            "正解",
            "예",
            "네",
        ),
        *("정답", "हाँ", "सही", "نعم", "صحيح"),
    ]
)
_NO = frozenset(
    [
        *("false", "no", "n", "f", "incorrect", "wrong", "fail", "failed", "bad", "❌", "✗", "✘", "✖", "☒", "👎"),
        *("falsch", "nein", "faux", "non", "incorrecto", "falso", "sbagliato", "não", "nao", "incorreto"),
        *(
            "nie",
            "нет",
            "неверно",
            "hayır",
            "yanlış",
            "否",
            "错",
            "错误",
            "いいえ",
            "不正解",
            "아니오",
            "아니요",
            "오답",
        ),
        *("नहीं", "गलत", "لا", "خطأ"),
    ]
)
_SCALES = (
    ("strongly disagree", "disagree", "neither agree nor disagree", "agree", "strongly agree"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("strongly disagree", "disagree", "somewhat disagree", "neutral", "somewhat agree", "agree", "strongly agree"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("very unlikely", "unlikely", "neutral", "likely", "very likely"),
    ("terrible", "bad", "ok", "good", "excellent"),
    ("very bad", "bad", "ok", "good", "very good"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("very poor", "poor", "average", "good", "excellent"),
    ("very low", "low", "medium", "high", "very high"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("none", "some", "all"),
    ("no", "partly", "yes"),
    ("no", "partially", "yes"),
    ("wrong", "partially correct", "correct"),
    ("incorrect", "partially correct", "correct"),
    ("bad", "neutral", "good"),
    ("negative", "neutral", "positive"),
)
"""Words of answer scales, lowest first; what numbers they are is proposed, not guessed."""
_GRADES = {"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0}
_THOUSANDS_COMMA = re.compile(r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$")
_DECIMAL_COMMA = re.compile(r"^[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+)?,\d+$")
_SPACES = re.compile(r"(?<=\d)[\s\u00a0\u202f\u2009'’](?=\d{3}(\D|$))")
_FRACTION = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*([1-9]\d*)")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column as numbers.

    Attributes:
        values: (M,) NaN where the cell is empty or spelled as missing.
        note: how unusual spellings were read, or None.
    """

    values: FloatArray
    note: str | None = None


def number_column(table: UserTable, name: str, role: str = "column") -> Numbers:
    """A column as numbers; yes/no words are 1 and 0, ``85%`` is 0.85, ``4/5`` is 0.8, decimal commas are understood.

    Args:
        table: the table that holds it.
        name: the column.
        role: what it is for ("gold column", "signal"), for messages.

    Raises:
        DataError: cells that are no numbers (the rows are named), or infinite ones.
    """
    column = table.frame[name]
    if column.dtype == pl.Boolean:
        return Numbers(_as_floats(column.cast(pl.Float64)))
    if column.dtype.is_numeric():
        values = _as_floats(column.cast(pl.Float64))
        note = None
    else:
        column = _without_missing(column)
        numbers = column.cast(pl.Float64, strict=False)
        unread = (numbers.is_null() & column.is_not_null()).any()
        values, note = _spelled(table, name, role, column) if unread else (_as_floats(numbers), None)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise DataError(f"{role} {name!r} is infinite at {_places(table, infinite)}; leave unknown cells empty")
    return Numbers(values, note)


def label_column(table: UserTable, name: str, *, missing: str = "") -> NDArray[np.str_]:
    """A column as text labels; whole numbers without a decimal point; empty cells become ``missing``."""
    column = table.frame[name]
    if column.dtype == pl.Boolean or column.dtype.is_integer():
        column = column.cast(pl.String)
    elif column.dtype.is_numeric():
        whole = (column.drop_nulls() == column.drop_nulls().round()).all()
        column = (column.cast(pl.Int64) if whole else column).cast(pl.String)
    return np.asarray(column.fill_null(missing).to_numpy(), dtype=np.str_)


def flag_column(table: UserTable, name: str) -> NDArray[np.bool_]:
    """A yes/no column: words or 1/0; an empty cell is no.

    Raises:
        DataError: other values.
    """
    values = number_column(table, name, "yes/no column").values
    stray = np.flatnonzero(np.isfinite(values) & (values != 0.0) & (values != 1.0))
    if len(stray):
        raise DataError(f"column {name!r} must hold yes or no (1 or 0); see {_places(table, stray)}")
    return np.asarray(values == 1.0)


def shown_cells(table: UserTable, name: str, indices: Any) -> str:
    """The first few cells at ``indices``: ``'maybe' in row 7 (line 8), …``."""
    column = table.frame[name]
    parts = [f"{str(column[int(index)])[:40]!r} in {table.place(int(index))}" for index in indices[:_SHOWN]]
    more = len(indices) - _SHOWN
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")


def _places(table: UserTable, indices: Any) -> str:
    more = len(indices) - _SHOWN
    return ", ".join(table.place(int(index)) for index in indices[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _as_floats(column: pl.Series) -> FloatArray:
    return np.array(column.fill_null(float("nan")).to_numpy(), dtype=np.float64)


def _without_missing(column: pl.Series) -> pl.Series:
    lowered = column.str.to_lowercase()
    return pl.select(pl.when(lowered.is_in(list(MISSING_SPELLINGS))).then(None).otherwise(column)).to_series()


def _spelled(table: UserTable, name: str, role: str, column: pl.Series) -> tuple[FloatArray, str | None]:
    """The slow way, on the distinct spellings: words, percent signs, decimal commas, thousands separators."""
    levels = column.drop_nulls().unique().sort().to_list()
    words = {_word(text) for text in levels}
    grades = _GRADES if words <= set(_GRADES) and words & {"c", "i"} else {}
    plain = {text: _SPACES.sub("", text.replace("\u2212", "-").rstrip("%").strip()) for text in levels}
    convention = _comma_convention([text for text in plain.values() if "," in text], table.source.delimiter)
    values = _fractions(levels)
    for text in levels:
        number = _read(_word(text), plain[text], convention, grades)
        if number is not None:
            values[text] = number / 100.0 if text.endswith("%") else number
    stray = [index for index, text in enumerate(column.to_list()) if text is not None and text not in values]
    if stray:
        raise DataError(_stray_message(table, name, role, stray, column.len() - column.null_count()))
    numbers = column.replace_strict(pl.Series(levels), pl.Series([values[text] for text in levels]), default=None)
    return _as_floats(numbers.cast(pl.Float64)), _note(name, levels, convention, grades)


def _word(text: str) -> str:
    """As words are compared: in lower case, without the mark that makes an emoji of a sign."""
    return text.casefold().replace("\ufe0f", "")


def _fractions(levels: list[str]) -> dict[str, float]:
    """``4/5`` as 0.8, where all such cells are parts of one number; dates are not."""
    parts = {text: match for text in levels if (match := _FRACTION.fullmatch(text))}
    whole = len({match[2] for match in parts.values()}) == 1
    inside = all(float(match[1]) <= float(match[2]) for match in parts.values())
    return {text: float(match[1]) / float(match[2]) for text, match in parts.items()} if whole and inside else {}


def scale_of(column: pl.Series) -> dict[str, int]:
    """Word → its place on the answer scale that a column's words belong to, from 1; empty where they belong to none."""
    words = {_word(text) for text in _without_missing(column.cast(pl.String)).drop_nulls().unique()}
    fitting = (scale for scale in _SCALES if len(words) > 1 and words <= set(scale))
    return {word: place for place, word in enumerate(next(fitting, ()), 1)}


def _read(word: str, plain: str, convention: str | None, grades: dict[str, float]) -> float | None:
    if word in grades:
        return grades[word]
    if word in _YES:
        return 1.0
    if word in _NO:
        return 0.0
    if convention == "decimal":
        plain = plain.replace(".", "").replace(",", ".")
    elif convention == "thousands":
        plain = plain.replace(",", "")
    try:
        return float(plain) if "_" not in plain else None
    except ValueError:
        return None


def _comma_convention(texts: list[str], delimiter: str) -> str | None:
    """Whether commas separate thousands or decimals, judged over the whole column."""
    if not texts:
        return None
    thousands = all(_THOUSANDS_COMMA.match(text) for text in texts)
    decimal = all(_DECIMAL_COMMA.match(text) for text in texts)
    if thousands and decimal:
        return "decimal" if delimiter == ";" else "thousands"
    return "thousands" if thousands else "decimal" if decimal else None


def _note(name: str, levels: list[str], convention: str | None, grades: dict[str, float]) -> str | None:
    if grades:
        return f"column {name!r}: C, P, I and N were read as 1, 0.5, 0 and 0"
    if convention == "decimal":
        return f"column {name!r}: commas were read as decimal commas"
    if convention == "thousands":
        return f"column {name!r}: commas were read as thousands separators"
    if any(text.endswith("%") for text in levels):
        return f"column {name!r}: percentages were read as shares (85% is 0.85)"
    if any(_FRACTION.fullmatch(text) for text in levels):
        return f"column {name!r}: fractions were read as shares (4/5 is 0.8)"
    return None


def _stray_message(table: UserTable, name: str, role: str, stray: list[int], filled: int) -> str:
    cells = shown_cells(table, name, stray)
    if len(stray) > 0.5 * filled:
        if "gold" in role:
            mend = "it must hold how good each answer is as a number (1 correct, 0 wrong), not the answer itself"
            if {"model_a", "model_b"} <= set(table.source.columns):
                mend = "votes on pairs of models: add --pairwise"
        else:
            mend = "a signal must be a number; groups belong in --profile, and words get numbers with --map"
        scale = scale_of(table.frame[name])
        if scale:
            numbers = ", ".join(f"{word}={number}" for word, number in scale.items())
            mend = f"give its words numbers: add --map '{name}: {numbers}'"
        return f"{role} {name!r} holds text: {cells}; {mend}"
    return f"{role} {name!r} has {len(stray)} cells that are no numbers: {cells}; mend them, or empty them if unknown"
