"""Plays the person who labels: python examples/fill_sheet.py SHEET TRUTH, a table of ids and `gold`."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl


def fill(sheet: Path, truth: Path) -> int:
    """Fill the gold column of a sheet; how many rows that were."""
    known = pl.read_parquet(truth) if truth.suffix == ".parquet" else pl.read_csv(truth, infer_schema=False)
    gold = dict(known.select(known.columns[0], "gold").iter_rows())
    rows = pl.read_csv(sheet, infer_schema=False)
    row = pl.format("{} [{}]", "id", "model") if "model" in rows.columns else pl.col("id")
    filled = rows.with_columns(row.replace_strict(gold, default=None).cast(pl.String).alias("gold"))
    filled.write_csv(sheet, include_bom=True)
    return filled["gold"].count()


if __name__ == "__main__":
    print(f"{sys.argv[1]}: {fill(Path(sys.argv[1]), Path(sys.argv[2]))} rows filled")
