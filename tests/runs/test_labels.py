"""Labels after a run: drawn, filled in, graded and estimated again, without asking anyone."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest

import pipeline
from pipeline.errors import DataError, InputError
from pipeline.runs.directory import RunDirectory
from pipeline.runs.labels import export_run_labels, import_run_labels, stored_labels


def gold_of(item: int) -> int:
    return item + item % 7


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """36 sums, the gold answers of 14 known."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / "cache"))
    lines = [
        {"id": f"{k:03d}", "question": f"What is {k} + {k % 7}?", "gold": str(gold_of(k)) if k < 14 else None}
        for k in range(36)
    ]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    fields = {"id": "id", "question": "question", "gold": "gold"}
    result = pipeline.run(
        {
            "schema": 1, "name": "sums", "seed": 1,
            "benchmark": {"preset": "custom", "path": "sums.jsonl", "grading": "numeric", "fields": fields},
            "models": {"t": {"model": "sim/medium"}, "a": {"model": "sim/aux-a"}, "j": {"model": "sim/judge"}},
            "roles": {"targets": ["t"], "judge": "j", "anchors": {"weak": "a", "medium": "a", "strong": "j"}},
            "design": {"labeled": "gold"},
            "estimate": ["naive", "lace"],
        },
        run_id="sums", yes=True,
    )  # fmt: skip
    return RunDirectory(result.path)


def fill(sheet: Path, count: int | None = None, shift: int = 0) -> None:
    rows = list(csv.reader(sheet.open(encoding="utf-8-sig", newline="")))
    for row in rows[1:][:count]:
        row[3] = str(gold_of(int(row[0])) + shift)
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.mark.parametrize("kind", ["uniform", "stratified"])
def test_new_labels_are_graded_and_estimated(finished: RunDirectory, tmp_path: Path, kind: str) -> None:
    before = json.loads(finished.estimates_file.read_text())["targets"]["t"]
    calls = finished.calls_file.read_bytes()
    sheet = tmp_path / "sheet.csv"
    design = export_run_labels(finished, sheet, 16, kind=kind)  # type: ignore[arg-type]
    assert len(design.drawn) == 16
    assert all(int(item) >= 14 for item in design.drawn)
    fill(sheet)
    estimates, notes = import_run_labels(finished, sheet)
    assert notes == ()
    assert (before["naive"]["n"], estimates["t"]["naive"].n, estimates["t"]["lace"].n) == (14, 30, 30)  # type: ignore[union-attr]
    items = pl.read_parquet(finished.tables / "items.parquet")
    answers = pl.read_parquet(finished.tables / "responses.parquet").filter(pl.col("stage") == "answer")
    joined = answers.join(items, on="item_id").filter(pl.col("item_id").is_in(list(design.drawn)))
    number = pl.col("item_id").cast(pl.Int64)
    right = joined.select(pl.col("answer").cast(pl.Float64) == number + number % 7).to_series()
    assert joined["phi"].to_list() == right.cast(pl.Float64).to_list()
    assert finished.calls_file.read_bytes() == calls
    assert bool(stored_labels(finished.path).inclusion) == (kind == "stratified")
    assert json.loads(finished.estimates_file.read_text())["targets"]["t"]["lace"]["n"] == 30


def test_labels_survive_a_resumed_run(finished: RunDirectory, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    export_run_labels(finished, sheet, 10)
    fill(sheet, 6)
    estimates, notes = import_run_labels(finished, sheet)
    assert notes == ("6 of 10 labels are filled in; 4 are still empty",)
    again = pipeline.resume(finished.path)
    assert again.estimates["t"]["lace"].value == estimates["t"]["lace"].value
    assert again.estimates["t"]["naive"].n == 20  # type: ignore[union-attr]


def test_mistakes_are_refused_before_anything_changes(finished: RunDirectory, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    design = export_run_labels(finished, sheet, 5)
    rows = list(csv.reader(sheet.open(encoding="utf-8-sig", newline="")))
    rows[1][3] = "sevenish"
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)
    before = (finished.tables / "items.parquet").read_bytes()
    with pytest.raises(DataError, match=f"item '{design.drawn[0]}': the gold answer 'sevenish' is not a number"):
        import_run_labels(finished, sheet)
    assert (finished.tables / "items.parquet").read_bytes() == before
    assert stored_labels(finished.path).gold == {}
    with pytest.raises(InputError, match="22 items are not labeled yet"):
        export_run_labels(finished, tmp_path / "more.csv", 23)
