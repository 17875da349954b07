"""Replies: any wrapping is read, nothing is guessed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.collection.confidence import parse_confidence
from pipeline.collection.replies import (
    Invalid,
    Parsed,
    parse_preference,
    parse_probability,
    parse_score,
    reply_schema,
)

VERDICTS = [
    ('{"reason": "x", "verdict": "A"}', "A"),
    ('{"verdict": "tie"}', "tie"),
    ('```json\n{"reason": "x", "verdict": "B"}\n```', "B"),
    ('```\n{"verdict": "B"}\n```', "B"),
    ('Sure! {"reason": "x", "verdict": "tie"} Hope this helps.', "tie"),
    ('{"reason": "x", "verdict": "B",}', "B"),
    ("{'reason': 'x', 'verdict': 'A'}", "A"),
    ("{“reason”: “x”, “verdict”: “B”}", "B"),
    ('{"reason": "an "unescaped" quote", "verdict": "tie"}', "tie"),
    ('{"reason": "line\nbreak", "verdict": "A"}', "A"),
    ('{"result": {"verdict": "A"}}', "A"),
    ('{"verdict": "A"}{"verdict": "A"}', "A"),
    ('{"verdict": "**B**"}', "B"),
    ('{"verdict": "Response B"}', "B"),
    ('{"verdict": "b"}', "B"),
    ("Verdict: B", "B"),
    ("**Verdict:** **A**", "A"),
    ("The verdict is tie.", "tie"),
    ("I prefer the second.\n\n**B**", "B"),
    ("Ａ", "A"),
    ('The text says {"verdict": "A"}, which is an order I ignore. {"verdict": "B"}', "B"),
    ("It claims 'Verdict: A'.\nI disagree.\nVerdict: B", "B"),
    # not verdicts
    ("", None),
    ("I think A is better than B", None),
    ('{"verdict": "A"} {"verdict": "B"}', None),
    ('[{"verdict": "A"}, {"verdict": "B"}]', None),
    ('{"verdict": "A", "verdict": "B"}', None),
    ('{"verdict": "A"}\nFinal verdict: B', None),
    ("Verdict: A\nVerdict: B", None),
    ("Verdict: A or B", None),
    ("**A** beats **B**", None),
    ('{"verdict": "C"}', None),
    ("BOXED[C]", None),
    ('{"verdict": null}', None),
    ('{"verdict": 1}', None),
    ('{"verdict": ["A"]}', None),
    ('{"verdict": "A or B"}', None),
    ('{"reason": "x", "verdict": "A"', None),
    ('{"reason": "the verdict is', None),
    ('{"winner": "A"}', None),
]


@pytest.mark.parametrize(("text", "verdict"), VERDICTS)
def test_preference(text: str, verdict: str | None) -> None:
    found = parse_preference(text)
    assert (found.value.verdict if isinstance(found, Parsed) else None) == verdict


SCORES = [
    ('{"score": 0.7}', 0.7), ('{"score": 1}', 1.0), ('{"score": 0}', 0.0), ('{"score": "0.7"}', 0.7),
    ('{"score": "85%"}', 0.85), ('{"score": "85/100"}', 0.85), ('{"score": "8/10"}', 0.8), ('{"score": ０.５}', 0.5),
    ('{"score": .5}', 0.5), ("Score: 0.4", 0.4), ("0.4", 0.4), ("**Score:** 9/10.", 0.9),
    ('{"score": 85}', None), ('{"score": 1.2}', None), ('{"score": -0.1}', None), ('{"score": NaN}', None),
    ('{"score": Infinity}', None), ('{"score": true}', None), ('{"score": null}', None), ('{"score": "high"}', None),
    ('{"score": "-0.5"}', None), ('{"score": "5/0"}', None), ('{"score": [0.5]}', None), ("{}", None), ("85", None),
    ('{"score": 0.2}\n{"score": 0.9}', None), ("Score: 0.2\nScore: 0.9", None),
    ("The score is between 0.4 and 0.6", None),
    ('{"score": 1e-3}', 0.001), ('{"rating": 0.5}', None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "score"), SCORES)
def test_score(text: str, score: float | None) -> None:
    found = parse_score(text)
    assert (found.value.score if isinstance(found, Parsed) else None) == score


def test_probability_reads_its_own_key_alone() -> None:
    found = parse_probability('{"reason": "score 0.1", "probability": 0.6}')
    assert isinstance(found, Parsed)
    assert found.value.probability == 0.6
    assert isinstance(parse_probability('{"score": 0.6}'), Invalid)


CONFIDENCES = [
    ("Confidence: 85", 0.85), ("Confidence: 85%", 0.85), ("Confidence: 0.85", 0.85), ("Confidence: 85/100", 0.85),
    ("Confidence: 8.5/10", 0.85), ("confidence: ８５", 0.85), ("**Confidence:** 85%", 0.85),
    ("**Confidence: 85**", 0.85),
    ("Confidence：85", 0.85), ("Confidence: ~85%", 0.85), ("Confidence: <85>", 0.85), ("Confidence: 85.", 0.85),
    ("Confidence: 85 percent", 0.85), ("Answer: 5. Confidence: 85", 0.85), ("Confidence level: 85", 0.85),
    ("Confidence: 99.5", 0.995), ("Confidence: 0", 0.0), ("Confidence: 100", 1.0), ("Confidence: 1", 0.01),
    ("Confidence: 1.0", 1.0), ("Confidence: 0.5%", 0.005), ("Confidence: 20\nOn reflection:\nConfidence: 90", 0.9),
    ("Confidence: 80\nConfidence: 80", 0.8),
    ("Confidence: 101", None), ("Confidence: 150%", None), ("Confidence: -5", None), ("Confidence: NaN", None),
    ("Confidence: high", None), ("Confidence: 80-90", None), ("Confidence: 80\nConfidence: 90", None),
    ("Confidence: 5/0", None), ("Confidence:", None), ("I am confident", None), ("", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), CONFIDENCES)
def test_confidence(text: str, value: float | None) -> None:
    found = parse_confidence(f"Reasoning.\nAnswer: 4\n{text}")
    assert (None if isinstance(found, Invalid) else found) == (None if value is None else pytest.approx(value))


def test_mended_json_is_flagged() -> None:
    clean, mended = parse_score('{"score": 0.5}'), parse_score('{"score": 0.5,}')
    assert isinstance(clean, Parsed)
    assert isinstance(mended, Parsed)
    assert (clean.mended, mended.mended) == (False, True)


def test_problems_are_words_for_a_repair() -> None:
    for text in ("", "no", '{"score": 7}', '{"score": 0.1, "score": 0.2}'):
        found = parse_score(text)
        assert isinstance(found, Invalid)
        assert found.problem
        assert "\n" not in found.problem


@given(st.text(max_size=200))
def test_no_text_breaks_a_parser(text: str) -> None:
    for parse in (parse_preference, parse_score, parse_probability, parse_confidence):
        parse(text)  # type: ignore[operator]


@given(st.floats(0, 1), st.text(max_size=40))
def test_json_round_trips(score: float, reason: str) -> None:
    found = parse_score(json.dumps({"reason": reason, "score": score}))
    assert isinstance(found, Parsed)
    assert found.value.score == pytest.approx(score, abs=0)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000,
        '{"score": ' * 50_000,
        "Score: " * 50_000,
        "[" * 200_000,
        "a" * 1_000_000,
        '"score": ' + "{" * 90_000 + "}",
    ],
)
def test_huge_replies_state_nothing(text: str) -> None:
    assert isinstance(parse_score(text), Invalid)
    assert isinstance(parse_confidence(text), Invalid)
    assert isinstance(parse_preference(text), Invalid)


@pytest.mark.parametrize(
    ("kind", "key"), [("preference", "verdict"), ("score", "score"), ("probability", "probability")]
)
def test_schemas_are_strict(kind: str, key: str) -> None:
    schema = reply_schema(kind)
    assert schema is not None
    assert schema.name == kind
    assert schema.json_schema["required"] == ["reason", key]
    assert schema.json_schema["additionalProperties"] is False
    assert reply_schema("answer") is None
