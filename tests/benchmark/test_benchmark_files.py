"""Files of one's own: formats, field maps, and one clear line for everything that can be wrong with them."""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.benchmark import Benchmark, draw_labeled, jitter_profile, load_benchmark
from pipeline.config import BenchmarkConfig
from pipeline.errors import DataError

ROWS = [
    {"id": "a", "question": "What is 2 + 2?", "answer": "4", "level": 1},
    {"id": "b", "question": "What is 3 + 3?", "answer": "6", "level": 2},
    {"id": "c", "question": "What is 4 + 4?", "answer": "8", "level": 2},
]


def write(path: Path, rows: list[Any] | bytes) -> Path:
    """A file in the format its name says."""
    if isinstance(rows, bytes):
        data = rows
    elif ".csv" in path.name:
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        data = text.getvalue().encode()
    elif ".parquet" in path.name:
        import polars

        buffer = io.BytesIO()
        polars.DataFrame(rows).write_parquet(buffer)
        data = buffer.getvalue()
    else:
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def load(path: Path, seed: int = 0, **config: Any) -> Benchmark:
    return load_benchmark(BenchmarkConfig.model_validate({"preset": "custom", "path": path, **config}), seed)


def refusal(path: Path, **config: Any) -> str:
    with pytest.raises(DataError) as error:
        load(path, **config)
    message = str(error.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.csv", "x.csv.gz", "x.parquet", "x.parquet.gz"])
def test_every_format_gives_the_same_items(tmp_path: Path, name: str) -> None:
    benchmark = load(write(tmp_path / name, ROWS), profile={"field": "level", "kind": "ordinal"})
    assert [(item.item_id, item.question, item.gold, item.profile) for item in benchmark.items] == [
        ("a", "What is 2 + 2?", "4", 1.0),
        ("b", "What is 3 + 3?", "6", 2.0),
        ("c", "What is 4 + 4?", "8", 2.0),
    ]
    assert benchmark.profile_kind == "ordinal"
    assert benchmark.grading == "exact"


def test_field_map_names_other_columns(tmp_path: Path) -> None:
    rows = [{"k": 7, "q": "Capital of France?", "g": "Paris", "opts": ["Rome", "Paris"], "area": "geo"}]
    fields = {"id": "k", "question": "q", "gold": "g", "choices": "opts", "profile": "area"}
    item = load(write(tmp_path / "x.jsonl", rows), fields=fields).items[0]
    assert (item.item_id, item.gold, item.choices, item.profile) == ("7", "B", ("Rome", "Paris"), "geo")


def test_choices_in_csv_are_a_json_list_or_split_at_bars(tmp_path: Path) -> None:
    for cell in ('["Rome", "Paris"]', "Rome|Paris"):
        rows = [{"id": "1", "question": "Capital of France?", "gold": "B", "choices": cell}]
        benchmark = load(write(tmp_path / "x.csv", rows))
        assert benchmark.items[0].choices == ("Rome", "Paris")
        assert benchmark.grading == "choice"


def test_gold_index_counts_from_zero(tmp_path: Path) -> None:
    rows = [{"question": "Capital of France?", "options": ["Rome", "Paris"], "gold_index": 1}]
    item = load(write(tmp_path / "x.jsonl", rows)).items[0]
    assert (item.item_id, item.gold) == ("row-000001", "B")


def test_whole_numbers_in_columns_of_floats_are_whole_numbers(tmp_path: Path) -> None:
    rows = [{"id": 1.0, "question": "q", "gold": 18.0}, {"id": 2.0, "question": "q", "gold": None}]
    items = load(write(tmp_path / "x.parquet", rows)).items
    assert [(item.item_id, item.gold) for item in items] == [("1", "18"), ("2", None)]
    assert copy.deepcopy(items) == items
    assert pickle.loads(pickle.dumps(items)) == items  # noqa: S301  (worker processes get items)


def test_flawed_questions_are_skipped_and_counted(tmp_path: Path) -> None:
    rows = [
        *ROWS,
        {"id": "d", "question": "  ", "answer": "1"},
        {"id": "e", "question": None, "answer": "1"},
        {"id": "f", "question": "a\x00b", "answer": "1"},
        {"id": "g", "question": "half \ud835 pair", "answer": "1"},
        {"id": "h", "question": "x" * 10_000_000, "answer": "1"},
        {"id": "i", "question": "fine", "answer": "\ud835"},
    ]
    benchmark = load(write(tmp_path / "x.jsonl", rows))
    assert len(benchmark) == 3
    assert dict(benchmark.skipped) == {
        "empty question": 2,
        "gold with a NUL character or half a surrogate pair": 1,
        "question longer than 1,000,000 characters": 1,
        "question with a NUL character": 1,
        "question with half a surrogate pair": 1,
    }


def test_long_question_in_csv_is_skipped_and_the_csv_limit_is_left_alone(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    rows = [{"id": "a", "question": "x" * 2_000_000, "gold": "1"}, {"id": "b", "question": "ok", "gold": "1"}]
    assert len(load(write(tmp_path / "x.csv", rows))) == 1
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.jsonl", b'{"id": 1, "question": "q"}\n{broken\n', "line 2 is no JSON object"),
        ("x.jsonl", b"[1, 2]\n", "line 1 is no JSON object but a int"),
        ("x.jsonl", b'{"question": "caf\xe9"}\n', "line 1 is not UTF-8 text (byte 18 of the line is 0xe9)"),
        ("x.jsonl", b"", "is empty"),
        ("x.jsonl", b'{"question": " "}\n', "no items left; skipped: 1 empty question"),
        ("x.jsonl", b'{"question": 3}\n', "line 1 has a question that is not text but int"),
        ("x.jsonl", b'{"text": "q"}\n', "line 1 has no field 'question'; it has text"),
        ("x.jsonl", b'{"question": "q", "gold": ["a"]}\n', "gold answer that is not text or a number but list"),
        ("x.jsonl", b'{"question": "q", "choices": ["a"]}\n', "has 1 choices; between 2 and 10"),
        ("x.jsonl", b'{"question": "q", "choices": ["a", "b"], "gold": "Z"}\n', "gold answer 'Z', which is neither"),
        ("x.csv", b"", "is empty"),
        ("x.csv", b"id,question\n1,a,b\n", "line 2 has 3 fields, the header has 2"),
        ("x.csv", b"id,id\n1,a\n", "2 columns are called 'id'"),
        ("x.csv", b'id,question\n1,"a\n', "not valid CSV"),
        ("x.parquet", b"PAR1 nonsense", "the Parquet file is damaged"),
        ("x.jsonl.gz", b"\x1f\x8bnot gzip", "the gzip data is damaged"),
        ("x.txt", b"q", "has a header but no rows"),
        ("x.csv", b"id,question\n1\n", "line 2 has 1 fields, the header has 2"),
    ],
)
def test_unusable_files_are_one_line(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    message = refusal(path)
    assert says in message
    assert name in message


def test_truncated_gzip_is_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl.gz", [{"id": str(k), "question": f"q{k}"} for k in range(1000)])
    path.write_bytes(path.read_bytes()[:-20])
    assert "the gzip data is damaged or cut off" in refusal(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.jsonl")
    assert "is a folder" in refusal(tmp_path)


def test_duplicate_ids_name_both_lines(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "x.jsonl", [*ROWS, {**ROWS[0], "question": "other"}]))
    assert "line 4 has the id 'a' of line 1 again" in message


def test_missing_mapped_field_is_named(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "x.jsonl", ROWS), fields={"gold": "target"})
    assert "line 1 has no field 'target'; it has answer, id, level, question" in message


