"""Table 1: error and cost of cyclic splitting and of one fixed split, for the one-score policy."""

from __future__ import annotations

import numpy as np

from pipeline.estimators.best_of_n.blocks import block_values
from pipeline.estimators.best_of_n.targets import gaussian_targets
from pipeline.estimators.best_of_n.weights import rank_weights
from pipeline.estimators.floats import FloatArray
from pipeline.studies.best_of_n.simulation import blocks, evaluate, jackknife
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Measured, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

CANDIDATES, DEPTH, SIGMA = 8, 1, 0.6
BLOCK = 500
PAPER = {4: (0.240, 0.379, 0.845, 0.824), 8: (0.138, 0.271, 0.831, 0.793)}


def moments(payload: tuple[int, int], generator: np.random.Generator) -> list[float]:
    """Summed moments of one block of pools: squared errors of three estimators, then H, H², F, F², count."""
    pools, draws = payload
    means = generator.uniform(0.2, 0.8, (pools, CANDIDATES))
    scores = means[:, :, None] + SIGMA * generator.standard_normal((pools, CANDIDATES, draws))
    target = gaussian_targets(means, SIGMA, DEPTH, CANDIDATES)
    cyclic = evaluate(scores, means, CANDIDATES, DEPTH)
    first = np.ascontiguousarray(scores[:, :, 0])
    fixed = block_values(first, scores[:, :, 1:].mean(axis=2), rank_weights(CANDIDATES, CANDIDATES))
    errors = [float(np.sum((values - target) ** 2)) for values in (cyclic.holdout, fixed, cyclic.reuse)]
    totals = [float(part.sum()) for part in (cyclic.holdout, cyclic.holdout**2, fixed, fixed**2)]
    return [*errors, *totals, float(pools)]


def cost_row(sums: FloatArray, draws: int) -> tuple[Measured, Measured, Measured, Measured]:
    """RMSE of cyclic, fixed split and reuse, and the ratio of cost times population variance."""

    def variance(totals: FloatArray, at: int) -> float:
        count = totals[-1]
        return float((totals[at + 1] - totals[at] ** 2 / count) / (count - 1))

    def ratio(totals: FloatArray) -> float:
        fixed_cost, matrix_cost = CANDIDATES * DEPTH + draws - DEPTH, CANDIDATES * draws
        return fixed_cost * variance(totals, 5) / (matrix_cost * variance(totals, 3))

    paper = PAPER[draws]
    rmse = [
        jackknife(sums, lambda totals, at=at: float(np.sqrt(totals[at] / totals[-1])), paper=paper[at], digits=4)  # type: ignore[misc]
        for at in range(3)
    ]
    return rmse[0], rmse[1], rmse[2], jackknife(sums, ratio, paper=paper[3], digits=4)


def run(options: StudyOptions) -> StudyResult:
    """Both rows of Table 1."""
    reps = options.reps or study.default_reps
    rows = []
    for draws in PAPER:
        replicates = run_tasks(
            options,
            moments,
            {f"k{draws}-{name}": (size, draws) for name, size in blocks(reps, BLOCK).items()},
            stage=f"k{draws}",
            signature=f"{reps} pools, K={draws}",
            label=f"blocks of pools, K={draws}",
        )
        rows.append((str(draws), *cost_row(np.array(list(replicates.values())), draws)))
    table = ResultTable(
        "Error against Θ^(1) and cost at equal budget; M = N = 8, means uniform on (0.2, 0.8), σ = 0.6",
        ("K", "RMSE cyclic H", "RMSE fixed split F", "RMSE reuse", "c_F V_F / (c_H V_H)"),
        tuple(rows),
        ("Costs count scores alone: 8K for the matrix, 8 + K − 1 for the split; below 1 favours the split.",),
    )
    return StudyResult(
        study.title,
        (table,),
        notes=(
            f"{reps} pools per K, seed {options.seed}; brackets are 95% Monte Carlo intervals by the jackknife over "
            f"blocks of {BLOCK} pools.",
            "Θ^(1) of every pool by quadrature. The paper's pools are its own 20,000; these are independent ones.",
        ),
    )


study = Study(
    title="Holdout Best-of-N: error and cost for a fixed one-score selector (Table 1)",
    run=run,
    default_reps=20_000,
)
