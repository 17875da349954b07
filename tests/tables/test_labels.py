"""Label sheets: what a person fills in comes back checked; how items were drawn is remembered."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import DataError, InputError
from pipeline.tables.labels import (
    LabelDesign,
    SheetRow,
    design_path,
    read_design,
    read_label_sheet,
    realised_inclusion,
    write_label_sheet,
)


def a_design(ids: tuple[str, ...] = ("007", "a", "=b"), gold: Any = "score") -> LabelDesign:
    return LabelDesign("uniform", 1, "t.csv", gold, ids, (0,) * len(ids), (), ids, (len(ids),), {"gold": "y"})


def fill(
    sheet: Path, values: dict[str, str] | list[tuple[str, str]], delimiter: str = ",", encoding: str = "utf-8-sig"
) -> None:
    rows = list(csv.reader(sheet.open(encoding="utf-8-sig", newline="")))
    pairs = values.items() if isinstance(values, dict) else values
    with sheet.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(
            [rows[0], *([item, "q", "a", gold, ""] for item, gold in pairs)]
        )


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "sheet.csv"
    write_label_sheet(path, [SheetRow(item, "größer?", "=SUM(A1)") for item in ("007", "a", "=b")], a_design())
    return path


def test_the_sheet_opens_in_a_spreadsheet_and_runs_nothing(sheet: Path) -> None:
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(sheet.open(encoding="utf-8-sig")))
    assert list(rows[0]) == ["id", "question", "answer", "gold", "instructions"]
    assert rows[0]["question"] == "größer?"
    assert {row["gold"] for row in rows} == {""}
    assert rows[0]["answer"] == "'=SUM(A1)"
    assert rows[2]["id"] == "'=b"
    assert "1 = correct" in rows[0]["instructions"]
    assert read_design(sheet) == a_design()


def test_a_filled_sheet_comes_back_whatever_the_spreadsheet_did(sheet: Path) -> None:
    fill(sheet, {"7": "1", "a": "0,5", "'=b": ""}, delimiter=";", encoding="cp1252")
    filled = read_label_sheet(sheet, a_design())
    assert dict(filled.gold) == {"007": "1", "a": "0.5"}
    assert filled.empty == ("=b",)
    assert filled.notes == (
        "1 ids that a spreadsheet had changed were recognised",
        "2 of 3 labels are filled in; 1 are still empty",
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([("007", "1"), ("b", "1")], r"1 ids are not in this draw: 'b' in row 2 \(line 3\)"),
        ([("007", "1"), ("007", "1")], r"ids occur twice: '007' in row 2"),
        ([("007", "1"), ("a", "perhaps")], r"'perhaps' in row 2 \(line 3\)"),
        ([("007", ""), ("a", "")], "no gold is filled in yet"),
    ],
)
def test_mistakes_in_a_sheet_name_their_rows(sheet: Path, values: list[tuple[str, str]], message: str) -> None:
    fill(sheet, values)
    with pytest.raises(DataError, match=message):
        read_label_sheet(sheet, a_design())


def test_answers_may_be_limited_to_the_choices(sheet: Path) -> None:
    fill(sheet, {"007": "B", "a": "E"})
    design = a_design(gold="answer")
    assert read_label_sheet(sheet, design).gold["a"] == "E"
    with pytest.raises(DataError, match=r"none of A, B, C, D: 'E' in row 2"):
        read_label_sheet(sheet, design, allowed="ABCD")


def test_a_sheet_is_never_overwritten_and_needs_its_design(sheet: Path) -> None:
    with pytest.raises(InputError, match="exists and may hold labels"):
        write_label_sheet(sheet, [], a_design())
    design_path(sheet).write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        read_design(sheet)
    design_path(sheet).write_text('{"schema": 2}')
    with pytest.raises(InputError, match="newer version"):
        read_design(sheet)
    design_path(sheet).unlink()
    with pytest.raises(InputError, match="is missing"):
        read_design(sheet)


def test_inclusion_is_the_labeled_share_of_the_stratum() -> None:
    design = LabelDesign("stratified", 0, "t", "score", tuple("abcdef"), (0, 0, 1, 1, 1, 1), (), ("a", "c"), (1, 1))
    np.testing.assert_allclose(realised_inclusion(design, ["a", "c", "d"]), [0.5] * 2 + [0.5] * 4)
    np.testing.assert_allclose(realised_inclusion(design, ["a", "b", "c"]), [1.0] * 2 + [0.25] * 4)
    with pytest.raises(InputError, match=r"1 of 2 strata have no label yet \(4 items"):
        realised_inclusion(design, ["a"])
