"""The presets: how the rows of ten well-known benchmarks become items, from a local file or from the hub."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.benchmark.hub import HubSource
from pipeline.tables.column_roles import ProfileKind

MAX_CHOICES = 10
"""Choices are named A to J."""


class BadRow(Exception):
    """A row that does not have what its preset needs; the reader adds file and line."""


class Skip(Exception):
    """A row that the preset leaves out by rule; the argument is the reason under which it is counted."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a row says of its item, before it is checked."""

    item_id: str | None
    question: Any
    gold: Any
    choices: Sequence[Any] | None = None
    profile: float | str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preset:
    """One benchmark.

    Attributes:
        name: as in the configuration.
        hub: where its rows come from if no file is given.
        parts: row and seed → parts of the item; raises BadRow or Skip.
        grading: how answers are graded by default.
        profile: name and kind of the profile axis.
    """

    name: str
    hub: HubSource
    parts: Callable[[Mapping[str, Any], int], Parts]
    grading: str
    profile: tuple[str, ProfileKind]


def words(text: str) -> float:
    """Length of a text in whitespace-separated words."""
    return float(len(text.split()))


def choice_parts(row_id: str | None, question: str, choices: Sequence[Any], right: int, **more: Any) -> Parts:
    """Parts of a multiple-choice item whose right choice has index ``right``."""
    if not 2 <= len(choices) <= MAX_CHOICES:
        raise BadRow(f"has {len(choices)} choices; between 2 and {MAX_CHOICES} are possible")
    if not 0 <= right < len(choices):
        raise BadRow(f"names choice {right} as right, of {len(choices)} counted from 0")
    return Parts(row_id, question, chr(ord("A") + right), tuple(choices), **more)


def _get(row: Mapping[str, Any], *names: str) -> Any:
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise BadRow(f"has no field {names[0]!r}; it has {', '.join(sorted(map(str, row))) or 'none'}")


def _text(row: Mapping[str, Any], *names: str) -> str:
    value = _get(row, *names)
    if not isinstance(value, str):
        raise BadRow(f"field {names[0]!r} is not text but {type(value).__name__}")
    return value


def _list(row: Mapping[str, Any], *names: str) -> list[Any]:
    value = _get(row, *names)
    if not isinstance(value, list | tuple):
        raise BadRow(f"field {names[0]!r} is not a list but {type(value).__name__}")
    return list(value)


def _whole(value: Any, name: str) -> int:
    match = re.fullmatch(r"\D*(\d+)", str(value).strip())
    if match is None:
        raise BadRow(f"field {name!r} is not a whole number: {str(value)[:40]!r}")
    return int(match[1])


def _id(row: Mapping[str, Any], *names: str) -> str | None:
    for name in ("item_id", "id", *names):
        if row.get(name) is not None:
            return str(row[name])
    return None


def _shuffled(choices: Sequence[Any], seed: int, question: str) -> list[int]:
    """A fixed order of the choices that depends on the seed and the question alone."""
    digest = hashlib.sha256(f"{seed}\n{question}".encode("utf-8", "surrogatepass")).hexdigest()
    order = list(range(len(choices)))
    random.Random(digest).shuffle(order)
    return order


def _gsm8k(row: Mapping[str, Any], seed: int) -> Parts:
    question = _text(row, "question")
    solution = row.get("solution") or row.get("answer")
    gold = row.get("gold")
    if isinstance(solution, str) and "####" in solution:
        solution, _, final = solution.rpartition("####")
        gold = gold if gold is not None else final.strip().replace(",", "")
    if not isinstance(solution, str):
        raise BadRow("has no field 'solution', whose lines are the steps")
    steps = sum(1 for line in solution.splitlines() if line.strip())
    # Hardly any question has fewer or more steps: they are items of the benchmark, and not on its axis.
    axis = float(steps) if 3 <= steps <= 10 else None
    return Parts(_id(row), question, gold, profile=axis, metadata={"solution": solution.strip()})


def _math500(row: Mapping[str, Any], seed: int) -> Parts:
    level = _whole(_get(row, "level"), "level")
    if not 1 <= level <= 5:
        raise BadRow(f"field 'level' is {level}, not 1 to 5")
    metadata = {name: row[name] for name in ("subject", "solution") if row.get(name)}
    question, gold = _text(row, "question", "problem"), _get(row, "gold", "answer")
    return Parts(_id(row, "unique_id"), question, gold, profile=float(level), metadata=metadata)


def _aime2025(row: Mapping[str, Any], seed: int) -> Parts:
    if row.get("year") is not None and _whole(row["year"], "year") != 2025:
        raise Skip("year is not 2025")
    question = _text(row, "question", "problem")
    return Parts(_id(row, "problem_idx"), question, _get(row, "gold", "answer"), profile=words(question))


def _gpqa(row: Mapping[str, Any], seed: int) -> Parts:
    question = _text(row, "Question", "question")
    if row.get("gold_index") is not None:
        options, right = _list(row, "options", "choices"), _whole(row["gold_index"], "gold_index")
    else:
        listed = [_text(row, "Correct Answer"), *(_text(row, f"Incorrect Answer {k}") for k in (1, 2, 3))]
        order = _shuffled(listed, seed, question)
        options, right = [listed[k].strip() for k in order], order.index(0)
    domain = row.get("High-level domain") or row.get("domain")
    metadata = {"domain": domain} if domain else {}
    record_id = _id(row, "Record ID")
    return choice_parts(record_id, question, options, right, profile=words(question), metadata=metadata)


