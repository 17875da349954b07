"""Reading a user's own table: every format, compression and spelling works or gets one clear line."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from pipeline.errors import DataError
from pipeline.tables.cells import flag_column, label_column, number_column
from pipeline.tables.table_source import decompress_zstd, inspect_source
from pipeline.tables.user_table import nearest_names, read_user_table

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


def numbers(path: Path, column: str) -> list[float]:
    return number_column(read_user_table(path, [column]), column).values.tolist()


CSV = "id,gold,judge\na,1,0.5\nb,,0.25\nc,0,0.125\n"


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("t.csv", bytes),
        ("t.csv.gz", gzip.compress),
        ("t.csv.bz2", bz2.compress),
        ("t.csv.xz", lzma.compress),
        ("no-suffix", bytes),
        ("packed-without-suffix", gzip.compress),
    ],
)
def test_csv_is_read_whatever_its_compression(write: Write, name: str, pack: Callable[[bytes], bytes]) -> None:
    path = write(name, pack(CSV.encode()))
    assert numbers(path, "judge") == [0.5, 0.25, 0.125]
    assert np.isnan(numbers(path, "gold")[1])


def test_zstandard_is_undone(write: Write, tmp_path: Path) -> None:
    pl.read_csv(CSV.encode()).write_csv(tmp_path / "t.csv.zst", compression="zstd")
    assert inspect_source(tmp_path / "t.csv.zst").compression == "zstd"
    assert numbers(tmp_path / "t.csv.zst", "judge") == [0.5, 0.25, 0.125]
    assert decompress_zstd((tmp_path / "t.csv.zst").read_bytes()).decode().split() == CSV.split()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(write: Write, delimiter: str) -> None:
    assert numbers(write("t.csv", CSV.replace(",", delimiter)), "judge") == [0.5, 0.25, 0.125]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_other_encodings_are_read(write: Write, encoding: str) -> None:
    path = write("t.csv", "gold;größe;köln\n1;2;straße\n".encode(encoding))
    assert numbers(path, "größe") == [2.0]
    assert label_column(read_user_table(path, ["köln"]), "köln").tolist() == ["straße"]


def test_excel_quirks(write: Write) -> None:
    text = 'sep=;\r\nid;gold;judge;share\r\n="007";TRUE;"1.234,5";85%\r\n8;FALSE;0,5;#N/A\r\n;;;\r\n;;;\r\n'
    path = write("excel.csv", text)
    table = read_user_table(path, ["id", "gold", "judge", "share"])
    assert table.notes == ("2 blank rows were left out",)
    assert label_column(table, "id").tolist() == ["007", "8"]
    assert number_column(table, "gold").values.tolist() == [1.0, 0.0]
    judge = number_column(table, "judge")
    assert judge.values.tolist() == [1234.5, 0.5]
    assert judge.note is not None
    assert "decimal commas" in judge.note
    assert_array_equal(number_column(table, "share").values, [0.85, np.nan])
    assert table.place(1) == "row 2 (line 4)"


def test_a_row_whose_used_cells_are_empty_stays_in_the_pool(write: Write) -> None:
    table = read_user_table(write("t.csv", "id,gold,judge\na,1,2\nb,,\n,,\n"), ["gold", "judge"])
    assert table.frame.height == 2


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,234", "2,000,000", "7"], [1234.0, 2e6, 7.0]),
        (["1,5", "2,25"], [1.5, 2.25]),
        (["0,125", "1,5"], [0.125, 1.5]),
        (["1 234", "1\u202f234.5", "12'345"], [1234.0, 1234.5, 12345.0]),
        (["1.234,5", "7"], [1234.5, 7.0]),
        (["yes", "No", "TRUE", "f"], [1.0, 0.0, 1.0, 0.0]),
        (["C", "I", "P", "N"], [1.0, 0.0, 0.5, 0.0]),
        (["\u22121.5", "+2", "1e-3", ".5"], [-1.5, 2.0, 1e-3, 0.5]),
        (["50%", "12.5 %"], [0.5, 0.125]),
    ],
)
def test_numbers_as_people_write_them(write: Write, cells: list[str], expected: list[float]) -> None:
    path = write("t.csv", "x,y\n" + "".join(f'"{cell}",1\n' for cell in cells))
    assert numbers(path, "x") == pytest.approx(expected, abs=0)


@pytest.mark.parametrize("spelling", ["", "NaN", "nan", "NA", "N/A", "#N/A", "null", "None", "-", "?", "#DIV/0!", " "])
def test_missing_spellings(write: Write, spelling: str) -> None:
    assert_array_equal(numbers(write("t.csv", f"x,y\n1,1\n{spelling},1\n"), "x"), [1.0, np.nan])


def test_json_lines_with_mixed_types_nested_fields_and_blank_lines(write: Write) -> None:
    text = '{"a": 1, "s": {"judge": 0.5}}\n\n{"a": "0", "s": {"judge": null}}\n{"a": true}\n'
    table = read_user_table(write("t.jsonl", text), ["a", "s.judge"])
    assert number_column(table, "a").values.tolist() == [1.0, 0.0, 1.0]
    assert_array_equal(number_column(table, "s.judge").values, [0.5, np.nan, np.nan])
    assert table.place(1) == "row 3"


def test_long_ids_keep_every_digit(write: Write, tmp_path: Path) -> None:
    ids = [9007199254740992, 9007199254740993]
    pl.DataFrame({"id": ids, "y": [1, 0]}).write_parquet(tmp_path / "t.parquet")
    lines = "".join(f'{{"id": {item}, "y": 1}}\n' for item in ids)
    for path in (
        tmp_path / "t.parquet",
        write("t.jsonl", lines),
        write("u.csv", "id,y\n" + "".join(f"{i},1\n" for i in ids)),
    ):
        assert label_column(read_user_table(path, ["id"]), "id").tolist() == [str(item) for item in ids]
    huge = write("h.jsonl", '{"id": 123456789012345678901234567890}\n')
    assert label_column(read_user_table(huge, ["id"]), "id").tolist() == ["123456789012345678901234567890"]


def test_a_json_array_is_a_table_too(write: Write) -> None:
    assert numbers(write("t.json", '[{"a": 1}, {"a": 2}]'), "a") == [1.0, 2.0]


def test_parquet_with_nested_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame(
        {"y": [1, 0], "s": [{"judge": 1, "all": [1]}, {"judge": 2, "all": [2]}], "flag": [True, None]}
    ).write_parquet(path)
    assert numbers(path, "s.judge") == [1.0, 2.0]
    assert flag_column(read_user_table(path, ["flag", "y"]), "flag").tolist() == [True, False]
    with pytest.raises(DataError, match=r"'s' is nested; name one field, e\.g\. 's\.judge'"):
        read_user_table(path, ["s"])
    with pytest.raises(DataError, match=r"'s\.all' holds lists"):
        read_user_table(path, ["s.all"])


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("t.csv", "", ["a"], "is empty"),
        ("t.csv", "\n \n", ["a"], "is empty"),
        ("t.csv", "a,b\n", ["a"], "has a header but no rows"),
        ("t.jsonl", '{"a": 1}\n{"a":', ["a"], "line 2 is no JSON"),
        ("t.jsonl", '{"a": 1}\n[1]\n', ["a"], "line 2 is no JSON object but a list"),
        ("t.jsonl", '{"gold": 1}\n', ["glod"], "no column 'glod': did you mean 'gold'"),
        ("t.csv", "Gold_Label,b\n1,2\n", ["gold"], "did you mean 'Gold_Label'"),
        ("t.csv", "a,a\n1,2\n", ["a"], "2 columns are called 'a'"),
        ("t.csv", "a,b\n1,2\n1,2,3\n", ["a", "b"], r"row 2 \(line 3\) has 3 fields where the header has 2"),
        ("t.csv", 'a,b\n1,"2\n3,4\n', ["a", "b"], "a double quote is opened and never closed"),
        ("t.csv", "1,2\n3,4\n", ["a"], "the first line holds numbers"),
        ("t.xlsx", b"PK\x03\x04rest", ["a"], "is an Excel workbook; save the sheet as CSV"),
        ("t.bin", b"abc\x00\x01", ["a"], "is not a text table"),
        ("t.parquet", b"PAR1 and rubbish", ["a"], "the Parquet file is damaged"),
        ("t.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 99, mtime=0)[:30], ["a"], "damaged or cut off"),
        ("t.csv", "a:b\n1:2\n", ["b"], "only one column was found"),
    ],
)
def test_what_cannot_be_read_gets_one_line(
    write: Write, name: str, content: str | bytes, columns: list[str], message: str
) -> None:
    path = write(name, content)
    with pytest.raises(DataError, match=message) as caught:
        read_user_table(path, columns)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_user_table(tmp_path / "absent.csv", ["a"])
    with pytest.raises(DataError, match="is a folder"):
        read_user_table(tmp_path, ["a"])


def test_stray_cells_name_their_rows(write: Write) -> None:
    path = write("t.csv", "gold,b\n" + "1,1\n0,1\n" * 5 + "maybe,1\n1,1\n")
    with pytest.raises(DataError, match=r"'maybe' in row 11 \(line 12\)"):
        number_column(read_user_table(path, ["gold"]), "gold", "gold column")
    path = write("u.csv", "gold,b\nB,1\nC,1\n")
    with pytest.raises(DataError, match="not the answer itself"):
        number_column(read_user_table(path, ["gold"]), "gold", "gold column")


def test_nearest_names_ignore_case_and_find_parts() -> None:
    assert nearest_names("Judge", ["id", "judge_score", "gold"]) == ["judge_score"]
    assert nearest_names("zzz", ["id", "gold"]) == []


def test_only_the_needed_columns_of_a_wide_file_are_kept(write: Write) -> None:
    """20 MB of text beside the numbers must not end up in memory."""
    path = write("wide.csv", "id,text,gold\n" + "".join(f"{i},{'x' * 1000},1\n" for i in range(20_000)))
    table = read_user_table(path, ["id", "gold"])
    assert table.frame.height == 20_000
    assert table.frame.estimated_size() < 1_000_000
