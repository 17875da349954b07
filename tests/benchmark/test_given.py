"""Responses that exist already: rows become items, ratings keep their scale, conversations are written out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.benchmark.given import written_out
from pipeline.benchmark.items import Benchmark, draw_labeled, load_benchmark
from pipeline.config import RunConfig, parse_config
from pipeline.errors import DataError

ROWS: list[dict[str, Any]] = [
    {"t": "a", "v": "old", "in": "Q1?", "out": "no idea", "r": 2, "tone": None, "ms": 10},
    {"t": "a", "v": "new", "in": "Q1?", "out": "four", "r": 5, "tone": "yes", "ms": ""},
    {"t": "b", "v": "old", "in": "Q2?", "out": "five", "r": None, "tone": None, "ms": 30},
    {"t": "c", "v": "new", "in": "Q3?", "out": "six", "r": "", "tone": None, "ms": 40},
]


def _config(folder: Path, rows: list[dict[str, Any]], **benchmark: Any) -> RunConfig:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    fields = {"id": "t", "question": "in", "response": "out", "model": "v", "gold": "r", **benchmark.pop("fields", {})}
    section = {"path": str(path), "fields": fields, "grading": "rating", **benchmark}
    return parse_config({"benchmark": section, "roles": {"judge": "x/y"}})


def _load(folder: Path, rows: list[dict[str, Any]], **benchmark: Any) -> Benchmark:
    return load_benchmark(_config(folder, rows, **benchmark).benchmark, 0)


def test_rows_of_one_item_become_one_item_with_every_model_that_answered(tmp_path: Path) -> None:
    benchmark = _load(tmp_path, ROWS, range=[1, 5], fields={"signals": ["ms"]})
    assert [item.item_id for item in benchmark.items] == ["a", "b", "c"]
    assert benchmark.responders == ("old", "new")
    first = benchmark.items[0]
    assert {name: (part.text, dict(part.ratings)) for name, part in first.given.items()} == {
        "old": ("no idea", {"": 2.0}),
        "new": ("four", {"": 5.0}),
    }
    assert first.given["old"].signals == {"ms": 10.0}
    assert first.given["new"].signals["ms"] != first.given["new"].signals["ms"], "an empty cell is no number"
    assert first.gold is None, "a rating is about a response, not about the question"
    assert draw_labeled(benchmark, "gold", 0) == {"a"}


def test_several_criteria_have_a_rating_each(tmp_path: Path) -> None:
    benchmark = _load(tmp_path, ROWS, fields={"gold": {"right": "r", "kind": "tone"}})
    assert benchmark.criteria == ("right", "kind")
    assert dict(benchmark.items[0].given["new"].ratings) == {"right": 5.0, "kind": 1.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": None}, r"line 4 has no id in field 't'; responses are joined by it"),
        ({"t": "b", "v": "old"}, "line 4 .*another question"),
        ({"t": "b", "v": "old", "in": "Q2?"}, "line 4 is a second response of 'old' to the item 'b'; keep one"),
        ({"r": 7}, r"line 4 field 'r' holds 7, outside the range \[1, 5\]"),
        ({"r": "fine"}, "line 4 field 'r' holds 'fine', which is no rating"),
        ({"v": " "}, "line 4 has no model"),
        ({"ms": "slow"}, "line 4 field 'ms', a signal, holds 'slow'"),
    ],
)
def test_what_cannot_be_judged_is_one_line_before_anything_is_asked(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    rows = [*ROWS[:3], {**ROWS[3], **change}]
    with pytest.raises(DataError, match=message) as caught:
        _load(tmp_path, rows, range=[1, 5], fields={"signals": ["ms"]})
    assert "\n" not in str(caught.value)


def test_an_empty_response_is_left_out_and_counted(tmp_path: Path) -> None:
    benchmark = _load(tmp_path, [*ROWS, {**ROWS[0], "t": "d", "in": "Q4?", "out": "  "}])
    assert benchmark.skipped == {"empty response": 1}
    assert len(benchmark.items) == 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (" plain ", "plain"),
        (
            [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}],
            "[user]\nhi\n\n[assistant]\nyes?",
        ),
        ('[{"role": "user", "content": "hi"}]', "[user]\nhi"),
        ("[{not json", "[{not json"),
        ([{"from": "human", "value": "hi"}], "[human]\nhi"),
        (
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}],
                }
            ],
            '[assistant]\n(calls f with {"a": 1})',
        ),
        ([{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image_url"}]}], "[user]\none"),
        (None, ""),
        (7, "7"),
    ],
)
def test_a_conversation_is_written_out_turn_by_turn(value: Any, text: str) -> None:
    assert written_out(value) == text


@pytest.mark.parametrize(
    ("benchmark", "message"),
    [
        ({"fields": {"model": "v"}, "path": "x.csv"}, "fields.model is about responses .*fields.response"),
        ({"fields": {"reference": "r"}, "path": "x.csv"}, "fields.reference is about responses"),
        ({"fields": {"response": "out", "id": "t"}}, "needs a path"),
        ({"fields": {"response": "out"}, "path": "x.csv"}, "needs fields.id"),
        ({"range": [5, 1]}, r"range must be \[lowest, highest\]"),
        ({"fields": {"response": "o", "id": "t", "gold": {"a": "b"}}, "path": "x.csv"}, "set grading: rating"),
    ],
)
def test_a_section_that_cannot_be_meant_is_refused(benchmark: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError.__bases__[0], match=message):
        parse_config({"benchmark": benchmark, "roles": {"targets": ["x/y"]}})
