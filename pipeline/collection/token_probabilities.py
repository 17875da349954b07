"""What a provider's token probabilities say: how sure of an answer, the expected score, P(true)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from pipeline.benchmark.extraction import strip_confidence
from pipeline.models.types import Token

_NUMBER = r"-?\d+(?:\.\d+)?"
_LEADING_NUMBER = re.compile(r"-?\d+(?:\.\d*)?")
_SPAN = tuple[int, int]


def answer_logprobs(tokens: Sequence[Token], text: str, answer: str | None) -> tuple[float, float] | None:
    """Mean and least log-probability of the tokens in which a reply states its final answer.

    Args:
        tokens: of the text as sent; it may hold thought before the reply.
        text: the reply.
        answer: the final answer as it was read from the reply.

    Returns:
        Both, at most 0; None where there are no tokens, or where the answer does not stand in the reply word for word.
    """
    span = _answer_span(text, answer)
    inside = [token.logprob for token, _ in _within(tokens, text, span)] if span is not None else []
    return (math.fsum(inside) / len(inside), min(inside)) if inside else None


def expected_number(tokens: Sequence[Token], text: str, key: str, scale: tuple[float, float]) -> float | None:
    """The mean of a number over what a judge could have written in its place, instead of the one it wrote.

    Where the number has several tokens, each alternative to one of them ends the number there: ``0.8`` with ``9``
    weighed in the place of ``8`` counts ``0.9`` with that weight.

    Args:
        tokens: of the text as sent, with alternatives.
        text: the reply.
        key: what the number is called in it (``score``).
        scale: the least and the greatest value; what lies outside has no weight.

    Returns:
        The mean; None without alternatives or without such a number.

    References:
        Liu, Iter, Xu, Wang, Xu, Zhu, "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment", 2023,
        arXiv:2303.16634, section 2 (scoring function).
    """
    stated = list(re.finditer(rf"[\"'*_]{{0,3}}\b{key}\b[\"'*_]{{0,3}}\s*[:=]\s*[\"'*_]{{0,3}}({_NUMBER})", text, re.I))
    if not stated:
        return None
    span = stated[-1].span(1)
    total, weighed, along, alternatives = 0.0, 0.0, 1.0, False
    for token, start in _within(tokens, text, span):
        lead = token.text[: max(0, span[0] - start)]
        before = text[span[0] : max(span[0], start)]
        for other, logprob in token.others:
            alternatives = True
            if other == token.text or not other.startswith(lead):
                continue
            number = _LEADING_NUMBER.match(before + other[len(lead) :])
            if number is not None and scale[0] <= (value := float(number[0])) <= scale[1]:
                weight = along * math.exp(logprob)
                total, weighed = total + weight * value, weighed + weight
        along *= math.exp(token.logprob)
    own = float(text[slice(*span)])
    if not alternatives or not scale[0] <= own <= scale[1]:
        return None
    weighed += along
    return (total + along * own) / weighed if weighed > 0 else None


def probability_true(tokens: Sequence[Token]) -> float | None:
    """p(A) / (p(A) + p(B)) at the first token that is not white space; None where neither letter was weighed.

    References:
        Kadavath et al., "Language Models (Mostly) Know What They Know", 2022, arXiv:2207.05221, section 3 (P(True)).
    """
    first = next((token for token in tokens if token.text.strip(" \n\t(*")), None)
    if first is None:
        return None
    weighed = dict.fromkeys([(first.text, first.logprob), *first.others])
    mass = {
        letter: math.fsum(math.exp(logprob) for text, logprob in weighed if text.strip(" \n\t().*:") == letter)
        for letter in "AB"
    }
    either = mass["A"] + mass["B"]
    return mass["A"] / either if either > 0 else None


def _answer_span(text: str, answer: str | None) -> _SPAN | None:
    """Where the answer stands for the last time, outside the line that states how sure the model is."""
    words = (answer or "").strip().strip(".")
    if not words:
        return None
    pattern = re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")
    kept = set(strip_confidence(text).splitlines())
    end = len(text)
    for line in reversed(text.splitlines(keepends=True)):
        start = end - len(line)
        stated = list(pattern.finditer(line)) if line.rstrip("\r\n") in kept else []
        if stated:
            return start + stated[-1].start(), start + stated[-1].end()
        end = start
    return None


def _within(tokens: Sequence[Token], text: str, span: _SPAN) -> Iterator[tuple[Token, int]]:
    """The tokens that touch a span of the reply, with where in the reply each begins."""
    whole = "".join(token.text for token in tokens)
    offset = whole.rfind(text.strip())
    if not whole or offset < 0:  # letters that a token boundary cuts are not spelled in either token
        return
    position = -offset + len(text) - len(text.lstrip())
    for token in tokens:
        if position < span[1] and position + len(token.text) > span[0]:
            yield token, position
        position += len(token.text)
