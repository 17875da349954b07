"""The value of best-of-N policies from a run's candidates and their repeated judge scores."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.config import RunConfig
from pipeline.errors import DataError, InputError
from pipeline.estimators import (
    best_of_n_batch,
    best_of_n_warnings,
    population_mean,
)
from pipeline.evaluation.best_of_n import interval_form, policy_values
from pipeline.evaluation.document import BestOfNEstimate, Warned
from pipeline.runs.frames import RunTables
from pipeline.tables.score_matrices import ScoreMatrices, score_matrices


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
                estimates += policy_values(target, matrices, n, j)
        for warning in best_of_n_warnings(list(matrices.matrices), max(settings.n), max(settings.j)):
            warnings.append(Warned(f"best_of_n_{warning.code}", f"{target}: {warning.message}"))
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
    has_gold = bool(long.height) and long["gold"].is_not_null().any()
    return score_matrices(long, gold="gold" if has_gold else None, min_scores=min_scores, min_candidates=min_candidates)


def _curve(matrices: ScoreMatrices, j: int) -> list[dict[str, Any]]:
    """Value of the J-score policy for every N up to the smallest number of candidates."""
    scores = list(matrices.matrices)
    most, form = min(len(matrix) for matrix in scores), interval_form(scores)
    return [
        {"n": n, "j": j, "estimate": population_mean(best_of_n_batch(scores, n, j), interval=form).to_dict()}
        for n in range(1, most + 1)
    ]
