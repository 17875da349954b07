"""Reads one sheet of an .xlsx workbook as CSV: values only, bounded, formulas by the values stored with them."""

from __future__ import annotations

import csv
import datetime
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipeline.csv_guard import guarded_row
from pipeline.errors import DataError

MAX_UNPACKED_BYTES = 1 << 30
MAX_MEMBERS = 10_000
MAX_CELLS = 50_000_000
MAX_CELL_CHARS = 1_000_000


def is_workbook(path: Path) -> bool:
    """Whether a file is a zip archive that holds a workbook."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


def sheet_as_csv(path: Path, out: Path, sheet: str | None, name: str) -> str:
    """Write a sheet's stored values as CSV.

    Args:
        path: the workbook.
        out: the CSV file.
        sheet: which sheet; None takes the only one that holds rows.
        name: of the workbook, for messages.

    Returns:
        The sheet's title.

    Raises:
        DataError: the extra is not installed, a damaged or huge workbook, no such sheet, several sheets with rows, a
            formula without a stored value.
    """
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            f"{name} is an Excel workbook, which needs the extra xlsx: pip install 'auxeval[xlsx]'; or save the sheet "
            "as CSV (UTF-8)"
        ) from None
    _check_size(path, name)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        formulas = openpyxl.load_workbook(path, read_only=True, data_only=False, keep_links=False)
    except Exception as error:  # a damaged workbook raises whatever its parser met
        raise DataError(f"{name}: the workbook is damaged ({type(error).__name__}: {str(error)[:100]})") from error
    title = _chosen(book, sheet, name)
    try:
        with out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(map(guarded_row, _rows(book[title], formulas[title], name)))
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{name}: the workbook is damaged ({type(error).__name__}: {str(error)[:100]})") from error
    finally:
        book.close()
        formulas.close()
    return title


def _check_size(path: Path, name: str) -> None:
    """An archive of kilobytes can unpack to gigabytes: what it says of itself is looked at before it is opened."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if len(members) > MAX_MEMBERS or sum(member.file_size for member in members) > MAX_UNPACKED_BYTES:
        raise DataError(f"{name}: the workbook unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB; save it as CSV")


def _chosen(book: Any, sheet: str | None, name: str) -> str:
    titles = [worksheet.title for worksheet in book.worksheets]
    if sheet is not None:
        if sheet not in titles:
            raise DataError(f"{name} has no sheet {sheet!r}; it has {', '.join(map(repr, titles[:12]))}")
        return sheet
    filled = [worksheet.title for worksheet in book.worksheets if _has_rows(worksheet)]
    if len(filled) != 1:
        listed = ", ".join(map(repr, filled[:12])) or "none with rows"
        raise DataError(f"{name} has {len(filled)} sheets with rows ({listed}); add --sheet NAME")
    return str(filled[0])


def _has_rows(worksheet: Any) -> bool:
    return any(any(cell is not None for cell in row) for row in worksheet.iter_rows(max_row=100, values_only=True))


def _rows(values: Any, formulas: Any, name: str) -> Iterable[list[str]]:
    cells = 0
    for number, (row, written) in enumerate(
        zip(values.iter_rows(values_only=True), formulas.iter_rows(values_only=True), strict=True), 1
    ):
        cells += len(row)
        if cells > MAX_CELLS:
            raise DataError(f"{name}: the sheet has more than {MAX_CELLS:,} cells; save it as CSV")
        for column, (value, formula) in enumerate(zip(row, written, strict=True), 1):
            if value is None and isinstance(formula, str) and formula.startswith("="):
                raise DataError(
                    f"{name}: row {number}, column {column} holds a formula without a stored value ({formula[:40]}); "
                    "open and save the workbook in Excel or LibreOffice, or save the sheet as CSV"
                )
        yield [_text(value) for value in row]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    text = str(value)
    return text if len(text) <= MAX_CELL_CHARS else text[:MAX_CELL_CHARS]
