"""Rows inside JSON: lines, one array, or a list that stands deeper in a document; nested fields by dotted names."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.foreign_json import read_json
from pipeline.tables.compressed import Compression, open_bytes

MAX_DOCUMENT_BYTES = 1 << 30
"""A document is parsed in one piece; JSON Lines of any size are read line by line."""
MAX_LINE_CHARS = 1 << 28
_MAX_DEPTH = 5
_MAX_NAMES = 2000


@dataclass(frozen=True, slots=True)
class JsonFile:
    """Where rows stand in a JSON file.

    Attributes:
        path: the file.
        compression: of the whole file.
        encoding: in Python's spelling.
        document: one JSON value; else one object per line.
        records: dotted steps from the document to the list of its rows; empty: the document is that list. A last step
            ``*`` stands for the entries of an object, whose names become the field ``key``.
        explode: dotted name of a list within each row whose entries become rows; empty: none.
    """

    path: Path
    compression: Compression
    encoding: str
    document: bool
    records: str = ""
    explode: str = ""


def is_document(text: str, whole: bool, *, named_lines: bool = False) -> bool:
    """Whether text is one JSON value rather than one object per line.

    Args:
        text: the beginning of the file.
        whole: nothing follows.
        named_lines: the file's name says that it holds lines.
    """
    if text.lstrip().startswith("["):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    first = _loaded(lines[0]) if len(lines) > 1 or whole else None
    if not isinstance(first, dict):
        # A line that is cut off, or damaged: as it reads as a whole, where there is one. A first line of megabytes in a
        # file of lines is a line.
        if whole:
            return isinstance(_loaded(text), dict)
        return lines[0].strip() in ("{", "[") or (len(lines) == 1 and not named_lines)
    return whole and not named_lines and len(lines) == 1 and bool(row_lists(first))


def _loaded(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return None


def json_rows(file: JsonFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows with their numbers: that of the line, or the place in the list, from 1.

    Raises:
        DataError: damaged JSON, rows that are no objects, no list where the rows should stand (where some do is said).
    """
    rows = _document_rows(file) if file.document else _lines(file)
    for number, row in rows:
        if not isinstance(row, dict):
            raise DataError(f"{file.path}: line {number} is no JSON object but a {type(row).__name__}")
        if file.explode:
            yield from ((number, part) for part in _exploded(file, number, row))
        else:
            yield number, row


def _lines(file: JsonFile) -> Iterator[tuple[int, Any]]:
    with open_bytes(file.path, file.compression) as raw:
        try:
            text = io.TextIOWrapper(raw, encoding=file.encoding, errors="replace")
            for number, line in enumerate(iter(lambda: text.readline(MAX_LINE_CHARS), ""), 1):
                if line.strip():
                    yield number, _parsed(file, number, line.lstrip("\ufeff"))
        except (OSError, EOFError) as error:
            raise DataError(f"{file.path}: the {file.compression} data is damaged or cut off ({error})") from error


def _parsed(file: JsonFile, number: int, line: str) -> Any:
    try:
        return read_json(line)
    except ValueError as error:
        raise DataError(f"{file.path}: line {number} is no JSON object ({error})") from error


def _document_rows(file: JsonFile) -> Iterator[tuple[int, Any]]:
    with open_bytes(file.path, file.compression) as raw:
        try:
            data = raw.read(MAX_DOCUMENT_BYTES + 1)
        except (OSError, EOFError) as error:
            raise DataError(f"{file.path}: the {file.compression} data is damaged or cut off ({error})") from error
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DataError(
            f"{file.path} is one JSON document of more than {MAX_DOCUMENT_BYTES >> 30} GiB; write it as JSON Lines "
            "(one object per line)"
        )
    try:
        document = read_json(data.decode(file.encoding).lstrip("\ufeff"))
    except ValueError as error:
        raise DataError(f"{file.path} is no JSON array of objects ({error})") from error
    rows = document
    if file.records.rpartition(".")[2] == "*":
        rows = _entries(document, file)
    elif file.records:
        there, rows = nested_field({"": document}, f".{file.records}") if document else (False, None)
        if not there or not isinstance(rows, list):
            raise DataError(f"{file.path} has no list at --records {file.records}; {_proposal(document)}")
    elif not isinstance(rows, list):
        raise DataError(f"{file.path} holds one JSON object, not rows; {_proposal(document)}")
    yield from enumerate(rows, 1)


