"""Responses that exist already: rows of one item and several models become one item with what each answered."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.benchmark.items import BenchmarkSettings, GivenResponse, Item
from pipeline.benchmark.presets import BadRow, Skip
from pipeline.foreign_json import read_json

ALL_RESPONSES = "responses"
"""The target of a file whose rows name no model."""
MAX_TEXT_CHARS = 1_000_000
_WORDS = {"yes": 1.0, "true": 1.0, "pass": 1.0, "good": 1.0, "no": 0.0, "false": 0.0, "fail": 0.0, "bad": 0.0}


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that a response is judged and rated by.

    Attributes:
        name: of its column.
        question: as it is asked.
        worst, best: the scale; 0 to 1 is no and yes where a person rates.
    """

    name: str
    question: str
    worst: float = 0.0
    best: float = 1.0

    @property
    def asked(self) -> str:
        """One line for a person who rates."""
        yes_no = (self.worst, self.best) == (0.0, 1.0)
        return f"{self.name}: {self.question} ({'yes or no' if yes_no else f'{self.worst:g} to {self.best:g}'})"


def read_response(values: Mapping[str, Any], config: BenchmarkSettings) -> tuple[str, GivenResponse]:
    """The model that a row is about, and what it answered.

    Raises:
        BadRow: a field is missing, or a rating is none.
        Skip: the row has no response.
    """
    fields = config.fields
    text = written_out(_field(values, fields.response or ""))
    if not text:
        raise Skip("empty response")
    if len(text) > MAX_TEXT_CHARS:
        raise Skip(f"response longer than {MAX_TEXT_CHARS:,} characters")
    model = str(_field(values, fields.model)).strip() if fields.model else ALL_RESPONSES
    if not model:
        raise BadRow(f"has no model in field {fields.model!r}")
    context = written_out(_field(values, fields.context)) or None if fields.context else None
    rated = fields.gold_columns if config.grading == "rating" else {}
    ratings = {
        name: rating
        for name, column in rated.items()
        if (rating := read_rating(_field(values, column), column, config.range)) is not None
    }
    return model, GivenResponse(text, ratings, context, own_signals(values, fields.signals))


def own_signals(values: Mapping[str, Any], columns: Iterable[str]) -> dict[str, float]:
    """The user's own numbers of a row; NaN where a cell is empty.

    Raises:
        BadRow: a field is missing, or holds no number.
    """
    numbers = {}
    for column in columns:
        value = _field(values, column)
        try:
            numbers[column] = math.nan if value is None or value == "" else float(value)
        except (TypeError, ValueError):
            raise BadRow(f"field {column!r}, a signal, holds {str(value)[:40]!r}, which is no number") from None
        if math.isinf(numbers[column]):
            raise BadRow(f"field {column!r}, a signal, is not finite")
    return numbers


def _field(values: Mapping[str, Any], name: str) -> Any:
    if name not in values:
        raise BadRow(f"has no field {name!r}; it has {', '.join(sorted(map(str, values)))}")
    return values[name]


def read_rating(value: Any, column: str, bounds: tuple[float, float] | None) -> float | None:
    """A person's rating as a number: yes and no are 1 and 0."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    text = str(value).strip()
    try:
        number = float(_WORDS.get(text.lower(), text))
    except ValueError:
        raise BadRow(f"field {column!r} holds {text[:40]!r}, which is no rating: a number, or yes or no") from None
    if math.isnan(number):
        return None
    low, high = bounds or (-math.inf, math.inf)
    if not (low <= number <= high and math.isfinite(number)):
        raise BadRow(f"field {column!r} holds {text[:40]}, outside the range [{low:g}, {high:g}] of the ratings")
    return number


def written_out(value: Any) -> str:
    """A text as it is; a list of messages (or its JSON) turn by turn, tool calls with their arguments."""
    if isinstance(value, str):
        head = value.strip()
        if not head.startswith("[{"):
            return head
        try:
            value = read_json(head)
        except ValueError:
            return head
    if value is None:
        return ""
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, Sequence):
        return str(value)
    return "\n\n".join(part for message in value if (part := _turn(message)))


def _turn(message: Any) -> str:
    if not isinstance(message, Mapping):
        return str(message)
    who = str(message.get("role") or message.get("from") or "").strip()
    content = message.get("content", message.get("value"))
    if isinstance(content, list):
        content = "\n".join(str(part.get("text") or "") if isinstance(part, Mapping) else str(part) for part in content)
    calls = [_call(call) for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
    lines = [line for line in (str(content or "").strip(), *calls) if line]
    return f"[{who}]\n" + "\n".join(lines) if who and lines else "\n".join(lines)


def _call(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    named = function if isinstance(function, Mapping) else call
    arguments = named.get("arguments", "")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    return f"(calls {named.get('name') or 'a tool'} with {text or 'nothing'})"


@dataclass(slots=True)
class _Gathered:
    item: Item
    where: str
    given: dict[str, GivenResponse]


class GivenItems:
    """Gathers the rows of each item."""

    def __init__(self) -> None:
        self._items: dict[str, _Gathered] = {}
        self.responders: dict[str, None] = {}

    def add(self, item: Item, model: str, response: GivenResponse, where: str) -> None:
        """One row: the item it is about, who answered, and what.

        Raises:
            BadRow: a second response of the model to the item, or another question under its id.
        """
        self.responders.setdefault(model)
        before = self._items.setdefault(item.item_id, _Gathered(item, where, {}))
        if before.item.question != item.question:
            raise BadRow(f"has the id {item.item_id!r} of {before.where} but another question; one id is one item")
        if model in before.given:
            raise BadRow(
                f"is a second response of {model!r} to the item {item.item_id!r}; keep one, or give each version a name"
                " of its own in the column of fields.model"
            )
        before.given[model] = response
        before.item = _agreed(before.item, item)

    def items(self) -> Iterable[Item]:
        """Every item with all its responses, in the order in which items came."""
        return [replace(entry.item, given=entry.given) for entry in self._items.values()]


def _agreed(first: Item, other: Item) -> Item:
    """What one row leaves out of an item another may say."""
    gold = first.gold if first.gold is not None else other.gold
    return replace(first, gold=gold, reference=first.reference or other.reference)
