"""Bias, standard error and coverage of every handled cell: method × how labels were drawn × what is estimated."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from pipeline.estimators import (
    Categorical,
    Estimate,
    ModelLabels,
    Profile,
    Sampling,
    comparator_profile,
    gap_of,
    labels_mean,
    lace_deployment,
    lace_gap,
    lace_mean,
    lace_profile,
    one_step_mean,
)
from pipeline.estimators.floats import BoolArray, FloatArray, IntArray
from pipeline.estimators.labels.planning import neyman_allocation
from pipeline.estimators.labels.strata import Pilot, residual_strata
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

Target: TypeAlias = Literal["pool", "population"]

ROWS, GROUP = 500, 5
BUDGETS = (30, 100, 400)
TARGETS: tuple[Target, ...] = ("population", "pool")
DRAWS = ("simple", "chances", "strata", "rounds", "clusters")
DEFAULT_REPS, CHUNK = 300, 10
INTERVALS = ("naive", "aug_plugin", "scalar_cv", "global_cv", "per_signal_cv")
"""The comparators that have an interval of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A pool of two models: outcomes, signals, three levels, a deployment ratio, one-step draws, groups."""

    y: FloatArray
    other: FloatArray
    signals: FloatArray
    other_signals: FloatArray
    level: IntArray
    ratio: FloatArray
    tau: FloatArray
    groups: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A draw of labels and how it is said to the estimators."""

    seen: BoolArray
    apart: BoolArray
    sampling: Sampling | None
    clusters: IntArray | None

    def chances(self, seen: BoolArray) -> FloatArray | None:
        return None if self.sampling is None else self.sampling.chances(seen)


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _world(rng: np.random.Generator, rows: int, grouped: bool) -> World:
    shared = np.repeat(rng.normal(size=-(-rows // GROUP)), GROUP)[:rows]
    own = rng.normal(size=rows)
    easy = np.sqrt(0.6) * shared + np.sqrt(0.4) * own if grouped else own
    level = np.searchsorted([-0.5, 0.5], easy + rng.normal(size=rows)).astype(np.intp)
    score, rival = 0.8 + 1.3 * easy + rng.normal(size=rows), 0.4 + 1.0 * easy + rng.normal(size=rows)
    chance = _sigmoid(score)
    y = (rng.random(rows) < chance).astype(float)
    other = (rng.random(rows) < _sigmoid(rival)).astype(float)
    fresh = (rng.random((rows, 3)) < chance[:, None]).astype(float)
    tau = 0.5 * np.column_stack([y, fresh]) + 0.5 * _sigmoid(0.8 + 1.3 * easy)[:, None]
    ratio = np.exp(-0.5 * easy - 0.125)  # deployment has harder items; averages 1 over the population
    noise = rng.normal(size=(2, rows, 3))
    return World(
        y, other, score[:, None] + 1.5 * noise[0], rival[:, None] + 1.5 * noise[1], level, ratio, tau,
        np.arange(rows) // GROUP,
    )  # fmt: skip


@lru_cache(maxsize=2)
def _population(grouped: bool) -> dict[str, FloatArray]:
    """What the population's values are, from 400,000 items."""
    return _truths(_world(np.random.default_rng(20262), 400_000, grouped))


def _truths(world: World) -> dict[str, FloatArray]:
    levels = [world.level == k for k in range(3)]
    gap = world.y - world.other
    return {
        "mean": np.array([world.y.mean()]),
        "gap": np.array([gap.mean()]),
        "deployment": np.array([np.average(world.y, weights=world.ratio)]),
        "levels": np.array([world.y[inside].mean() for inside in levels]),
        "gap levels": np.array([gap[inside].mean() for inside in levels]),
    }


def _chosen(rows: IntArray, size: int) -> BoolArray:
    mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return mask


def draw_labels(world: World, draw: str, n: int, rng: np.random.Generator) -> Labels:
    """n labels (about n under chances), and another draw of as many for the second model."""
    size = len(world.y)
    easy = world.signals[:, 0]
    if draw == "clusters":
        count = n // GROUP
        seen, apart = (np.isin(world.groups, rng.choice(size // GROUP, count, replace=False)) for _ in range(2))
        return Labels(seen, apart, None, world.groups)
    if draw == "chances":
        chance = np.clip(np.exp(-0.3 * easy) * n / np.exp(-0.3 * easy).sum(), 0.01, 0.95)
        return Labels(rng.random(size) < chance, rng.random(size) < chance, Sampling.unequal(chance), None)
    if draw == "strata":
        strata = np.searchsorted(np.quantile(easy, [0.4, 0.8]), easy)
        sizes = np.bincount(strata)
        counts = np.minimum([n - n // 3 - n // 3, n // 3, n // 3], sizes)
        counts[0] += n - counts.sum()
        picks = [
            np.concatenate([rng.choice(np.flatnonzero(strata == h), k, replace=False) for h, k in enumerate(counts)])
            for _ in range(2)
        ]
        return Labels(_chosen(picks[0], size), _chosen(picks[1], size), Sampling.stratified(strata), None)
    if draw == "rounds":
        return _two_rounds(world, n, rng)
    picks = [rng.choice(size, n, replace=False) for _ in range(2)]
    return Labels(_chosen(picks[0], size), _chosen(picks[1], size), None, None)


def _two_rounds(world: World, n: int, rng: np.random.Generator) -> Labels:
    """A third as a pilot, the rest by Neyman's allocation from what it shows."""
    size, first = len(world.y), n // 3
    stage = np.zeros(size, dtype=np.intp)
    stage[rng.choice(size, first, replace=False)] = 1
    strata = residual_strata([Pilot(np.where(stage == 1, world.y, np.nan), world.signals)], groups=4)
    left = np.bincount(strata.strata[stage == 0], minlength=len(strata.sizes))
    for h, count in enumerate(neyman_allocation(left, strata.deviations, n - first)):
        stage[rng.choice(np.flatnonzero((stage == 0) & (strata.strata == h)), count, replace=False)] = 2
    return Labels(stage > 0, stage > 0, Sampling.staged(stage, strata.strata), None)


Result: TypeAlias = Estimate | Profile
Run: TypeAlias = Callable[[World, Labels, Target], Result]


def _mean(world: World, labels: Labels, target: Target) -> Result:
    return labels_mean(world.y, labeled=labels.seen, target=target, sampling=labels.sampling, clusters=labels.clusters)


def _lace(world: World, labels: Labels, target: Target) -> Result:
    return lace_mean(
        world.y, world.signals, labeled=labels.seen, adapt="average", learner=None, target=target,
        sampling=labels.sampling, clusters=labels.clusters,
    )  # fmt: skip


def _deployment(world: World, labels: Labels, target: Target) -> Result:
    return lace_deployment(
        world.y, world.signals, world.ratio, labeled=labels.seen, adapt="average", target=target,
        sampling=labels.sampling, clusters=labels.clusters,
    )  # fmt: skip


def _gap(world: World, labels: Labels, target: Target, seen: BoolArray) -> Result:
    pairs = ((world.y, world.signals, labels.seen), (world.other, world.other_signals, seen))
    a, b = (
        ModelLabels(np.where(mask, y, np.nan), signals, clusters=labels.clusters, sampling=labels.sampling)
        for y, signals, mask in pairs
    )
    return gap_of(a, b, target=target).estimate()


def _levels(world: World, labels: Labels, target: Target) -> Result:
    return lace_profile(
        world.level, world.y, world.signals, labeled=labels.seen, locality=Categorical(), adapt="average",
        target=target, sampling=labels.sampling, clusters=labels.clusters,
    )  # fmt: skip


def _gap_levels(world: World, labels: Labels, target: Target) -> Result:
    return lace_gap(
        world.level, world.y, world.other, world.signals, world.other_signals, labeled=labels.seen,
        locality=Categorical(), adapt="average", target=target, sampling=labels.sampling, clusters=labels.clusters,
    )  # fmt: skip


def _one_step(world: World, labels: Labels, target: Target) -> Result:
    chances = labels.chances(labels.seen)
    return one_step_mean(
        world.y[labels.seen], world.tau[labels.seen], pool_tau=world.tau, power="loo", target=target,
        clusters=None if labels.clusters is None else labels.clusters[labels.seen],
        inclusion_probabilities=None if chances is None else chances[labels.seen],
    )  # fmt: skip


def _comparator(method: str) -> Run:
    def run(world: World, labels: Labels, target: Target) -> Result:
        return comparator_profile(
            method, world.level, world.y, world.signals, labeled=labels.seen, locality=Categorical(), target=target,
            standardize=True, inclusion_probabilities=labels.chances(labels.seen), clusters=labels.clusters,
        )  # fmt: skip

    return run


METHODS: Mapping[str, tuple[str, Run]] = {
    "labels": ("mean", _mean),
    "lace": ("mean", _lace),
    "one_step (pool)": ("mean", _one_step),
    "lace_deployment": ("deployment", _deployment),
    "gap, same labels": ("gap", lambda world, labels, target: _gap(world, labels, target, labels.seen)),
    "gap, labels apart": ("gap", lambda world, labels, target: _gap(world, labels, target, labels.apart)),
    "lace levels": ("levels", _levels),
    "lace gap levels": ("gap levels", _gap_levels),
    **{f"{method} levels": ("levels", _comparator(method)) for method in INTERVALS},
}
"""Name → (which truth it is held to, how it is run)."""


@dataclass(frozen=True, slots=True)
class CellSums:
    """Sums over replicates (and levels) of one cell: count, errors, their squares, variances, hits."""

    count: float
    error: float
    square: float
    variance: float
    hits: float

    @classmethod
    def of(cls, rows: FloatArray) -> CellSums:
        """From (replicates, 5) sums."""
        return cls(*(float(total) for total in rows.sum(axis=0)))

    @property
    def bias(self) -> float:
        """Mean error."""
        return self.error / self.count

    @property
    def ratio(self) -> float:
        """Mean estimated variance over mean squared error."""
        return self.variance / self.square if self.square > 0.0 else float("nan")

    @property
    def coverage(self) -> float:
        """Share of intervals that hold the truth."""
        return self.hits / self.count


def replicate(method: str, draw: str, n: int, target: Target, rng: np.random.Generator) -> list[float]:
    """(count, Σ error, Σ error², Σ se², hits) of one pool; levels without an interval are not counted."""
    grouped = draw == "clusters"
    kind, run = METHODS[method]
    world = _world(rng, ROWS, grouped)
    labels = draw_labels(world, draw, n, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimates = run(world, labels, target)
    truth = _truths(world)[kind] if target == "pool" else _population(grouped)[kind]
    value, se, low, high = (np.atleast_1d(getattr(estimates, name)) for name in ("value", "se", "low", "high"))
    finite = np.isfinite(value) & np.isfinite(se) & np.isfinite(low)
    error = (value - truth)[finite]
    hits = ((low - 1e-12 <= truth) & (truth <= high + 1e-12))[finite]
    return [
        float(finite.sum()),
        float(error.sum()),
        float(error @ error),
        float(se[finite] @ se[finite]),
        float(hits.sum()),
    ]


def cells() -> Iterator[tuple[str, str, int, Target]]:
    """Every handled (method, draw, n, target)."""
    for method in METHODS:
        for draw in DRAWS:
            for n in BUDGETS:
                for target in TARGETS:
                    if not (method == "gap, labels apart" and draw == "rounds"):  # rounds are shared by all models
                        yield method, draw, n, target


def chunk(payload: tuple[str, str, int, Target, int], rng: np.random.Generator) -> dict[str, Any]:
    """The sums of some replicates of one cell."""
    method, draw, n, target, count = payload
    return {"sums": [replicate(method, draw, n, target, rng) for _ in range(count)]}


def _run(options: StudyOptions) -> StudyResult:
    reps = options.reps or DEFAULT_REPS
    tasks: dict[str, tuple[str, str, int, Target, int]] = {}
    parts: dict[tuple[str, str, int, Target], list[str]] = {}
    for cell in cells():
        for start in range(0, reps, CHUNK):
            name = "/".join(str(part) for part in (*cell, start))
            tasks[name] = (*cell, min(CHUNK, reps - start))
            parts.setdefault(cell, []).append(name)
    replicates = run_tasks(
        options,
        chunk,
        tasks,
        stage="matrix",
        signature=f"evaluation-matrix reps={reps}",
        label=f"chunks of {CHUNK} replicates",
    )
    rows: list[tuple[Cell, ...]] = []
    for (method, draw, n, target), names in parts.items():
        sums = CellSums.of(np.concatenate([np.asarray(replicates[name]["sums"], dtype=np.float64) for name in names]))
        half = 1.96 * float(np.sqrt(max(sums.coverage * (1.0 - sums.coverage), 1e-9) / reps))
        rows.append(
            (
                method, draw, n, target, Measured(100.0 * sums.bias, digits=2),
                Measured(100.0 * float(np.sqrt(sums.square / sums.count)), digits=2), Measured(sums.ratio, digits=2),
                Measured(sums.coverage, sums.coverage - half, sums.coverage + half),
            )
        )  # fmt: skip
    columns = ("method", "draw", "n", "target", "bias, points", "RMSE, points", "V/MSE", "coverage")
    notes = (
        f"{reps} pools of {ROWS} items a cell. Nominal coverage .95; levels are three, each with its own labels, "
        "unsmoothed. The Monte Carlo interval counts pools.",
        "simple: at random. chances: independent draws, hard items more often. strata: three by a signal, drawn "
        "unequally. rounds: a third as a pilot, the rest by Neyman's allocation from it. clusters: groups of five that "
        "share what makes them hard, labeled whole.",
        "Comparators and the one-step estimator take strata and rounds as chances: weighted rightly, with the variance "
        "of independent draws, which is no smaller.",
    )
    return StudyResult(TITLE, (ResultTable("Cells", columns, tuple(rows)),), notes=notes)


TITLE = "Evaluation: every method under every draw of labels"

study = Study(
    TITLE,
    _run,
    DEFAULT_REPS,
)
