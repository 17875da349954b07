"""No reply can keep a reader busy: every parser takes bounded time on text made to slow it down."""

from __future__ import annotations

import time

import pytest

from pipeline.benchmark.extraction import choice_letter, final_answer, strip_confidence
from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item
from pipeline.collection.confidence import parse_confidence
from pipeline.collection.prompts import clean_text
from pipeline.collection.replies import parse_preference, parse_score

N = 300_000
SLOW = {
    "spaces": " " * N, "lines": "\n" * N, "stars": "*" * N, "hashes": "#" * N, "dashes": "-" * N, "dots": ". " * N,
    "cue and spaces": "Answer" + " " * N, "cue and lines": "Answer" + "\n" * N, "cues": "Answer: " * (N // 8),
    "cue lines": "Answer:\n" * (N // 8), "empty cues": "final answer " * (N // 13), "the the": "the " * (N // 4),
    "boxes": "\\boxed{" * (N // 7), "box of braces": "\\boxed{" + "{}" * (N // 2), "bold": "**" * (N // 2),
    "bold label": "**A" + " " * N, "bold labels": "**A " * (N // 4), "confidence": "Confidence" + " " * N,
    "confidences": "Confidence: " * (N // 12), "confidence lines": "Confidence: 1\n" * (N // 14),
    "long confidence": "Confidence: 85" + " " * N + "x", "verdicts": "Verdict: A\n" * (N // 11),
    "my my": "my " * (N // 3),
    "verdict and spaces": "verdict" + " " * N, "score lines": "score: 1\n" * (N // 9), "quotes": "\"'" * (N // 2),
    "objects": '{"a":1}' * (N // 7), "verdict objects": '{"verdict":"A"} ' * (N // 16),
    "numbers": "Answer: " + "1 " * N,
    "digits": "Answer: " + "1" * N, "fractions": "Answer: " + "\\frac" * (N // 5), "commas": "Answer: " + "1," * N,
    "letters": "Answer: " + "A " * N, "marked": "Answer: " + "(A) " * N, "stars in answer": "Answer: " + "* . " * N,
    "backticks": "Answer: " + "`" * N, "because": "Answer: B" + " because" * (N // 8), "equals": "Answer: " + "= " * N,
    "dollars": "Answer: " + "$" * N, "backslashes": "Answer: " + "\\" * N, "text": "Answer: " + "\\text{" * (N // 6),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SLOW))
def test_bounded(name: str) -> None:
    text = SLOW[name]
    items = [Item("i", "q", "42"), Item("i", "q", "B", ("red", "blue"))]
    graders = [Grader("numeric"), Grader("exact"), Grader("choice")]
    started = time.process_time()
    answer = final_answer(text)
    choice_letter(answer or text, ("red", "blue"))
    strip_confidence(text)
    parse_confidence(text)
    parse_preference(text)
    parse_score(text)
    clean_text(text)
    for grader in graders:
        grader.grade(text, items[grader.grading == "choice"])
    assert time.process_time() - started < 2.5
