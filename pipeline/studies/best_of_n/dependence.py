"""Table 3: what equicorrelated scores do to the estimate, and how well the scores alone foretell it."""

from __future__ import annotations

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.studies.best_of_n.simulation import Evaluation, blocks, evaluate, mean_cell
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

CANDIDATES, SUBSET, DRAWS, SIGMA = 16, 4, 8, 0.4
DEPTH = DRAWS - 1
BLOCK = 1000
PAPER = {
    0.0: (-0.0001, 0.0, -0.0001),
    0.1: (0.0551, -0.0160, 0.0391),
    0.4: (0.1832, -0.0478, 0.1353),
    0.8: (0.3074, -0.0720, 0.2355),
}


def simulate(pools: int, generator: np.random.Generator) -> list[list[list[float]]]:
    """Per ρ, three rows of ``pools`` values: holdout, reuse and actual; all ρ share the same shocks."""
    means = generator.beta(2.0, 2.0, (pools, CANDIDATES))
    shared = generator.standard_normal((pools, CANDIDATES, 1))
    own = generator.standard_normal((pools, CANDIDATES, DRAWS))
    rows = []
    for rho in PAPER:
        scores = means[:, :, None] + SIGMA * (np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * own)
        values = evaluate(scores, means, SUBSET, DEPTH)
        rows.append([values.holdout.tolist(), values.reuse.tolist(), values.actual.tolist()])
    return rows


def run(options: StudyOptions) -> StudyResult:
    """Table 3 and the prediction of its first column."""
    reps = options.reps or study.default_reps
    replicates = run_tasks(
        options, simulate, blocks(reps, BLOCK), stage="pools", signature=f"{reps} pools", label="blocks of pools"
    )
    values = np.concatenate([np.array(block) for block in replicates.values()], axis=2)
    by_rho = {rho: Evaluation(*values[at]) for at, rho in enumerate(PAPER)}
    independent = by_rho[0.0].actual
    rows = [_bias_row(rho, entry, independent) for rho, entry in by_rho.items()]
    predicted = [_prediction_row(rho, entry) for rho, entry in by_rho.items()]
    return StudyResult(
        study.title,
        (
            ResultTable(
                "Bias against the independent-score target; M = 16, N = 4, K = 8, σ = 0.4",
                ("ρ", "Evaluation", "Selector law", "Total"),
                tuple(rows),
                digits=4,
            ),
            ResultTable(
                "Evaluation bias foretold: f·(reuse − actual) with f = Jρ/(1 + (J−1)ρ), and from scores alone "
                "Jρ/(1−ρ)·(reuse − H)",
                ("ρ", "Evaluation bias", "f·(reuse − actual)", "from scores alone"),
                tuple(predicted),
                digits=4,
            ),
        ),
        notes=(
            f"{reps} pools of Beta(2, 2) means, seed {options.seed}; the ρ share their shocks, and the independent "
            "selections are those at ρ = 0. Brackets are ±1.96 Monte Carlo standard errors of paired differences.",
        ),
    )


def _bias_row(rho: float, entry: Evaluation, independent: FloatArray) -> tuple[Cell, ...]:
    parts = (entry.holdout - entry.actual, entry.actual - independent, entry.holdout - independent)
    cells = [mean_cell(part, paper=printed) for part, printed in zip(parts, PAPER[rho], strict=True)]
    return (f"{rho:.1f}", *cells)


def _prediction_row(rho: float, entry: Evaluation) -> tuple[Cell, ...]:
    share = DEPTH * rho / (1.0 + (DEPTH - 1) * rho)
    return (
        f"{rho:.1f}",
        mean_cell(entry.holdout - entry.actual),
        mean_cell(share * (entry.reuse - entry.actual)),
        mean_cell(DEPTH * rho / (1.0 - rho) * (entry.reuse - entry.holdout)),
    )


study = Study(
    title="Holdout Best-of-N: dependence stress test (Table 3)",
    run=run,
    default_reps=40_000,
)
