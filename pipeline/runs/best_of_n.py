"""The value of best-of-N policies from a run's candidates and their repeated judge scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.config import RunConfig
from pipeline.errors import DataError, InputError
from pipeline.estimators import (
    Estimate,
    best_of_n_batch,
    best_of_n_gold,
    best_of_n_warnings,
    paired_difference,
    population_mean,
)
from pipeline.evaluation.document import BestOfNEstimate, Warned
from pipeline.runs.frames import RunTables
from pipeline.tables.score_matrices import ScoreMatrices, score_matrices

__all__ = ["best_of_n_estimates"]

FloatArray = NDArray[np.float64]


def best_of_n_estimates(
    config: RunConfig, tables: RunTables
) -> tuple[tuple[BestOfNEstimate, ...], dict[str, Any], list[Warned]]:
    """Per target and (N, J): the policy's value in judge score, its gain over one random candidate, and, where gold
    is known, the gold accuracy of the selected candidate; plus a curve over N.

    Returns:
        (estimates, extra entries of the document, warnings).
    """
    settings = config.best_of_n
    if settings is None:
        raise InputError("estimate best_of_n needs a best_of_n section in the configuration")
    estimates: list[BestOfNEstimate] = []
    curves: dict[str, Any] = {}
    warnings: list[Warned] = []
    for target in config.roles.targets:
        try:
            matrices = _matrices(tables, target, min_scores=max(settings.j) + 1, min_candidates=max(settings.n))
        except DataError as error:
            warnings.append(Warned("best_of_n_empty", f"{target}: best-of-N cannot be estimated: {error}"))
            continue
        warnings += [Warned("best_of_n_missing", f"{target}: best-of-N: {note}") for note in matrices.counts.notes()]
        if len(matrices.matrices) < 2:
            warnings.append(Warned("best_of_n_empty", f"{target}: best-of-N needs at least two prompts"))
            continue
        for n in settings.n:
            for j in settings.j:
                estimates += _policy(target, matrices, n, j)
        for found in best_of_n_warnings(list(matrices.matrices), max(settings.n), max(settings.j)):
            warnings.append(Warned(f"best_of_n_{found.code}", f"{target}: {found.message}"))
        curves[target] = _curve(matrices, max(settings.j))
    return tuple(estimates), {"best_of_n_curves": curves}, warnings


def _matrices(tables: RunTables, target: str, *, min_scores: int, min_candidates: int) -> ScoreMatrices:
    scores = tables.scores.filter((pl.col("target") == target) & (pl.col("prompt") == "candidate"))
    gold = tables.candidates.filter(pl.col("target") == target).select(
        pl.col("item_id"), pl.col("candidate"), pl.col("phi").alias("gold")
    )
    long = scores.join(gold, on=["item_id", "candidate"], how="left").select(
        pl.col("item_id").alias("prompt"), "candidate", "draw", "score", "gold"
    )
    known = bool(long.height) and long["gold"].is_not_null().any()
    return score_matrices(long, gold="gold" if known else None, min_scores=min_scores, min_candidates=min_candidates)


def _policy(target: str, matrices: ScoreMatrices, n: int, j: int) -> list[BestOfNEstimate]:
    scores = list(matrices.matrices)
    values = best_of_n_batch(scores, n, j)
    single = np.array([float(matrix.mean()) for matrix in scores])
    found = [
        _entry(target, n, j, "score", population_mean(values, interval="t")),
        _entry(target, n, j, "gain", paired_difference(values, single, interval="t")),
    ]
    gold = _gold(matrices, n, j)
    if gold is not None:
        selected, plain = gold
        found.append(_entry(target, n, j, "gold", population_mean(selected, interval="t")))
        found.append(_entry(target, n, j, "gold_gain", paired_difference(selected, plain, interval="t")))
    return found


def _gold(matrices: ScoreMatrices, n: int, j: int) -> tuple[FloatArray, FloatArray] | None:
    """Gold value of the selected candidate and of a random one, per prompt whose gold is wholly known."""
    if matrices.gold is None:
        return None
    known = [(s, g) for s, g in zip(matrices.matrices, matrices.gold, strict=True) if np.isfinite(g).all()]
    if len(known) < 2:
        return None
    selected = np.array([best_of_n_gold(scores, gold, n, j) for scores, gold in known])
    return selected, np.array([float(gold.mean()) for _, gold in known])


def _entry(target: str, n: int, j: int, measure: str, estimate: Estimate) -> BestOfNEstimate:
    return BestOfNEstimate(target, n, j, estimate, measure)


def _curve(matrices: ScoreMatrices, j: int) -> list[dict[str, Any]]:
    """Value of the J-score policy for every N up to the smallest number of candidates."""
    scores = list(matrices.matrices)
    most = min(len(matrix) for matrix in scores)
    return [
        {"n": n, "j": j, "estimate": population_mean(best_of_n_batch(scores, n, j), interval="t").to_dict()}
        for n in range(1, most + 1)
    ]
