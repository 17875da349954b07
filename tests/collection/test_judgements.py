"""Judgements that a person reads at a glance are read; those that need mending, or are taken back, are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.collection.confidence import parse_confidence
from pipeline.collection.replies import Invalid, Parsed, parse_preference, parse_probability, parse_score

PARSERS: dict[str, Any] = {"score": parse_score, "probability": parse_probability, "preference": parse_preference}


def value(what: str, text: str) -> Any:
    if what == "confidence":
        stated = parse_confidence(text)
        return None if isinstance(stated, Invalid) else stated
    read = PARSERS[what](text)
    return getattr(read.value, "verdict" if what == "preference" else what) if isinstance(read, Parsed) else None


@pytest.mark.shared
@pytest.mark.parametrize("what", ["score", "probability", "preference", "confidence"])
def test_cases(shared_path: Path, what: str) -> None:
    wrong = []
    for case in map(json.loads, (shared_path / "cases/reading.jsonl").read_text("utf-8").splitlines()):
        if case["what"] == what:
            read, expected = value(what, case["reply"]), case["expected"]
            if read != (expected if not isinstance(expected, float) else pytest.approx(expected)):
                wrong.append((case["id"], case["reply"], read, expected))
    assert not wrong


SCORES = [
    ("Score: 0.7 because it skips a step.", 0.7), ("Score: 0.7, since …", 0.7), ("**Score: 0.9**\nGood.", 0.9),
    ("<score>0.35</score>", 0.35), ("[[0.5]]", 0.5), ("Final score: 9/10", 0.9), ("Score: 9 out of 10.", 0.9),
    ("Score: 5e-1", 0.5), ("Score: 35%", 0.35), ("Bewertung: 0,7", 0.7), ("得分：0.6", 0.6),
    ("Оценка: 0.25", 0.25),
    ("Puntuación: 0.4", 0.4), ("スコア: 0.8", 0.8), ("الدرجة: 0.3", 0.3), ("점수: 0.9", 0.9),
    ("Style score: 0.2\nFinal score: 0.6", 0.6), ('{"SCORE": "4/10"}', 0.4), ('{"score": 12%}', 0.12),
    ("It is careful.\n\n**0.85**", 0.85),
    ("Score: 0.7 or 0.2", None), ("Score: 1 - 0.3", None), ("Score: 0.2-0.4", None), ("Score: < 0.1", None),
    ("Score: ≥ 0.9", None), ("Score: 0.4 to 0.6", None), ("Score: 0.5/0.7", None), ('{"score": "<0.1"}', None),
    ('{"score": "0.7 or 0.2"}', None), ("Score: 0.2\nScore: 0.9", None),
    ('{"score": 0.9}\nWait, that is wrong.', None),
    ('{"score": 0.9}\nActually, I change it: score: 0.4', None),
    ('The response contains {"score": 1} to fool me.', None),
    ('The text says {"score": 1}, which I ignore.\n{"score": 0.3}', 0.3),
    ("<think>Score: 1</think>", None), ("Score: 0.7<|im_end|>Score: 1", 0.7),
]  # fmt: skip
VERDICTS = [
    ("[[B]]", "B"), ("[[A>B]]", "A"), ("[[B>>A]]", "B"), ("[[A=B]]", "tie"), ("Verdict: B>A", "B"),
    ("Response_B", "B"), ('{"verdict": "response_b"}', "B"), ("Final verdict: **A**", "A"),
    ("Winner: Assistant A", "A"),
    ("Verdict: A, because it is complete while B is not.", "A"), ("Verdict: A is better than B", "A"),
    ("The winner is B.", "B"), ("<verdict>tie</verdict>", "tie"), ("Verdict: neither", "tie"),
    ("Verdict: equal", "tie"),
    ("Preference: B (clearly)", "B"), ("Urteil: A", "A"), ("Veredicto: B", "B"), ("判定：A", "A"),
    ("Вердикт: В", "B"),
    ("判定：平局", "tie"), ("القرار: A", "A"), ("Verdetto: pareggio", "tie"), ('{"Verdict": "B"}', "B"),
    ("A is concise. B is right.\n\n**B**", "B"), ("We compare.\nFinal Verdict: [[A]]", "A"),
    ("Verdict: A or B", None), ("**A** is nice.", None), ("Response **B** errs, so the other wins.", None),
    ('{"verdict": "A"}\nHold on, B is better.', None), ("[[A]]\n[[B]]", None), ("Verdict: not A", None),
    ('{"verdict":"A"} {"verdict":"B"}', None), ("Verdict: A\nWait, no, B.", None),
    ("Verdict: A is worse", None),
    ('Response A says "Verdict: A" in its text.', None), ("Verdict:", None), ("Verdict: C", None),
]  # fmt: skip
CONFIDENCES = [
    ("Answer: B (Confidence: 70)", 0.7), ("Answer: B (90% confident)", 0.9), ("I am 60% sure.\nAnswer: B", 0.6),
    ("Answer: B | Confidence: 55%", 0.55), ("Konfidenz: 80", 0.8), ("Confianza: 75 %", 0.75), ("信心：90", 0.9),
    ("Confiance : 65", 0.65), ("Уверенность: 85", 0.85), ("확신도: 40", 0.4), ("Độ tin cậy: 95%", 0.95),
    ("الثقة: ٨٥", 0.85), ("Keyakinan: 72", 0.72), ("Güven: 66", 0.66), ("आत्मविश्वास: 90", 0.9),
    ("আত্মবিশ্বাস: ৯০", 0.9), ("Fiducia: 88", 0.88), ("Confiança: 77", 0.77), ("信頼度: 50", 0.5),
    ('{"answer": "B", "confidence": 90}', 0.9), ('{"answer": "B", "confidence": 0.9}', 0.9),
    ("| Answer | Confidence |\n|---|---|\n| B | 90 |", 0.9), ("Confidence: 9 out of 10", 0.9),
    ("Confidence: 80 (fairly sure)", 0.8), ("Confidence: 5²", None),
    ("Confidence: 80 or 90", None), ("Confidence: > 80", None), ("<think>Confidence: 3</think>Answer: 1", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "text", "expected"),
    [("score", *case) for case in SCORES]
    + [("preference", *case) for case in VERDICTS]
    + [("confidence", *case) for case in CONFIDENCES],
)
def test_plain_judgements(what: str, text: str, expected: Any) -> None:
    assert value(what, text) == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_a_scale_of_ones_own() -> None:
    for text, expected in [("Score: 4/5", 4.0), ("Score: 4", 4.0), ('{"score": "4/5"}', 4.0), ("Score: 80%", None)]:
        read = parse_score(text, (1.0, 5.0))
        assert (read.value.score if isinstance(read, Parsed) else None) == expected


@given(st.sampled_from(["A", "B", "tie"]), st.sampled_from(["A", "B", "tie"]), st.sampled_from(
    ['{{"verdict": "{}"}}', "Verdict: {}", "[[{}]]", "<verdict>{}</verdict>"]))  # fmt: skip
def test_two_verdicts_that_disagree_are_none(first: str, second: str, form: str) -> None:
    text = f"{form.format(first)}\n{form.format(second)}"
    assert value("preference", text) == (first if first == second else None)


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_percentage_is_a_percentage(score: int, other: int) -> None:
    for text in (f"Score: {score}%", f'{{"score": {score}%}}', f'{{"reason": "x", "score": "{score}%"}}'):
        assert value("score", text) == pytest.approx(score / 100)
    assert value("score", f"Score: {score / 100} or {other / 100}") is None
