"""Which files are meant: paths, globs, folders and standard input; workbooks become CSV on the way."""

from __future__ import annotations

import glob
import lzma
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipeline.errors import DataError
from pipeline.tables.compressed import compression_of, open_bytes, refuse_bomb
from pipeline.tables.shapes.workbook import is_workbook, sheet_as_csv

MAX_FILES = 10_000
MAX_STDIN_BYTES = 4 << 30
_ENDINGS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".pq", ".xlsx", ".xlsm")
_PACKED = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read, and what the user calls it.

    Attributes:
        path: what is opened (a copy, of standard input or a sheet).
        name: for messages.
    """

    path: Path
    name: str


def input_files(paths: Sequence[str | Path]) -> list[Path]:
    """The files that paths, globs and folders stand for, sorted within each; ``-`` is standard input.

    Raises:
        DataError: nothing there, or too many files.
    """
    files: list[Path] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.is_file() and _is_table(file))
            if not inside:
                raise DataError(f"{path} is a folder without tables (CSV, JSON, JSON Lines, Parquet, .xlsx)")
            files += inside
        elif str(path) != "-" and not path.exists() and glob.has_magic(str(path)):
            # Path.glob takes no absolute pattern.
            matched = sorted(Path(name) for name in glob.glob(str(path)) if Path(name).is_file())  # noqa: PTH207
            if not matched:
                raise DataError(f"{path} matches no file")
            files += matched
        else:
            files.append(path)
    if len(files) > MAX_FILES:
        raise DataError(f"{len(files)} files are more than {MAX_FILES:,}; join them first")
    return list(dict.fromkeys(files))


def _is_table(file: Path) -> bool:
    name = file.name.lower()
    bare = next((name.removesuffix(packed) for packed in _PACKED if name.endswith(packed)), name)
    return not name.startswith((".", "~")) and bare.endswith(_ENDINGS)


def model_name(file: Path, files: Sequence[Path]) -> str:
    """What a file calls its model: its name without endings, with the folder where two files share it."""
    stem = _stem(file)
    return f"{file.parent.name}/{stem}" if sum(_stem(other) == stem for other in files) > 1 else stem


def _stem(file: Path) -> str:
    name = file.name
    for ending in (*_PACKED, *_ENDINGS):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name


@contextmanager
def plain_files(files: Sequence[Path], sheet: str | None = None) -> Iterator[list[InputFile]]:
    """Files that can be opened by name: standard input is spooled, a workbook's sheet written as CSV.

    Raises:
        DataError: a workbook that cannot be read, more standard input than is read.
    """
    with tempfile.TemporaryDirectory(prefix="auxeval-") as folder:
        room = Path(folder)
        yield [_plain(file, room / f"{number}", sheet) for number, file in enumerate(files)]


def _plain(file: Path, copy: Path, sheet: str | None) -> InputFile:
    name = str(file)
    if name == "-":
        name, file = "standard input", copy.with_suffix(".in")
        with file.open("wb") as out:
            _spool(out)
    if is_workbook(file):
        converted = copy.with_suffix(".csv")
        title = sheet_as_csv(file, converted, sheet, name)
        return InputFile(converted, f"{name}, sheet {title!r}")
    if file.is_file() and (unpacked := _unpacked_parquet(file, copy)):
        return InputFile(unpacked, name)
    if sheet is not None:
        raise DataError(f"{name} is no workbook; --sheet names a sheet of an .xlsx file")
    return InputFile(file, name)


def _unpacked_parquet(file: Path, copy: Path) -> Path | None:
    """A copy of a Parquet file that was compressed as a whole, which has to be read from its end; None for others."""
    with file.open("rb") as raw:
        compression = compression_of(raw.read(8))
    if compression == "none":
        return None
    try:
        with open_bytes(file, compression) as data:
            if data.read(4) != b"PAR1":
                return None
            refuse_bomb(file, compression)
            data.seek(0)
            with copy.open("wb") as out:
                shutil.copyfileobj(data, out)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{file}: the {compression} data is damaged or cut off ({error})") from None
    return copy


def _spool(out: IO[bytes]) -> None:
    left = MAX_STDIN_BYTES
    while data := sys.stdin.buffer.read(1 << 20):
        left -= len(data)
        if left < 0:
            raise DataError(f"standard input holds more than {MAX_STDIN_BYTES >> 30} GiB; give a file")
        out.write(data)
