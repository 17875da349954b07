"""Presets: real rows where the shared data is there, and the shapes of the hub's rows."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.benchmark import Benchmark, load_benchmark
from pipeline.benchmark.presets import PRESETS
from pipeline.config import BenchmarkConfig
from pipeline.errors import DataError
from pipeline.tables.shapes.rows import Row


def rows_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def load(preset: str, path: Path | None = None, seed: int = 0, **config: Any) -> Benchmark:
    return load_benchmark(BenchmarkConfig.model_validate({"preset": preset, "path": path, **config}), seed)


@pytest.mark.shared
def test_gsm8k_is_whole_and_its_axis_has_three_to_ten_steps(shared_path: Path) -> None:
    path = shared_path / "data/benchmarks/gsm8k_test.jsonl.gz"
    rows = rows_of(path)
    steps = [sum(1 for line in row["solution"].split("\n") if line.strip()) for row in rows]
    benchmark = load("gsm8k", path)
    assert len(benchmark.items) == 1319
    assert [(item.item_id, item.gold, item.profile) for item in benchmark.items] == [
        (row["item_id"], row["gold"], count if 3 <= count <= 10 else None)
        for row, count in zip(rows, steps, strict=True)
    ]
    assert benchmark.skipped == {}
    assert (benchmark.grading, benchmark.profile_name, benchmark.profile_kind) == ("numeric", "steps", "ordinal")
    paper = load("gsm8k", path, filter={"field": "steps", "min": 3, "max": 10})
    kept = sum(3 <= count <= 10 for count in steps)
    assert len(paper.items) == kept
    assert paper.skipped == {"steps outside the filter": 1319 - kept}


def test_a_filter_keeps_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    rows = [{"id": k, "question": f"{k}+1?", "gold": str(k + 1), "kind": "ab"[k % 2]} for k in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    benchmark = load("custom", path, grading="numeric", filter={"field": "kind", "values": ["a"]})
    assert [item.item_id for item in benchmark.items] == ["0", "2", "4"]
    assert benchmark.skipped == {"kind outside the filter": 3}
    with pytest.raises(DataError, match=r"has no field 'sort', which benchmark\.filter names"):
        load("custom", path, filter={"field": "sort", "values": ["a"]})


@pytest.mark.shared
@pytest.mark.parametrize(
    ("preset", "name", "count", "skipped", "grading", "kind"),
    [
        ("math500", "math500", 500, {}, "math", "ordinal"),
        ("aime2025", "aime_2024_2025", 30, {"year is not 2025": 30}, "numeric", "continuous"),
        ("mmlu", "mmlu_test_sample1000", 1000, {}, "choice", "continuous"),
        ("scienceqa", "scienceqa_first", 894, {"has an image": 879}, "choice", "ordinal"),
        ("winogrande", "winogrande_xl_dev", 1267, {}, "choice", "continuous"),
        ("truthfulqa", "truthfulqa", 817, {}, "choice", "continuous"),
        ("arc-challenge", "arc_challenge_test", 1172, {}, "choice", "continuous"),
    ],
)
def test_real_rows(
    shared_path: Path, preset: str, name: str, count: int, skipped: dict[str, int], grading: str, kind: str
) -> None:
    benchmark = load(preset, shared_path / f"data/benchmarks/{name}.jsonl.gz")
    assert len(benchmark) == count
    assert benchmark.skipped == skipped
    assert (benchmark.grading, benchmark.profile_kind) == (grading, kind)
    placed = [item for item in benchmark.items if item.profile is not None]
    assert len(benchmark.items) - len(placed) == (4 if preset == "scienceqa" else 0)
    assert all(item.gold for item in benchmark.items)
    if grading == "choice":
        assert all(item.choices and ord(item.gold or "?") - 65 < len(item.choices) for item in benchmark.items)


@pytest.mark.shared
def test_choices_and_lengths_of_real_rows(shared_path: Path) -> None:
    folder = shared_path / "data/benchmarks"
    row = rows_of(folder / "arc_challenge_test.jsonl.gz")[0]
    item = load("arc-challenge", folder / "arc_challenge_test.jsonl.gz").items[0]
    assert item.choices == tuple(row["options"])
    assert item.gold == "ABCD"[row["gold_index"]]
    assert item.profile == len(row["question"].split())
    placed = (item.profile for item in load("scienceqa", folder / "scienceqa_first.jsonl.gz").items)
    grades = Counter(grade for grade in placed if grade is not None)
    assert min(grades) == 2  # type: ignore[type-var]
    assert max(grades) == 12  # type: ignore[type-var]


@pytest.mark.shared
def test_truthfulqa_hides_the_right_choice_at_a_seeded_place(shared_path: Path) -> None:
    path = shared_path / "data/benchmarks/truthfulqa.jsonl.gz"
    rows = {row["item_id"]: row for row in rows_of(path)}
    first, again, other = load("truthfulqa", path), load("truthfulqa", path), load("truthfulqa", path, seed=1)
    for item in first.items:
        assert item.choices is not None
        assert item.choices["ABCDEFGHIJ".index(item.gold or "")] == " ".join(rows[item.item_id]["best_answer"].split())
    assert first.hash == again.hash
    moved = sum(a.gold != b.gold for a, b in zip(first.items, other.items, strict=True))
    assert moved > 400


HUB_ROWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gsm8k": (
        {"question": "How many?", "answer": "One.\nTwo.\n\nThree.\n#### 1,200"},
        {"gold": "1200", "profile": 3.0, "choices": None},
    ),
    "math500": (
        {"problem": "Find x.", "answer": "\\frac12", "level": 4, "subject": "Algebra", "unique_id": "test/a/1.json"},
        {"item_id": "test/a/1.json", "gold": "\\frac12", "profile": 4.0},
    ),
    "aime2025": (
        {"problem_idx": 3, "problem": "Find the sum of all.", "answer": 70},
        {"item_id": "3", "gold": "70", "profile": 5.0},
    ),
    "gpqa-diamond": (
        {
            "Record ID": "rec1", "Question": "Which particle?", "Correct Answer": "Boson\n",
            "Incorrect Answer 1": "Lepton", "Incorrect Answer 2": "Quark", "Incorrect Answer 3": "Hadron",
            "High-level domain": "Physics",
        },
        {"item_id": "rec1", "profile": 2.0},
    ),
    "mmlu": (
        {"question": "Which one?", "subject": "anatomy", "choices": ["a", "b", "c", "d"], "answer": 2},
        {"gold": "C", "choices": ("a", "b", "c", "d"), "profile": 2.0},
    ),
    "scienceqa": (
        {"image": None, "question": "Which?", "choices": ["x", "y"], "answer": 1, "hint": "Look.", "grade": "grade5"},
        {"gold": "B", "profile": 5.0, "question": "Look.\n\nWhich?"},
    ),
    "winogrande": (
        {"sentence": "Ann saw Bea so _ waved.", "option1": "Ann", "option2": "Bea", "answer": "1"},
        {"gold": "A", "choices": ("Ann", "Bea"), "profile": 6.0},
    ),
    "hellaswag": (
        {"ind": 24, "ctx": "A man sits down. He", "endings": ["eats", "flies", "melts", "sings"], "label": "3"},
        {"item_id": "24", "gold": "D", "profile": 5.0},
    ),
    "truthfulqa": (
        {"question": "Is it?", "mc1_targets": {"choices": ["no", "yes", "maybe"], "labels": [0, 1, 0]}},
        {"profile": 2.0},
    ),
    "arc-challenge": (
        {"id": "M1", "question": "Why?", "choices": {"text": ["p", "q"], "label": ["1", "2"]}, "answerKey": "2"},
        {"item_id": "M1", "gold": "B", "choices": ("p", "q"), "profile": 1.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_rows_as_the_hub_has_them(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row, expected = HUB_ROWS[preset]

    def hub(source: object) -> Iterator[Row]:
        assert source == PRESETS[preset].hub
        yield Row("row 1", row)

    monkeypatch.setattr("pipeline.benchmark.loading.read_hub", hub)
    item = load(preset).items[0]
    for name, value in expected.items():
        assert getattr(item, name) == value
    right = {"gpqa-diamond": "Boson", "truthfulqa": "yes"}.get(preset)
    if right is not None:
        assert item.choices is not None
        assert item.choices["ABCD".index(item.gold or "")] == right


def test_hub_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"needs the extra hf: pip install 'auxeval\[hf\]'"):
        load("mmlu")


@pytest.mark.parametrize(
    ("preset", "row", "says"),
    [
        ("gsm8k", {"question": "q", "gold": "1"}, "has no field 'solution'"),
        ("math500", {"question": "q", "gold": "1", "level": 9}, "field 'level' is 9, not 1 to 5"),
        ("math500", {"question": "q", "gold": "1", "level": "hard"}, "field 'level' is not a whole number"),
        ("mmlu", {"question": "q", "options": ["a", "b"], "gold_index": 2}, "names choice 2 as right, of 2"),
        ("mmlu", {"question": "q", "options": "a", "gold_index": 0}, "field 'options' is not a list but str"),
        ("winogrande", {"question": "q _"}, "has no field 'option1'"),
        ("truthfulqa", {"question": "q", "mc1_targets": {"choices": ["a"], "labels": [0]}}, "exactly one right choice"),
        ("arc-challenge", {"question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "C"},
         "field 'answerKey' is 'C'"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_one_line(preset: str, row: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError) as error:
        load(preset, path)
    assert says in str(error.value)
    assert "line 1" in str(error.value)


def test_the_presets_own_axis_can_be_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "q", "gold": "7", "level": "Level 2"}) + "\n")
    for kind, value in (("ordinal", 2.0), ("continuous", 2.0), ("categorical", "2")):
        benchmark = load("math500", path, grading="numeric", profile={"field": "level", "kind": kind})
        assert (benchmark.items[0].profile, benchmark.profile_kind) == (value, kind)
    embedded = load("embedded", profile={"field": "level", "kind": "categorical"})
    assert {item.profile for item in embedded.items} == {"1", "2", "3", "4", "5"}
    with pytest.raises(DataError, match="one profile axis, 'level'"):
        load("embedded", profile={"field": "family", "kind": "categorical"})


def test_grading_and_profile_can_be_overridden(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "q", "gold": "7", "level": 2, "subject": "Algebra", "uid": "m1"}) + "\n")
    benchmark = load(
        "math500", path, grading="numeric", profile={"field": "subject", "kind": "categorical"}, fields={"id": "uid"}
    )
    assert benchmark.grading == "numeric"
    assert (benchmark.items[0].item_id, benchmark.items[0].profile) == ("m1", "Algebra")
