"""A pool streamed from partitioned Parquet gives what arrays in memory give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline.errors import DataError, InputError
from pipeline.estimators import Gaussian, ProfilePool, lace_mean_from_pool, lace_profile_from_pool
from pipeline.tables.parquet_stream import ParquetPool

ROWS, LABELED = 1_000, 80


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z, signals = rng.random(ROWS), rng.standard_normal((ROWS, 2))
    gold = np.where(np.arange(ROWS) % 12 == 0, signals.sum(axis=1) > 0, np.nan).astype(float)
    return z, signals, gold


@pytest.fixture
def files(tmp_path: Path, arrays: tuple[np.ndarray, np.ndarray, np.ndarray]) -> list[Path]:
    z, signals, gold = arrays
    frame = pl.DataFrame({"note": ["x"] * ROWS, "z": z, "b": signals[:, 1], "a": signals[:, 0], "gold": gold})
    frame = frame.with_columns(pl.col("gold").fill_nan(None))
    paths = []
    for part, start in enumerate(range(0, ROWS, 300)):
        paths.append(tmp_path / f"part-{part}.parquet")
        frame.slice(start, 300).write_parquet(paths[-1])
    return paths


def test_estimates_equal_those_of_arrays(files: list[Path], arrays: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    z, signals, gold = arrays
    at = np.linspace(0.1, 0.9, 5)
    table = ParquetPool(files, ["a", "b"], profile="z", gold="gold", batch=128)
    streamed = ProfilePool.from_chunks(table.chunks(), at=at, locality=Gaussian(0.1))
    whole = ProfilePool.from_arrays(z, signals, at=at, locality=Gaussian(0.1))
    own_z, y, own = table.labeled()
    known = np.isfinite(gold)
    np.testing.assert_array_equal(y, gold[known])
    np.testing.assert_array_equal(own, signals[known])
    assert streamed.moments.rows == ROWS
    mean, expected = lace_mean_from_pool(streamed, y, own), lace_mean_from_pool(whole, y, own)
    assert mean.value == pytest.approx(expected.value, abs=1e-12)
    profile, other = (lace_profile_from_pool(pool, own_z, y, own) for pool in (streamed, whole))
    np.testing.assert_allclose(profile.value, other.value, atol=1e-12)


def test_errors_name_file_and_column(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"part-0\.parquet: has no column 'c'"):
        next(ParquetPool(files, ["c"]).chunks())
    with pytest.raises(DataError, match=r"part-0\.parquet: column 'note' holds String"):
        next(ParquetPool(files, ["note"]).chunks())
    with pytest.raises(DataError, match=r"column 'gold' is missing or not finite near row 2"):
        next(ParquetPool(files, ["gold"]).chunks())
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 no more")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        next(ParquetPool([damaged], ["a"]).chunks())
    with pytest.raises(InputError, match="no Parquet file"):
        next(ParquetPool([], ["a"]).chunks())
