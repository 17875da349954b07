"""`lace-repeated-pool`: Table 34, superpopulation risk of every method over 24 settings and three budgets."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np

from pipeline.studies.lace.designs import REPEATED_POOL_BENCHMARKS, Design, repeated_pool
from pipeline.studies.lace.efficiency import LogRatio, geometric_mean, log_ratio
from pipeline.studies.lace.methods import LABELS, design_comparison, point_estimates
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

Reading = Literal["text", "printed"]
BUDGETS = (50, 100, 200)
CHUNK = 25
METHODS = (
    "naive",
    "lace",
    "global_cv",
    "per_signal_cv",
    "residual_only",
    "plugin_judge",
    "plugin_multi",
    "aug_plugin",
    "scalar_cv",
    "local_ppi",
    "strat_ppi",
    "ppci",
)
PAPER: dict[str, tuple[float, float, float, float]] = {
    "naive": (1.0, 1.0, 1.0, 1.0),
    "lace": (2.235, 2.328, 1.849, 2.127),
    "global_cv": (0.953, 0.974, 0.990, 0.972),
    "per_signal_cv": (1.168, 1.178, 1.138, 1.161),
    "residual_only": (0.824, 0.579, 0.354, 0.553),
    "plugin_judge": (1.063, 0.758, 0.493, 0.735),
    "plugin_multi": (0.881, 0.672, 0.466, 0.651),
    "aug_plugin": (0.618, 0.768, 0.912, 0.757),
    "scalar_cv": (0.453, 0.708, 0.969, 0.677),
    "local_ppi": (0.499, 0.462, 0.374, 0.442),
    "strat_ppi": (0.155, 0.335, 0.552, 0.306),
    "ppci": (0.727, 0.835, 0.936, 0.828),
}
SETTINGS = tuple((benchmark, regime) for benchmark in REPEATED_POOL_BENCHMARKS for regime in range(3))


Chunk = tuple[str, int, int, Reading, bool, tuple[str, ...], int]
Errors = dict[tuple[str, int, int], np.ndarray[Any, Any]]


@lru_cache(maxsize=256)
def _design(benchmark: str, regime: int, n: int, reading: Reading, jitter: bool) -> Design:
    return repeated_pool(benchmark, regime, n, pool_size=500 if reading == "printed" else None, jitter=jitter)


def replicate_errors(payload: Chunk, rng: np.random.Generator) -> list[list[float]]:
    """Grid-averaged squared errors (replicates, methods) of one chunk of replicates of one setting and budget."""
    benchmark, regime, n, reading, jitter, methods, count = payload
    design = _design(benchmark, regime, n, reading, jitter)
    truth = design.smoothed_truth if reading == "printed" else design.truth
    rows = []
    for _ in range(count):
        problem = design_comparison(design, design.draw(rng, n), rng)
        values = point_estimates(problem, methods)
        rows.append([float(np.mean((values[method] - truth) ** 2)) for method in methods])
    return rows


def collect(
    reading: Reading, reps: int, options: StudyOptions, *, jitter: bool = True, methods: tuple[str, ...] = METHODS
) -> Errors:
    """Errors (reps, methods) of every setting and budget under one reading."""
    kind = reading if jitter else f"{reading}-tied"
    tasks: dict[str, Chunk] = {}
    for benchmark, regime in SETTINGS:
        for n in BUDGETS:
            for start in range(0, reps, CHUNK):
                payload = (benchmark, regime, n, reading, jitter, methods, min(CHUNK, reps - start))
                tasks[f"{kind}/{benchmark}/{regime}/{n}/{start}"] = payload
    replicates = run_tasks(
        options,
        replicate_errors,
        tasks,
        stage=f"repeated-pool-{kind}",
        signature=f"repeated-pool {kind} reps={reps}",
        label=f"chunks of {CHUNK} replicates, reading {kind}",
    )
    errors: dict[tuple[str, int, int], list[list[float]]] = {}
    for name, payload in tasks.items():
        errors.setdefault((payload[0], payload[1], payload[2]), []).extend(replicates[name])
    return {cell: np.asarray(rows) for cell, rows in errors.items()}


def _ratios(errors: Errors, methods: tuple[str, ...]) -> dict[str, dict[int, list[LogRatio]]]:
    """Method to budget to one log RE per setting."""
    return {
        method: {
            n: [
                log_ratio(errors[benchmark, regime, n][:, 0], errors[benchmark, regime, n][:, column])
                for benchmark, regime in SETTINGS
            ]
            for n in BUDGETS
        }
        for column, method in enumerate(methods)
    }


def result_table(reading: Reading, errors: Errors) -> ResultTable:
    """Table 34 under one reading, beside the paper's numbers."""
    ratios = _ratios(errors, METHODS)
    means = np.stack([errors[benchmark, regime, n].mean(axis=0) for benchmark, regime in SETTINGS for n in BUDGETS])
    best = np.bincount(means.argmin(axis=1), minlength=len(METHODS))
    rows: list[tuple[Cell, ...]] = []
    for column, method in enumerate(METHODS):
        printed = PAPER[method]
        budgets = [geometric_mean(ratios[method][n], printed[index]) for index, n in enumerate(BUDGETS)]
        overall = geometric_mean([cell for n in BUDGETS for cell in ratios[method][n]], printed[3])
        rows.append((LABELS[method], *budgets, overall, f"{best[column]}/{len(means)}"))
    explained = {
        "text": "reading text: M = 10 n, target p_m(z), as the paper's section I.4 says",
        "printed": "reading printed: M = 500 at every budget, target the kernel-smoothed θ_h(z); this is the reading "
        "under which the paper's printed numbers appear",
    }
    return ResultTable(
        f"Table 34, {explained[reading]}",
        ("Method", *(f"RE n={n}" for n in BUDGETS), "Overall", "Best"),
        tuple(rows),
        ("[95% Monte Carlo interval], paired delta method; geometric means over the 24 settings",),
    )


