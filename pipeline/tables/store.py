"""Tables on disk: rows are spooled as they come, then sorted by key into Parquet, the same bytes for the same rows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import polars as pl

from pipeline.errors import DataError
from pipeline.tables.compressed import refuse_wide_parquet
from pipeline.tables.schemas import REASONS, TABLES, TableSchema

_VERSION_METADATA = {"auxeval.schema": "1"}
_NEWEST = {"signals": 2}
"""The signals table says what its columns are; all others are of schema 1."""
_ENCODE = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


def _clean(value: Any) -> Any:
    """Text that UTF-8 can hold: a lone surrogate becomes its visible escape."""
    if isinstance(value, str):
        if value.isascii():
            return value
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [_clean(entry) for entry in value]
    return value


class RowSpool:
    """Collects the rows of several tables in files, so that memory does not grow with the run.

    Rows may come in any order; :meth:`write` sorts them. A spool holds one collection: opening it empties it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, IO[str]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.jsonl"):
            old.unlink()

    def __enter__(self) -> RowSpool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Append one row, given as column → value."""
        if table not in self._files:
            self._files[table] = (self._folder / f"{table}.jsonl").open("w", encoding="utf-8", buffering=1 << 16)
        self._files[table].write(_ENCODE({name: _clean(value) for name, value in row.items()}) + "\n")

    def close(self) -> None:
        """Flush and close every file."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def holds(self, table: str) -> bool:
        """Whether any row of a table came."""
        return table in self._files

    def write(self, target: Path, schemas: Iterable[TableSchema]) -> None:
        """Sort every spooled table by its key into ``target/<table>.parquet``; one without rows is written empty."""
        self.close()
        for schema in schemas:
            source = self._folder / f"{schema.name}.jsonl"
            if source.exists() and source.stat().st_size:
                frame = pl.scan_ndjson(source, schema=dict(schema.columns), low_memory=True)
            else:
                frame = pl.LazyFrame(schema=dict(schema.columns))
            write_frame(target, schema, frame.collect())

    def discard(self) -> None:
        """Remove the spool files and their folder."""
        self.close()
        for file in self._folder.glob("*.jsonl"):
            file.unlink()
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def write_rows(target: Path, schema: TableSchema, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows given as mappings into ``target/<table>.parquet``; returns the sorted frame."""
    cleaned = [{name: _clean(row.get(name)) for name in schema.columns} for row in rows]
    return write_frame(target, schema, pl.DataFrame(cleaned, schema=dict(schema.columns)))


def write_frame(
    target: Path, schema: TableSchema, frame: pl.DataFrame, *, metadata: Mapping[str, str] = _VERSION_METADATA
) -> pl.DataFrame:
    """Check a frame against its schema, sort it by key and write it in one rename.

    Raises:
        DataError: two rows share a key, or a reason is not of the closed list.
    """
    frame = frame.select(pl.col(name).cast(kind) for name, kind in schema.columns.items()).sort(list(schema.key))
    doubled = frame.filter(frame.select(schema.key).is_duplicated())
    if doubled.height:
        raise DataError(f"table {schema.name}: {doubled.height} rows share a key, first {doubled.row(0)[:6]}")
    for column in schema.reason_columns:
        stray = frame.filter(pl.col(column).is_not_null() & ~pl.col(column).is_in(REASONS))
        if stray.height:
            raise DataError(f"table {schema.name}: {column} holds {stray[column][0]!r}, which is no known reason")
    target.mkdir(parents=True, exist_ok=True)
    path = target / f"{schema.name}.parquet"
    draft = path.with_suffix(".parquet.draft")
    frame.write_parquet(draft, compression="zstd", compression_level=3, statistics=True, metadata=dict(metadata))
    draft.replace(path)
    return frame


def _path(folder: Path, name: str) -> Path:
    path = folder / f"{name}.parquet"
    if not path.exists():
        raise DataError(f"{path}: no such table; auxeval resume {folder.parent} collects it, and asks nothing twice")
    try:
        refuse_wide_parquet(path)
    except DataError as error:
        raise DataError(f"{error}; auxeval resume {folder.parent} makes it again from the cache") from None
    return path


def read_table(
    folder: Path,
    name: str,
    *,
    without: Collection[str] = (),
    items: Sequence[str] | None = None,
    packed: Collection[str] = (),
) -> pl.DataFrame:
    """One table of a run as a frame.

    Args:
        folder: of the run's tables.
        name: of the table.
        without: columns that are not read.
        items: read the rows of these items alone.
        packed: columns of few different texts, which come as categories: a quarter of the memory.

    Raises:
        DataError: it is not there, is damaged, or was written by a newer schema.
    """
    path = _path(folder, name)
    try:
        version = pl.read_parquet_metadata(path).get("auxeval.schema", "1")
        newest = _NEWEST.get(name, 1)
        if version.isdigit() and int(version) > newest:
            raise DataError(f"{path}: schema {version} is newer than this program reads ({newest}); upgrade auxeval")
        kept = [column for column in pl.read_parquet_schema(path) if column not in without] if without else None
        if items is None and not packed:
            frame = pl.read_parquet(path, columns=kept, memory_map=False)
        else:
            chosen = pl.scan_parquet(path).select(kept or pl.all())
            chosen = chosen if items is None else chosen.filter(pl.col("item_id").is_in(items))
            frame = chosen.with_columns(pl.col(*packed).cast(pl.Categorical) if packed else []).collect()
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"{path}: not a readable Parquet table: {error}; auxeval resume {folder.parent} makes it again from the"
            " cache"
        ) from None
    later = TABLES[name].columns if name in TABLES else {}  # columns that an older program did not write are empty
    absent = [column for column in later if column not in frame.columns and column not in without]
    return frame.with_columns(pl.lit(None, dtype=later[column]).alias(column) for column in absent) if absent else frame


def scan_table(folder: Path, name: str) -> pl.LazyFrame:
    """One table of a run, read lazily."""
    return pl.scan_parquet(_path(folder, name))


def table_names() -> tuple[str, ...]:
    """The tables that a collection writes."""
    return tuple(TABLES)
