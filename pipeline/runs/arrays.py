"""From the tables of a run to the arrays that the estimators take."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.estimators import fill_missing_signals
from pipeline.tables.schemas import signal_columns

__all__ = ["TargetArrays", "generator", "repeated_outcomes", "target_arrays", "tau_matrix"]

FloatArray = NDArray[np.float64]


def generator(seed: int, *purpose: object) -> np.random.Generator:
    """A random generator for one purpose of a run: the same seed and purpose give the same numbers."""
    text = "\x1f".join(str(part) for part in purpose)
    words = np.frombuffer(hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest(), dtype="<u4")
    return np.random.Generator(np.random.PCG64([seed, *(int(word) for word in words)]))


@dataclass(frozen=True, slots=True)
class TargetArrays:
    """One target on the whole pool of M items.

    Attributes:
        name: the target.
        y: (M,) outcomes of labeled items, NaN elsewhere.
        labeled: (M,) which items carry a label.
        signals: (M, K) filled signals, missing-reply indicators last; K may be 0.
        signal_names: (K,) what each column is.
        profile: (M,) the axis as given: numbers, or text for a categorical one; None without an axis.
        inclusion: (M,) chance of each item to be labeled, where chances differ; else None.
    """

    name: str
    y: FloatArray
    labeled: NDArray[np.bool_]
    signals: FloatArray
    signal_names: tuple[str, ...]
    profile: NDArray[Any] | None
    inclusion: FloatArray | None = None


def target_arrays(signals: pl.DataFrame, target: str, inclusion: Mapping[str, float] | None = None) -> TargetArrays:
    """The arrays of one target; signals that were never collected are left out, missing ones filled."""
    frame = signals.filter(pl.col("target") == target).sort("item_id")
    names = [name for name in signal_columns(frame.columns) if frame[name].is_not_null().any()]
    columns = frame.select(names).to_numpy().astype(np.float64) if names else np.empty((frame.height, 0))
    indicators: Sequence[int] = ()
    if names:
        columns, index = fill_missing_signals(columns)
        indicators = [int(i) for i in index]
    profile = frame["profile"]
    axis: NDArray[Any] | None = None
    if profile.is_not_null().all():
        axis = profile.to_numpy() if profile.dtype != pl.String else np.array(profile.to_list(), dtype=np.str_)
    return TargetArrays(
        name=target,
        y=frame["y"].to_numpy().astype(np.float64),
        labeled=frame["labeled"].to_numpy().astype(np.bool_),
        signals=columns,
        signal_names=(*names, *(f"{names[i]}_missing" for i in indicators)),
        profile=axis,
        inclusion=_chances(frame, inclusion),
    )


def _chances(frame: pl.DataFrame, inclusion: Mapping[str, float] | None) -> FloatArray | None:
    """Inclusion probabilities of the rows; a row that is not labeled after all cannot have been certain."""
    if not inclusion:
        return None
    chances = np.array([inclusion[item] for item in frame["item_id"].to_list()])
    return np.where(~frame["labeled"].to_numpy().astype(bool), np.minimum(chances, 1.0 - 1e-9), chances)


def tau_matrix(taus: pl.DataFrame, target: str, item_ids: Sequence[str]) -> tuple[FloatArray, int]:
    """The predicted probabilities of one target, (M, draws + 1), and how many were missing and filled.

    A missing draw j ≥ 1 becomes the mean of the item's other draws ≥ 1; a missing draw 0 becomes the item's mean
    over draws ≥ 1, so that the item's correction D_i is 0. An item without any draw gets 0.5 throughout: its D_i is 0.
    """
    frame = taus.filter(pl.col("target") == target)
    draws = max(frame["draw"].to_list(), default=0) + 1
    matrix = np.full((len(item_ids), draws), np.nan)
    row_of: Mapping[str, int] = {item: row for row, item in enumerate(item_ids)}
    for item, draw, tau in frame.select("item_id", "draw", "tau").iter_rows():
        if tau is not None and item in row_of:
            matrix[row_of[item], draw] = tau
    missing = np.isnan(matrix)
    later = matrix[:, 1:]
    count = (~np.isnan(later)).sum(axis=1)
    mean = np.where(
        count > 0, np.nansum(later, axis=1) / np.maximum(count, 1), np.where(missing[:, 0], 0.5, matrix[:, 0])
    )
    filled = np.where(missing, mean[:, None], matrix)
    return filled, int(missing.sum())


def repeated_outcomes(responses: pl.DataFrame, target: str, item_ids: Sequence[str], missing: float) -> FloatArray:
    """φ of every answer of one target to the given items, (N, R); a missing reply counts as ``missing``."""
    frame = responses.filter((pl.col("model") == target) & (pl.col("stage") == "answer"))
    draws = max(frame["draw"].to_list(), default=0) + 1
    matrix = np.full((len(item_ids), draws), missing)
    row_of = {item: row for row, item in enumerate(item_ids)}
    for item, draw, phi in frame.select("item_id", "draw", "phi").iter_rows():
        if phi is not None and item in row_of:
            matrix[row_of[item], draw] = phi
    return matrix