def test_profile_that_is_no_number(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [{**ROWS[0], "level": "hard"}])
    assert "field 'level', the ordinal profile axis, is not a number: 'hard'" in refusal(
        path, profile={"field": "level", "kind": "ordinal"}
    )
    assert load(path, profile={"field": "level", "kind": "categorical"}).items[0].profile == "hard"


def test_numeric_grading_refuses_golds_that_are_no_numbers(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "x.jsonl", [{"question": "q", "gold": "Paris"}]), grading="numeric")
    assert "gold answer 'Paris', which is not a number" in message


def test_rows_without_gold(tmp_path: Path) -> None:
    benchmark = load(write(tmp_path / "x.jsonl", [*ROWS, {"id": "d", "question": "open?"}]))
    assert draw_labeled(benchmark, "gold", 0) == {"a", "b", "c"}
    with pytest.raises(DataError, match="item 'd' has no gold answer"):
        draw_labeled(benchmark, 2, 0)
    unlabeled = load(write(tmp_path / "y.jsonl", [{"question": "q"}]))
    with pytest.raises(DataError, match="no item has a gold answer"):
        draw_labeled(unlabeled, "gold", 0)


def many(tmp_path: Path, size: int = 400) -> Path:
    return write(tmp_path / "many.jsonl", [{"id": f"{k:03d}", "question": f"q{k}", "gold": "1"} for k in range(size)])


