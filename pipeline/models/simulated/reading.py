"""What a request asks, as a server can tell from the request alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.models.types import Message

Stage = Literal["answer", "chain", "preference", "score", "probability"]

_OPEN = re.compile(r"<<<([A-Z][A-Z0-9 ]*?) ([0-9a-f]{6,64})>>>")
_KEYS = re.compile(r"[\"'`](verdict|score|probability)[\"'`]")
_SCALE = re.compile(r"\"score\": <number from (-?[\d.]+) to (-?[\d.]+)>")
_STAGE_OF_KEY: Mapping[str, Stage] = {"verdict": "preference", "score": "score", "probability": "probability"}
_STAGE_OF_SCHEMA: Mapping[str, Stage] = {stage: stage for stage in _STAGE_OF_KEY.values()}
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, understood.

    Attributes:
        stage: what kind of reply is wanted.
        texts: what stands between markers, by name (QUESTION, CHAIN A, …); the last of a name counts.
        prompt: the last prompt without what stands between markers.
        own_answer: what the model itself answered earlier in this conversation, or None.
        repair: whether it is a second try at a reply that could not be used.
        whole: all of the conversation's text, for prompts without markers.
        scale: the scores for the worst and the best, as the prompt states them.
    """

    stage: Stage
    texts: Mapping[str, str]
    prompt: str
    own_answer: str | None
    repair: bool
    whole: str
    scale: tuple[float, float] = (0.0, 1.0)


def split_fences(text: str) -> tuple[str, dict[str, str]]:
    """A prompt without its marked texts, and these by name; a marker inside a marked text is text.

    Returns:
        The rest of the prompt, and name → text; of several with one name, the last.
    """
    rest: list[str] = []
    parts: dict[str, str] = {}
    position = 0
    while (match := _OPEN.search(text, position)) is not None:
        closing = f"\n<<<END {match[1]} {match[2]}>>>"
        end = text.find(closing, match.end())
        if end < 0:
            rest.append(text[position : match.end()])
            position = match.end()
            continue
        rest.append(text[position : match.start()])
        parts[match[1]] = text[match.end() + 1 : end]
        position = end + len(closing)
    rest.append(text[position:])
    return "".join(rest), parts


def final_answer(text: str) -> str | None:
    """The answer a text ends in: after its last ``Answer:``, else its last number, else None."""
    place = text.rfind("Answer:")
    if place >= 0:
        line = text[place + 7 :].split("\n", 1)[0].strip()
        return line or None
    numbers = _NUMBER.findall(text[-400:])
    return numbers[-1] if numbers else None


def read_request(messages: Sequence[Message], response_format: Any = None) -> Asked:
    """Understand a request: a repair stands for what it repairs, a later question in a conversation for itself."""
    texts: dict[str, str] = {}
    prompt, own, repair = "", None, False
    for message in messages:
        if message["role"] == "assistant":
            if "Answer:" in message["content"]:
                own = final_answer(message["content"])
            continue
        bare, fenced = split_fences(message["content"])
        repair = "PREVIOUS REPLY" in fenced
        if repair:
            continue
        prompt = bare
        texts.update(fenced)
    whole = "" if "QUESTION" in texts else "\n".join(message["content"] for message in messages)
    stated = _SCALE.search(prompt)
    scale = (float(stated[1]), float(stated[2])) if stated else (0.0, 1.0)
    return Asked(_stage(prompt, response_format), texts, prompt, own, repair, whole, scale)


def _stage(prompt: str, response_format: Any) -> Stage:
    if isinstance(response_format, Mapping):
        schema = response_format.get("json_schema")
        name = schema.get("name") if isinstance(schema, Mapping) else None
        if isinstance(name, str) and name in _STAGE_OF_SCHEMA:
            return _STAGE_OF_SCHEMA[name]
    keys = _KEYS.findall(prompt)
    if keys:
        return _STAGE_OF_KEY[keys[-1]]
    return "answer" if "Confidence:" in prompt else "chain"
