"""`lace-real TABLE`: the paper's section 5.3 and appendix H.1 on a real table with full gold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline.errors import DataError
from pipeline.report.values import Axis, Figure, Series
from pipeline.studies.lace.efficiency import LogRatio, geometric_mean, log_ratio
from pipeline.studies.lace.methods import LABELS
from pipeline.studies.real import robustness as real_robustness
from pipeline.studies.real.run_cells import is_run, run_cells
from pipeline.studies.real.splits import ADAPTIVE, BUDGETS, cell_pool, method_value, methods_for, profile_error, split
from pipeline.studies.real.tables import RealCell, is_known, load_cells, spread_targets
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

NAMES: Mapping[str, str] = {**LABELS, ADAPTIVE: "LACE, adaptive rule"}
NAMES = {**NAMES, "lace": "LACE (paper's rule)"}
Errors = dict[str, list[list[float]]]
FOLDER_TARGETS = 6
"""Targets per table and axis when a whole folder is run; a table of its own runs all of them."""
INTERVAL_NOTE = ("[95% Monte Carlo interval], paired delta method; nested budgets of a cell are treated jointly",)


def main_errors(cell: RealCell, reps: int, rng: np.random.Generator) -> Errors:
    """Profile errors of every method: ``reps`` permutations, nested prefixes of 50, 100 and 200 labels."""
    prepared = cell_pool(cell)
    methods = methods_for(cell)
    errors: Errors = {method: [[] for _ in BUDGETS] for method in methods}
    for _ in range(reps):
        order = rng.permutation(len(cell.y))
        for index, n in enumerate(BUDGETS):
            if n >= len(cell.y):
                continue
            problem = split(prepared, order[:n], rng)
            reached = problem.weights.any(axis=1)
            for method in methods:
                value = method_value(method, prepared, problem)
                errors[method][index].append(profile_error(value, prepared.truth, reached))
    return errors


_PARTS: Mapping[str, Callable[[RealCell, int, np.random.Generator], Errors]] = {
    "main": main_errors,
    "families": real_robustness.families,
    "grid": real_robustness.grid,
    "tuned": real_robustness.tuned,
    "kernels": real_robustness.kernels,
    "stratified": real_robustness.stratified,
}


def replicate_errors(payload: tuple[str, RealCell, int], rng: np.random.Generator) -> Errors:
    """One part of the study on one cell."""
    part, cell, reps = payload
    return _PARTS[part](cell, reps, rng)


def run(options: StudyOptions) -> StudyResult:
    """Every part on every cell of the table, or of every known table of a folder, then the tables of the paper."""
    assert options.table is not None
    reps = options.reps or study.default_reps
    tables: dict[str, list[RealCell]] = {}
    for path in (options.table, *options.more):
        tables |= _usable_cells(path, options, taken=tables)
    sizes = {"main": reps, "families": reps, "grid": max(2, 2 * reps // 5), "tuned": max(2, reps // 10)}
    sizes |= {"kernels": reps, "stratified": reps}
    tasks = {
        f"{part}/{cell.name}": (part, cell, sizes[part])
        for cells in tables.values()
        for part in _PARTS
        for cell in cells
        if (part != "kernels" or cell.levels is not None) and (part != "grid" or cell.kind != "categorical")
    }
    replicates: dict[str, Errors] = run_tasks(
        options,
        replicate_errors,
        tasks,
        stage="real",
        signature=f"real {Path(options.table).name} reps={reps}",
        label="parts of cells",
    )
    results: list[ResultTable] = []
    figures: dict[str, Figure] = {}
    mains: dict[str, dict[str, Errors]] = {}
    for stem, cells in tables.items():
        parts: dict[str, dict[str, Errors]] = {
            part: {
                cell.name: replicates[f"{part}/{cell.name}"] for cell in cells if f"{part}/{cell.name}" in replicates
            }
            for part in _PARTS
        }
        mains[stem] = parts["main"]
        results += _tables(stem, cells, parts, sizes)
        figures |= _figure(parts["main"], stem)
    if len(tables) > 1:
        results.insert(0, _summary(mains))
    sizes_of = [len(cell.y) for cells in tables.values() for cell in cells]
    return StudyResult(
        study.title,
        tuple(results),
        figures,
        (
            f"{len(sizes_of)} cells (target × axis) of {min(sizes_of)} to {max(sizes_of)} items; {reps} nested splits "
            f"per cell, seed {options.seed}; grid {sizes['grid']}, within-L tuning {sizes['tuned']} splits. Of a "
            f"folder, at most {FOLDER_TARGETS} targets per table and axis, evenly spread over their mean outcome.",
            "Target: the full-pool gold profile of each cell (Gaussian, h0, 20 points from the 5th to the 95th "
            "percentile; levels for categories). RE above 1 means a smaller mean squared error than labels alone.",
            "Signals are standardised over each pool; missing values are filled, with an indicator.",
            "RE says nothing of intervals: plug-ins trade a bias that does not shrink with n for a small variance.",
            "Methods that need distances (Local PPI, PPCI, StratPPI) have no value on categories.",
        ),
    )


def _usable_cells(path: Path, options: StudyOptions, taken: Collection[str] = ()) -> dict[str, list[RealCell]]:
    """Table name to its cells, without targets that are too small or constant."""
    if is_run(path):
        return {_free_name(path.name, taken): _kept(run_cells(path), path)}
    files = [file for file in sorted(path.iterdir()) if is_known(file)] if path.is_dir() else [path]
    usable = {}
    for file in files:
        cells = load_cells(file, options.columns)
        kept = _studied(cells)
        if path.is_dir():
            axes = dict.fromkeys(cell.axis for cell in kept)
            kept = [c for axis in axes for c in spread_targets([o for o in kept if o.axis == axis], FOLDER_TARGETS)]
        if kept:
            usable[_free_name(file.name.split(".")[0], taken)] = kept
    if not usable:
        raise _nothing_to_study(path)
    return usable


def _studied(cells: Sequence[RealCell]) -> list[RealCell]:
    return [cell for cell in cells if len(cell.y) > BUDGETS[0] and float(np.ptp(cell.y)) > 0.0]


def _kept(cells: Sequence[RealCell], path: Path) -> list[RealCell]:
    kept = _studied(cells)
    if not kept:
        raise _nothing_to_study(path)
    return kept


def _nothing_to_study(path: Path) -> DataError:
    return DataError(f"{path}: no target has more than {BUDGETS[0]} rows and outcomes that differ")


def _free_name(name: str, taken: Collection[str]) -> str:
    return name if name not in taken else f"{name} ({len(taken) + 1})"


def _summary(mains: Mapping[str, Mapping[str, Errors]]) -> ResultTable:
    """Geometric-mean RE over budgets and cells, by table and axis."""
    groups: dict[str, dict[str, Errors]] = {}
    for parts in mains.values():
        for name, errors in parts.items():
            groups.setdefault(name.rsplit("/", 1)[0], {})[name] = errors
    methods = list(dict.fromkeys(m for parts in groups.values() for errors in parts.values() for m in errors))
    rows: list[tuple[Cell, ...]] = []
    for method in methods[1:]:
        cells: list[Cell] = [NAMES[method]]
        for parts in groups.values():
            ratios = _ratios(parts, "naive", method)
            by_budget = [ratios[n] for n in BUDGETS]
            cells.append("/".join(f"{geometric_mean(part).value:.2f}" for part in by_budget) if by_budget[0] else None)
        rows.append(tuple(cells))
    return ResultTable(
        f"Summary: RE at n = {'/'.join(map(str, BUDGETS))}, geometric mean over targets, by table and axis",
        ("Estimator", *(f"{name} ({len(parts)})" for name, parts in groups.items())),
        tuple(rows),
    )


def _ratios(parts: Mapping[str, Errors], reference: str, variant: str) -> dict[int, list[LogRatio]]:
    """Budget to one log ratio per cell that has both."""
    return {
        n: [
            log_ratio(np.asarray(errors[reference][index]), np.asarray(errors[variant][index]))
            for errors in parts.values()
            if reference in errors and variant in errors and errors[variant][index]
        ]
        for index, n in enumerate(BUDGETS)
    }


def _tables(
    stem: str, cells: Sequence[RealCell], parts: Mapping[str, Mapping[str, Errors]], sizes: Mapping[str, int]
) -> list[ResultTable]:
    families = "; ".join(f"{name} ({len(columns)})" for name, columns in cells[0].families.items())
    tables = [
        replace(
            _overall("relative efficiency, geometric mean over cells (as Table 2)", parts["main"]),
            notes=(f"signal families: {families}", *INTERVAL_NOTE),
        )
    ]
    tables.append(_per_cell(parts["main"]))
    tables.append(_families(parts["families"]))
    if parts["grid"]:
        tables.append(_grid(parts["grid"], sizes["grid"]))
    title = f"Every method tuned by three-fold cross-validation within L ({sizes['tuned']} splits; as Table 28)"
    tables.append(_overall(title, parts["tuned"]))
    if parts["kernels"]:
        tables.append(_kernels(parts["kernels"]))
    tables.append(_stratified(parts["stratified"]))
    return [replace(table, title=f"[{stem}] {table.title}") for table in tables]


def _overall(title: str, parts: Mapping[str, Errors]) -> ResultTable:
    methods = list(dict.fromkeys(method for errors in parts.values() for method in errors))
    rows: list[tuple[Cell, ...]] = []
    for method in methods:
        ratios = _ratios(parts, "naive", method)
        names = {
            n: [c for c, errors in parts.items() if method in errors and errors[method][index]]
            for index, n in enumerate(BUDGETS)
        }
        together = [ratio for n in BUDGETS for ratio in ratios[n]]
        groups = [name for n in BUDGETS for name in names[n]]
        finite = [ratio.value for ratio in together if np.isfinite(ratio.value)]
        below = sum(value < -1e-9 for value in finite)
        worst = float(np.exp(min(finite))) if finite else float("nan")
        overall = geometric_mean(together, groups=groups)
        rows.append(
            (NAMES[method], *(geometric_mean(ratios[n]) for n in BUDGETS), overall, worst, f"{below}/{len(finite)}")
        )
    return ResultTable(
        title,
        ("Estimator", *(f"n = {n}" for n in BUDGETS), "Overall", "Worst cell", "Below 1"),
        tuple(rows),
        INTERVAL_NOTE,
        digits=2,
    )


def _per_cell(parts: Mapping[str, Errors]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for name, errors in parts.items():
        means = {
            method: [float(np.nanmean(row)) if row else float("nan") for row in values]
            for method, values in errors.items()
        }
        relative = {m: [a / b for a, b in zip(means["naive"], values, strict=True)] for m, values in means.items()}
        others = [method for method in relative if method not in ("naive", "lace", ADAPTIVE)]
        best = max(others, key=lambda method: float(np.nanmean(np.log(relative[method]))))
        winner = max(relative, key=lambda method: float(np.nanmean(np.log(relative[method]))))
        rows.append(
            (
                name.split("/", 1)[1],
                _triple(relative["lace"]),
                _triple(relative[ADAPTIVE]),
                f"{_triple(relative[best])} {NAMES[best]}",
                NAMES[winner] if winner != "naive" else "none",
            )
        )
    columns = ("Cell", "LACE (paper's rule)", "LACE, adaptive rule", "Best comparator", "Best of all")
    return ResultTable(f"RE of each cell at n = {'/'.join(map(str, BUDGETS))}", columns, tuple(rows))


def _triple(values: Sequence[float]) -> str:
    return "/".join(f"{value:.2f}" for value in values)


def _families(parts: Mapping[str, Errors]) -> ResultTable:
    variants = list(dict.fromkeys(name for errors in parts.values() for name in errors if name != "naive"))
    rows: list[tuple[Cell, ...]] = []
    for variant in variants:
        ratios = _ratios(parts, "naive", variant)
        kept = _ratios(parts, "all", variant)
        shares = "/".join(f"{100 * geometric_mean(kept[n]).value:.0f}%" for n in BUDGETS)
        rows.append((variant, *(geometric_mean(ratios[n]) for n in BUDGETS), shares))
    columns = ("Signals", *(f"n = {n}" for n in BUDGETS), "Share of full LACE")
    return ResultTable(
        "Signal families: LACE (paper's rule) without each family and with each alone", columns, tuple(rows), digits=2
    )


def _grid(parts: Mapping[str, Errors], reps: int) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for ridge in real_robustness.RIDGES:
        cells: list[Cell] = [f"λ = {ridge}"]
        for multiple in real_robustness.BANDWIDTHS:
            ratios = _ratios(parts, f"naive {ridge} {multiple}", f"lace {ridge} {multiple}")
            cells.append("/".join(f"{geometric_mean(ratios[n]).value:.2f}" for n in BUDGETS))
        rows.append(tuple(cells))
    return ResultTable(
        f"Ridge × bandwidth: RE at n = {'/'.join(map(str, BUDGETS))}, geometric means ({reps} splits; as Table 27)",
        ("", *(f"h = {multiple} h0" for multiple in real_robustness.BANDWIDTHS)),
        tuple(rows),
        ("each bandwidth has its own target and its own naive estimator",),
    )


def _kernels(parts: Mapping[str, Errors]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for method in ("lace", ADAPTIVE):
        for name, label in (
            ("gaussian", "jittered Gaussian"),
            ("triangular", "triangular"),
            ("levels", "within level"),
        ):
            ratios = _ratios(parts, f"naive {name}", f"{method} {name}")
            rows.append((f"{NAMES[method]}, {label}", *(geometric_mean(ratios[n]) for n in BUDGETS)))
    columns = ("Rule, kernel", *(f"n = {n}" for n in BUDGETS))
    return ResultTable(
        "Kernel on the ordered axis, each against its own target (as Table 30)", columns, tuple(rows), digits=2
    )


def _stratified(parts: Mapping[str, Errors]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for name in real_robustness.DRAWS[1:]:
        cells: list[Cell] = [name]
        for index in range(len(BUDGETS)):
            ratios = [
                float(np.nanmean(errors[f"lace {name}"][index]) / np.nanmean(errors["lace random"][index]))
                for errors in parts.values()
                if f"lace {name}" in errors and errors[f"lace {name}"][index]
            ]
            helped = sum(ratio < 0.95 for ratio in ratios)
            cells.append(f"{np.median(ratios):.3f} ({helped}/{len(ratios)})" if ratios else None)
        rows.append(tuple(cells))
    return ResultTable(
        "Labels stratified before labelling: LACE's MSE over that of random labels, median over cells "
        "(cells helped by over 5%)",
        ("Strata", *(f"n = {n}" for n in BUDGETS)),
        tuple(rows),
    )


def _figure(parts: Mapping[str, Errors], stem: str) -> dict[str, Figure]:
    """The chart of RE against labels by method; nothing where there is only one budget."""
    series = []
    for method in dict.fromkeys(name for errors in parts.values() for name in errors):
        if method not in ("lace", ADAPTIVE, *_SHOWN):
            continue
        ratios = _ratios(parts, "naive", method)
        cells = {n: geometric_mean(ratios[n]) for n in BUDGETS}
        cells = {n: cell for n, cell in cells.items() if np.isfinite(cell.value)}
        if len(cells) > 1:
            series.append(
                Series(
                    NAMES[method],
                    list(cells),
                    [cell.value for cell in cells.values()],
                    [cell.low or cell.value for cell in cells.values()],
                    [cell.high or cell.value for cell in cells.values()],
                    dashed=method not in ("lace", ADAPTIVE),
                )
            )
    if not series:
        return {}
    title, y_label = f"Relative efficiency on {stem}", "RE, geometric mean over cells"
    chart = Figure(title, tuple(series), Axis("labels", log=True), Axis(y_label, log=True, marks=(1.0,)))
    return {f"lace-real-{stem}": chart}


_SHOWN = ("global_cv", "per_signal_cv", "aug_plugin", "scalar_cv", "plugin_multi")

study = Study(
    title="LACE on real data (protocol of section 5.3 and appendix H.1)",
    run=run,
    default_reps=100,
    needs_table=True,
)
