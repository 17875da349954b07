"""Every method of the LACE comparison on one split, without the cost of intervals: what the studies loop over."""

from __future__ import annotations

import numpy as np

from pipeline.estimators.comparators import Comparison, ComparisonPool, comparator_value
from pipeline.estimators.comparators.comparison import split_folds
from pipeline.estimators.comparators.control_variates import lace_value, oracle_value
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.lace.localities import resolve_axis
from pipeline.studies.lace.designs import Design, DesignDraw

LABELS: dict[str, str] = {
    "naive": "Naive",
    "plugin_judge": "Plug-in (judge)",
    "plugin_multi": "Plug-in (multi)",
    "aug_plugin": "Aug. plug-in",
    "global_cv": "Global CV",
    "per_signal_cv": "Per-signal CV",
    "residual_only": "Residual-only",
    "scalar_cv": "Scalar prediction CV",
    "local_ppi": "Local PPI",
    "ppci": "PPCI",
    "strat_ppi": "StratPPI",
    "lace_oracle": "LACE (oracle)",
    "lace": "LACE",
}
"""Method names as the paper prints them."""


def design_comparison(design: Design, draw: DesignDraw, rng: np.random.Generator) -> Comparison:
    """The split of a synthetic draw, with random folds."""
    axis = resolve_axis(draw.z, design.at, design.locality)
    rows = np.flatnonzero(draw.labeled)
    pool_fold = split_folds(len(draw.z), rng)
    covariates = np.concatenate([draw.z[:, None], draw.signals], axis=1)
    pool = ComparisonPool(axis, draw.signals, covariates, 0, design.raw_judge(draw.signals), pool_fold)
    return Comparison(pool, rows, draw.y[rows], split_folds(len(rows), rng))


def point_estimates(
    problem: Comparison, methods: tuple[str, ...], oracle: FloatArray | None = None
) -> dict[str, FloatArray]:
    """Each method's (G,) point estimates; ``oracle`` (G, K) are the true coefficients of ``lace_oracle``."""
    values = {}
    for method in methods:
        if method == "lace":
            values[method] = lace_value(problem)[0]
        elif method == "lace_oracle":
            assert oracle is not None
            values[method] = oracle_value(problem, oracle)
        else:
            values[method] = comparator_value(method, problem)
    return values