def _entries(document: Any, file: JsonFile) -> list[dict[str, Any]]:
    steps = file.records.rpartition(".")[0]
    there, value = nested_field({"": document}, f".{steps}") if steps else (True, document)
    if not there or not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise DataError(f"{file.path} has no object of objects at --records {file.records}; {_proposal(document)}")
    return [{"key": name, **entry} for name, entry in value.items()]


def _alike(value: dict[str, Any]) -> bool:
    """Whether an object's entries are rows: objects of the same two fields or more, none of which is an object."""
    entries = list(value.values())[:20]
    if len(entries) < 2 or not all(isinstance(entry, dict) and len(entry) > 1 for entry in entries):
        return False
    same = all(entry.keys() == entries[0].keys() for entry in entries)
    return same and not any(isinstance(part, dict) for entry in entries for part in entry.values())


def _proposal(document: Any) -> str:
    lists = row_lists(document)
    if not lists:
        return "no list of objects stands in it (write the table with one object per row)"
    (best, count), *others = lists
    more = f" (or {', '.join(name for name, _ in others[:3])})" if others else ""
    return f"{count} rows stand deeper: add --records {best}{more}"


def row_lists(document: Any, depth: int = _MAX_DEPTH) -> list[tuple[str, int]]:
    """Where lists of objects stand in a document, the longest first: dotted steps and number of rows."""
    places: list[tuple[str, int]] = []

    def look(value: Any, steps: tuple[str, ...]) -> None:
        if isinstance(value, list) and steps and value and all(isinstance(entry, dict) for entry in value[:20]):
            places.append((".".join(steps), len(value)))
        elif isinstance(value, dict) and _alike(value):
            places.append((".".join((*steps, "*")), len(value)))
        elif isinstance(value, dict) and len(steps) < depth:
            for name, entry in value.items():
                look(entry, (*steps, str(name)))

    look(document, ())
    return sorted(places, key=lambda place: -place[1])


def _exploded(file: JsonFile, number: int, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    there, entries = nested_field(row, file.explode)
    if not there or entries is None:
        return
    if not isinstance(entries, list):
        raise DataError(f"{file.path}: --explode {file.explode}: row {number} holds no list there")
    for entry in entries:
        yield _replaced(row, file.explode.split("."), entry)


def _replaced(row: dict[str, Any], steps: Sequence[str], value: Any) -> dict[str, Any]:
    """The row with another value at the steps; the row itself stays."""
    name, *rest = steps
    return {**row, name: _replaced(row[name], rest, value) if rest else value}


def nested_field(record: Any, name: str) -> tuple[bool, Any]:
    """Whether a record has a field, and its value; a dotted name goes into objects and lists (``games.0.score``)."""
    if name in record:
        return True, record[name]
    value: Any = record
    for step in name.split("."):
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return False, None
    return True, value


def leaf_names(records: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Dotted names of the fields of some records, in the order they come; a list is one field."""
    names: dict[str, None] = {}

    def look(value: Any, prefix: str, depth: int) -> None:
        for key, entry in value.items():
            name = f"{prefix}{key}"
            if isinstance(entry, dict) and entry and depth < _MAX_DEPTH:
                look(entry, f"{name}.", depth + 1)
            elif len(names) < _MAX_NAMES:
                names[name] = None

    for record in records:
        look(record, "", 1)
    return tuple(names)
