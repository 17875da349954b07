"""A candidate against its base, item by item: gaps of every metric and slice, the verdict, and what it would take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pipeline.errors import InputError
from pipeline.estimators import fill_missing_signals, fit_gap
from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.looks import tail_quantile
from pipeline.evaluation.gate import (
    EXITS,
    RunNoise,
    bounds_of,
    items_needed,
    joint_upper_critical,
    paired_gap,
    run_noise,
    these_items_gap,
    verdict_of,
)
from pipeline.evaluation.gate_versions import Version
from pipeline.evaluation.options import RULE
from pipeline.evaluation.plans.gate_looks import GateLooks

Target = Literal["population", "pool"]
Verdict = Literal["SHIP", "BLOCK", "INCONCLUSIVE"]

SMALLEST_SLICE = 30
"""Items below which a slice is listed and not judged."""


@dataclass(frozen=True, slots=True, eq=False)
class _Gap:
    """Candidate − base of one metric: what ``gate`` takes, and how many items were compared."""

    name: str
    value: float
    se: float
    df: float
    influence: FloatArray
    n: int
    epochs: int


@dataclass(frozen=True, slots=True)
class GateRow:
    """One metric, on all items or on one slice.

    Attributes:
        metric: its name.
        column: the slice's column; None for all items.
        level: the slice's value.
        n: items compared.
        gap: candidate − base.
        margin: δ, how much worse the candidate may be.
        low: lower end of the 95 % interval of this gap alone: above −margin it ships.
        high: upper end of the same.
        high_joint: upper bound that holds with those of all other metrics and slices: below −margin it blocks.
        ships: whether it ships by itself; None where a slice is too small to be judged.
        blocks: whether it blocks; None likewise.
        needed: items after which it would decide if the gap stays as it is (80 %); None where it has decided.
    """

    metric: str
    column: str | None
    level: str | None
    n: int
    gap: float
    margin: float
    low: float
    high: float
    high_joint: float
    ships: bool | None
    blocks: bool | None
    needed: int | None


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdict with everything it rests on.

    Attributes:
        base, candidate: names; target: what it is about.
        verdict: SHIP, BLOCK or INCONCLUSIVE; None about these items only. exit: its code.
        items: shared items; only_base, only_candidate: items that one side lacks; epochs: of base and candidate.
        rows: the metrics, then the slices.
        notes: what a reader must know, one line each.
        noise: of the runs of the base, where several were given.
    """

    base: str
    candidate: str
    target: Target
    verdict: Verdict | None
    exit: int
    items: int
    only_base: int
    only_candidate: int
    epochs: tuple[int, int]
    rows: tuple[GateRow, ...]
    notes: tuple[str, ...] = ()
    noise: RunNoise | None = field(default=None)


def joined(base: Version, candidate: Version) -> tuple[Version, Version]:
    """Both versions on the items they share, in one order.

    Raises:
        InputError: nothing is shared, or shared ids hold different questions.
    """
    shared, left, right = np.intersect1d(base.ids, candidate.ids, return_indices=True)
    if len(shared) < 2:
        raise InputError(f"{base.name} and {candidate.name} share {len(shared)} items; join them by --id COL")
    first, second = base.of(left), candidate.of(right)
    if first.questions is not None and second.questions is not None:
        changed = np.flatnonzero(first.questions != second.questions)
        if len(changed):
            raise InputError(
                f"{len(changed)} shared ids hold different questions, first {shared[changed[0]]!r}: another benchmark"
            )
    return first, second


def base_noise(versions: Sequence[Version]) -> tuple[str, RunNoise]:
    """(metric, noise) of several runs of one version on the items they all have.

    Raises:
        InputError: fewer than two runs, or nothing they share.
    """
    if len(versions) < 2:
        raise InputError("the noise of a run is seen from at least 2 runs of the same version")
    ids = set(versions[0].ids.tolist()).intersection(*(version.ids.tolist() for version in versions[1:]))
    metric = next(iter(versions[0].scores))
    columns = []
    for version in versions:
        if metric not in version.scores:
            raise InputError(f"{version.name} has no metric {metric!r}")
        rows = np.flatnonzero(np.isin(version.ids, list(ids)))
        columns.append(_epoch_means(version.scores[metric][rows]))
    table = np.stack(columns, axis=1)
    table = table[np.isfinite(table).all(axis=1)]
    if len(table) < 2:
        raise InputError(f"the runs share {len(table)} items with a score")
    return metric, run_noise(table)


