"""The value of best-of-N policies, from the score matrices of a run or of a user's long table of repeated scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.errors import InputError
from pipeline.estimators import (
    Design,
    Estimate,
    best_of_n_batch,
    best_of_n_gold,
    best_of_n_warnings,
    compare_designs,
    paired_difference,
    population_mean,
)
from pipeline.estimators.floats import FloatArray
from pipeline.evaluation.document import BestOfNEstimate, EstimateSet, Warned
from pipeline.tables.cells import label_column, number_column
from pipeline.tables.score_matrices import ScoreMatrices, score_matrices
from pipeline.tables.table_source import inspect_source
from pipeline.tables.user_table import UserTable, read_user_table


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """Which column of a long score table holds what.

    Attributes:
        prompt: the prompt that candidates answer.
        candidate: the candidate answer.
        score: one independent score of it.
        draw: the number of the score; None numbers a candidate's rows in file order.
        gold: the candidate's gold value, if known.
        model: splits the table into targets.
        cluster: prompts with one value are not independent.
    """

    prompt: str = "prompt"
    candidate: str = "candidate"
    score: str = "score"
    draw: str | None = None
    gold: str | None = None
    model: str | None = None
    cluster: str | None = None


def estimate_best_of_n(
    path: Path, columns: ScoreColumns, n: Sequence[int], j: int | None = None, *, level: float = 0.95
) -> EstimateSet:
    """Per target and N: the policy's value in score, its gain over one random candidate, and both in gold if known.

    Args:
        path: a long table: one row per score.
        columns: its columns; ``draw`` is taken from a column of that name where there is one.
        n: sizes N of the subsets of candidates.
        j: selection scores J per candidate; None means all but one (K − 1).
        level: nominal coverage over prompts.

    Raises:
        InputError: unreadable table, N larger than every prompt's candidates, J not smaller than the number of scores.
    """
    table, frame, models = _score_table(path, columns)
    warnings = [Warned("table", note) for note in table.notes]
    estimates: list[BestOfNEstimate] = []
    targets = list(dict.fromkeys(models.tolist()))
    for target in targets:
        part = frame.filter(pl.Series(models == target))
        estimates += _target(target, part, n, j, level, warnings)
    return EstimateSet(
        {target: {} for target in targets},
        (),
        tuple(estimates),
        tuple(dict.fromkeys(warnings)),
        headline=_headline(estimates),
    )


def best_of_n_designs(
    path: Path,
    columns: ScoreColumns,
    n: int,
    j: int | None,
    budget: float,
    *,
    score_cost: float,
    generation_cost: float,
) -> dict[str, tuple[Design, ...]]:
    """Target → what to collect next for the policy, cheapest product of cost and variance first, from a pilot.

    Args:
        path, columns, n, j: the pilot's scores and the policy, as in ``estimate_best_of_n``.
        budget: B, in the unit of the costs.
        score_cost: of one score.
        generation_cost: of one candidate.

    Raises:
        InputError: as ``estimate_best_of_n``; costs or budget out of range.
    """
    _, frame, models = _score_table(path, columns)
    designs = {}
    for target in dict.fromkeys(models.tolist()):
        prefix = "" if target == "all" else f"{target}: "
        matrices = list(_matrices(prefix, frame.filter(pl.Series(models == target)), (n,), j, []).matrices)
        depth = min(matrix.shape[1] for matrix in matrices) - 1 if j is None else j
        try:
            costs = {"score_cost": score_cost, "generation_cost": generation_cost}
            designs[target] = compare_designs(matrices, n, depth, budget, **costs)
        except ValueError as error:
            raise InputError(f"{prefix}best of {n}: {error}") from error
    return designs


def _score_table(path: Path, columns: ScoreColumns) -> tuple[UserTable, pl.DataFrame, NDArray[np.str_]]:
    """The table, its columns by role, and the target of each row."""
    draw = columns.draw or ("draw" if "draw" in inspect_source(path).columns else None)
    named = {"prompt": columns.prompt, "candidate": columns.candidate, "draw": draw, "gold": columns.gold}
    table = read_user_table(
        path, [name for name in (*named.values(), columns.score, columns.model, columns.cluster) if name is not None]
    )
    data = {role: label_column(table, name) for role, name in named.items() if name is not None and role != "gold"}
    frame = pl.DataFrame({role: pl.Series(values.tolist()).replace("", None) for role, values in data.items()})
    frame = frame.with_columns(pl.Series("score", number_column(table, columns.score, "score column").values))
    if columns.gold is not None:
        frame = frame.with_columns(pl.Series("gold", number_column(table, columns.gold, "gold column").values))
    if columns.cluster is not None:
        frame = frame.with_columns(pl.Series("cluster", label_column(table, columns.cluster).tolist()))
    models = label_column(table, columns.model) if columns.model else np.full(frame.height, "all")
    return table, frame, models


def _headline(estimates: Sequence[BestOfNEstimate]) -> str:
    """The value of the largest N, target by target."""
    most = max(entry.n for entry in estimates)
    longest = [entry for entry in estimates if entry.n == most and entry.measure == "score"]
    sentences = [
        f"{'best' if entry.target == 'all' else f'*{entry.target}*: best'} of {entry.n}: {entry.estimate.value:.3g},"
        f" {entry.estimate.low:.3g} to {entry.estimate.high:.3g}"
        for entry in longest[:4]
    ]
    return f"{'; '.join(sentences)}."


def _target(
    target: str, frame: pl.DataFrame, n: Sequence[int], j: int | None, level: float, warnings: list[Warned]
) -> list[BestOfNEstimate]:
    prefix = "" if target == "all" else f"{target}: "
    matrices = _matrices(prefix, frame, n, j, warnings)
    scores = list(matrices.matrices)
    chosen = min(matrix.shape[1] for matrix in scores) - 1 if j is None else j
    clusters = _prompt_clusters(frame, matrices)
    rows: list[BestOfNEstimate] = []
    for size in n:
        try:
            rows += policy_values(target, matrices, size, chosen, clusters=clusters, level=level)
        except ValueError as error:
            raise InputError(f"{prefix}best of {size}: {error}") from error
    warnings += [
        Warned(f"best_of_n_{noticed.code}", prefix + noticed.message)
        for noticed in best_of_n_warnings(scores, max(n), chosen)
    ]
    return rows


def _matrices(
    prefix: str, frame: pl.DataFrame, n: Sequence[int], j: int | None, warnings: list[Warned]
) -> ScoreMatrices:
    gold = "gold" if "gold" in frame.columns else None
    draw = "draw" if "draw" in frame.columns else None
    filled = frame.filter(pl.col("score").is_finite())
    per_candidate = filled.group_by("prompt", "candidate").len()
    most_scores = int(per_candidate["len"].max() or 0)  # type: ignore[arg-type]
    most_candidates = int(per_candidate.group_by("prompt").len()["len"].max() or 0)  # type: ignore[arg-type]
    if most_scores < 2:
        raise InputError(f"{prefix}no candidate has more than 1 score; best-of-N needs 2 (one to select, one held out)")
    if j is not None and not 1 <= j < most_scores:
        raise InputError(
            f"{prefix}--j {j}: J selection scores leave none held out of {most_scores} per candidate; J must lie "
            f"between 1 and {most_scores - 1}, or get one fresh score of the winner"
        )
    if min(n) < 1 or max(n) > most_candidates:
        raise InputError(f"{prefix}--best-of-n {max(n)}: no prompt has more than {most_candidates} scored candidates")
    matrices = score_matrices(
        frame, draw=draw, gold=gold, min_scores=2 if j is None else j + 1, min_candidates=max(2, max(n))
    )
    warnings += [Warned("best_of_n_missing", prefix + note) for note in matrices.counts.notes()]
    if len(matrices.matrices) < 2:
        raise InputError(
            f"{prefix}only one prompt has {max(n)} candidates with enough scores; intervals are over prompts"
        )
    return matrices


def _prompt_clusters(frame: pl.DataFrame, matrices: ScoreMatrices) -> list[str] | None:
    if "cluster" not in frame.columns:
        return None
    of = dict(frame.select("prompt", "cluster").iter_rows())
    return [of[prompt] for prompt in matrices.prompts]


def interval_form(values: Sequence[FloatArray]) -> Literal["t", "wilson"]:
    """Wilson's where every value is 0 or 1: Student's t has no width where all agree, and ends outside [0, 1]."""
    return "wilson" if all(np.isin(part, (0.0, 1.0)).all() for part in values) else "t"


def _gold_mean(selected: FloatArray, gold: Sequence[FloatArray], options: Mapping[str, Any]) -> Estimate:
    """Mean gold of the selected candidates, whose interval has a width and ends where gold does.

    Wilson's for gold in [0, 1], grades between right and wrong too: t ended at 1.04 correct answers. Where gold has
    another scale and all prompts agree, Wilson's on the range that gold takes; t's where it takes one value only.
    """
    least, most = min(part.min() for part in gold), max(part.max() for part in gold)
    if least >= 0.0 and most <= 1.0:
        return population_mean(selected, interval="wilson", **options)
    estimate = population_mean(selected, **options)
    if estimate.se > 0.0 or most == least:
        return estimate
    scaled = population_mean((selected - least) / (most - least), interval="wilson", **options)
    low, high = (float(least + (most - least) * end) for end in (scaled.low, scaled.high))
    return replace(estimate, low=low, high=high, interval="wilson")


def policy_values(
    target: str,
    matrices: ScoreMatrices,
    n: int,
    j: int,
    *,
    clusters: Sequence[str] | None = None,
    level: float = 0.95,
) -> list[BestOfNEstimate]:
    """The policy's value in score, its gain over one random candidate, and both in gold where that is wholly known.

    Args:
        target: whose candidates.
        matrices: scores (and gold) of each prompt's candidates.
        n, j: the best of N candidates by the mean of J scores.
        clusters: prompts with one value are not independent; None: all are.
        level: nominal coverage over prompts.

    Raises:
        ValueError: N or J that these matrices do not allow.
    """
    scores = list(matrices.matrices)
    values = best_of_n_batch(scores, n, j)
    single = np.array([float(matrix.mean()) for matrix in scores])
    options: dict[str, Any] = {"level": level, "clusters": clusters}
    estimated = [
        BestOfNEstimate(target, n, j, population_mean(values, interval=interval_form(scores), **options), "score"),
        BestOfNEstimate(target, n, j, paired_difference(values, single, **options), "gain"),
    ]
    whole = [k for k, gold in enumerate(matrices.gold or ()) if np.isfinite(gold).all()]
    if len(whole) < 2 or matrices.gold is None:
        return estimated
    graded = [matrices.gold[k] for k in whole]
    options["clusters"] = None if clusters is None else [clusters[k] for k in whole]
    selected = np.array([best_of_n_gold(scores[k], gold, n, j) for k, gold in zip(whole, graded, strict=True)])
    plain = np.array([float(gold.mean()) for gold in graded])
    return [
        *estimated,
        BestOfNEstimate(target, n, j, _gold_mean(selected, graded, options), "gold"),
        BestOfNEstimate(target, n, j, paired_difference(selected, plain, **options), "gold_gain"),
    ]
