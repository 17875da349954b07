"""Whether two replies give the same answer: the benchmark's metric, with one of them in the place of the gold one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.benchmark.grading import Grader
from pipeline.benchmark.math_grading import math_equal
from pipeline.benchmark.numbers import Number, numbers_equal, parse_number
from pipeline.benchmark.texts import same_text

Equal = Callable[[int, str, str], bool]
"""equal(item, answer, head): whether an answer equals the first one of a group."""


def answer_equality(grading: str, *, tolerance: float | None = None, questions: Sequence[str] = ()) -> Equal | None:
    """How two extracted answers are compared; None where only identical ones are equal (letters of choices).

    An answer that cannot be read as a gold one equals nothing but identical text, which is not asked about.

    Args:
        grading: the benchmark's metric.
        tolerance: of numeric grading.
        questions: (M,) what was asked: where a percentage is asked for, 5 and 5 % are the same.

    Raises:
        DataError: the metric is unknown, or needs what is not installed.
    """
    Grader(grading, tolerance=tolerance)  # checked as a run checks it
    if grading == "choice":
        return None
    if grading in ("numeric", "squared_error"):
        within = tolerance if grading == "numeric" else None

        def numbers(item: int, answer: str, head: str) -> bool:
            given, wanted = parse_number(answer), parse_number(head)
            if given is None or wanted is None:
                return False
            if given.percent != wanted.percent and item < len(questions) and "percent" in questions[item].lower():
                given, wanted = Number(given.value, percent=True), Number(wanted.value, percent=True)
            return numbers_equal(given, wanted, tolerance=within)

        return numbers
    if grading == "math":
        return lambda item, answer, head: math_equal(answer, head)
    return lambda item, answer, head: same_text(answer, head)