def _epoch_means(scores: FloatArray) -> FloatArray:
    finite = np.isfinite(scores)
    total = np.where(finite, scores, 0.0).sum(axis=1)
    return np.asarray(np.where(finite.any(axis=1), total / np.maximum(finite.sum(axis=1), 1), np.nan))


def judge_candidate(
    base: Version,
    candidate: Version,
    margins: Mapping[str, float],
    *,
    target: Target = "population",
    slices: Literal["advise", "require"] = "advise",
    reruns: Sequence[Version] = (),
    looks: GateLooks | None = None,
    alpha: float = 0.05,
) -> GateReport:
    """SHIP, BLOCK or INCONCLUSIVE for a candidate.

    Args:
        base, candidate: the two versions.
        margins: metric → δ ≥ 0, how much worse the candidate may be.
        target: ``population``, items like these; ``pool``, these very items: an interval and no verdict.
        slices: whether slices must ship too, or may only block.
        reruns: further runs of the base; where something moves whole runs, that noise is added.
        looks: at these labels: of a plan, or none (``GateLooks()``); None goes by those that were counted.
        alpha: two-sided error.

    Raises:
        InputError: a plan without a look at these labels, no shared items, a metric that one side lacks, one epoch
            for ``pool``.
    """
    first, second = joined(base, candidate)
    for name in margins:
        for version in (first, second):
            if name not in version.scores:
                raise InputError(f"{version.name} has no metric {name!r}; it has {', '.join(version.scores)}")
    epochs = (_epochs(first), _epochs(second))
    counts = (len(first.ids), len(base.ids) - len(first.ids), len(candidate.ids) - len(first.ids))
    if target == "pool":
        rows = tuple(_pool_row(first, second, name, margin, alpha) for name, margin in margins.items())
        note = "about these items only: no verdict; leave --target pool out to decide about items like these"
        return GateReport(first.name, second.name, target, None, EXITS["INCONCLUSIVE"], *counts, epochs, rows, (note,))
    notes: list[str] = []
    noise = base_noise([base, *reruns])[1] if reruns else None
    everything = np.arange(len(first.ids))
    whole = [
        (_with_noise(gap, noise, reruns, notes), margin)
        for name, margin in margins.items()
        if (gap := _gap(first, second, name, everything, notes)) is not None
    ]
    parts = [
        (name, column, level, _gap(first, second, name, members, []), margin)
        for name, margin in margins.items()
        for column, labels in (first.slices or {}).items()
        for level in sorted(set(labels.tolist()))
        for members in [np.flatnonzero(labels == level)]
        if level != ""
    ]
    judged = [gap for *_, gap, _ in parts if gap is not None and gap.n >= SMALLEST_SLICE]
    influence = [gap.influence for gap in [*(gap for gap, _ in whole), *judged]]
    looks = GateLooks(max(base.looks, candidate.looks, key=len)) if looks is None else looks
    before = looks.critical(max(gap.n for gap, _ in whole), influence, alpha)
    single, joint = before or (-float(ndtri(alpha / 2.0)), joint_upper_critical(influence, alpha))
    if before is not None:
        held = "all looks of the plan" if looks.plan is not None else "looks at any number of labels"
        notes.append(f"these labels were looked at before: intervals hold over {held}")
    own = [_row(gap, margin, None, None, single, joint) for gap, margin in whole]
    sliced = [
        _row(gap, margin, column, level, single, joint)
        if gap is not None and gap.n >= SMALLEST_SLICE
        else _listed(name, column, level, gap, margin)
        for name, column, level, gap, margin in parts
    ]
    small = sum(row.ships is None for row in sliced)
    if small:
        notes.append(f"{small} slices have fewer than {SMALLEST_SLICE} items: listed, not judged")
    considered = [_plain(row) for row in sliced if row.ships is not None]
    must = [_plain(row) for row in own] + (considered if slices == "require" else [])
    verdict = verdict_of(must, advisory=considered)
    return GateReport(
        first.name, second.name, target, verdict["verdict"], verdict["exit"], *counts, epochs,
        (*own, *sliced), tuple(dict.fromkeys(notes)), noise,
    )  # fmt: skip


def _plain(row: GateRow) -> dict[str, Any]:
    return {"ships": bool(row.ships), "blocks": bool(row.blocks)}


