"""One guard for every CSV that is written: no cell runs in a spreadsheet, and every text is read as it was."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cli import main
from pipeline.csv_guard import guard, guarded_frame, unguard
from pipeline.tables.imports.imported import write_table
from pipeline.tables.shapes.rows import file_rows
from pipeline.tables.table_source import inspect_source
from pipeline.tables.user_table import read_user_table, whole_csv

RUNS = ("=", "+", "-", "@", "\t", "\r", "\n")
HOSTILE = [
    "=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1", "'=1", "''=1", "'-5", "=HYPERLINK(\"http://x\")",
]  # fmt: skip
HARMLESS = ["plain", "-5", "+1.5e3", "'tis", "it's", "1-2", "", "a=b", "'00123x y"]
texts = st.text(alphabet=st.sampled_from("'=+-@\t\r\n5e. aé"), max_size=8)


@given(texts)
def test_every_text_is_read_as_it_was_and_none_runs(text: str) -> None:
    written = guard(text)
    assert unguard(written) == text
    assert not written.startswith(RUNS) or float(written) is not None  # numbers alone may begin so


@given(st.lists(texts, min_size=1, max_size=5))
def test_frames_are_guarded_as_single_texts_are(cells: list[str]) -> None:
    frame = guarded_frame(pl.DataFrame({"=name": cells, "n": [-1.5] * len(cells)}))
    assert frame.columns == ["'=name", "n"]
    assert frame["'=name"].to_list() == [guard(cell) for cell in cells]
    assert frame["n"].to_list() == [-1.5] * len(cells)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_tables_come_back_and_only_csv_carries_the_guard(tmp_path: Path, suffix: str) -> None:
    cells = [*HOSTILE, *(text for text in HARMLESS if text)]
    frame = pl.DataFrame({"item_id": [str(k) for k in range(len(cells))], "=answer": cells})
    path = tmp_path / f"t{suffix}"
    write_table(frame, path)
    if suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        assert [row[1] for row in rows[1:]] == [guard(cell) for cell in cells]
        assert whole_csv(inspect_source(path))["=answer"].to_list() == cells
    read = read_user_table(path, ["=answer"]).frame["=answer"].to_list()
    expected = [text.strip(" \t\r\n") if suffix != ".csv" else text for text in cells]
    for got, want in zip(read, expected, strict=True):
        if want.startswith("'") and (suffix != ".csv" or guard(want) == want):
            continue  # a lone apostrophe of a spreadsheet falls away in any table
        assert got == want


def test_a_benchmark_reads_what_an_import_wrote(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_table(pl.DataFrame({"id": ["1", "2"], "question": ["=1+1?", "plain"]}), path)
    assert [row.values["question"] for row in file_rows(path)] == ["=1+1?", "plain"]


def test_what_import_estimate_and_label_sheets_write_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"=id{k}", "question": "@SUM(1)", "gold": k % 2 if k < 20 else None, "judge": (k % 7) / 7,
         "model": "=evil()"}
        for k in range(40)
    ]  # fmt: skip
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ["--gold", "gold", "--signals", "judge", "--id", "id", "--model", "model"]
    for command in (
        ["estimate", "t.jsonl", *columns, "--out", "out"],
        ["labels", "export", "t.jsonl", "sheet.csv", *columns, "-n", "5"],
    ):
        with pytest.raises(SystemExit) as end:
            main(command)
        assert not end.value.code, command
    written = sorted(tmp_path.rglob("*.csv"))
    assert len(written) >= 2
    for path in written:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for row in csv.reader(file):
                for cell in row:
                    assert guard(unguard(cell)) == cell, (path.name, cell)
