"""What models are asked to reply, and how their replies are read: tolerant on wrapping, strict on meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pipeline.benchmark.plain import ascii_digits, unify
from pipeline.collection.judgements import (
    UNIT,
    Scale,
    decided,
    quoted,
    retracts,
    stated_number,
    unit_number,
    verdict_label,
)
from pipeline.models.types import ReplySchema
from pipeline.turn import read_turn

_MAX_JUDGED_CHARS = 100_000
_MAX_BRACES = 500
_Model = TypeVar("_Model", bound=BaseModel)


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    reason: str = ""

    @field_validator("reason", mode="before")
    @classmethod
    def _any_reason(cls, value: Any) -> str:
        return value if isinstance(value, str) else ""


class PreferenceReply(_Reply):
    """A comparison of two texts: A is the one shown first."""

    verdict: Literal["A", "B", "tie"]

    @field_validator("verdict", mode="before")
    @classmethod
    def _label(cls, value: Any) -> Any:
        return verdict_label(value) if isinstance(value, str) else value


class ScoreReply(_Reply):
    """A judge's score on the scale it was asked for."""

    scale: ClassVar[Scale] = UNIT
    score: float = Field(allow_inf_nan=False)

    @field_validator("score", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return unit_number(value, cls.scale)

    @field_validator("score")
    @classmethod
    def _on_the_scale(cls, value: float) -> float:
        if not cls.scale[0] <= value <= cls.scale[1]:
            raise ValueError(f"must be a number {_in_words(cls.scale)}")
        return value


@cache
def _scored_on(scale: Scale) -> type[ScoreReply]:
    """The reply of a judge that was asked for a score on a scale of one's own."""
    return type("ScoreReply", (ScoreReply,), {"scale": scale, "__annotations__": {"scale": ClassVar[Scale]}})


class ProbabilityReply(_Reply):
    """A regressor's prediction."""

    probability: float = Field(ge=0, le=1, allow_inf_nan=False)

    @field_validator("probability", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return unit_number(value)


@dataclass(frozen=True, slots=True)
class Parsed(Generic[_Model]):
    """A reply that says what was asked.

    Attributes:
        value: what it says.
        mended: whether its JSON had to be mended first.
    """

    value: _Model
    mended: bool = False


@dataclass(frozen=True, slots=True)
class Invalid:
    """A reply that does not; ``problem`` says why, in words that fit a repair request."""

    problem: str


FORMATS: Mapping[str, str] = {
    "preference": '{"reason": "<one or two sentences>", "verdict": "A" or "B" or "tie"}',
    "score": '{"reason": "<one or two sentences>", "score": <number from 0 to 1>}',
    "probability": '{"reason": "<one or two sentences>", "probability": <number from 0 to 1>}',
    "answer": "your reasoning, then the lines\nAnswer: <your final answer>\nConfidence: <a whole number from 0 to 100>",
    "chain": "your reasoning, then the line\nAnswer: <your final answer>",
    "confidence": "Confidence: <a whole number from 0 to 100>",
}
_VALUE_SCHEMAS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "preference": ("verdict", {"type": "string", "enum": ["A", "B", "tie"]}),
    "score": ("score", {"type": "number", "description": "from 0 to 1"}),
    "probability": ("probability", {"type": "number", "description": "from 0 to 1"}),
}


def reply_format(kind: str, scale: Scale = UNIT) -> str:
    """The form asked for, in words that fit a repair request."""
    return FORMATS[kind] if scale == UNIT else FORMATS[kind].replace("from 0 to 1", _in_words(scale))


def _in_words(scale: Scale) -> str:
    return f"from {scale[0]:g} to {scale[1]:g}"


def reply_schema(kind: str, scale: Scale = UNIT) -> ReplySchema | None:
    """The JSON object asked for, in the subset of JSON Schema that strict modes take; None for free text."""
    if kind not in _VALUE_SCHEMAS:
        return None
    key, value = _VALUE_SCHEMAS[kind]
    value = value if scale == UNIT else {**value, "description": _in_words(scale)}
    return ReplySchema(
        name=kind,
        json_schema={
            "type": "object",
            "properties": {"reason": {"type": "string"}, key: value},
            "required": ["reason", key],
            "additionalProperties": False,
        },
    )


def parse_preference(text: str) -> Parsed[PreferenceReply] | Invalid:
    """A verdict A, B or tie.

    JSON objects with a verdict bind, then statements (``Verdict: A``, ``[[A]]``, ``<verdict>``), then a reply, or its
    last line, that is nothing but the verdict. Two that disagree, and one that is taken back, are no verdict.
    """
    return _parse(text, PreferenceReply, "verdict", verdict_label)


def parse_score(text: str, scale: Scale = UNIT) -> Parsed[ScoreReply] | Invalid:
    """A score on the scale that was asked for; anything else is invalid, never clipped."""
    model = ScoreReply if scale == UNIT else _scored_on(scale)
    return _parse(text, model, "score", partial(stated_number, scale=scale))


def parse_probability(text: str) -> Parsed[ProbabilityReply] | Invalid:
    """A probability in [0, 1]; anything else is invalid, never clipped."""
    return _parse(text, ProbabilityReply, "probability", stated_number)


def _parse(text: str, model: type[_Model], key: str, read: Callable[[str], Any]) -> Parsed[_Model] | Invalid:
    text = unify(ascii_digits(read_turn(text[-_MAX_JUDGED_CHARS:]).text)).replace("٫", ".").strip()
    if not text:
        return Invalid("it was empty")
    objects, mended = _objects(text, key)
    if objects:
        final = _from_objects(objects, model, key, mended)
        return _unless_retracted(final, text[objects[-1].end :], key, read)
    value, end = _plain(text, key, read)
    if isinstance(value, Invalid):
        return value
    if value is None:
        return Invalid(f"it has no JSON object with the key {key!r}")
    return _unless_retracted(_validated({key: value}, model, key, mended=False), text[end:], key, read)


def _unless_retracted(
    final: Parsed[_Model] | Invalid, tail: str, key: str, read: Callable[[str], Any]
) -> Parsed[_Model] | Invalid:
    """A judgement, unless what follows it takes it back or states another."""
    if isinstance(final, Invalid) or not tail.strip():
        return final
    later = decided(tail, key, read)
    if isinstance(later, tuple) and later[0] != _value(final, key):
        return Invalid(f"it states two different values of {key!r}")
    if not isinstance(later, tuple) and retracts(tail):
        return Invalid(f"it takes its {key} back")
    return final


def _plain(text: str, key: str, read: Callable[[str], Any]) -> tuple[Any, int]:
    """The value of a reply without JSON, and where its statement ends."""
    stated = decided(text, key, read)
    if isinstance(stated, str):
        return Invalid(stated), 0
    if stated is not None:
        cut = text.rfind("{") > text.rfind("}") and stated[1] == len(text) and text[-1].isdigit()
        return (Invalid("its JSON object is cut off"), 0) if cut else stated  # 0.8 may have been the start of 0.85
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    last = lines[-1].strip("*_ ")
    alone = len(lines) == 1 or lines[-1] != last or key != "verdict"
    if len(last) > 40 or not alone or re.search(r"\b(?:i|think|beats|and|or)\b", last, re.IGNORECASE):
        return None, 0
    try:
        return (verdict_label(last) if key == "verdict" else read(last)), len(text)
    except ValueError:
        return None, 0


@dataclass(frozen=True, slots=True)
class _Object:
    start: int
    end: int
    values: Mapping[str, Any]
    twice: bool = False


class _DuplicateKey(ValueError):
    pass


def _from_objects(objects: list[_Object], model: type[_Model], key: str, mended: bool) -> Parsed[_Model] | Invalid:
    final: Parsed[_Model] | Invalid | None = None
    for one in objects:
        if one.twice:
            return Invalid(f"it states two different values of {key!r}")
        read = _validated(one.values, model, key, mended)
        same = (
            final is None
            or (isinstance(final, Parsed) and isinstance(read, Parsed) and _value(final, key) == _value(read, key))
            or (isinstance(final, Invalid) and isinstance(read, Invalid))
        )
        if not same:
            return Invalid(f"it states two different values of {key!r}")
        final = read
    assert final is not None
    return final


def _value(parsed: Parsed[Any], key: str) -> Any:
    return getattr(parsed.value, key)


def _validated(values: Mapping[str, Any], model: type[_Model], key: str, mended: bool) -> Parsed[_Model] | Invalid:
    try:
        return Parsed(model.model_validate(dict(values)), mended)
    except ValidationError as error:
        excerpt = str(values.get(key))[:40]
        return Invalid(f"{key!r} is {excerpt!r}: {error.errors()[0]['msg']}".replace("Value error, ", ""))


def _objects(text: str, key: str) -> tuple[list[_Object], bool]:
    """The JSON objects of a text that have the key, in order; and whether only the key's own value could be read.

    An object that a sentence about a response quotes is none of the judge's.
    """
    if "{" not in text:
        return [], False
    decoded = [one for one in _decoded(text, key) if key in one.values and not quoted(text, one.start, one.end)]
    if decoded:
        return decoded, False
    return _fields(text, key), True


def _decoded(text: str, key: str) -> Iterator[_Object]:
    decoder = json.JSONDecoder(object_pairs_hook=_unique)
    end = 0
    for position in _braces(text):
        if position < end:
            continue
        try:
            values, end = decoder.raw_decode(text, position)
        except _DuplicateKey as twice:
            yield _Object(position, position + 1, {str(twice): None}, twice=True)
        except json.JSONDecodeError:
            continue
        except RecursionError:  # no reply asked for is nested a thousand deep
            return
        else:
            yield _Object(position, end, values)


def _braces(text: str) -> list[int]:
    """Where objects may begin; of very many places the first and the last ones."""
    places = [match.start() for match in re.finditer(r"\{", text)]
    return places if len(places) <= 2 * _MAX_BRACES else [*places[:_MAX_BRACES], *places[-_MAX_BRACES:]]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are read without case."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        lowered = name.casefold()
        if lowered in values and values[lowered] != value:
            raise _DuplicateKey(lowered)
        values[lowered] = value
    return values


def _fields(text: str, key: str) -> list[_Object]:
    """The value of the key in an object that is not quite JSON, exactly as it is written there, never mended.

    ``7%`` was once mended into 7, and ``1 out of 10`` into 1. An object that is cut off states nothing.
    """
    pattern = re.compile(
        rf"[\"'“”]{key}[\"'“”]\s{{0,9}}:\s{{0,9}}(?P<said>\"[^\"\n]{{0,80}}\"|'[^'\n]{{0,80}}'"
        rf"|[“”][^“”\n]{{0,80}}[“”]|[^,}}\n\"'“”]{{1,80}})"
        r"\s{0,9}(?P<end>,(?!\s?\d)|\}|$)",
        re.IGNORECASE | re.MULTILINE,
    )
    last = text.rfind("}")
    return [
        _Object(match.start(), match.end(), {key: match["said"].strip().strip("\"'“”")})
        for match in list(pattern.finditer(text, 0, last + 1))[-_MAX_BRACES:]
        if not quoted(text, text.rfind("{", 0, match.start()), text.find("}", match.end() - 1) + 1)
    ]
