"""Best-of-N on real judges: repeated scores with expert gold, reward-model picks, and repeated votes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import DataError
from pipeline.estimators import (
    Estimate,
    best_of_n_batch,
    best_of_n_gold,
    best_of_n_plug_in,
    best_of_n_warnings,
    compare_designs,
    critical_rho,
    paired_difference,
    pass_at_k_mean,
    population_mean,
)
from pipeline.estimators.floats import FloatArray
from pipeline.report.values import Axis, Figure, Series
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.tables.score_matrices import score_matrices

Records = list[dict[str, Any]]

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
DRAWS = ("altmcq", "altrts", "mcq", "rts", "stareval")
SIZES = (2, 4, 12)
DEPTHS = (1, 4)
PICKS = "ABCDE"
VOTE_DEPTHS = (1, 5, 25)


def run(options: StudyOptions) -> StudyResult:
    """Every file of the folder (or the one file) that holds a known kind of records."""
    assert options.table is not None
    paths = sorted(options.table.iterdir()) if options.table.is_dir() else [options.table]
    tables: list[ResultTable] = []
    figures: dict[str, Figure] = {}
    for done, path in enumerate(paths):
        options.progress("files", done, len(paths))
        table, charts = _study_file(path)
        tables += table
        figures |= charts
    options.progress("files", len(paths), len(paths))
    if not tables:
        raise DataError(
            f"{options.table} holds none of the known records: SummEval judges (judge_gpt35_…), reward-model scores "
            "(rm_score, cand_correct) or repeated votes (votes)"
        )
    return StudyResult(
        study.title,
        tuple(tables),
        figures,
        notes=(
            "Intervals are 95%, Student's t over prompts; nothing is random but the data.",
            "Gold of the selected candidate uses the same selections as the judge value, by the same splitting.",
        ),
    )


def _study_file(path: Path) -> tuple[list[ResultTable], dict[str, Figure]]:
    kinds: tuple[tuple[str, Callable[[Records], tuple[list[ResultTable], dict[str, Figure]]]], ...] = (
        ("judge_gpt35_mcq", _summaries),
        ("rm_score", _reward_picks),
        ("votes", _votes),
    )
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as stream:
            records = [json.loads(line) for line in stream]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a JSON Lines file: {error}") from error
    for column, tabulate in kinds:
        if records and column in records[0]:
            return tabulate(records)
    return [], {}


def _summaries(records: Records) -> tuple[list[ResultTable], dict[str, Figure]]:
    """SummEval: 12 summaries per article, five scores of gpt-3.5 each (one per prompt format), three experts."""
    tables, series = [], []
    values: list[tuple[Cell, ...]] = []
    checks: list[tuple[Cell, ...]] = []
    designs: list[tuple[Cell, ...]] = []
    for aspect in ASPECTS:
        scores, gold = _aspect(records, aspect)
        for n in SIZES:
            values += [_policy_row(aspect, scores, gold, n, j) for j in DEPTHS]
        codes = ", ".join(warning.code for warning in best_of_n_warnings(scores, 4, 4)) or "none"
        checks.append((aspect, codes, Measured(critical_rho(scores, 4, 4), digits=3)))
        best = compare_designs(scores, 4, 1, budget=1e4)[:3]
        designs += [
            (f"{aspect}: {entry.name}, s = {entry.s}", entry.cost, entry.variance, entry.cost_variance)
            for entry in best
        ]
        curve = [_selected_gold(scores, gold, n, 4) for n in range(1, 13)]
        means = [population_mean(row, interval="t") for row in curve]
        series.append(_series(aspect, means))
    columns = ("Policy", "judge value", "plug-in", "gain over random", "gold, selected", "gold gain", "gold, best of N")
    tables.append(ResultTable("SummEval, gpt-3.5 as judge: 50 articles, M = 12, K = 5", columns, tuple(values)))
    tables.append(
        ResultTable(
            "What the scores themselves say (N = 4, J = 4)",
            ("Aspect", "warnings", "ρ that explains the gain"),
            tuple(checks),
            (
                "The five draws are five prompt formats: their means differ (drift), and the multiple-choice formats "
                "agree more than independent draws would (repeated_draws). Read the value as that of a random format.",
            ),
        )
    )
    tables.append(
        ResultTable(
            "Cheapest designs for N = 4, J = 1 by cost × variance, SummEval as the pilot",
            ("Design", "cost in scores", "variance", "cost × variance"),
            tuple(designs),
        )
    )
    title = "Expert rating of the summary that best-of-N selects (J = 4)"
    chart = Figure(title, tuple(series), Axis("N"), Axis("mean rating"))
    return tables, {"best-of-n-summeval": chart}


def _aspect(records: Records, aspect: str) -> tuple[list[FloatArray], list[FloatArray]]:
    rows = [
        (record["item_id"], record["system"], draw, record[f"judge_gpt35_{draw}"], record["y"])
        for record in records
        if record["aspect"] == aspect
        for draw in DRAWS
    ]
    long = pl.DataFrame(rows, schema=["prompt", "candidate", "draw", "score", "gold"], orient="row", strict=False)
    matrices = score_matrices(long, gold="gold", min_scores=len(DRAWS))
    assert matrices.gold is not None
    return list(matrices.matrices), list(matrices.gold)


def _policy_row(aspect: str, scores: list[FloatArray], gold: list[FloatArray], n: int, j: int) -> tuple[Cell, ...]:
    value = best_of_n_batch(scores, n, j)
    random = np.array([matrix.mean() for matrix in scores])
    selected = _selected_gold(scores, gold, n, j)
    any_gold = np.array([row.mean() for row in gold])
    return (
        f"{aspect} N={n} J={j}",
        _cell(population_mean(value, interval="t")),
        float(np.mean([best_of_n_plug_in(matrix, n) for matrix in scores])),
        _cell(paired_difference(value, random, interval="t")),
        _cell(population_mean(selected, interval="t")),
        _cell(paired_difference(selected, any_gold, interval="t")),
        float(np.mean([best_of_n_gold(row[:, None], row, n, 1) for row in gold])),
    )


def _selected_gold(scores: Sequence[FloatArray], gold: Sequence[FloatArray], n: int, j: int) -> FloatArray:
    return np.array([best_of_n_gold(matrix, row, n, j) for matrix, row in zip(scores, gold, strict=True)])


def _reward_picks(records: Records) -> tuple[list[ResultTable], dict[str, Figure]]:
    """Eight answers per problem with one reward each: no held-out score, but gold needs none."""
    rewards = [np.array(record["rm_score"], dtype=np.float64)[:, None] for record in records]
    correct = [np.array(record["cand_correct"], dtype=np.float64) for record in records]
    most = min(len(row) for row in correct)
    counts = np.array([int(row.sum()) for row in correct])
    rows: list[tuple[Cell, ...]] = []
    random = np.array([row.mean() for row in correct])
    for n in (size for size in (1, 2, 4, 8) if size <= most):
        picked = _selected_gold(rewards, correct, n, 1)
        rows.append(
            (
                str(n),
                _cell(population_mean(picked, interval="t")),
                _cell(paired_difference(picked, random, interval="t")),
                _cell(pass_at_k_mean(counts, [len(row) for row in correct], n)),
            )
        )
    return [
        ResultTable(
            f"Reward model on math: {len(records)} problems, {most} answers each, one deterministic reward (K = 1)",
            ("N", "accuracy of the pick", "gain over random", "pass@N (a perfect judge)"),
            tuple(rows),
            ("With one reward per answer its own value cannot be evaluated without bias; accuracy can.",),
        )
    ], {}


def _votes(records: Records) -> tuple[list[ResultTable], dict[str, Figure]]:
    """A judge picks the best of five answers 100 times: the policy takes the answer with most of J fresh picks."""
    rows: list[tuple[Cell, ...]] = []
    groups = sorted({(record["judge"], float(record["temperature"])) for record in records})
    for judge, temperature in groups:
        chosen = [
            record for record in records if record["judge"] == judge and float(record["temperature"]) == temperature
        ]
        picks = [_pick_matrix(record["votes"]) for record in chosen]
        graded = [record["cand_correct_source"] for record in chosen if record["cand_correct_source"]]
        graded_picks = [matrix for matrix, record in zip(picks, chosen, strict=True) if record["cand_correct_source"]]
        truth = [np.array(row, dtype=np.float64) for row in graded]
        warned = ", ".join(warning.code for warning in best_of_n_warnings(picks)) or "none"
        agreement = [_cell(population_mean(best_of_n_batch(picks, 5, j), interval="t")) for j in VOTE_DEPTHS]
        gold = [_cell(population_mean(_selected_gold(graded_picks, truth, 5, j), interval="t")) for j in VOTE_DEPTHS]
        rows.append((f"{judge.split('_')[-1]} T={temperature:.2f}", *agreement, *gold, warned))
    columns = (
        "Judge",
        *(f"agreement, J={j}" for j in VOTE_DEPTHS),
        *(f"gold, J={j}" for j in VOTE_DEPTHS),
        "warnings",
    )
    return [
        ResultTable(
            f"Repeated picks of the best of five: {len(records) // len(groups)} prompts, K = 100, N = M = 5",
            columns,
            tuple(rows),
            (
                "A score is 1 where the draw picked the candidate; agreement is the chance that one more draw picks "
                "the winner of J draws. Draws without a clear pick count for nobody.",
                "Picks of one draw exclude each other; draws stay independent, which is what the splitting needs.",
                "Gold: the prompts with a known answer (BBH and SQuAD), share of correct selections.",
            ),
            digits=2,
        )
    ], {}


def _pick_matrix(votes: str) -> FloatArray:
    return np.array([[float(vote == pick) for vote in votes] for pick in PICKS])


def _cell(estimate: Estimate) -> Measured:
    return Measured(estimate.value, estimate.low, estimate.high)


def _series(label: str, estimates: Sequence[Estimate]) -> Series:
    return Series(
        label,
        [float(n) for n in range(1, len(estimates) + 1)],
        [entry.value for entry in estimates],
        [entry.low for entry in estimates],
        [entry.high for entry in estimates],
        markers=True,
    )


study = Study(
    title="Holdout Best-of-N on real judges: SummEval, a reward model, repeated votes",
    run=run,
    default_reps=1,
    needs_table=True,
)