def _epochs(version: Version) -> int:
    return max(int(values.shape[1]) for values in version.scores.values())


def _gap(first: Version, second: Version, name: str, rows: NDArray[np.intp], notes: list[str]) -> _Gap | None:
    """Candidate − base on some items; None where fewer than 2 can be compared. Influence is over all shared items."""
    a, b = first.scores[name][rows], second.scores[name][rows]
    scored = np.isfinite(a).any(axis=1) & np.isfinite(b).any(axis=1)
    n = int(scored.sum())
    if n < 2:
        if len(rows) == len(first.ids):
            raise InputError(f"{n} shared items have {name} on both sides; at least 2 are needed")
        return None
    epochs = min(a.shape[1], b.shape[1])
    influence = np.zeros(len(first.ids))
    clusters = None if first.clusters is None else first.clusters[rows]
    signals = np.column_stack([first.signals[rows], second.signals[rows]])
    if not scored.all() and signals.shape[1]:
        difference = np.where(scored, _epoch_means(b) - _epoch_means(a), np.nan)
        filled, _ = fill_missing_signals(signals)
        fit = fit_gap(difference, filled, labeled=scored, clusters=clusters, target="population", adapt=RULE, rng=0)
        influence[rows[scored]] = fit.influence
        notes.append(f"{name}: {n} of {len(rows)} items have a score on both sides; signals stand in for the others")
        return _Gap(name, fit.value, math.sqrt(fit.variance), fit.df, influence, n, epochs)
    if not scored.all() and len(rows) == len(first.ids):
        notes.append(f"{name}: {n} of {len(rows)} items have a score on both sides; taken for a random part of them")
    value, se, df, own = paired_gap(a[scored], b[scored])
    if clusters is not None:
        codes, count = cluster_index(clusters[scored], n)
        if count < 2:
            raise InputError("one cluster gives no standard error")
        sums = np.bincount(codes, weights=own)
        se = max(math.sqrt(float(sums @ sums) * count / (count - 1)), se if count == n else 0.0)
        df = float(count - 1)
    influence[rows[scored]] = own
    return _Gap(name, value, se, df, influence, n, epochs)


def _with_noise(gap: _Gap, noise: RunNoise | None, reruns: Sequence[Version], notes: list[str]) -> _Gap:
    """The gap with the variance that moves whole runs, where the base's reruns show one."""
    if noise is None or not noise.moves:
        return gap
    # One run of each is compared; the other runs of the base only say how far runs move.
    se = math.sqrt(gap.se**2 + 2.0 * noise.run_variance)
    notes.append(
        f"whole runs of the base move by ±{100 * math.sqrt(noise.run_variance):.1f} points: that is in the intervals"
    )
    return _Gap(gap.name, gap.value, se, float(len(reruns)), gap.influence, gap.n, gap.epochs)


def _row(gap: _Gap, margin: float, column: str | None, level: str | None, single: float, joint: float) -> GateRow:
    entry = {"name": gap.name, "value": gap.value, "se": gap.se, "df": gap.df, "margin": margin}
    bound = bounds_of(entry, single, joint)
    decided = bound["ships"] or bound["blocks"]
    return GateRow(
        gap.name, column, level, gap.n, gap.value, margin, bound["low"], bound["high"], bound["high_joint"],
        bound["ships"], bound["blocks"], None if decided else items_needed(gap.value, gap.se, gap.n, margin),
    )  # fmt: skip


def _listed(metric: str, column: str, level: str, gap: _Gap | None, margin: float) -> GateRow:
    value, n = (math.nan, 0) if gap is None else (gap.value, gap.n)
    return GateRow(metric, column, level, n, value, margin, math.nan, math.nan, math.nan, None, None, None)


def _pool_row(first: Version, second: Version, name: str, margin: float, alpha: float) -> GateRow:
    a, b = first.scores[name], second.scores[name]
    scored = np.isfinite(a).any(axis=1) & np.isfinite(b).any(axis=1)
    try:
        value, se, df = these_items_gap(a[scored], b[scored])
    except ValueError as error:
        raise InputError(f"--target pool: {error}") from error
    reach = tail_quantile(-float(ndtri(alpha / 2.0)), df) * se
    n = int(scored.sum())
    return GateRow(name, None, None, n, value, margin, value - reach, value + reach, value + reach, None, None, None)
