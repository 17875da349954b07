"""Two runs on shared items: paired differences of their targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import InputError
from pipeline.estimators import Estimate, Sampling
from pipeline.evaluation.document import EstimateSet, PairDecision
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.gaps import Pair, joined, without_signals
from pipeline.evaluation.options import Options
from pipeline.evaluation.plans.doors import ledger_at_door, looks_until
from pipeline.evaluation.pool import Pool
from pipeline.runs.directory import RunDirectory, find_run
from pipeline.runs.exported import run_pool
from pipeline.runs.frames import RunTables


@dataclass(frozen=True, slots=True)
class Compared:
    """Two runs on shared items, the first run's minus the second's.

    Attributes:
        pairs: (target of the first run, of the second, shared items, items labeled in both, plain paired difference,
            LACE's with both runs' signals or None where neither has any).
        estimates: both runs' targets on the shared items, and every pair decided together.
    """

    pairs: tuple[ComparedPair, ...]
    estimates: EstimateSet


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """One pair of targets, the first run's minus the second's.

    Attributes:
        a, b: target of the first and of the second run.
        shared: items that both runs hold.
        labeled: of them with a label in both.
        naive: paired mean difference over the labeled items.
        lace: the same for all shared items, with both runs' signals; None where the runs have no signals.
        decision: from intervals that hold for all pairs together.
    """

    a: str
    b: str
    shared: int
    labeled: int
    naive: Estimate
    lace: Estimate | None
    decision: PairDecision

    def to_dict(self) -> dict[str, Any]:
        """As ``auxeval compare --json`` prints it."""
        return {
            "a": self.a,
            "b": self.b,
            "shared": self.shared,
            "labeled": self.labeled,
            "naive": self.naive.to_dict(),
            "lace": None if self.lace is None else self.lace.to_dict(),
            "decision": self.decision.to_dict(),
        }


def compare_runs(
    first: str | Path, second: str | Path, *, runs_dir: str | Path = "runs", options: Options | None = None
) -> Compared:
    """Paired comparison on shared items: targets of one name with each other, else the only target of each run.

    Args:
        first, second: runs; every difference is first − second.
        runs_dir: where runs are.
        options: level, margin, target; by default about items like these at 95 %.

    Raises:
        InputError: a blind label plan hides the numbers of one,
            a run is missing or unfinished, nothing is shared, the questions differ, or too few labels.
    """
    one, two = find_run(first, Path(runs_dir)), find_run(second, Path(runs_dir))
    options = options or Options(methods=("naive", "lace", "gaps"))
    left, right = RunTables(one.tables), RunTables(two.tables)
    ledgers = [ledger_at_door(run.path) for run in (one, two)]
    shared = _shared_items(left.items, right.items, one, two)
    pools = _pool(left, one, shared), _pool(right, two, shared)
    pairs, targets = [], []
    for a, b in _pairs(_targets(one), _targets(two)):
        names = _named(a, b, one, two)
        pair = joined(replace(pools[0][a], name=names[0]), replace(pools[1][b], name=names[1]), options)
        n = int(pair.both.sum())
        if n < 2:
            raise InputError(f"{a} against {b}: {n} shared items have a label in both runs; at least 2 are needed")
        pairs.append((a, b, pair))
        targets += [pair.first, pair.second]
    pool = Pool(tuple(targets), tuple(notice for pool in pools for notice in pool.notices))
    n = max(int(pair.both.sum()) for _, _, pair in pairs)
    options = replace(options, looks=max((looks_until(ledger, n) for ledger in ledgers), key=len))
    estimates = evaluate(pool, options, pairs=[pair for _, _, pair in pairs])
    return Compared(tuple(_compared(a, b, pair, estimates) for a, b, pair in pairs), estimates)


def _compared(a: str, b: str, pair: Pair, estimates: EstimateSet) -> ComparedPair:
    assert estimates.decisions is not None
    bare = joined(without_signals(pair.first), without_signals(pair.second), pair.options)
    naive = replace(bare.fit.estimate(pair.options.level), method="naive")
    signals = pair.first.signals.shape[1] + pair.second.signals.shape[1]
    decided = next(d for d in estimates.decisions.pairs if (d.a, d.b) == (pair.first.name, pair.second.name))
    lace = pair.fit.estimate(pair.options.level) if signals else None
    return ComparedPair(a, b, pair.first.size, int(pair.both.sum()), naive, lace, decided)


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


def _pool(tables: RunTables, directory: RunDirectory, shared: list[str]) -> Pool:
    """The pool of one run on the shared items. Where the outcome of every item is known all of them are labels."""
    pool = run_pool(directory.config(), tables)
    targets = []
    for target in pool.targets:
        if target.truth is not None and np.isfinite(target.truth).all():
            every = np.ones(target.size, dtype=bool)
            target = replace(target, y=target.truth, labeled=every, sampling=Sampling(), drawn="uniform")
        assert target.ids is not None
        targets.append(target.of(np.isin(target.ids, shared)))
    return replace(pool, targets=tuple(targets))


def _named(first: str, second: str, one: RunDirectory, two: RunDirectory) -> tuple[str, str]:
    """Names that tell two targets apart."""
    if first != second:
        return first, second
    left, right = one.path.name, two.path.name
    return (f"{first} ({left})", f"{second} ({right})") if left != right else (f"{first} (1)", f"{second} (2)")
