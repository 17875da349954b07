"""Cells of a finished run: what the collector brought back, as a study of labeled splits takes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from pipeline.errors import DataError
from pipeline.studies.real.tables import Kind, RealCell, build_cell
from pipeline.tables.schemas import signal_columns


def is_run(path: Path) -> bool:
    """Whether this is the folder of a run with its tables."""
    return (path / "tables" / "signals.parquet").is_file()


def run_cells(path: Path) -> list[RealCell]:
    """One cell per target of a finished run, on its profile axis; items without a place on the axis are left out.

    Args:
        path: the folder of the run.

    Raises:
        DataError: a target's outcome is not known on every item, or the run has no axis or no signals.
    """
    tables = path / "tables"
    signals = _read(tables / "signals.parquet")
    responses = _read(tables / "responses.parquet")
    outcomes = responses.filter((pl.col("stage") == "answer") & (pl.col("draw") == 0)).select(
        "item_id", pl.col("model").alias("target"), pl.col("phi").alias("known")
    )
    frame = signals.join(outcomes, on=["item_id", "target"], how="left").filter(pl.col("profile").is_not_null())
    if not frame.height:
        raise DataError(f"{path}: the run has no profile axis; this study is about one (benchmark.profile)")
    names = [name for name in signal_columns(signals.columns) if signals[name].is_not_null().any()]
    if not names:
        raise DataError(f"{path}: the run has no signals; add roles.judge or roles.anchors, and run it again")
    bench, axis, kind = _axis(path)
    return [
        _cell(path, f"{bench}/{axis}", kind, str(target), rows, names)
        for (target,), rows in frame.group_by("target", maintain_order=True)
    ]


def _cell(path: Path, name: str, kind: Kind, target: str, rows: pl.DataFrame, names: list[str]) -> RealCell:
    unknown = rows["known"].null_count()
    if unknown:
        raise DataError(
            f"{path}: {unknown} of {rows.height} items of {target} have no graded answer; the study draws its own"
            " labels and needs every outcome: give the benchmark's gold answers, and resume the run for failed calls"
        )
    own = [column for column in names if rows[column].is_not_null().any()]
    raw = rows.select(own).cast(pl.Float64).fill_null(np.nan).to_numpy()
    levels = rows["profile"]
    values = levels.cast(pl.String).to_numpy().astype(str) if kind == "categorical" else levels.to_numpy()
    return build_cell(
        name, target, values, kind, rows["known"].to_numpy(), raw, {column: family(column) for column in own}
    )


def family(column: str) -> str:
    """The paper's families: judge scores, comparisons, confidence, disagreement."""
    return "pairs" if column.startswith(("pair_", "preference")) else column.split("_")[0]


def _axis(path: Path) -> tuple[str, str, Kind]:
    try:
        about: dict[str, Any] = json.loads((path / "manifest.json").read_text(encoding="utf-8"))["benchmark"]
        return str(about["name"]), str(about["profile"]), cast(Kind, about["profile_kind"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{path}: manifest.json is missing or damaged; auxeval resume writes it again") from None


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: cannot be read as a table ({str(error).splitlines()[0]})") from None
