"""One labeled split of a profile, a gap, a mean or a deployment score: every rule's errors, coverage and lengths."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from pipeline.estimators.comparators import comparator_value
from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.lace.deployment import lace_deployment
from pipeline.estimators.lace.gap import lace_gap
from pipeline.estimators.lace.localities import Categorical, resolve_axis
from pipeline.estimators.lace.mean import lace_mean
from pipeline.estimators.lace.profile import lace_profile
from pipeline.estimators.results import Estimate, Profile
from pipeline.studies.lace.designs import Design
from pipeline.studies.lace.peers import installed_peers
from pipeline.studies.real.splits import CellPool, cell_locality, cell_pool, methods_for, split
from pipeline.studies.real.tables import RealCell

Record: TypeAlias = dict[str, list[list[list[float]]]]
"""Rule to budget to one (error, coverage, length) per replicate; coverage and length NaN without an interval."""

BUDGETS = (20, 50, 100, 200)
SKIPPED = ("lace_adaptive", "naive")


@dataclass(frozen=True, slots=True, eq=False)
class _Interval:
    value: FloatArray
    low: FloatArray
    high: FloatArray


def _score(interval: _Interval, truth: FloatArray, reached: Any) -> list[float]:
    """(mean squared error, share of points covered, mean length) over the points in reach."""
    inside = (interval.low <= truth) & (truth <= interval.high)
    finite = reached & np.isfinite(interval.low)
    error = float(np.mean((interval.value - truth)[reached] ** 2)) if reached.any() else float("nan")
    if not finite.any():
        return [error, float("nan"), float("nan")]
    return [error, float(np.mean(inside[finite])), float(np.mean((interval.high - interval.low)[finite]))]


def _of(result: Profile | Estimate) -> _Interval:
    parts = (result.value, result.low, result.high)
    return _Interval(*(np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in parts))


def _no_interval(value: Any) -> _Interval:
    points = np.atleast_1d(np.asarray(value, dtype=np.float64))
    return _Interval(points, np.full_like(points, np.nan), np.full_like(points, np.nan))


def _append(record: Record, rule: str, budget: int, score: list[float]) -> None:
    record.setdefault(rule, [[] for _ in BUDGETS])[budget].append(score)


def profile_cell(cell: RealCell, reps: int, rng: np.random.Generator) -> Record:
    """Profiles of one real cell: the paper's rule, the adaptive one with and without learner, every comparator."""
    prepared = cell_pool(cell)
    record: Record = {}
    for _ in range(reps):
        order = rng.permutation(len(cell.y))
        for index, n in enumerate(BUDGETS):
            if n < len(cell.y):
                _profile_rules(record, index, prepared, order[:n], rng)
    return record


def design_cell(design: Design, reps: int, rng: np.random.Generator) -> Record:
    """The same on fresh pools of a synthetic design, signals as given for the paper's rule."""
    record: Record = {}
    for _ in range(reps):
        z, y, signals = design.pool(rng)
        judge = design.raw_judge(signals)
        cell = RealCell(design.name, design.name, z, "continuous", None, y, signals, {}, 0, judge)
        prepared = CellPool(cell, design.locality, z, design.at)
        order = rng.permutation(len(y))
        for index, n in enumerate(BUDGETS):
            _profile_rules(record, index, prepared, order[:n], rng)
    return record


