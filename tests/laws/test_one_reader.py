"""A file read as a benchmark and as a table holds the same values, whatever its format, packing and door."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.benchmark import load_benchmark
from pipeline.config_sections import BenchmarkConfig
from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.shapes.read import read_shaped_table
from pipeline.tables.shapes.rows import file_rows

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "What is =1+1?", "gold": "2", "level": 1},
    {"id": "b", "question": 'two\nlines, "quoted"; and a tab\there', "gold": None, "level": 3},
    {"id": "c", "question": "Ça va ≠ 東京 'quoted'", "gold": "-5", "level": 2},
]
NAMES = ("id", "question", "gold", "level")
PACKINGS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def _delimited(mark: str) -> bytes:
    return pl.DataFrame(ROWS).write_csv(separator=mark).encode()


def _parquet() -> bytes:
    out = io.BytesIO()
    pl.DataFrame(ROWS).write_parquet(out)
    return out.getvalue()


def _workbook() -> bytes:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra xlsx is not installed")
    book, out = openpyxl.Workbook(), io.BytesIO()
    book.active.append(NAMES)
    for row in ROWS:
        book.active.append([row[name] for name in NAMES])
    for cells in book.active.iter_rows():
        for cell in cells:
            cell.data_type = "s" if isinstance(cell.value, str) else cell.data_type
    book.save(out)
    return out.getvalue()


FORMATS = {
    "csv": lambda: _delimited(","),
    "semicolon.csv": lambda: _delimited(";"),
    "tsv": lambda: _delimited("\t"),
    "jsonl": lambda: "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    "json": lambda: json.dumps(ROWS, indent=1).encode(),
    "parquet": _parquet,
    "xlsx": _workbook,
}
KINDS = [f"t.{form}{packing}" for form in FORMATS for packing in PACKINGS if form != "xlsx" or not packing]


def _made(folder: Path, name: str) -> Path:
    form = name.removeprefix("t.")
    packing = next((ending for ending in PACKINGS if ending and form.endswith(ending)), "")
    path = folder / name
    path.write_bytes(PACKINGS[packing](FORMATS[form.removesuffix(packing)]()))
    return path


def _as_table(path: str | Path) -> list[tuple[Any, ...]]:
    table, _ = read_shaped_table([path], ColumnRoles("gold", ("level",), id="id", cluster="question"))
    return [tuple(_plain(row[name]) for name in NAMES) for row in table.frame.iter_rows(named=True)]


def _plain(value: Any) -> str | None:
    return None if value is None else str(value)


@pytest.mark.parametrize("name", KINDS)
def test_a_benchmark_and_a_table_hold_the_same_values(tmp_path: Path, name: str) -> None:
    path = _made(tmp_path, name)
    written = [tuple(_plain(row[key]) for key in NAMES) for row in ROWS]
    assert [tuple(_plain(row.values[key]) for key in NAMES) for row in file_rows(path)] == written
    assert _as_table(path) == written
    items = load_benchmark(BenchmarkConfig(preset="custom", path=path), seed=0).items
    assert [(item.item_id, item.question, item.gold) for item in items] == [row[:3] for row in written]


@pytest.mark.parametrize("form", ["csv", "jsonl", "json", "parquet"])
def test_standard_input_is_a_file_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    data = FORMATS[form]()

    class Stdin:
        buffer = io.BytesIO(data)

    monkeypatch.setattr("sys.stdin", Stdin)
    as_rows = [tuple(_plain(row.values[key]) for key in NAMES) for row in file_rows(Path("-"))]
    Stdin.buffer = io.BytesIO(data)
    assert as_rows == _as_table("-") == _as_table(_made(tmp_path, f"t.{form}"))


def test_a_nested_field_of_a_benchmark_has_a_dotted_name_as_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"id": 1, "input": {"text": "q?"}, "expected": [{"value": "x"}]}) + "\n")
    fields = {"question": "input.text", "gold": "expected.0.value"}
    (item,) = load_benchmark(BenchmarkConfig.model_validate(
        {"preset": "custom", "path": path, "fields": fields}), seed=0).items  # fmt: skip
    assert (item.question, item.gold) == ("q?", "x")


def test_a_benchmark_of_another_encoding_or_with_short_rows_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,question\n1,caf\xe9\n")
    with pytest.raises(Exception, match=r"t\.csv: line 2 is not UTF-8 text"):
        list(file_rows(path))
