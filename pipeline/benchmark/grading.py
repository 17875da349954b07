"""Grading φ(y, g): the metric of a reply against the gold answer."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, cast

from pipeline.benchmark.extraction import chosen_letter, committed_text, final_answer, numeric_answer
from pipeline.benchmark.items import Item
from pipeline.benchmark.math_grading import close_math_pool, math_equal, require_math_extra
from pipeline.benchmark.numbers import Number, numbers_equal, parse_number
from pipeline.benchmark.texts import same_text
from pipeline.errors import DataError

GRADINGS = ("exact", "choice", "numeric", "math", "squared_error", "rating")
_PERCENT_QUESTION = ("percent", "%")


@dataclass(frozen=True, slots=True)
class Grade:
    """What a reply is worth.

    Attributes:
        answer: the final answer found in it (for choices, the letter); None if there is none.
        phi: φ(y, g), or None where it cannot be said: no gold answer, or no number under squared error.
        reason: why phi is None: ``missing_input`` or ``no_answer``.
    """

    answer: str | None
    phi: float | None
    reason: str | None = None


class Grader:
    """Grades replies by one metric.

    Args:
        grading: one of :data:`GRADINGS`, or ``python:module:function``.
        tolerance: absolute tolerance of numeric grading; None means exact.

    Raises:
        DataError: the metric is unknown, or what it needs is not installed or not importable.
    """

    def __init__(self, grading: str, *, tolerance: float | None = None) -> None:
        check_grading(grading)
        self.grading = grading
        self._tolerance = tolerance
        self._function = _function(grading) if grading.startswith("python:") else None

    @property
    def may_block(self) -> bool:
        """Whether a call may take long enough that an event loop should hand it to a thread."""
        return self.grading == "math" or self._function is not None

    def answer(self, text: str, item: Item) -> str | None:
        """The final answer that a reply commits to, in the form this metric compares."""
        if self.grading == "choice" or (item.choices is not None and self._function is not None):
            return chosen_letter(text, item.choices)
        if self.grading in ("numeric", "squared_error"):
            read = numeric_answer(text, item.question)
            return None if read is None else read.text
        return final_answer(text) or committed_text(text)

    def grade(self, text: str, item: Item, who: str = "") -> Grade:
        """φ of a reply.

        An answer that cannot be found is wrong (φ = 0), except under squared error, where it has no φ.

        Args:
            text: the reply.
            item: what was asked.
            who: the model that wrote it.

        Raises:
            DataError: a metric of the user's own fails or does not give a finite number.
        """
        if self.grading in ("numeric", "squared_error"):
            return self._numeric(text, item)
        answer = self.answer(text, item)
        if item.gold is None:
            return Grade(answer, None, "missing_input")
        if self._function is not None:
            return Grade(answer, self._own(self._function, answer, item, text))
        if answer is None:
            return Grade(None, 0.0)
        if self.grading == "choice":
            return Grade(answer, float(answer == item.gold))
        if self.grading == "math":
            return Grade(answer, float(math_equal(answer, item.gold, who=who)))
        return Grade(answer, float(same_text(committed_text(text) or answer, item.gold)))

    def _numeric(self, text: str, item: Item) -> Grade:
        read = numeric_answer(text, item.question)
        answer = None if read is None else read.text
        if item.gold is None:
            return Grade(answer, None, "missing_input")
        wanted = parse_number(item.gold)
        if wanted is None:
            raise DataError(f"item {item.item_id!r}: the gold answer {item.gold[:40]!r} is not a number")
        if read is None:
            return Grade(None, None, "no_answer") if self.grading == "squared_error" else Grade(None, 0.0)
        given = read.number
        if self.grading == "squared_error":
            return Grade(answer, float((given.value - wanted.value) ** 2))
        if given.percent and not wanted.percent and _asks_percent(item.question):
            wanted = Number(wanted.value, percent=True)
        return Grade(answer, float(numbers_equal(given, wanted, tolerance=self._tolerance)))

    def _own(self, function: Callable[..., Any], answer: str | None, item: Item, text: str) -> float:
        arguments = (answer, item.gold, text)[: _arity(function)]
        try:
            value = function(*arguments)
        except Exception as error:  # the user's own code may raise anything
            raise DataError(
                f"{self.grading}: failed on item {item.item_id!r}: {type(error).__name__}: {error}"
            ) from error
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise DataError(f"{self.grading}: gave {value!r} on item {item.item_id!r}; a finite number is needed")
        return number

    def close(self) -> None:
        """End the worker processes, if this metric started any."""
        if self.grading == "math":
            close_math_pool()


def check_grading(grading: str) -> None:
    """Refuse a metric that cannot be used, before anything is asked.

    Raises:
        DataError: unknown, not installed, or not importable.
    """
    if grading.startswith("python:"):
        _function(grading)
    elif grading == "math":
        require_math_extra()
    elif grading not in GRADINGS:
        raise DataError(f"grading {grading!r} is unknown; one of {', '.join(GRADINGS)} or 'python:module:function'")


def _asks_percent(question: str) -> bool:
    last = question.rsplit(".", 1)[-1].casefold()
    return any(mark in last for mark in _PERCENT_QUESTION)


def _function(grading: str) -> Callable[..., Any]:
    _, module_name, name = (*grading.split(":"), "", "")[:3]
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # importing runs the user's own code
        raise DataError(f"grading {grading!r}: cannot import {module_name!r}: {error}") from None
    finally:
        if added and here in sys.path:
            sys.path.remove(here)
    function = getattr(module, name, None)
    if not callable(function):
        raise DataError(f"grading {grading!r}: module {module_name!r} has no function {name!r}")
    if _arity(function) < 2:
        raise DataError(f"grading {grading!r}: must take (answer, gold) or (answer, gold, text)")
    return cast("Callable[..., Any]", function)


def _arity(function: Callable[..., Any]) -> int:
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    if any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters):
        return 3
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return min(3, sum(1 for parameter in parameters if parameter.kind in positional))
