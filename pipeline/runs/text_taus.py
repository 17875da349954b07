"""Algorithm 1 in a run: τ from features of the collected texts, cross-fitted on the labeled items."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.config import RunConfig
from pipeline.errors import InputError
from pipeline.estimators import PenalizedRegression, cross_fit_pool_tau
from pipeline.estimators.floats import FloatArray
from pipeline.evaluation.options import generator
from pipeline.runs.embeddings import embedder_of
from pipeline.runs.frames import RunTables
from pipeline.tables.draw_features import draw_features
from pipeline.tables.embedding import Embedder
from pipeline.tables.item_draws import item_draws

FOLDS = 5


def text_taus(
    config: RunConfig, tables: RunTables, signals: pl.DataFrame, embedder: Embedder | None = None
) -> dict[str, FloatArray]:
    """τ̂ (M, draws + 1) of every target on all items: out of fold where labeled, the folds' mean elsewhere.

    Args:
        config: roles.auxiliary and the seed are read.
        tables: items, responses, preferences.
        signals: item_id, target, y and labeled of every item and target.
        embedder: None is the one the configuration asks for.

    Raises:
        InputError: fewer than 5 labeled items, or the embed extra is missing.
    """
    model = embedder_of(config, tables.folder) if embedder is None else embedder
    auxiliary = (config.roles.auxiliary[0], config.roles.auxiliary[-1])
    taus = {}
    for name in config.roles.targets:
        own = signals.filter(pl.col("target") == name).sort("item_id")
        draws = item_draws(tables.items, tables.responses, tables.preferences, target=name, auxiliary=auxiliary)
        values = draw_features(draws, model).values
        labeled, outcomes = own["labeled"].to_numpy().astype(bool), own["y"].to_numpy()
        if labeled.sum() < FOLDS:
            raise InputError(
                f"target {name}: design.algorithm features needs {FOLDS} labeled items, got {labeled.sum()}"
            )
        inside, outside = cross_fit_pool_tau(
            outcomes[labeled],
            values[labeled],
            values[~labeled],
            regressor=PenalizedRegression(),
            folds=FOLDS,
            rng=generator(config.seed, "text_tau", name),
        )
        taus[name] = np.empty(values.shape[:2])
        taus[name][labeled], taus[name][~labeled] = inside, outside
    return taus
