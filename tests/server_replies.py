"""What the test server answers: text computed from the request alone, varied by a random draw."""

from __future__ import annotations

import hashlib
import json
import random
import re
from typing import Any

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SLIPS = ("Let me think step by step.", "First, collect the numbers.", "Start from what is given.", "Work it out.")


def stage_of(body: dict[str, Any]) -> str:
    """What kind of reply a request asks for, as far as the request shows it."""
    response_format = body.get("response_format") or {}
    name = (response_format.get("json_schema") or {}).get("name")
    if name in ("preference", "score", "probability"):
        return str(name)
    prompt = prompt_of(body)
    for key, stage in (("verdict", "preference"), ("score", "score"), ("probability", "probability")):
        if f'"{key}"' in prompt:
            return stage
    return "answer" if "Confidence:" in prompt else "chain"


def prompt_of(body: dict[str, Any]) -> str:
    """All text of the conversation."""
    return "\n".join(str(message.get("content", "")) for message in body.get("messages", ()))


def reply_text(body: dict[str, Any], rng: random.Random, wrong_rate: float) -> str:
    """The reply to a request; ``rng`` makes two draws of one prompt differ."""
    prompt = prompt_of(body)
    seed = int.from_bytes(hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    fixed = random.Random(seed)
    stage = stage_of(body)
    if "Reply with one letter, A or B" in prompt:
        return fixed.choice("AB")
    if stage == "preference":
        verdict = fixed.choice(("A", "B", "A", "B", "tie")) if rng.random() > wrong_rate else rng.choice(("A", "B"))
        return json.dumps({"reason": f"It follows more closely ({rng.randrange(10**6)}).", "verdict": verdict})
    if stage in ("score", "probability"):
        value = min(1.0, max(0.0, fixed.random() + rng.uniform(-0.1, 0.1)))
        return json.dumps({"reason": f"Judged at draw {rng.randrange(10**6)}.", stage: round(value, 3)})
    return _worked(prompt, fixed, rng, wrong_rate, confident=stage == "answer")


def token_weights(text: str, top: int) -> list[dict[str, Any]]:
    """The tokens of a reply as a server that was asked for log-probabilities sends them; each weight by its place."""
    tokens = re.findall(r"\s*\w+|\s*[^\w\s]|\s+", text)
    weighed = []
    for place, token in enumerate(tokens):
        logprob = -0.05 * (1 + place % 7)
        others = [token, *(f"{token[:-1]}{letter}" for letter in "AB0123456789" if f"{token[:-1]}{letter}" != token)]
        ranks = [{"token": other, "logprob": logprob - 1.5 * rank} for rank, other in enumerate(others[:top])]
        weighed.append({"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": ranks})
    return weighed


def _worked(prompt: str, fixed: random.Random, rng: random.Random, wrong_rate: float, *, confident: bool) -> str:
    """A worked chain that combines numbers of the prompt; it does not know whether that is right."""
    numbers = [float(text) for text in _NUMBER.findall(prompt)[-8:]] or [1.0]
    a, b = fixed.choice(numbers), fixed.choice(numbers)
    value = fixed.choice((a + b, a * b, abs(a - b), sum(numbers)))
    steps = [
        rng.choice(_SLIPS),
        f"The numbers are {', '.join(f'{n:g}' for n in numbers)} (try {rng.randrange(10**6)}).",
    ]
    if rng.random() < wrong_rate:
        value += rng.choice((-2, -1, 1, 2, 10))
        steps.append("Carry the remainder.")
    lines = [*steps, f"So the result is {value:g}.", f"Answer: {value:g}"]
    if confident:
        lines.append(f"Confidence: {rng.randrange(40, 100)}")
    return "\n".join(lines)
