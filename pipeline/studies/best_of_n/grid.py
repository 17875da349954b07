"""Table 2 and its 27-cell grid: Holdout against the row-mean maximum on the published stream of normals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from pipeline.errors import InputError
from pipeline.estimators.best_of_n.estimators import best_of_n_batch
from pipeline.estimators.best_of_n.targets import gaussian_target
from pipeline.estimators.floats import FloatArray
from pipeline.studies.best_of_n.simulation import plug_in
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult

SEED_WORDS = (2026092307, 1)
REPLICATES, MOST_CANDIDATES, MOST_DRAWS = 50_000, 8, 64
POOLS = ((4, 2), (8, 4), (8, 8))
DRAWS = (4, 16, 64)
MEANS = ("All tied", "Two tied best", "Separated")
# Table 2 as printed: (M, N, means) to MSE of H, MSE of P, their difference and its standard error, at K = 16.
PAPER = {
    (4, 2, "All tied"): ("0.0366", "0.0391", "-0.00255", "0.00026"),
    (4, 2, "Two tied best"): ("0.0262", "0.0244", "0.00180", "0.00006"),
    (4, 2, "Separated"): ("0.0247", "0.0243", "0.00034", "0.00002"),
    (8, 4, "All tied"): ("0.0452", "0.0798", "-0.03453", "0.00039"),
    (8, 4, "Two tied best"): ("0.0250", "0.0223", "0.00265", "0.00008"),
    (8, 4, "Separated"): ("0.0226", "0.0222", "0.00032", "0.00002"),
    (8, 8, "All tied"): ("0.1821", "0.1496", "0.03252", "0.00098"),
    (8, 8, "Two tied best"): ("0.1181", "0.0626", "0.05542", "0.00065"),
    (8, 8, "Separated"): ("0.0669", "0.0623", "0.00469", "0.00026"),
}


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell of the grid: mean squared errors with their Monte Carlo standard errors.

    Attributes:
        target: Θ^(K−1).
        holdout, plug_in: MSE of Holdout and of the row-mean maximum.
        holdout_se, plug_in_se: sd(e²)/√replicates.
        difference, difference_se: MSE(H) − MSE(P), paired.
        bias, bias_se: mean error of Holdout.
    """

    target: float
    holdout: float
    holdout_se: float
    plug_in: float
    plug_in_se: float
    difference: float
    difference_se: float
    bias: float
    bias_se: float

    def printed(self) -> tuple[str, str, str, str]:
        """With the paper's decimals."""
        return f"{self.holdout:.4f}", f"{self.plug_in:.4f}", f"{self.difference:.5f}", f"{self.difference_se:.5f}"


@cache
def normals(replicates: int = REPLICATES) -> FloatArray:
    """The published stream, (50000, 8, 64), or its first replicates."""
    generator = np.random.Generator(np.random.PCG64(list(SEED_WORDS)))
    return generator.standard_normal((replicates, MOST_CANDIDATES, MOST_DRAWS))


def mean_vector(name: str, candidates: int) -> FloatArray:
    """The three mean vectors: zeros; 0, 0, −1, −2, …; 0, −1, −2, …"""
    steps = -np.arange(candidates, dtype=np.float64)
    return {"All tied": steps * 0.0, "Two tied best": np.minimum(steps + 1.0, 0.0), "Separated": steps}[name]


def grid_cell(candidates: int, n: int, draws: int, means: str, replicates: int = REPLICATES) -> GridCell:
    """One cell: prefixes of the stream plus the means; same normals in all cells."""
    mu = mean_vector(means, candidates)
    scores = normals(replicates)[:, :candidates, :draws] + mu[None, :, None]
    target = gaussian_target(mu, 1.0, draws - 1, n)
    holdout = best_of_n_batch(scores, n, lattice=None) - target
    biased = plug_in(scores, n) - target
    root = np.sqrt(replicates)

    def summary(values: FloatArray) -> tuple[float, float]:
        return float(values.mean()), float(values.std(ddof=1) / root)

    return GridCell(
        target,
        *summary(holdout**2),
        *summary(biased**2),
        *summary(holdout**2 - biased**2),
        *summary(holdout),
    )


def printed_cells(replicates: int = REPLICATES) -> dict[tuple[int, int, str], GridCell]:
    """The nine cells of Table 2 (K = 16)."""
    return {(m, n, means): grid_cell(m, n, 16, means, replicates) for m, n in POOLS for means in MEANS}


def run(options: StudyOptions) -> StudyResult:
    """Table 2, then the whole grid."""
    reps = options.reps or REPLICATES
    if reps > REPLICATES:
        raise InputError(f"the published stream has {REPLICATES} matrices; --reps {reps} asks for more")
    keys = [(m, n, draws, means) for draws in DRAWS for m, n in POOLS for means in MEANS]
    cells = {}
    for done, key in enumerate(keys):
        options.progress("cells", done, len(keys))
        m, n, draws, means = key
        cells[key] = grid_cell(m, n, draws, means, reps)
    options.progress("cells", len(keys), len(keys))
    slice16 = {(m, n, means): cells[m, n, 16, means] for m, n in POOLS for means in MEANS}
    equal = sum(cell.printed() == PAPER[key] for key, cell in slice16.items())
    return StudyResult(
        study.title,
        (_printed_table(slice16), _grid_table(cells)),
        notes=(
            f"{reps} of {REPLICATES} matrices of the published stream: PCG64 with seed words {list(SEED_WORDS)}; "
            "smaller M and K are prefixes, and all cells share the normals.",
            f"Rows of Table 2 that agree with the printed ones in every digit: {equal} of {len(slice16)}.",
        ),
    )


def _printed_table(cells: dict[tuple[int, int, str], GridCell]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for (m, n, means), cell in cells.items():
        paper = [float(text) for text in PAPER[m, n, means]]
        values = (cell.holdout, cell.plug_in, cell.difference, cell.difference_se)
        measured = [
            Measured(value, paper=printed, digits=digits)
            for value, printed, digits in zip(values, paper, (4, 4, 5, 5), strict=True)
        ]
        rows.append((f"M={m} N={n} {means}", *measured))
    return ResultTable(
        "Table 2: MSE for Θ^(15), K = 16, σ = 1", ("Cell", "Holdout H", "Plug-in P", "Δ", "MCSE of Δ"), tuple(rows)
    )


def _grid_table(cells: dict[tuple[int, int, int, str], GridCell]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = [
        (
            f"K={draws} M={m} N={n} {means}",
            cell.target,
            cell.bias,
            cell.bias_se,
            cell.holdout,
            cell.holdout_se,
            cell.plug_in,
            cell.plug_in_se,
            cell.difference,
            cell.difference_se,
        )
        for (m, n, draws, means), cell in cells.items()
    ]
    columns = ("Cell", "Θ^(K−1)", "bias of H", "SE", "MSE H", "SE", "MSE P", "SE", "Δ", "SE")
    return ResultTable("The 27 cells", columns, tuple(rows), digits=5)


study = Study(
    title="Holdout Best-of-N: Holdout against the row-mean maximum (Table 2, exact digits)",
    run=run,
    default_reps=REPLICATES,
)
