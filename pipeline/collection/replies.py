"""What models are asked to reply, and how their replies are read: tolerant on wrapping, strict on meaning."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pipeline.models.types import ReplySchema

__all__ = [
    "FORMATS",
    "Invalid",
    "Parsed",
    "PreferenceReply",
    "ProbabilityReply",
    "ScoreReply",
    "parse_preference",
    "parse_probability",
    "parse_score",
    "reply_format",
    "reply_schema",
]

Scale = tuple[float, float]
"""The scores for the worst and the best."""
UNIT: Scale = (0.0, 1.0)
_MAX_JUDGED_CHARS = 100_000
_MAX_BRACES = 500
_MAX_MENDED_CHARS = 20_000
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
        return _verdict_label(value) if isinstance(value, str) else value


class ScoreReply(_Reply):
    """A judge's score on the scale it was asked for."""

    scale: ClassVar[Scale] = UNIT
    score: float = Field(allow_inf_nan=False)

    @field_validator("score", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return _unit_number(value) if cls.scale == UNIT else _scaled_number(value, cls.scale)

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
        return _unit_number(value)


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

    The last JSON object with a verdict binds, then the last ``Verdict: …`` line, then a reply that is nothing but the
    verdict. Objects or lines that stand next to each other and disagree, and a verdict after the object that differs
    from it, are no verdict.
    """
    found = _parse(text, PreferenceReply, "verdict", _verdict_line)
    if isinstance(found, Parsed):
        later = _verdict_after(text)
        if later is not None and later != found.value.verdict:
            return Invalid("it states two different verdicts")
    return found


def parse_score(text: str, scale: Scale = UNIT) -> Parsed[ScoreReply] | Invalid:
    """A score on the scale that was asked for; anything else is invalid, never clipped."""
    model = ScoreReply if scale == UNIT else _scored_on(scale)
    return _parse(text, model, "score", _number_line("score"))


def parse_probability(text: str) -> Parsed[ProbabilityReply] | Invalid:
    """A probability in [0, 1]; anything else is invalid, never clipped."""
    return _parse(text, ProbabilityReply, "probability", _number_line("probability"))


def _parse(text: str, model: type[_Model], key: str, from_lines: Any) -> Parsed[_Model] | Invalid:
    text = unicodedata.normalize("NFKC", text[-_MAX_JUDGED_CHARS:]).strip()
    if not text:
        return Invalid("it was empty")
    objects, mended = _objects(text, key)
    if objects:
        return _from_objects(text, objects, model, key, mended)
    line = from_lines(text)
    if isinstance(line, Invalid):
        return line
    if line is None:
        return Invalid(f"it has no JSON object with the key {key!r}")
    return _validated({key: line}, model, key, mended=False)


@dataclass(frozen=True, slots=True)
class _Object:
    start: int
    end: int
    values: Mapping[str, Any]
    twice: bool = False


class _DuplicateKey(ValueError):
    pass


def _from_objects(
    text: str, objects: list[_Object], model: type[_Model], key: str, mended: bool
) -> Parsed[_Model] | Invalid:
    last = objects[-1]
    if last.twice:
        return Invalid(f"it states two different values of {key!r}")
    final = _validated(last.values, model, key, mended)
    for before, after in zip(reversed(objects[:-1]), reversed(objects), strict=False):
        between = text[before.end : after.start]
        if re.search(r"\w", between.replace("json", "")):
            break
        other = _validated(before.values, model, key, mended)
        same = isinstance(other, Parsed) and isinstance(final, Parsed) and _value(other, key) == _value(final, key)
        if not same:
            return Invalid(f"it states two different values of {key!r}")
    return final


def _value(parsed: Parsed[Any], key: str) -> Any:
    return getattr(parsed.value, key)


def _validated(values: Mapping[str, Any], model: type[_Model], key: str, mended: bool) -> Parsed[_Model] | Invalid:
    try:
        return Parsed(model.model_validate(dict(values)), mended)
    except ValidationError as error:
        shown = str(values.get(key))[:40]
        return Invalid(f"{key!r} is {shown!r}: {error.errors()[0]['msg']}".replace("Value error, ", ""))


def _objects(text: str, key: str) -> tuple[list[_Object], bool]:
    """All JSON objects of a text that have the key, in order; and whether the last resort, mending, was needed."""
    found = [found for found in _decoded(text) if key in found.values]
    if found or f'"{key}"' not in text.replace("'", '"').replace("“", '"').replace("”", '"'):
        return found, False
    mended = _mended(text, key)
    return ([mended] if mended is not None else []), True


def _decoded(text: str) -> Iterator[_Object]:
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
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values and values[name] != value:
            raise _DuplicateKey(name)
        values[name] = value
    return values


def _mended(text: str, key: str) -> _Object | None:
    """The last thing between braces that names the key, mended by json-repair; an object that is cut off is not."""
    end = text.rfind("}")
    start = text.rfind("{", 0, max(text.rfind(key, 0, max(end, 0)), 0))
    if (
        start < 0
        or end - start > _MAX_MENDED_CHARS
        or len(re.findall(rf"[\"'“”]{key}[\"'“”]\s*:", text[start : end + 1])) != 1
    ):
        return None
    from json_repair import repair_json

    candidate = text[start : end + 1].translate(str.maketrans("“”„", '"""'))
    values = repair_json(candidate, return_objects=True, skip_json_loads=True)
    return _Object(start, end + 1, values) if isinstance(values, dict) and key in values else None


_LABELS = {
    "a": "A", "b": "B", "tie": "tie", "draw": "tie", "equal": "tie", "neither": "tie", "c": None,
    "response a": "A", "response b": "B", "chain a": "A", "chain b": "B", "solution a": "A", "solution b": "B",
    "answer a": "A", "answer b": "B", "option a": "A", "option b": "B",
}  # fmt: skip
_WRAPPING = " \t\r\n\"'`*_.[](){}<>“”‘’"
_VERDICT_LINE = re.compile(
    r"^[ \t>#*_\-]*(?:(?:my|the|final|overall)[ \t]{1,4}){0,4}"
    r"(?:verdict|winner|preference)[*_\"']{0,3}[ \t]{0,4}(?:[:=]|is\b)(?P<said>.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def _verdict_label(text: str) -> str | None:
    """A, B or tie; None for anything else, two labels at once among it."""
    return _LABELS.get(" ".join(text.strip(_WRAPPING).casefold().split()))


def _verdict_line(text: str) -> str | Invalid | None:
    matches = list(_VERDICT_LINE.finditer(text))
    if matches:
        last = _verdict_label(matches[-1]["said"])
        if last is None:
            return Invalid(f"its verdict {matches[-1]['said'].strip()[:40]!r} is not A, B or tie")
        for before, after in zip(reversed(matches[:-1]), reversed(matches), strict=False):
            if text[before.end() : after.start()].strip():
                break
            if _verdict_label(before["said"]) != last:
                return Invalid("it states two different verdicts")
        return last
    bold = re.findall(r"\*\* {0,2}(?:response |chain )?(A|B|tie) {0,2}\.? {0,2}\*\*", text, re.IGNORECASE)
    if bold:
        labels = {_verdict_label(word) for word in bold}
        return labels.pop() if len(labels) == 1 else Invalid("it states two different verdicts")
    return _verdict_label(text) if len(text) <= 40 else None


def _verdict_after(text: str) -> str | None:
    """A verdict stated in a line of its own after the last JSON object, if any."""
    tail = unicodedata.normalize("NFKC", text)
    tail = tail[tail.rfind("}") + 1 :] if "}" in tail else ""
    matches = list(_VERDICT_LINE.finditer(tail))
    return _verdict_label(matches[-1]["said"]) if matches else None


_UNIT = re.compile(r"(?P<sign>-)?\s*(?P<value>\d+(?:\.\d+)?|\.\d+)(?:\s*(?P<percent>%)|\s*/\s*(?P<of>\d+(?:\.\d+)?))?$")


def _unit_number(value: Any) -> Any:
    """0.85, "0.85", "85%", "85/100" as 0.85; a plain 85 stays 85, which is out of range."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    if not isinstance(value, str):
        return value
    match = _UNIT.match(value.strip(_WRAPPING.replace(".", "")))
    if match is None:
        raise ValueError("must be a number from 0 to 1")
    number = float(match["value"]) * (-1 if match["sign"] else 1)
    if match["percent"]:
        return number / 100
    if match["of"]:
        if float(match["of"]) == 0:
            raise ValueError("must be a number from 0 to 1")
        return number / float(match["of"])
    return number


def _scaled_number(value: Any, scale: Scale) -> Any:
    """4, "4" and "4/5" as 4 on a scale up to 5; a percentage or a part of anything else is no score on it."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    if not isinstance(value, str):
        return value
    match = _UNIT.match(value.strip(_WRAPPING.replace(".", "")))
    if match is None or match["percent"] or (match["of"] and float(match["of"]) != scale[1]):
        raise ValueError(f"must be a number {_in_words(scale)}")
    return float(match["value"]) * (-1 if match["sign"] else 1)


def _number_line(key: str) -> Any:
    pattern = re.compile(
        rf"^[ \t>#*_\-]*(?:(?:my|the|final|overall)[ \t]{{1,4}}){{0,4}}"
        rf"{key}[*_\"']{{0,3}}[ \t]{{0,4}}(?:[:=]|is\b)(?P<said>.*)$",
        re.IGNORECASE | re.MULTILINE,
    )

    def find(text: str) -> str | Invalid | None:
        matches = list(pattern.finditer(text))
        if not matches:
            bare = text.strip(_WRAPPING.replace(".", ""))
            return bare if _UNIT.match(bare) else None
        last = matches[-1]["said"].strip().rstrip(".")
        for before, after in zip(reversed(matches[:-1]), reversed(matches), strict=False):
            if text[before.end() : after.start()].strip():
                break
            if before["said"].strip().rstrip(".") != last:
                return Invalid(f"it states two different values of {key!r}")
        return last

    return find