def _profile_rules(record: Record, budget: int, prepared: CellPool, rows: IntArray, rng: np.random.Generator) -> None:
    problem = split(prepared, rows, rng)
    y = _observed(prepared.cell.y, rows)
    reached = problem.weights.any(axis=1)
    axis: dict[str, Any] = {"at": prepared.pool.axis.at, "locality": prepared.locality}
    signals, z = prepared.cell.signals, prepared.z
    empty = signals[:, :0]
    binary = bool(np.isin(prepared.cell.y, (0.0, 1.0)).all())
    rules: dict[str, Callable[[], _Interval]] = {
        "naive": lambda: _of(lace_profile(z, y, empty, **axis)),
        "lace": lambda: _of(lace_profile(z, y, signals, **axis)),
        "average": lambda: _of(lace_profile(z, y, signals, adapt="average", **axis)),
    }
    if binary:
        rules["average + logistic"] = lambda: _of(
            lace_profile(z, y, signals, adapt="average", learner="logistic", rng=rng, **axis)
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rule, estimate in rules.items():
            _append(record, rule, budget, _score(estimate(), prepared.truth, reached))
        for method in methods_for(prepared.cell):
            if method not in (*SKIPPED, "lace"):
                interval = _no_interval(comparator_value(method, problem))
                _append(record, method, budget, _score(interval, prepared.truth, reached))


def gap_cell(cell: RealCell, other: RealCell, reps: int, rng: np.random.Generator) -> Record:
    """The paired gap of two targets on the same items."""
    locality = cell_locality(cell)
    axis = resolve_axis(cell.z, None, locality)
    weights = axis.weights(axis.z)
    truth = np.asarray(weights @ (cell.y - other.y))
    record: Record = {}
    for _ in range(reps):
        order = rng.permutation(len(cell.y))
        for index, n in enumerate(BUDGETS):
            y_a, y_b = _observed(cell.y, order[:n]), _observed(other.y, order[:n])
            reached = axis.weights(axis.z[order[:n]]).any(axis=1)
            options: dict[str, Any] = {"at": axis.at, "locality": locality}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                no_signals = cell.signals[:, :0]
                estimates = {
                    "naive": lace_profile(cell.z, y_a - y_b, no_signals, interval="t", **options),
                    "lace": lace_gap(cell.z, y_a, y_b, cell.signals, other.signals, standardize=True, **options),
                    "average": lace_gap(cell.z, y_a, y_b, cell.signals, other.signals, adapt="average", **options),
                }
            for rule, profile in estimates.items():
                _append(record, rule, index, _score(_of(profile), truth, reached))
    return record


def mean_cell(cell: RealCell, reps: int, rng: np.random.Generator) -> Record:
    """The pool mean: the rule for means, the profile rule with one category, the fixed ridge, and installed peers."""
    binary = bool(np.isin(cell.y, (0.0, 1.0)).all())
    z = np.full(len(cell.y), "all")
    one: dict[str, Any] = {"locality": Categorical()}
    peers = installed_peers()
    truth, everywhere = np.array([cell.y.mean()]), np.array([True])
    record: Record = {}
    for _ in range(reps):
        order = rng.permutation(len(cell.y))
        for index, n in enumerate(BUDGETS):
            if n >= len(cell.y):
                continue
            y, s = _observed(cell.y, order[:n]), cell.signals
            rules: dict[str, Callable[[], Profile | Estimate]] = {
                "naive": partial(lace_profile, z, y, s[:, :0], **one),
                "ridge 0.3": partial(lace_mean, y, s),
                "mean rule, no learner": partial(lace_mean, y, s, adapt="average", learner=None),
                "profile rule": partial(lace_profile, z, y, s, adapt="average", **one),
            }
            if binary:
                rules["mean rule"] = partial(lace_mean, y, s, adapt="average", rng=rng)
                rules["profile rule + logistic"] = partial(
                    lace_profile, z, y, s, adapt="average", learner="logistic", rng=rng, **one
                )
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                for rule, estimate in rules.items():
                    _append(record, rule, index, _score(_of(estimate()), truth, everywhere))
                for name, peer in peers.items():
                    _append(record, name, index, _score(_peer(peer, y, s, rng), truth, everywhere))
    return record


def _peer(peer: Any, y: FloatArray, signals: FloatArray, rng: np.random.Generator) -> _Interval:
    """A peer's answer, or the labeled mean with no interval where it refuses the data."""
    try:
        value, low, high = peer(y, signals, rng)
    except Exception:  # whatever another package raises on labels that agree or signals that are collinear
        return _no_interval(np.nanmean(y))
    return _Interval(np.array([value]), np.array([low]), np.array([high]))


def deployment_cell(cell: RealCell, reps: int, rng: np.random.Generator) -> Record:
    """The mean under a shifted law of Z: density ratio exp(0.7 z) on the standardised axis, averaging 1."""
    if cell.kind == "categorical":
        levels, codes = np.unique(cell.z, return_inverse=True)
        numeric = codes.reshape(-1) - (len(levels) - 1) / 2
    else:
        numeric = cell.z.astype(np.float64)
    standard = (numeric - numeric.mean()) / numeric.std()
    ratio = np.exp(0.7 * np.clip(standard, -2.5, 2.5))
    ratio /= ratio.mean()
    truth, everywhere = np.array([float(ratio @ cell.y / ratio.sum())]), np.array([True])
    record: Record = {}
    for _ in range(reps):
        order = rng.permutation(len(cell.y))
        for index, n in enumerate(BUDGETS):
            if n >= len(cell.y):
                continue
            y = _observed(cell.y, order[:n])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimates = {
                    "naive": lace_deployment(y, cell.signals[:, :0], ratio),
                    "lace": lace_deployment(y, cell.signals, ratio, standardize=True),
                    "average": lace_deployment(y, cell.signals, ratio, adapt="average"),
                }
            for rule, estimate in estimates.items():
                _append(record, rule, index, _score(_of(estimate), truth, everywhere))
    return record


def _observed(y: FloatArray, rows: IntArray) -> FloatArray:
    observed = np.full(len(y), np.nan)
    observed[rows] = y[rows]
    return observed
