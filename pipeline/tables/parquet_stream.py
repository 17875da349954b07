"""Large tables as streams: pool batches and labeled rows of Parquet files, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError, InputError

if TYPE_CHECKING:
    import polars as pl

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ParquetPool:
    """A partitioned table read lazily: only the named columns, ``batch`` rows at a time.

    ``ProfilePool.from_chunks(table.chunks(), …)`` makes LACE's moments of it in one pass; ``table.labeled()`` gives the
    rows that have an outcome.

    Attributes:
        files: Parquet files, in order.
        signals: columns of finite numbers.
        profile: a column of finite numbers; None puts every row at 0 (means only).
        gold: outcomes, null where not labeled.
        batch: rows in memory at a time, per file.
    """

    files: Sequence[Path]
    signals: Sequence[str]
    profile: str | None = None
    gold: str | None = None
    batch: int = 65_536

    def chunks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """(profile (m,), signals (m, K)) of all rows, batch by batch.

        Raises:
            InputError: no file, or a column is missing.
            DataError: a file is damaged, or a value is missing or not finite; names file, column and row.
        """
        columns = [*self.signals, *([] if self.profile is None else [self.profile])]
        for file, start, frame in self._batches(columns):
            values = _numbers(frame, columns, file, start)
            signals = values[:, : len(self.signals)]
            yield (np.zeros(len(values)) if self.profile is None else values[:, -1]), signals

    def labeled(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(profile (n,), outcomes (n,), signals (n, K)) of the labeled rows.

        Raises:
            InputError, DataError: as ``chunks``; no gold column was named, or no row is labeled.
        """
        if self.gold is None:
            raise InputError("no gold column was named")
        import polars as pl

        columns = [*self.signals, *([] if self.profile is None else [self.profile]), self.gold]
        parts = []
        for file, start, frame in self._batches(columns):
            filled = frame.filter(pl.col(self.gold).is_not_null())
            if len(filled):
                parts.append(_numbers(filled, columns, file, start))
        if not parts:
            raise InputError(f"{self.files[0]}: no row has a value in the gold column {self.gold!r}")
        values = np.concatenate(parts)
        profile = np.zeros(len(values)) if self.profile is None else values[:, -2]
        return profile, values[:, -1], values[:, : len(self.signals)]

    def _batches(self, columns: Sequence[str]) -> Iterator[tuple[Path, int, pl.DataFrame]]:
        """(file, first row, frame) of each batch."""
        import polars as pl

        if not self.files:
            raise InputError("no Parquet file was given")
        for file in self.files:
            try:
                scan = pl.scan_parquet(file)
                schema = scan.collect_schema()
                missing = [name for name in columns if name not in schema]
                if missing:
                    raise InputError(f"{file}: has no column {missing[0]!r} (columns: {', '.join(schema.names())})")
                rows = int(scan.select(pl.len()).collect().item())
                for start in range(0, rows, self.batch):
                    yield file, start, scan.select(columns).slice(start, self.batch).collect()
            except (pl.exceptions.ComputeError, OSError) as error:
                raise DataError(f"{file}: cannot be read as Parquet: {error}") from None


def _numbers(frame: pl.DataFrame, columns: Sequence[str], file: Path, start: int) -> FloatArray:
    """The columns as (m, p) doubles.

    Raises:
        DataError: not numbers, missing or not finite.
    """
    import polars as pl

    numeric = [name for name in columns if not (frame.schema[name].is_numeric() or frame.schema[name] == pl.Boolean)]
    if numeric:
        raise DataError(f"{file}: column {numeric[0]!r} holds {frame.schema[numeric[0]]}, not numbers")
    values = np.empty((len(frame), len(columns)))
    for place, name in enumerate(columns):
        values[:, place] = frame[name].cast(pl.Float64).to_numpy()
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = (int(first) for first in np.argwhere(bad)[0])
        raise DataError(
            f"{file}: column {columns[column]!r} is missing or not finite near row {start + row + 1}; fill missing"
            " signals first"
        )
    return values
