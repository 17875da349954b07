"""From the rows of a source to checked items: every flaw of the data is one clear line or a counted skip."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline.benchmark.axes import axis_value, semantic_groups
from pipeline.benchmark.extraction import committed_text
from pipeline.benchmark.given import GivenItems, own_signals, read_response, written_out
from pipeline.benchmark.hub import read_hub
from pipeline.benchmark.items import Benchmark, BenchmarkSettings, Item, select_items
from pipeline.benchmark.presets import MAX_CHOICES, PRESETS, BadRow, Parts, Preset, Skip
from pipeline.errors import DataError
from pipeline.foreign_json import read_json
from pipeline.tables.column_roles import ProfileKind

if TYPE_CHECKING:
    from pipeline.tables.shapes.rows import Row

T = TypeVar("T")
MAX_QUESTION_CHARS = 1_000_000
_SURROGATE = re.compile("[\ud800-\udfff]")
_ID_NAMES = ("item_id", "id")
_QUESTION_NAMES = ("question", "prompt", "problem")
_GOLD_NAMES = ("gold", "answer")
_CHOICE_NAMES = ("choices", "options")


def read_benchmark(config: BenchmarkSettings, seed: int) -> Benchmark:
    """See :func:`pipeline.benchmark.load_benchmark`."""
    if config.preset == "embedded":
        return _embedded(config, seed)
    preset = PRESETS.get(config.preset)
    grading = config.grading or (preset.grading if preset else None)
    if grading is not None:
        _check_grading(grading)
    reader = _Reader(config, preset, grading, seed)
    gathered = GivenItems() if config.fields.response is not None else None
    items = tuple(reader.items() if gathered is None else reader.given_items(gathered))
    if not items:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(reader.skipped.items()))
        raise DataError(f"{reader.source}: no items" + (f" left; skipped: {reasons}" if reasons else " in it"))
    selected = select_items(items, limit=config.limit, sample=config.sample, seed=seed)
    if grading == "rating":  # people say how good a response is; a right answer of the source says nothing then
        selected = tuple(replace(item, gold=None) for item in selected)
    name, kind = reader.axis
    if kind == "semantic":
        texts = [item.question if name == "question" else str(item.profile) for item in selected]
        groups = semantic_groups(texts, str(name))
        selected = tuple(replace(item, profile=group) for item, group in zip(selected, groups, strict=True))
        kind = "categorical"
    return Benchmark(
        name=config.preset if preset else reader.source,
        items=selected,
        grading=reader.grading or "exact",
        profile_name=name,
        profile_kind=kind or _infer_kind(selected) if name else None,
        skipped=dict(sorted(reader.skipped.items())),
        seeds={"selection": seed, "choices": seed},
        tolerance=config.tolerance,
        responders=tuple(gathered.responders) if gathered else (),
        criteria=tuple(config.fields.gold_columns) if grading == "rating" else (),
    )


def _embedded(config: BenchmarkSettings, seed: int) -> Benchmark:
    from pipeline.benchmark.embedded import embedded_items

    grading = config.grading or "numeric"
    _check_grading(grading)
    name = config.profile.field if config.profile else "level"
    if name != "level":
        raise DataError(f"benchmark.profile.field {name!r}: the embedded benchmark has one profile axis, 'level'")
    items = select_items(embedded_items(seed), limit=config.limit, sample=config.sample, seed=seed)
    if config.profile and config.profile.kind in ("categorical", "tags"):
        items = tuple(replace(item, profile=f"{item.profile:g}") for item in items)
    return Benchmark(
        name="embedded",
        items=items,
        grading=grading,
        profile_name="level",
        profile_kind=config.profile.kind if config.profile else "ordinal",
        seeds={"selection": seed, "problems": seed},
        tolerance=config.tolerance,
    )


def _check_grading(grading: str) -> None:
    from pipeline.benchmark.grading import check_grading

    check_grading(grading)


def _infer_kind(items: tuple[Item, ...]) -> ProfileKind:
    return "categorical" if any(isinstance(item.profile, str) for item in items) else "continuous"


class _Reader:
    """Reads one source; counts what it leaves out."""

    def __init__(self, config: BenchmarkSettings, preset: Preset | None, grading: str | None, seed: int) -> None:
        self._config = config
        self._preset = preset
        self.grading = grading
        """Of the rows; where nothing says so, rows with choices are graded by choice and others exactly."""
        self._seed = seed
        self.skipped: Counter[str] = Counter()
        self.source = str(config.path) if config.path is not None else preset.hub.dataset if preset else "custom"
        if config.path is not None:
            self.source = config.path.name

    @property
    def axis(self) -> tuple[str | None, ProfileKind | None]:
        """Name and kind of the profile axis; the configuration's own comes first."""
        if self._config.profile is not None:
            return self._config.profile.field, self._config.profile.kind
        if self._config.fields.profile is not None:
            return self._config.fields.profile, None
        return self._preset.profile if self._preset else (None, None)

    def given_items(self, gathered: GivenItems) -> Iterable[Item]:
        """Items with the responses of all their rows."""

        def gather(row: Row, number: int) -> None:
            if row.values.get(self._config.fields.id or "") in (None, ""):
                raise BadRow(f"has no id in field {self._config.fields.id!r}; responses are joined by it")
            model, response = read_response(row.values, self._config)
            gathered.add(self._item(row, number), model, response, row.where)

        for number, row in enumerate(self._rows(), start=1):
            self._made(gather, row, number)
        return gathered.items()

    def _made(self, make: Callable[[Row, int], T], row: Row, number: int) -> T | None:
        """What is made of a row; one that is left out by rule is counted, one that cannot be used is an error."""
        try:
            return make(row, number)
        except Skip as skip:
            self.skipped[str(skip)] += 1
            return None
        except BadRow as error:
            raise DataError(f"{self._place}: {row.where} {error}") from None

    def items(self) -> Iterator[Item]:
        seen: dict[str, str] = {}
        for number, row in enumerate(self._rows(), start=1):
            item = self._made(self._item, row, number)
            if item is None:
                continue
            if item.item_id in seen:
                first = seen[item.item_id]
                raise DataError(
                    f"{self._place}: {row.where} has the id {item.item_id!r} of {first} again; ids must be unique"
                )
            seen[item.item_id] = row.where
            yield item

    @property
    def _place(self) -> str:
        return str(self._config.path) if self._config.path is not None else self.source

    def _rows(self) -> Iterator[Row]:
        if self._config.path is not None:
            from pipeline.tables.shapes.rows import file_rows  # not above: collection starts without polars

            return file_rows(self._config.path)
        if self._preset is None:
            raise DataError("benchmark.preset custom needs benchmark.path, a JSONL, CSV or Parquet file")
        return read_hub(self._preset.hub)

    def _item(self, row: Row, number: int) -> Item:
        parts = self._parts(row.values)
        question = self._question(parts.question)
        choices = _choices(parts.choices)
        gold = _gold(parts.gold)
        if self.grading is None:
            self.grading = "choice" if choices else "exact"
        if gold is not None and self.grading == "choice":
            gold = _gold_letter(gold, choices)
        if gold is not None and self.grading in ("numeric", "squared_error"):
            _numeric_gold(gold)
        if gold is not None and self.grading == "math":
            _math_gold(gold)
        if gold is not None and self.grading in ("exact", "math") and committed_text(f"Answer: {gold}") is None:
            raise BadRow(f"has the gold answer {gold[:40]!r}, which is read in no reply; leave an unknown one empty")
        profile = self._profile(parts, row.values)
        self._filter(profile, row.values)
        item_id = parts.item_id if parts.item_id not in (None, "") else f"row-{number:06d}"
        if _SURROGATE.search(str(item_id)) or "\x00" in str(item_id):
            raise BadRow("has an id with characters that cannot be written (a NUL or half a surrogate pair)")
        return Item(
            item_id=str(item_id),
            question=question,
            gold=gold,
            choices=choices,
            profile=profile,
            metadata=dict(parts.metadata),
            reference=self._text(row.values, self._config.fields.reference),
            cluster=self._text(row.values, self._config.fields.cluster),
            signals={} if self._config.fields.response else own_signals(row.values, self._config.fields.signals),
        )

    def _filter(self, profile: float | str | None, values: Mapping[str, Any]) -> None:
        """Leave out what ``benchmark.filter`` does not keep; it is counted."""
        rule = self._config.filter
        if rule is None:
            return
        value: Any = values.get(rule.field)
        if rule.field == self.axis[0]:
            value = profile
        elif rule.field not in values:
            raise BadRow(f"has no field {rule.field!r}, which benchmark.filter names")
        if not rule.keeps(value):
            raise Skip(f"{rule.field} outside the filter")

    def _text(self, values: Mapping[str, Any], name: str | None) -> str | None:
        if name is None:
            return None
        if name not in values:
            raise BadRow(f"has no field {name!r}; it has {', '.join(sorted(map(str, values)))}")
        return written_out(values[name]) or None

    def _parts(self, values: Mapping[str, Any]) -> Parts:
        fields = self._config.fields
        rated = self.grading == "rating"  # then the gold column is about responses, not about the question
        given = {
            "item_id": fields.id,
            "question": fields.question,
            "gold": None if rated or isinstance(fields.gold, Mapping) else fields.gold,
            "choices": fields.choices,
        }
        for name in given.values():
            if name is not None and name not in values:
                raise BadRow(f"has no field {name!r}; it has {', '.join(sorted(map(str, values)))}")
        if self._preset is None:
            parts = _custom(values, given)
            return replace(parts, gold=None) if rated else parts
        parts = self._preset.parts(values, self._seed)
        return Parts(
            item_id=_written(values[fields.id]) if fields.id else parts.item_id,
            question=values[fields.question] if fields.question else parts.question,
            gold=values[given["gold"]] if given["gold"] else parts.gold,
            choices=values[fields.choices] if fields.choices else parts.choices,
            profile=parts.profile,
            metadata=parts.metadata,
        )

    def _question(self, value: Any) -> str:
        if self._config.fields.response is not None:  # a product's question may be a whole conversation
            value = written_out(value)
        if value is not None and not isinstance(value, str):
            raise BadRow(f"has a question that is not text but {type(value).__name__}")
        if value is None or not value.strip():
            raise Skip("empty question")
        if len(value) > MAX_QUESTION_CHARS:
            raise Skip(f"question longer than {MAX_QUESTION_CHARS:,} characters")
        if "\x00" in value:
            raise Skip("question with a NUL character")
        if _SURROGATE.search(value):
            raise Skip("question with half a surrogate pair")
        return value

    def _profile(self, parts: Parts, values: Mapping[str, Any]) -> float | str | None:
        name, kind = self.axis
        own = self._config.profile is not None or self._config.fields.profile is not None
        if name is None or not own:
            return parts.profile
        column = self._config.fields.profile or name
        if self._preset is not None and column == self._preset.profile[0]:
            value: Any = parts.profile
            if value is None:  # an item of the benchmark that is not on its axis
                return None
        elif column not in values:
            raise BadRow(f"has no field {column!r}, the profile axis; it has {', '.join(sorted(map(str, values)))}")
        else:
            value = values[column]
        return axis_value(value, column, kind)