def _mmlu(row: Mapping[str, Any], seed: int) -> Parts:
    question = _text(row, "question")
    right = _whole(_get(row, "gold_index", "answer"), "gold_index")
    metadata = {"subject": row["subject"]} if row.get("subject") else {}
    options = _list(row, "options", "choices")
    return choice_parts(_id(row), question, options, right, profile=words(question), metadata=metadata)


def _scienceqa(row: Mapping[str, Any], seed: int) -> Parts:
    if row.get("has_image") or row.get("image") is not None:
        raise Skip("has an image")
    grade = _whole(_get(row, "grade"), "grade")
    hint = (row.get("hint") or "").strip()
    asked = _text(row, "question")
    metadata = {name: row[name] for name in ("subject", "split") if row.get(name)}
    return choice_parts(
        _id(row),
        f"{hint}\n\n{asked}" if hint else asked,
        _list(row, "options", "choices"),
        _whole(_get(row, "gold_index", "answer"), "gold_index"),
        profile=float(grade) if grade >= 2 else None,  # grade 1 has four questions
        metadata=metadata,
    )


def _winogrande(row: Mapping[str, Any], seed: int) -> Parts:
    sentence = _text(row, "question", "sentence")
    if row.get("options") is not None:
        options, right = _list(row, "options"), _whole(_get(row, "gold_index"), "gold_index")
    else:
        options = [_text(row, "option1"), _text(row, "option2")]
        right = _whole(_get(row, "answer"), "answer") - 1
    return choice_parts(_id(row), sentence, options, right, profile=words(sentence))


def _hellaswag(row: Mapping[str, Any], seed: int) -> Parts:
    context = _text(row, "ctx", "question")
    right = _whole(_get(row, "label", "gold_index"), "label")
    question = f"Which ending continues this text best?\n\n{context}"
    endings = _list(row, "endings", "options")
    return choice_parts(_id(row, "ind"), question, endings, right, profile=words(context))


def _truthfulqa(row: Mapping[str, Any], seed: int) -> Parts:
    question = _text(row, "question")
    targets = row.get("mc1_targets")
    if isinstance(targets, Mapping):
        listed, labels = _list(targets, "choices"), _list(targets, "labels")
        if labels.count(1) != 1 or len(labels) != len(listed):
            raise BadRow("does not have exactly one right choice in 'mc1_targets'")
        best = labels.index(1)
        listed = [listed[best], *listed[:best], *listed[best + 1 :]]
    else:
        listed = [_text(row, "best_answer"), *_list(row, "incorrect_answers")]
    listed = listed[:MAX_CHOICES]
    order = _shuffled(listed, seed, question)
    metadata = {"category": row["category"]} if row.get("category") else {}
    options = [listed[k] for k in order]
    return choice_parts(_id(row), question, options, order.index(0), profile=words(question), metadata=metadata)


def _arc(row: Mapping[str, Any], seed: int) -> Parts:
    question = _text(row, "question")
    choices = row.get("choices")
    if isinstance(choices, Mapping):
        options, labels, key = _list(choices, "text"), _list(choices, "label"), _get(row, "answerKey")
        if key not in labels:
            raise BadRow(f"field 'answerKey' is {key!r}, not one of the labels")
        right = labels.index(key)
    else:
        options, right = _list(row, "options", "choices"), _whole(_get(row, "gold_index"), "gold_index")
    return choice_parts(_id(row), question, options, right, profile=words(question))


_LENGTH: tuple[str, ProfileKind] = ("length", "continuous")

PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("gsm8k", HubSource("openai/gsm8k", "main", "test"), _gsm8k, "numeric", ("steps", "ordinal")),
        Preset("math500", HubSource("HuggingFaceH4/MATH-500", None, "test"), _math500, "math", ("level", "ordinal")),
        Preset("aime2025", HubSource("MathArena/aime_2025", None, "train"), _aime2025, "numeric", _LENGTH),
        Preset("gpqa-diamond", HubSource("Idavidrein/gpqa", "gpqa_diamond", "train"), _gpqa, "choice", _LENGTH),
        Preset("mmlu", HubSource("cais/mmlu", "all", "test"), _mmlu, "choice", _LENGTH),
        Preset(
            "scienceqa", HubSource("derek-thomas/ScienceQA", None, "test"), _scienceqa, "choice", ("grade", "ordinal")
        ),
        Preset(
            "winogrande", HubSource("allenai/winogrande", "winogrande_xl", "validation"), _winogrande, "choice", _LENGTH
        ),
        Preset("hellaswag", HubSource("Rowan/hellaswag", None, "validation"), _hellaswag, "choice", _LENGTH),
        Preset(
            "truthfulqa",
            HubSource("truthfulqa/truthful_qa", "multiple_choice", "validation"),
            _truthfulqa,
            "choice",
            _LENGTH,
        ),
        Preset("arc-challenge", HubSource("allenai/ai2_arc", "ARC-Challenge", "test"), _arc, "choice", _LENGTH),
    )
}
"""By name; ``embedded`` and ``custom`` are not among them."""
