"""Algorithm 1 in a run: τ from features of the collected texts, cross-fitted on the labeled items."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pipeline.config import RunConfig
from pipeline.errors import InputError
from pipeline.estimators import PenalizedRegression, cross_fit_pool_tau
from pipeline.runs.arrays import TargetArrays, generator
from pipeline.runs.embeddings import embedder_of
from pipeline.runs.frames import RunTables
from pipeline.tables.draw_features import draw_features
from pipeline.tables.embedding import Embedder
from pipeline.tables.item_draws import item_draws

__all__ = ["text_taus"]

FloatArray = NDArray[np.float64]
FOLDS = 5


def text_taus(
    config: RunConfig, tables: RunTables, pool: Mapping[str, TargetArrays], embedder: Embedder | None = None
) -> dict[str, FloatArray]:
    """τ̂ (M, draws + 1) of every target on all items: out of fold where labeled, the folds' mean elsewhere.

    Args:
        config: roles.auxiliary and the seed are read.
        tables: items, responses, preferences.
        pool: outcomes and labels by target.
        embedder: None is the one the configuration asks for.

    Raises:
        InputError: fewer than 5 labeled items, or the embed extra is missing.
    """
    model = embedder_of(config, tables.folder) if embedder is None else embedder
    auxiliary = (config.roles.auxiliary[0], config.roles.auxiliary[-1])
    taus = {}
    for name, arrays in pool.items():
        draws = item_draws(tables.items, tables.responses, tables.preferences, target=name, auxiliary=auxiliary)
        values = draw_features(draws, model).values
        labeled = arrays.labeled
        if labeled.sum() < FOLDS:
            raise InputError(
                f"target {name}: design.algorithm features needs {FOLDS} labeled items, got {labeled.sum()}"
            )
        inside, outside = cross_fit_pool_tau(
            arrays.y[labeled],
            values[labeled],
            values[~labeled],
            regressor=PenalizedRegression(),
            folds=FOLDS,
            rng=generator(config.seed, "text_tau", name),
        )
        taus[name] = np.empty(values.shape[:2])
        taus[name][labeled], taus[name][~labeled] = inside, outside
    return taus
