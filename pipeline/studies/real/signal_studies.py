"""`curved [TABLES]` and `free-signals TABLES`: what curves and what agreement of answers are worth, on seeded draws."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from pipeline.errors import InputError
from pipeline.estimators.floats import BoolArray, FloatArray
from pipeline.estimators.free_signals import answer_codes, free_signals
from pipeline.estimators.gaps.decisions import fit_gap
from pipeline.estimators.lace.mean import lace_mean
from pipeline.estimators.signals import PreparedSignals, prepare_signals
from pipeline.studies.lace.efficiency import log_ratio
from pipeline.studies.real.tables import is_known, load_cells, spread_targets
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

Pool: TypeAlias = tuple[FloatArray, PreparedSignals]

BUDGETS = (20, 50, 100, 200)
ITEMS = 500
REPS = 60
TARGETS = 3
_RULES = ("labels", "average", "curved")


def _sigmoid(values: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-values)))


def _shares(chance: FloatArray, rng: np.random.Generator) -> FloatArray:
    return (rng.random(len(chance)) < chance).astype(np.float64)


def _design(name: str, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """y (M,) and signals (M, K) of a fresh pool."""
    z, e = rng.normal(size=ITEMS), rng.normal(size=(ITEMS, 30))
    usual = _shares(_sigmoid(1.3 + 1.5 * z), rng)
    around = z[:, None] + e
    rated = np.clip(np.round(5.2 + 1.2 * z + 0.5 * e[:, 9]), 1.0, 5.0)
    cost = np.exp(z + 0.5 * e[:, 9])
    right = _shares(np.full(ITEMS, 0.7), rng)
    made: dict[str, tuple[FloatArray, FloatArray]] = {
        "usual": (usual, around[:, :3]),
        "U-shape": (_shares(_sigmoid(3.0 * z**2 - 2.5), rng), z[:, None]),
        "noise": (usual, e[:, :5]),
        "ceiling ratings": (rated, np.round(rated[:, None] + e[:, :2])),
        "accuracy .98": (_shares(np.full(ITEMS, 0.98), rng), around[:, :3]),
        "accuracy .02": (_shares(np.full(ITEMS, 0.02), rng), around[:, :3]),
        "judge right in 95 %": (right, np.where(rng.random(ITEMS) < 0.95, right, 1.0 - right)[:, None]),
        "lognormal": (cost, around[:, :2]),
        "zero-inflated": (np.where(rng.random(ITEMS) < 0.7, 0.0, cost), around[:, :2]),
        "30 signals": (usual, z[:, None] + 2.0 * e),
        "duplicated": (usual, np.repeat(around[:, :1], 4, axis=1)),
        "Cauchy": (usual, z[:, None] + rng.standard_cauchy((ITEMS, 3))),
    }
    return made[name]


DESIGNS = (
    "usual", "U-shape", "noise", "ceiling ratings", "accuracy .98", "accuracy .02", "judge right in 95 %", "lognormal",
    "zero-inflated", "30 signals", "duplicated", "Cauchy",
)  # fmt: skip


def _means(y: FloatArray, signals: Mapping[str, tuple[str, PreparedSignals]], n: int, rng: np.random.Generator) -> Any:
    """Rule → [squared error, covered, width, heavy tails said] of one draw of labels."""
    seen = np.full(len(y), np.nan)
    rows = rng.permutation(len(y))[:n]
    seen[rows] = y[rows]
    plain = prepare_signals(np.empty((len(y), 0)))
    means = {}
    for rule, (adapt, columns) in {"labels": ("curved", plain), **signals}.items():
        fit = lace_mean(seen, columns, adapt=adapt, rng=0)  # type: ignore[arg-type]
        inside = fit.low - 1e-12 <= y.mean() <= fit.high + 1e-12
        means[rule] = [(fit.value - y.mean()) ** 2, float(inside), fit.high - fit.low, float(fit.heavy_tailed)]
    return means


def _curved_task(payload: tuple[str, Any, int, int], rng: np.random.Generator) -> dict[str, list[list[float]]]:
    """All draws of one cell at one budget."""
    name, pool, n, reps = payload
    rows: dict[str, list[list[float]]] = {}
    prepared = None if pool is None else prepare_signals(pool[1])
    for _ in range(reps):
        y, columns = (pool[0], prepared) if pool is not None else _fresh(name, rng)
        assert columns is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = _means(y, {rule: (rule, columns) for rule in ("average", "curved")}, n, rng)
        for rule, entry in drawn.items():
            rows.setdefault(rule, []).append(entry)
    return rows


def _fresh(name: str, rng: np.random.Generator) -> Pool:
    y, signals = _design(name, rng)
    return y, prepare_signals(signals)


def _files(options: StudyOptions) -> list[Path]:
    if options.table is None:
        return []
    path = Path(options.table)
    return sorted(path.iterdir()) if path.is_dir() else [path]


def _run_curved(options: StudyOptions) -> StudyResult:
    reps = options.reps or REPS
    pools: dict[str, Any] = dict.fromkeys(DESIGNS)
    for file in _files(options):
        if not is_known(file):
            continue
        cells = load_cells(file, options.columns)
        first = [cell for cell in cells if cell.axis == cells[0].axis]
        for cell in spread_targets(first, TARGETS):
            pools[cell.name] = (cell.y, cell.signals)
    tasks = {
        f"{name}/{n}": (name, pool, n, reps)
        for name, pool in pools.items()
        for n in BUDGETS
        if pool is None or 2 * n <= len(pool[0])
    }
    replicates = run_tasks(options, _curved_task, tasks, stage="curved", signature=f"curved reps={reps}", label="cells")
    tables, overall = [], []
    for title, inside in (("Synthetic designs", True), ("Real tables", False)):
        rows: list[tuple[Cell, ...]] = []
        for name, task in tasks.items():
            if (task[1] is None) == inside:
                values = {rule: np.array(entry) for rule, entry in replicates[name].items()}
                rows.append((task[0], task[2], *_compared(values)))
        if rows:
            tables.append(ResultTable(title, _CURVED_COLUMNS, tuple(rows)))
            overall += [(title, n, *_geometric([row for row in rows if row[1] == n])) for n in BUDGETS]
    head = ("cells", "n", "MSE curved / average", "width curved / labels")
    notes = (
        f"{reps} draws of labels a cell; pool target. Both rules with the logistic learner where outcomes are 0/1.",
        "MSE below 1: curves help. 'heavy' is the share of draws in which one label carries too much of the variance.",
    )
    whole = ResultTable("Geometric means", head, tuple(overall))
    return StudyResult("Curved relations in the averaging rule", (whole, *tables), notes=notes)


_CURVED_COLUMNS = (
    "cell", "n", "MSE curved / average", "RE average", "RE curved", "cover average", "cover curved",
    "width curved / labels", "heavy",
)  # fmt: skip


def _compared(values: Mapping[str, FloatArray]) -> tuple[Cell, ...]:
    labels, average, curved = (values[rule] for rule in _RULES)
    ratio = log_ratio(curved[:, 0], average[:, 0])
    spread = 1.96 * float(np.sqrt(ratio.variance))
    value, low, high = (float(np.exp(ratio.value + shift)) for shift in (0.0, -spread, spread))
    at = Measured(value, low, high)
    error = labels[:, 0].mean(), average[:, 0].mean(), curved[:, 0].mean()
    width = float(np.exp(np.mean(np.log(np.maximum(curved[:, 2], 1e-12) / np.maximum(labels[:, 2], 1e-12)))))
    return (
        at, float(error[0] / error[1]), float(error[0] / error[2]), float(average[:, 1].mean()),
        float(curved[:, 1].mean()), width, float(curved[:, 3].mean()),
    )  # fmt: skip


def _geometric(rows: list[tuple[Cell, ...]]) -> tuple[Cell, Cell]:
    def mean(column: int) -> float:
        cells = [row[column] for row in rows]
        values = [cell.value if isinstance(cell, Measured) else float(str(cell)) for cell in cells if cell]
        return float(np.exp(np.mean(np.log(values)))) if values else float("nan")

    return mean(2), mean(7)


# --- free signals -----------------------------------------------------------------------------------------------------


def _answer_tables(options: StudyOptions) -> dict[str, tuple[list[str], FloatArray, FloatArray, list[Any]]]:
    """Run → (targets, outcomes (M, T), lengths (M, T), anchors' answers): tables of answers, cut into runs."""
    runs: dict[str, Any] = {}
    for file in _files(options):
        if file.name.startswith("gsm8k_outcomes"):
            frame = pl.read_csv(file).with_columns(pl.col("pred").cast(pl.String).alias("said"))
            runs |= _gsm8k_runs(frame)
        elif file.name.startswith("mmlupro_predictions"):
            frame = pl.read_csv(file)
            models = [name for name in frame.columns if name not in ("item_id", "category", "gold")]
            runs |= _mmlu_runs(frame.sample(min(1500, frame.height), seed=0), models)
    if not runs:
        raise InputError("free-signals needs tables with answers: gsm8k_outcomes or mmlupro_predictions")
    return runs


def _cut(names: list[str], anchors: list[str], answers: Mapping[str, list[Any]], right: Mapping[str, Any]) -> Any:
    outcomes = np.column_stack([np.asarray(right[name], dtype=np.float64) for name in names])
    return names, outcomes, [answers[name] for name in names], {name: answers[name] for name in anchors}


def _gsm8k_runs(frame: pl.DataFrame) -> dict[str, Any]:
    wide = frame.pivot(on="model", index="item_id", values="said").sort("item_id")
    right = frame.pivot(on="model", index="item_id", values="y").sort("item_id")
    answers = {name: wide[name].to_list() for name in wide.columns[1:]}
    outcomes = {name: right[name].to_list() for name in right.columns[1:]}
    ranked = sorted(answers, key=lambda name: float(np.mean(outcomes[name])))
    targets = ranked[1:-1:2][:6]
    weak = [name for name in ranked if name not in targets][:3]
    strong = [*weak[:2], ranked[-1]]
    return {
        "GSM8K, strong anchor": _cut(targets, strong, answers, outcomes),
        "GSM8K, weak anchors": _cut(targets, weak, answers, outcomes),
    }


def _mmlu_runs(frame: pl.DataFrame, models: list[str]) -> dict[str, Any]:
    answers = {name: frame[name].to_list() for name in models}
    gold = frame["gold"].to_list()
    outcomes = {name: [float(a == g) for a, g in zip(answers[name], gold, strict=True)] for name in models}
    ranked = sorted(models, key=lambda name: float(np.mean(outcomes[name])))
    targets = ranked[2:-1:3][:6]
    rest = [name for name in ranked if name not in targets]
    return {
        "MMLU-Pro, strong anchors": _cut(targets, rest[-3:], answers, outcomes),
        "MMLU-Pro, weak anchors": _cut(targets, rest[:3], answers, outcomes),
    }


def _free_task(payload: tuple[Any, int, int], rng: np.random.Generator) -> dict[str, list[list[float]]]:
    """One run at one budget: per rule, [squared error, covered] of each target's mean and of neighbours' gaps."""
    (names, outcomes, answers, anchors), n, reps = payload
    columns = [*answers, *anchors.values()]
    codes = answer_codes(list(zip(*columns, strict=True)))
    made = free_signals(codes, np.arange(len(columns)), len(names), voice_names=[*names, *anchors])
    ready = [prepare_signals(made.columns[:, t]) for t in range(len(names))]
    pairs = [(t, t + 1) for t in range(len(names) - 1)]
    joint = [
        prepare_signals(
            np.column_stack([made.columns[:, a], made.columns[:, b], made.columns[:, a] - made.columns[:, b]])
        )
        for a, b in pairs
    ]
    share = made.names.index("share")
    rows: dict[str, list[list[float]]] = {}
    for _ in range(reps):
        mask = np.zeros(len(outcomes), dtype=bool)
        mask[rng.permutation(len(outcomes))[:n]] = True
        for t in range(len(names)):
            y, truth = outcomes[:, t], outcomes[:, t].mean()
            fit = lace_mean(np.where(mask, y, np.nan), ready[t], adapt="curved", rng=0)
            _add(rows, "mean LACE", t, fit.value - truth, fit.low - 1e-12 <= truth <= fit.high + 1e-12)
            _add(rows, "mean labels", t, y[mask].mean() - truth)
            _add(rows, "mean PPI++", t, _tuned(y, made.columns[:, t], mask) - truth)
            _add(rows, "mean strata", t, _stratified(y, made.columns[:, t, share], mask) - truth)
        for k, (a, b) in enumerate(pairs):
            gap = outcomes[:, a] - outcomes[:, b]
            fitted = fit_gap(np.where(mask, gap, np.nan), joint[k], adapt="curved").estimate()
            inside = fitted.low - 1e-12 <= gap.mean() <= fitted.high + 1e-12
            _add(rows, "gap LACE", k, fitted.value - gap.mean(), inside)
            _add(rows, "gap labels", k, gap[mask].mean() - gap.mean())
    return rows


def _add(rows: dict[str, list[list[float]]], rule: str, cell: int, error: float, inside: bool = True) -> None:
    rows.setdefault(rule, []).append([float(cell), float(error) ** 2, float(inside)])


def _tuned(y: FloatArray, signals: FloatArray, mask: BoolArray) -> float:
    """PPI++ with the signal that goes best with every outcome, as if someone had told which."""
    spread = signals.std(axis=0)
    together = np.abs(((signals - signals.mean(axis=0)) * (y - y.mean())[:, None]).mean(axis=0))
    best = signals[:, int(np.argmax(np.where(spread > 0.0, together / np.where(spread > 0.0, spread, 1.0), 0.0)))]
    own, outcome = best[mask], y[mask]
    slope = float(np.cov(own, outcome)[0, 1] / max(own.var(ddof=1), 1e-12)) if np.ptp(own) > 0.0 else 0.0
    return float(outcome.mean() - slope * (own.mean() - best.mean()))


def _stratified(y: FloatArray, share: FloatArray, mask: BoolArray) -> float:
    """Post-stratification on four bins of the vote share; an empty bin joins the mean of all."""
    bins = np.searchsorted(np.unique(np.quantile(share, [0.25, 0.5, 0.75])), share)
    total = 0.0
    for level in np.unique(bins):
        inside = mask & (bins == level)
        total += float((bins == level).mean()) * float(y[inside].mean() if inside.any() else y[mask].mean())
    return total


def _run_free(options: StudyOptions) -> StudyResult:
    reps = options.reps or REPS
    tasks = {f"{name}/{n}": (run, n, reps) for name, run in _answer_tables(options).items() for n in BUDGETS}
    replicates = run_tasks(
        options, _free_task, tasks, stage="free", signature=f"free-signals reps={reps}", label="runs"
    )
    rows = []
    for name in tasks:
        run, _, n = name.rpartition("/")
        errors = {rule: np.array(entry) for rule, entry in replicates[name].items()}
        rows.append((run, int(n), *_relative(errors)))
    head = (
        "run", "n", "RE means", "worst", "RE PPI++, best signal told", "RE post-strata", "cover means", "RE gaps",
        "worst gap", "cover gaps",
    )  # fmt: skip
    notes = (
        f"Real answers; {reps} draws of labels a cell; RE: squared error of the labels' mean over the estimator's,",
        "geometric mean over targets (or neighbours' gaps). Only signals from answers: no further call.",
    )
    return StudyResult("Free signals", (ResultTable("Relative efficiency", head, tuple(rows)),), notes=notes)


def _relative(errors: Mapping[str, FloatArray]) -> tuple[Cell, ...]:
    def ratios(rule: str, base: str) -> FloatArray:
        mine, plain = errors[rule], errors[base]
        cells = np.unique(mine[:, 0])

        def of(rows: FloatArray, cell: float) -> float:
            return float(rows[rows[:, 0] == cell, 1].mean())

        return np.array([of(plain, cell) / of(mine, cell) for cell in cells])

    means, gaps = ratios("mean LACE", "mean labels"), ratios("gap LACE", "gap labels")
    told, strata = (float(np.exp(np.log(ratios(rule, "mean labels")).mean())) for rule in ("mean PPI++", "mean strata"))
    return (
        float(np.exp(np.log(means).mean())), float(means.min()), told, strata, float(errors["mean LACE"][:, 2].mean()),
        float(np.exp(np.log(gaps).mean())), float(gaps.min()), float(errors["gap LACE"][:, 2].mean()),
    )  # fmt: skip


curved_study = Study(
    "Curved relations in the averaging rule",
    _run_curved,
    REPS,
)
free_study = Study(
    "Free signals",
    _run_free,
    REPS,
    needs_table=True,
)
