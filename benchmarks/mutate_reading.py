"""Switches off each rule of reading in turn and says which replies of the tests are then read otherwise.

A rule is a compiled pattern of a module that reads; switched off, it matches nothing. A rule whose loss no reply shows
is kept by nothing, and is printed last.

    python benchmarks/mutate_reading.py
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pipeline.benchmark.extraction import numeric_answer
from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item
from pipeline.benchmark.texts import same_text

TESTS = Path(__file__).resolve().parent.parent / "tests"
for folder in ("benchmark", "collection"):
    sys.path.insert(0, str(TESTS / folder))
sys.path.insert(0, str(TESTS.parent))

judged, read, shapes, forms = (
    importlib.import_module(name)
    for name in ("test_careful_judgements", "test_careful_reading", "test_reading_forms", "reply_forms")
)

MODULES = (
    "pipeline.turn", "pipeline.benchmark.choices", "pipeline.benchmark.commitments", "pipeline.benchmark.confidences",
    "pipeline.benchmark.extraction", "pipeline.benchmark.figures", "pipeline.benchmark.number_terms",
    "pipeline.benchmark.numbers", "pipeline.benchmark.plain", "pipeline.collection.confidence",
    "pipeline.collection.judgements",
)  # fmt: skip
NOTHING = re.compile(r"(?!)(?P<value>)(?P<said>)")


def _letter(case: tuple[Any, ...]) -> Any:
    return Grader("choice").answer(case[0], Item("i", "Which?", None, case[2] if len(case) > 2 else read.CITIES))


def _number(case: tuple[Any, ...]) -> Any:
    answer = numeric_answer(case[0], "How many?")
    return None if answer is None else (answer.number.value, answer.number.percent)


def _text(case: tuple[Any, ...]) -> Any:
    return Grader("exact").grade(case[0], Item("i", "q", case[1])).phi, same_text(case[0], case[1])


def readers() -> Iterator[tuple[list[tuple[Any, ...]], Callable[[tuple[Any, ...]], Any]]]:
    """The replies of the tests, each list with what reads it."""
    yield (
        [*read.CHOICES, *read.OF_THEIR_OWN, *((text, letter, shapes.CITIES) for text, letter in shapes.CHOICES)],
        _letter,
    )
    yield [*read.NUMBERS, *((f"Answer: {text}", None) for text, _ in shapes.NUMBERS)], _number
    yield list(read.TEXTS), _text
    for cases, reader in judged.READ:
        yield list(cases), lambda case, reader=reader: judged.value_of(reader(case[0]))

    for case in shared_cases():
        reader = {"numeric": _number, "exact": _text, "choice": _letter}.get(case["what"])
        if reader is not None:
            yield [(case["reply"], case["gold"], tuple(case["choices"] or ()))], reader
        elif case["what"] in ("preference", "score", "probability"):
            parse = {"preference": judged.VERDICTS, "score": judged.SCORES, "probability": judged.PROBABILITIES}
            judge = next(one for cases, one in judged.READ if cases is parse[case["what"]])
            yield [(case["reply"],)], lambda one, judge=judge: judged.value_of(judge(one[0]))


def _filled(form: str) -> Iterator[str]:
    for right, other in shapes.PAIRS:
        parts = {"L": chr(65 + right), "O": chr(65 + other), "T": shapes.CITIES[right], "U": shapes.CITIES[other]}
        yield "Answer: " + forms.fill(form, **parts)


def shared_cases() -> list[dict[str, Any]]:
    """Those of cases/reading.jsonl, where it is at hand."""
    file = TESTS.parent.parent / "shared/cases/reading.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def everything() -> list[Any]:
    """What is read in every reply, or the error that reading it raises."""
    for cached in gc.get_objects():
        if isinstance(cached, functools._lru_cache_wrapper):
            cached.cache_clear()
    told = []
    for cases, reader in readers():
        for case in cases:
            try:
                told.append((case[0], reader(case)))
            except Exception as error:
                told.append((case[0], type(error)))
    return told


def main() -> None:
    """Mutate, read, compare."""
    before, kept_by_nothing, count = everything(), [], 0
    for name in MODULES:
        module = importlib.import_module(name)
        for rule, pattern in list(vars(module).items()):
            if not isinstance(pattern, re.Pattern):
                continue
            count += 1
            setattr(module, rule, NOTHING)
            changed = [was[0] for was, now in zip(before, everything(), strict=True) if was != now]
            setattr(module, rule, pattern)
            if changed:
                print(f"{name}.{rule}: {len(changed)} replies, {changed[0]!r} first")
            else:
                kept_by_nothing.append(f"{name}.{rule}")
    print(f"{count} rules; kept by no reply: {', '.join(kept_by_nothing) or 'none'}")


if __name__ == "__main__":
    main()
