"""Appendix H.1 on a real cell: signal families, ridge × bandwidth, within-L tuning, kernels, label stratification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.comparators import Comparison, ComparisonPool
from pipeline.estimators.comparators.control_variates import lace_value
from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.lace.localities import Categorical, Ordinal
from pipeline.studies.real.splits import (
    BUDGETS,
    CellPool,
    cell_pool,
    method_value,
    methods_for,
    profile_error,
    split,
    tuned_value,
    tuning_grid,
)
from pipeline.studies.real.tables import RealCell

RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0)
BANDWIDTHS = (0.5, 0.75, 1.0, 1.5, 2.0)
DRAWS = ("random", "Z deciles", "judge deciles", "5 × 5 grid")
TUNING_FOLDS = 3

Errors = dict[str, list[list[float]]]
"""Variant to budget to one error per replicate."""


def _empty(variants: list[str]) -> Errors:
    return {variant: [[] for _ in BUDGETS] for variant in variants}


def _budgets(cell: RealCell) -> list[tuple[int, int]]:
    return [(index, n) for index, n in enumerate(BUDGETS) if n < len(cell.y)]


def families(cell: RealCell, reps: int, rng: np.random.Generator) -> Errors:
    """LACE with each family of signals left out, with each alone, and with all; naive beside."""
    prepared = cell_pool(cell)
    everything = tuple(range(cell.signals.shape[1]))
    chosen: dict[str, tuple[int, ...]] = {"all": everything}
    if len(cell.families) > 1:
        for name, columns in cell.families.items():
            chosen[f"without {name}"] = tuple(column for column in everything if column not in columns)
            chosen[f"{name} alone"] = columns
    pools = {name: _with_signals(prepared.pool, columns) for name, columns in chosen.items()}
    errors = _empty(["naive", *chosen])
    for _ in range(reps):
        order = rng.permutation(len(cell.y))
        for index, n in _budgets(cell):
            problem = split(prepared, order[:n], rng)
            reached = problem.weights.any(axis=1)
            errors["naive"][index].append(profile_error(problem.naive, prepared.truth, reached))
            for name, pool in pools.items():
                value = lace_value(replace(problem, pool=pool))[0]
                errors[name][index].append(profile_error(value, prepared.truth, reached))
    return errors


def _with_signals(pool: ComparisonPool, columns: tuple[int, ...]) -> ComparisonPool:
    return replace(pool, signals=pool.signals[:, list(columns)], primary=0, conditional_weights={})


def grid(cell: RealCell, reps: int, rng: np.random.Generator) -> Errors:
    """LACE over ridge × bandwidth, each with its own target and its own naive estimator."""
    errors = _empty(
        [f"{kind} {ridge} {multiple}" for kind in ("naive", "lace") for ridge in RIDGES for multiple in BANDWIDTHS]
    )
    orders = [rng.permutation(len(cell.y)) for _ in range(reps)]
    for multiple in BANDWIDTHS:
        prepared = cell_pool(cell, multiple)
        for order in orders:
            for index, n in _budgets(cell):
                problem = split(prepared, order[:n], rng)
                reached = problem.weights.any(axis=1)
                naive = profile_error(problem.naive, prepared.truth, reached)
                for ridge in RIDGES:
                    value = lace_value(replace(problem, ridge=ridge))[0]
                    errors[f"naive {ridge} {multiple}"][index].append(naive)
                    errors[f"lace {ridge} {multiple}"][index].append(profile_error(value, prepared.truth, reached))
    return errors


def tuned(cell: RealCell, reps: int, rng: np.random.Generator) -> Errors:
    """Every method with its parameter chosen by three-fold cross-validation inside each labeled set."""
    prepared = cell_pool(cell)
    methods = [method for method in methods_for(cell) if method != "lace_adaptive"]
    errors = _empty(methods)
    for _ in range(reps):
        order = rng.permutation(len(cell.y))
        for index, n in _budgets(cell):
            problem = split(prepared, order[:n], rng)
            reached = problem.weights.any(axis=1)
            folds = _balanced_folds(problem.y, rng)
            for method in methods:
                parameter = _select(method, prepared, problem, folds, rng)
                value = (
                    method_value(method, prepared, problem)
                    if parameter is None
                    else tuned_value(method, prepared, problem, parameter)
                )
                errors[method][index].append(profile_error(value, prepared.truth, reached))
    return errors


def _balanced_folds(y: FloatArray, rng: np.random.Generator) -> IntArray:
    """Three folds with about the same outcomes: random order within equal outcomes, dealt in turn."""
    order = np.lexsort((rng.random(len(y)), y))
    folds = np.empty(len(y), dtype=np.intp)
    folds[order] = np.arange(len(y)) % TUNING_FOLDS
    return folds


def _select(
    method: str, prepared: CellPool, problem: Comparison, folds: IntArray, rng: np.random.Generator
) -> float | None:
    """The parameter with the smallest kernel-mass-weighted squared distance to the held-out gold profiles."""
    choices = tuning_grid(method)
    if not choices:
        return None
    axis = prepared.pool.axis
    scores = np.zeros(len(choices))
    for fold in range(TUNING_FOLDS):
        held_out, training = problem.rows[folds == fold], problem.rows[folds != fold]
        mass = np.exp(axis.log_kernel(axis.z[held_out]))
        total = mass.sum(axis=1)
        gold = np.divide(mass @ prepared.cell.y[held_out], total, out=np.zeros_like(total), where=total > 0.0)
        part = split(prepared, training, rng)
        usable = part.weights.any(axis=1) & (total > 0.0)
        for index, parameter in enumerate(choices):
            distance = (tuned_value(method, prepared, part, parameter) - gold) ** 2
            scores[index] += float(np.average(distance[usable], weights=total[usable])) / TUNING_FOLDS
    return choices[int(np.argmin(scores))]


def kernels(cell: RealCell, reps: int, rng: np.random.Generator) -> Errors:
    """On an ordered axis: jittered Gaussian, triangular over the levels, exact levels; each with its own target."""
    assert cell.levels is not None
    counts = dict(zip(*np.unique(cell.levels, return_counts=True), strict=True))
    at = np.array([level for level, count in counts.items() if count >= 5])
    pools = {
        "gaussian": cell_pool(cell),
        "triangular": CellPool(cell, Ordinal(2), cell.levels, at),
        "levels": CellPool(cell, Categorical(), cell.levels, at),
    }
    errors = _empty([f"{kind} {name}" for kind in ("naive", "lace", "lace_adaptive") for name in pools])
    for _ in range(reps):
        order = rng.permutation(len(cell.y))
        for index, n in _budgets(cell):
            for name, prepared in pools.items():
                problem = split(prepared, order[:n], rng)
                reached = problem.weights.any(axis=1)
                for method in ("naive", "lace", "lace_adaptive"):
                    value = method_value(method, prepared, problem)
                    errors[f"{method} {name}"][index].append(profile_error(value, prepared.truth, reached))
    return errors


def stratified(cell: RealCell, reps: int, rng: np.random.Generator) -> Errors:
    """LACE with labels drawn at random and proportionally over strata known before labelling.

    The profile estimator takes no notice of the design, as in the paper.
    """
    prepared = cell_pool(cell)
    strata: dict[str, IntArray | None] = {"random": None, "judge deciles": _ranks(cell.raw_judge, 10, rng)}
    if cell.kind != "categorical":
        strata["Z deciles"] = _ranks(cell.z, 10, rng)
        strata["5 × 5 grid"] = 5 * _ranks(cell.z, 5, rng) + _ranks(cell.raw_judge, 5, rng)
    errors = _empty([f"{kind} {name}" for kind in ("naive", "lace") for name in strata])
    for _ in range(reps):
        for index, n in _budgets(cell):
            for name, groups in strata.items():
                rows = rng.permutation(len(cell.y))[:n] if groups is None else _proportional(groups, n, rng)
                problem = split(prepared, rows, rng)
                reached = problem.weights.any(axis=1)
                errors[f"naive {name}"][index].append(profile_error(problem.naive, prepared.truth, reached))
                errors[f"lace {name}"][index].append(profile_error(lace_value(problem)[0], prepared.truth, reached))
    return errors


def _ranks(values: NDArray[Any], groups: int, rng: np.random.Generator) -> IntArray:
    """Equal-sized groups by rank, ties broken at random."""
    order = np.lexsort((rng.random(len(values)), values))
    ranks = np.empty(len(values), dtype=np.intp)
    ranks[order] = np.arange(len(values)) * groups // len(values)
    return ranks


def _proportional(groups: IntArray, n: int, rng: np.random.Generator) -> IntArray:
    """n rows drawn proportionally from the groups: whole shares first, the rest by random remainders."""
    sizes = np.bincount(groups)
    exact = n * sizes / len(groups)
    take = np.floor(exact).astype(np.intp)
    rest = n - int(take.sum())
    if rest:
        fraction = exact - take
        chosen = rng.choice(len(sizes), size=rest, replace=False, p=fraction / fraction.sum())
        take[chosen] += 1
    picked = [
        rng.choice(np.flatnonzero(groups == group), size=count, replace=False)
        for group, count in enumerate(take)
        if count
    ]
    return np.concatenate(picked)
