"""What token probabilities say of an answer, of a judge's score and of P(true)."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.collection.token_probabilities import answer_logprobs, expected_number, probability_true
from pipeline.models.types import Token


def tokens_of(text: str) -> list[Token]:
    """Tokens of a text, the k-th with log-probability -k."""
    return [Token(part, -float(k)) for k, part in enumerate(re.findall(r"\s*\w+|\s*[^\w\s]|\s+", text))]


def test_the_answer_is_found_where_it_is_stated_and_not_in_the_confidence() -> None:
    text = "5 + 5 is 10, so\nAnswer: 5\nConfidence: 5"
    tokens = tokens_of(text)
    place = [k for k, token in enumerate(tokens) if token.text.strip() == "5"][2]
    assert answer_logprobs(tokens, text, "5") == (-place, -place)


def test_an_answer_of_several_tokens_has_a_mean_and_a_least() -> None:
    text = "Answer: New York City"
    assert answer_logprobs(tokens_of(text), text, "New York City") == (-3.0, -4.0)


def test_thought_before_the_reply_does_not_move_the_answer() -> None:
    reply = "Answer: B"
    whole = tokens_of("<think>Answer: B? no, A</think>" + reply)
    own = answer_logprobs(tokens_of(reply), reply, "B")
    assert own is not None
    thought = len(whole) - len(tokens_of(reply))
    assert answer_logprobs(whole, reply, "B") == (own[0] - thought, own[1] - thought)


@pytest.mark.parametrize(
    ("tokens", "text", "answer"),
    [
        ((), "Answer: 4", "4"),
        (tokens_of("another text"), "Answer: 4", "4"),
        (tokens_of("Answer: 4"), "Answer: 4", None),
        (tokens_of("Answer: 4"), "Answer: 4", ""),
        (tokens_of("Answer: 14"), "Answer: 14", "4"),
        (tokens_of("Confidence: 4"), "Confidence: 4", "4"),
    ],
)
def test_what_is_not_there_is_none(tokens: list[Token], text: str, answer: str | None) -> None:
    assert answer_logprobs(tokens, text, answer) is None


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=5))
def test_no_text_breaks_it(whole: str, text: str, answer: str) -> None:
    weights = answer_logprobs(tokens_of(whole), text, answer)
    assert weights is None or weights[1] <= weights[0] <= 0


def weighed(text: str, probability: float, **others: float) -> Token:
    return Token(text, math.log(probability), tuple((t.strip("_"), math.log(p)) for t, p in others.items()))


def test_the_expected_score_on_whole_numbers_is_the_mean_over_them() -> None:
    tokens = [
        *tokens_of('{"score":'),
        Token(" 4", math.log(0.5), ((" 4", math.log(0.5)), (" 5", math.log(0.3)), (" 3", math.log(0.2)))),
        Token("}", 0.0),
    ]
    assert expected_number(tokens, '{"score": 4}', "score", (1, 5)) == pytest.approx(0.5 * 4 + 0.3 * 5 + 0.2 * 3)


def test_what_lies_off_the_scale_or_is_no_number_has_no_weight() -> None:
    others = ((" 4", math.log(0.5)), (" 9", math.log(0.2)), (" high", math.log(0.3)))
    tokens = [*tokens_of("Score:"), Token(" 4", math.log(0.5), others)]
    assert expected_number(tokens, "Score: 4", "score", (1, 5)) == pytest.approx(4.0)


def test_a_score_of_several_tokens_weighs_each_of_them() -> None:
    tokens = [
        Token("Score: ", 0.0),
        Token("0", math.log(0.9), (("0", math.log(0.9)), ("1", math.log(0.1)))),
        Token(".", 0.0, ((".", 0.0),)),
        Token("8", math.log(0.6), (("8", math.log(0.6)), ("9", math.log(0.4)))),
    ]
    assert expected_number(tokens, "Score: 0.8", "score", (0, 1)) == pytest.approx(
        0.1 * 1 + 0.9 * (0.6 * 0.8 + 0.4 * 0.9)
    )


@pytest.mark.parametrize("text", ["Score: 4", "no number at all", ""])
def test_without_alternatives_there_is_no_expectation(text: str) -> None:
    assert expected_number(tokens_of(text), text, "score", (1, 5)) is None


@given(st.lists(st.tuples(st.text(max_size=3), st.floats(-20, 0)), max_size=6), st.text(max_size=20))
def test_an_expectation_lies_on_the_scale(others: list[tuple[str, float]], tail: str) -> None:
    text = "score: 3"
    value = expected_number([Token("score:", 0.0), Token(" 3", -0.5, tuple(others))], text, "score", (1, 5))
    assert value is None or 1 <= value <= 5
    assert expected_number([Token(tail, -1.0)], tail, "score", (1, 5)) is None


@pytest.mark.parametrize(
    ("tokens", "value"),
    [
        ([Token("A", math.log(0.6), (("A", math.log(0.6)), ("B", math.log(0.2))))], 0.75),
        ([Token("\n", 0.0), Token(" B", math.log(0.9), ((" B", math.log(0.9)), (" A", math.log(0.1))))], 0.1),
        ([Token("B", -0.1)], 0.0),
        ([Token("It", -0.1, (("It", -0.1),))], None),
        ([], None),
    ],
)
def test_p_true_is_the_share_of_a(tokens: list[Token], value: float | None) -> None:
    assert probability_true(tokens) == (None if value is None else pytest.approx(value))