def _custom(values: Mapping[str, Any], given: Mapping[str, str | None]) -> Parts:
    def find(key: str, names: tuple[str, ...]) -> Any:
        if given[key] is not None:
            return values[given[key]]  # type: ignore[index]
        return next((values[name] for name in names if name in values), None)

    if given["question"] is None and not any(name in values for name in _QUESTION_NAMES):
        raise BadRow(
            f"has no field 'question'; it has {', '.join(sorted(map(str, values)))}; map it in fields.question"
        )
    id_column = find("item_id", _ID_NAMES)
    gold, column = find("gold", _GOLD_NAMES), given["gold"] or "gold_index"
    if column.endswith("index") and isinstance(values.get(column), int) and (given["gold"] or gold is None):
        gold = chr(ord("A") + values[column]) if 0 <= values[column] < MAX_CHOICES else values[column]
    metadata = {"split": values["split"]} if isinstance(values.get("split"), str) else {}
    return Parts(
        item_id=None if id_column is None else _written(id_column),
        question=find("question", _QUESTION_NAMES),
        gold=gold,
        choices=find("choices", _CHOICE_NAMES),
        metadata=metadata,
    )


def _choices(value: Any) -> tuple[str, ...] | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        value = _split_choices(value)
    if not isinstance(value, list | tuple):
        raise BadRow(f"has choices that are not a list but {type(value).__name__}")
    texts = tuple(" ".join(str(choice).split()) for choice in value)
    if not 2 <= len(texts) <= MAX_CHOICES:
        raise BadRow(f"has {len(texts)} choices; between 2 and {MAX_CHOICES} are possible")
    if not all(texts):
        raise BadRow("has an empty choice")
    if any(_SURROGATE.search(text) or "\x00" in text for text in texts):
        raise Skip("choice with a NUL character or half a surrogate pair")
    return texts