def test_limits_are_nested_random_and_seeded(tmp_path: Path) -> None:
    path = many(tmp_path)
    small, large = (load(path, limit=size) for size in (50, 100))
    ids = [item.item_id for item in small.items]
    assert set(ids) < {item.item_id for item in large.items}
    assert ids == sorted(ids)
    assert ids != [f"{k:03d}" for k in range(50)]
    assert ids == [item.item_id for item in load(path, limit=50).items]
    assert ids != [item.item_id for item in load(path, seed=1, limit=50).items]
    assert len(load(path, sample=50)) == 50
    assert len(load(path, limit=5000)) == 400


def test_labels_are_drawn_uniformly(tmp_path: Path) -> None:
    benchmark = load(many(tmp_path, 20))
    counts = np.zeros(20)
    for seed in range(2000):
        for item_id in draw_labeled(benchmark, 5, seed):
            counts[int(item_id)] += 1
    expected, error = 2000 * 5 / 20, np.sqrt(2000 * 0.25 * 0.75)
    assert np.abs(counts - expected).max() < 4.5 * error
    assert len(draw_labeled(benchmark, 100, 0)) == 20


def test_hash_changes_with_content_alone(tmp_path: Path) -> None:
    first = load(write(tmp_path / "x.jsonl", ROWS))
    assert first.hash == load(write(tmp_path / "x.jsonl", ROWS)).hash
    assert first.hash != load(write(tmp_path / "x.jsonl", [{**ROWS[0], "answer": "5"}, *ROWS[1:]])).hash


def test_jitter_is_bounded_seeded_and_keeps_the_groups_apart() -> None:
    levels = np.repeat([1.0, 2.0, 3.0], 500)
    noisy = jitter_profile(levels, 7)
    assert np.abs(noisy - levels).max() <= 0.4
    assert np.array_equal(noisy, jitter_profile(levels, 7))
    assert not np.array_equal(noisy, jitter_profile(levels, 8))
    assert abs(float((noisy - levels).mean())) < 4.5 * 0.8 / np.sqrt(12 * 1500)
    assert np.array_equal(np.round(noisy), levels)


@pytest.mark.parametrize(
    "gold",
    ["2 hours 30 minutes", "5²", "3 hundred", "forty-two", "5 or 6", "about five", "3 dozen", "10^3", "x = 1, y = 2"],
)
def test_a_gold_that_is_not_all_one_plain_number_is_refused_with_its_row(tmp_path: Path, gold: str) -> None:
    path = tmp_path / "b.jsonl"
    rows = [{"id": "a", "question": "q", "gold": "7"}, {"id": "b", "question": "r", "gold": gold}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = BenchmarkConfig.model_validate({"preset": "custom", "path": path, "grading": "numeric"})
    with pytest.raises(DataError, match=r"line 2 has the gold answer"):
        load_benchmark(settings, 0)


@pytest.mark.parametrize(
    "gold", ["7", "-7", "1,234.50", "$12", "50%", "3/4", "\\frac{1}{2}", "1e3", "12 km", "3 1/2", ".5"]
)
def test_plain_golds_are_taken(tmp_path: Path, gold: str) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps({"id": "a", "question": "q", "gold": gold}) + "\n")
    settings = BenchmarkConfig.model_validate({"preset": "custom", "path": path, "grading": "numeric"})
    assert load_benchmark(settings, 0).items[0].gold == gold
