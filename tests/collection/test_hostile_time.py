"""No reply can keep a reader busy: the work on text made to slow a parser down grows with its length, counted."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from pipeline.benchmark.extraction import choice_letter, final_answer, strip_confidence
from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item
from pipeline.collection.confidence import parse_confidence
from pipeline.collection.prompts import clean_text
from pipeline.collection.replies import parse_preference, parse_score


def slow_texts(size: int) -> dict[str, str]:
    """Name → a text of about as many characters."""
    return {
        "spaces": " " * size, "lines": "\n" * size, "stars": "*" * size, "hashes": "#" * size,
        "dashes": "-" * size, "dots": ". " * size,
        "cue and spaces": "Answer" + " " * size, "cue and lines": "Answer" + "\n" * size,
        "cues": "Answer: " * (size // 8),
        "cue lines": "Answer:\n" * (size // 8), "empty cues": "final answer " * (size // 13),
        "the the": "the " * (size // 4),
        "boxes": "\\boxed{" * (size // 7), "box of braces": "\\boxed{" + "{}" * (size // 2),
        "bold": "**" * (size // 2),
        "bold label": "**A" + " " * size, "bold labels": "**A " * (size // 4),
        "confidence": "Confidence" + " " * size,
        "confidences": "Confidence: " * (size // 12), "confidence lines": "Confidence: 1\n" * (size // 14),
        "long confidence": "Confidence: 85" + " " * size + "x", "verdicts": "Verdict: A\n" * (size // 11),
        "my my": "my " * (size // 3),
        "verdict and spaces": "verdict" + " " * size, "score lines": "score: 1\n" * (size // 9),
        "quotes": "\"'" * (size // 2),
        "objects": '{"a":1}' * (size // 7), "verdict objects": '{"verdict":"A"} ' * (size // 16),
        "numbers": "Answer: " + "1 " * size,
        "digits": "Answer: " + "1" * size, "fractions": "Answer: " + "\\frac" * (size // 5),
        "commas": "Answer: " + "1," * size,
        "letters": "Answer: " + "A " * size, "marked": "Answer: " + "(A) " * size,
        "stars in answer": "Answer: " + "* . " * size,
        "backticks": "Answer: " + "`" * size, "because": "Answer: B" + " because" * (size // 8),
        "equals": "Answer: " + "= " * size,
        "dollars": "Answer: " + "$" * size, "backslashes": "Answer: " + "\\" * size,
        "text": "Answer: " + "\\text{" * (size // 6),
    }  # fmt: skip


SMALL, LARGE = 15_000, 60_000
"""Beyond what a reader looks at from a text's ends: four times the text takes little more than four times the work."""


def read_by_all(text: str) -> None:
    items = [Item("i", "q", "42"), Item("i", "q", "B", ("red", "blue"))]
    answer = final_answer(text)
    choice_letter(answer or text, ("red", "blue"))
    strip_confidence(text)
    parse_confidence(text)
    parse_preference(text)
    parse_score(text)
    clean_text(text)
    for grading in ("numeric", "exact", "choice"):
        Grader(grading).grade(text, items[grading == "choice"])


def _calls(read: Callable[[], None]) -> int:
    """Calls of functions, Python's own and C's, that reading makes."""
    count = 0

    def seen(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        read()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", sorted(slow_texts(1)))
def test_calls_grow_with_the_text(name: str) -> None:
    """How long they take is measured by ``python benchmarks/reading.py hostile``."""
    read_by_all(slow_texts(100)[name])  # patterns are compiled once
    small, large = (_calls(lambda size=size: read_by_all(slow_texts(size)[name])) for size in (SMALL, LARGE))
    assert large <= 1.25 * (LARGE / SMALL) * small + 2_000


READERS = ("pipeline.benchmark", "pipeline.collection", "pipeline.turn")


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for package in READERS:
        made = importlib.import_module(package)
        names = [f"{package}.{entry.name}" for entry in pkgutil.iter_modules(getattr(made, "__path__", []))]
        for module in (made, *(importlib.import_module(name) for name in names if not name.endswith("_worker"))):
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern):
                    yield f"{module.__name__}.{name}", value


def _repeats_of_repeats(parsed: Any, inside: bool = False) -> bool:
    """Whether a part without an upper bound is repeated without one: the form that takes exponential time."""
    for operator, argument in parsed:
        endless = str(operator) in ("MAX_REPEAT", "MIN_REPEAT") and argument[1] > 1_000
        if endless and inside:
            return True
        parts = argument if isinstance(argument, list | tuple) else ()
        nested = [part for part in parts if isinstance(part, re._parser.SubPattern)]  # type: ignore[attr-defined]
        nested += [part for many in parts if isinstance(many, list) for part in many
                   if isinstance(part, re._parser.SubPattern)]  # type: ignore[attr-defined]  # fmt: skip
        if any(_repeats_of_repeats(part, inside or endless) for part in nested):
            return True
    return False


def test_no_pattern_repeats_a_repeat_without_bound() -> None:
    patterns = list(_patterns())
    assert len(patterns) > 80
    parse = re._parser.parse  # type: ignore[attr-defined]
    assert _repeats_of_repeats(parse(r"(?:a+b?)+"))
    trees = [(name, parse(pattern.pattern, pattern.flags & ~re.UNICODE)) for name, pattern in patterns]
    assert not [name for name, tree in trees if _repeats_of_repeats(tree)]