TIED_METHODS = ("naive", "lace", "global_cv", "per_signal_cv")


def tied_table(reps: int, options: StudyOptions) -> ResultTable:
    """How much the ties of the ordered axes matter: the same study with their levels left as they are."""
    rows: list[tuple[Cell, ...]] = []
    for reading in ("text", "printed"):
        ratios = _ratios(collect(reading, reps, options, jitter=False, methods=TIED_METHODS), TIED_METHODS)
        rows += [
            (f"{LABELS[method]}, {reading}", *(geometric_mean(ratios[method][n]) for n in BUDGETS))
            for method in TIED_METHODS[1:]
        ]
    return ResultTable(
        f"The same with the ordered axes left tied at their 5, 11 and 6 levels ({reps} replicates)",
        ("Method, reading", *(f"RE n={n}" for n in BUDGETS)),
        tuple(rows),
    )


def run(options: StudyOptions) -> StudyResult:
    """Both readings, the one asked for first."""
    reps = options.reps or study.default_reps
    other: Reading = "text" if options.reading == "printed" else "printed"
    readings: tuple[Reading, ...] = (options.reading, other)
    tables = tuple(result_table(reading, collect(reading, reps, options)) for reading in readings)
    tables += (tied_table(max(reps // 5, 2), options),)
    return StudyResult(
        study.title,
        tables,
        notes=(
            f"{reps} replicates per setting and budget, seed {options.seed}; every method sees the same pools, labels "
            "and folds.",
            "Table 34 as printed cannot come from the sampling law its section describes: with M = 10 n "
            "and target p_m LACE's RE grows with every budget; the printed one falls from 2.328 to 1.849. With M = 500 "
            "throughout and the smoothed target the printed pattern appears for every method.",
            "The eight profile marginals are the paper's own items, which are not published: here the ordered axes are "
            "jittered (no ties) and the lengths are rounded log-normal quantiles, both turned into midranks.",
            "PPCI's corner rule is not in the paper: here the point of largest absolute curvature of log variance "
            "proxy against log RKHS residual, over 25 penalties. Plug-ins and Residual-only come out 5 to 20% below "
            "the printed numbers under either reading; no definition tried closes that gap.",
        ),
    )


def summary_measure(table: ResultTable, method: str, column: int) -> Measured:
    """The cell of a method in a table made here."""
    row = next(row for row in table.rows if row[0] == LABELS[method])
    cell = row[column]
    assert isinstance(cell, Measured)
    return cell


study = Study(
    title="LACE: superpopulation risk under repeated pool resampling (Table 34)",
    run=run,
    default_reps=500,
)