def _split_choices(text: str) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            value = read_json(text)
        except json.JSONDecodeError:
            raise BadRow("has choices that look like a JSON list but are not one") from None
        if isinstance(value, list):
            return value
    return list(text.split("|"))


def _gold(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | str):
        text = _written(value).strip()
        if _SURROGATE.search(text) or "\x00" in text:
            raise Skip("gold with a NUL character or half a surrogate pair")
        return text or None
    raise BadRow(f"has a gold answer that is not text or a number but {type(value).__name__}")


def _written(value: Any) -> str:
    """A value as text; a whole number that a column of floats holds is written as one."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _gold_letter(gold: str, choices: tuple[str, ...] | None) -> str:
    if choices is None:
        raise BadRow("has no choices, which grading choice needs; map them in fields.choices")
    named = [k for k, choice in enumerate(choices) if choice == " ".join(gold.split())]
    if len(named) == 1:
        return chr(ord("A") + named[0])
    letter = gold.strip("()").upper()
    if len(letter) == 1 and 0 <= ord(letter) - ord("A") < len(choices):
        return letter
    raise BadRow(f"has the gold answer {gold[:40]!r}, which is neither a letter nor the text of one of its choices")


def _numeric_gold(gold: str) -> None:
    from pipeline.benchmark.numbers import is_plain_gold, parse_number

    if parse_number(gold) is None:
        raise BadRow(f"has the gold answer {gold[:40]!r}, which is not a number; choose another grading")
    if not is_plain_gold(gold):
        raise BadRow(f"has the gold answer {gold[:40]!r}, of which not all is a plain number; write it in figures")


def _math_gold(gold: str) -> None:
    """Refuse a gold whose brackets do not match: math-verify reads a part of it, or nothing."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", gold):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            break
    if depth:
        raise BadRow(f"has the gold answer {gold[:40]!r}, whose braces do not match")
