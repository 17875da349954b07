"""Labeled splits of a real cell: the pool's target, nested random labels, every method's profile error."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.comparators import Comparison, ComparisonPool, comparator_value
from pipeline.estimators.comparators.comparison import predictor_covariates, split_folds
from pipeline.estimators.comparators.control_variates import lace_value
from pipeline.estimators.comparators.local_linear import local_ppi
from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.lace.localities import Categorical, Gaussian, Locality, resolve_axis, rule_of_thumb_bandwidth
from pipeline.estimators.lace.profile import lace_profile
from pipeline.studies.real.tables import RealCell

BUDGETS = (50, 100, 200)
ADAPTIVE = "lace_adaptive"
_EVERYWHERE = (
    "naive",
    "plugin_judge",
    "plugin_multi",
    "aug_plugin",
    "global_cv",
    "per_signal_cv",
    "residual_only",
    "scalar_cv",
    "local_ppi",
    "ppci",
    "strat_ppi",
    "lace",
    ADAPTIVE,
)
_NEED_NUMBERS = ("local_ppi", "ppci", "strat_ppi")
_NEED_SHARES = ("plugin_judge", "plugin_multi", "aug_plugin", "scalar_cv", "ppci", "strat_ppi")


class CellPool:
    """A cell with one locality: the comparison pool and the full-pool gold profile.

    Attributes:
        cell: the cell.
        pool: what the comparators need.
        truth: (G,) full-pool gold profile under this locality.
    """

    def __init__(self, cell: RealCell, locality: Locality, z: NDArray[np.generic], at: FloatArray | None) -> None:
        axis = resolve_axis(z, at, locality)
        fold = split_folds(len(cell.y), np.random.default_rng(20_240_501))
        self.cell = cell
        self.locality = locality
        self.z = z
        covariates = predictor_covariates(axis, cell.signals)
        self.pool = ComparisonPool(axis, cell.signals, covariates, cell.primary, cell.raw_judge, fold)
        self.truth: FloatArray = np.asarray(self.pool.weights @ cell.y)


def cell_locality(cell: RealCell, multiple: float = 1.0) -> Locality:
    """The protocol's locality: Gaussian of the rule-of-thumb bandwidth, or the category."""
    if cell.kind == "categorical":
        return Categorical()
    return Gaussian(multiple * float(rule_of_thumb_bandwidth(cell.z)))


def cell_pool(cell: RealCell, multiple: float = 1.0) -> CellPool:
    """The cell under the protocol's locality, its bandwidth times ``multiple``."""
    return CellPool(cell, cell_locality(cell, multiple), cell.z, None)


def methods_for(cell: RealCell) -> tuple[str, ...]:
    """The methods that are defined on this cell's axis and outcome."""
    shares = bool(np.all((cell.y >= 0.0) & (cell.y <= 1.0)))
    return tuple(
        method
        for method in _EVERYWHERE
        if not (cell.kind == "categorical" and method in _NEED_NUMBERS) and (shares or method not in _NEED_SHARES)
    )


def split(prepared: CellPool, rows: IntArray, rng: np.random.Generator) -> Comparison:
    """The pool with ``rows`` labeled, folds at random."""
    order = np.sort(rows)
    return Comparison(prepared.pool, order, prepared.cell.y[order], split_folds(len(order), rng))


def adaptive_value(prepared: CellPool, problem: Comparison) -> FloatArray:
    """The profile of the adaptive rule (without its learner)."""
    y = np.full(len(prepared.cell.y), np.nan)
    y[problem.rows] = problem.y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one draw in a thousand looks unlike the pool: expected here
        profile = lace_profile(
            prepared.z,
            y,
            prepared.cell.signals,
            at=prepared.pool.axis.at,
            locality=prepared.locality,
            adapt="average",
        )
    return profile.value


def method_value(method: str, prepared: CellPool, problem: Comparison) -> FloatArray:
    """A method's profile (G,) on one split."""
    if method == ADAPTIVE:
        return adaptive_value(prepared, problem)
    if method == "lace":
        return lace_value(problem)[0]
    return comparator_value(method, problem)


def profile_error(value: FloatArray, truth: FloatArray, reached: Any) -> float:
    """Mean squared error over the points with labels in reach, ``reached`` (G,) bool."""
    return float(np.mean((value - truth)[reached] ** 2)) if reached.any() else float("nan")


def tuning_grid(method: str) -> tuple[float, ...]:
    """The five values that within-L cross-validation chooses from; empty for methods without a parameter."""
    if method in ("lace", "global_cv", "per_signal_cv", "residual_only"):
        return (0.03, 0.1, 0.3, 1.0, 3.0)
    if method in ("plugin_judge", "plugin_multi", "aug_plugin", "scalar_cv"):
        return (0.03, 0.1, 0.3, 1.0, 3.0)
    if method == "ppci":
        return (0.1, 0.3, 1.0, 3.0, 10.0)
    if method == "strat_ppi":
        return (3.0, 4.0, 5.0, 7.0, 10.0)
    return (0.5, 0.75, 1.0, 1.5, 2.0) if method == "local_ppi" else ()


def tuned_value(method: str, prepared: CellPool, problem: Comparison, parameter: float) -> FloatArray:
    """A method's profile with its parameter set."""
    if method in ("lace", "global_cv", "per_signal_cv", "residual_only"):
        return method_value(method, prepared, replace(problem, ridge=parameter))
    if method in ("plugin_judge", "plugin_multi", "aug_plugin", "scalar_cv"):
        return comparator_value(method, replace(problem, inverse_penalty=parameter))
    if method == "ppci":
        return comparator_value(method, problem, tikhonov=parameter)
    if method == "strat_ppi":
        return comparator_value(method, problem, strata=int(parameter))
    return local_ppi(problem, parameter) if method == "local_ppi" else method_value(method, prepared, problem)
