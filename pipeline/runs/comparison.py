"""Two runs on shared items: paired differences of their targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import InputError
from pipeline.estimators import Estimate, fit_gap, mean_gap
from pipeline.runs.arrays import TargetArrays, generator, target_arrays
from pipeline.runs.directory import RunDirectory, find_run
from pipeline.runs.frames import RunTables

__all__ = ["Compared", "compare_runs"]


@dataclass(frozen=True, slots=True)
class Compared:
    """One pair of targets, the first run's minus the second's.

    Attributes:
        a, b: target of the first and of the second run.
        shared: items that both runs hold.
        labeled: of them with a label in both.
        naive: paired mean difference over the labeled items.
        lace: the same for all shared items, with both runs' signals; None where a run has no signals.
    """

    a: str
    b: str
    shared: int
    labeled: int
    naive: Estimate
    lace: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """As ``auxeval compare --json`` prints it."""
        return {
            "a": self.a,
            "b": self.b,
            "shared": self.shared,
            "labeled": self.labeled,
            "naive": self.naive.to_dict(),
            "lace": None if self.lace is None else self.lace.to_dict(),
        }


def compare_runs(first: str | Path, second: str | Path, *, runs_dir: str | Path = "runs") -> tuple[Compared, ...]:
    """Paired comparison on shared items: targets of one name with each other, else the only target of each run.

    Raises:
        InputError: a run is missing or unfinished, nothing is shared, the questions differ, or too few labels.
    """
    one, two = find_run(first, Path(runs_dir)), find_run(second, Path(runs_dir))
    left, right = RunTables(one.tables), RunTables(two.tables)
    shared = _shared_items(left.items, right.items, one, two)
    pairs = _pairs(_targets(one), _targets(two))
    return tuple(_compare(a, b, left, right, shared) for a, b in pairs)


def _targets(directory: RunDirectory) -> Sequence[str]:
    return directory.config().roles.targets


def _pairs(first: Sequence[str], second: Sequence[str]) -> list[tuple[str, str]]:
    common = [(name, name) for name in first if name in second]
    if common:
        return common
    if len(first) == 1 and len(second) == 1:
        return [(first[0], second[0])]
    raise InputError(
        f"the runs share no target by name ({', '.join(first)} against {', '.join(second)}); name them alike"
    )


def _shared_items(left: pl.DataFrame, right: pl.DataFrame, one: RunDirectory, two: RunDirectory) -> list[str]:
    """Ids in both runs, sorted."""
    joined = left.select("item_id", "question").join(right.select("item_id", "question"), on="item_id", how="inner")
    if not joined.height:
        raise InputError(f"{one.path.name} and {two.path.name} share no item: no id occurs in both")
    changed = joined.filter(pl.col("question") != pl.col("question_right"))
    if changed.height:
        raise InputError(
            f"{changed.height} shared ids hold different questions, first {changed['item_id'][0]!r}: another benchmark"
        )
    return sorted(joined["item_id"].to_list())


def _compare(a: str, b: str, left: RunTables, right: RunTables, shared: list[str]) -> Compared:
    first, second = _arrays(left, a, shared), _arrays(right, b, shared)
    both = first.labeled & second.labeled
    n = int(both.sum())
    if n < 2:
        raise InputError(f"{a} against {b}: {n} shared items have a label in both runs; at least 2 are needed")
    naive = mean_gap(first.y[both], second.y[both])
    return Compared(a, b, len(shared), n, naive, _lace(first, second, both))


def _arrays(tables: RunTables, target: str, shared: list[str]) -> TargetArrays:
    """The arrays of one target on the shared items; labels are all gold answers that the run knows."""
    signals = tables.signals.filter(pl.col("item_id").is_in(shared))
    answers = tables.responses.filter(
        (pl.col("model") == target) & (pl.col("stage") == "answer") & (pl.col("draw") == 0)
    )
    phi: Mapping[str, float | None] = dict(answers.select("item_id", "phi").iter_rows())
    arrays = target_arrays(signals, target)
    known = np.array([np.nan if phi.get(item) is None else phi[item] for item in shared], dtype=np.float64)
    y = np.where(np.isfinite(known), known, arrays.y)
    return replace(arrays, y=y, labeled=np.isfinite(y))


def _lace(first: TargetArrays, second: TargetArrays, both: np.ndarray[Any, Any]) -> Estimate | None:
    stacked = np.column_stack([first.signals, second.signals])
    if not stacked.shape[1]:
        return None
    return fit_gap(
        np.where(both, first.y - second.y, np.nan),
        stacked,
        labeled=both,
        rng=generator(0, "compare", first.name, second.name),
    ).estimate()
