"""`lace-a`: Table 33 and Figure 4, the gain formula of Theorem 4 in its shrinking-bandwidth regime."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.estimators.floats import BoolArray, FloatArray
from pipeline.estimators.lace.localities import Gaussian
from pipeline.report.values import Axis, Figure, Series
from pipeline.studies.lace.designs import Design, gain_prediction, setting_a, specialists_a
from pipeline.studies.lace.efficiency import log_ratio
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

SHARES = (0.05, 0.10, 0.15)
POOL_SIZES = (5_000, 20_000, 80_000, 320_000)
FIXED_BANDWIDTH = 0.12
REACH = 8.4
"""Bandwidths beyond which the weight is below 1e-15 of its peak."""
CHUNK = 10
CURVES = ("naive", "oracle", "feasible", "naive fixed h", "oracle fixed h")
PAPER = {
    0.05: (3.245, 3.216, 3.159, 2.332),
    0.10: (2.902, 2.916, 2.904, 2.197),
    0.15: (2.625, 2.610, 2.601, 1.994),
}
PAPER_COEFFICIENT_ERROR = {5_000: (0.00922, 0.00611, 0.00475), 320_000: (0.000843, 0.000435, 0.000296)}


def replicate_errors(payload: tuple[int, int], rng: np.random.Generator) -> dict[str, Any]:
    """Squared errors (replicates, share, curve, point) and coefficient errors (replicates, share) of one chunk."""
    pool_size, count = payload
    design = setting_a(pool_size)
    errors, coefficient_errors = [], []
    for _ in range(count):
        z, y, signals = design.pool(rng)
        order = rng.permutation(pool_size)
        values, misses = [], []
        for share in SHARES:
            labeled = np.zeros(pool_size, dtype=np.bool_)
            labeled[order[: round(share * pool_size)]] = True
            estimates, miss = _estimates(design, z, y, signals, labeled)
            values.append((estimates - 0.5) ** 2)
            misses.append(miss)
        errors.append(np.stack(values))
        coefficient_errors.append(misses)
    return {"errors": np.stack(errors), "coefficients": coefficient_errors}


def _estimates(
    design: Design, z: FloatArray, y: FloatArray, signals: FloatArray, labeled: BoolArray
) -> tuple[FloatArray, float]:
    """The five curves (5, G) and the mean squared error of the feasible coefficients.

    ``z`` is sorted, so that each point needs only the items within ``REACH`` bandwidths: the same numbers as
    ``lace_profile`` to rounding, at a fraction of the cost.
    """
    assert isinstance(design.locality, Gaussian)
    width = float(np.asarray(design.locality.bandwidth))
    ridge = 1.0 / (int(labeled.sum()) * width)
    curves = np.empty((len(CURVES), len(design.at)))
    miss = np.empty(design.oracle.shape)
    for index, point in enumerate(design.at):
        beta = design.oracle[index]
        naive, imbalance, gram, cross = _local_moments(z, y, signals, labeled, point, width, with_gram=True)
        fitted = np.linalg.solve(gram + ridge * np.eye(len(beta)), cross)
        curves[:3, index] = naive, naive - beta @ imbalance, naive - fitted @ imbalance
        miss[index] = fitted - beta
        naive, imbalance, _, _ = _local_moments(z, y, signals, labeled, point, FIXED_BANDWIDTH, with_gram=False)
        curves[3:, index] = naive, naive - beta @ imbalance
    return curves, float(np.mean(miss**2))


def _local_moments(
    z: FloatArray,
    y: FloatArray,
    signals: FloatArray,
    labeled: BoolArray,
    point: float,
    width: float,
    *,
    with_gram: bool,
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Ȳ_L, S̄_L − S̄_T, Σ_SS over T and Σ_SY over L at one point."""
    inside = slice(*np.searchsorted(z, (point - REACH * width, point + REACH * width)))
    kernel = np.exp(-0.5 * ((z[inside] - point) / width) ** 2)
    nearby, has_label = signals[inside], labeled[inside]
    pool_weights = kernel / kernel.sum()
    weights = kernel[has_label] / kernel[has_label].sum()
    pool_mean = pool_weights @ nearby
    outcome, measured = y[inside][has_label], nearby[has_label]
    naive, label_mean = float(weights @ outcome), weights @ measured
    gram, cross = np.empty((0, 0)), np.empty(0)
    if with_gram:
        gram = (nearby * pool_weights[:, None]).T @ nearby - np.outer(pool_mean, pool_mean)
        cross = (weights * (outcome - naive)) @ measured
    return naive, np.asarray(label_mean - pool_mean), gram, cross


def run(options: StudyOptions) -> StudyResult:
    """Monte Carlo at each pool size, then Table 33, the coefficient errors and Figure 4."""
    reps = options.reps or study.default_reps
    tasks = {
        f"{size}/{start}": (size, min(CHUNK, reps - start)) for size in POOL_SIZES for start in range(0, reps, CHUNK)
    }
    replicates = run_tasks(
        options,
        replicate_errors,
        tasks,
        stage="setting-a",
        signature=f"setting-a reps={reps}",
        label=f"chunks of {CHUNK} replicates",
    )
    errors = {
        size: np.concatenate(
            [np.asarray(replicates[name]["errors"]) for name, (own, _) in tasks.items() if own == size]
        )
        for size in POOL_SIZES
    }
    misses = {
        size: np.concatenate(
            [np.asarray(replicates[name]["coefficients"]) for name, (own, _) in tasks.items() if own == size]
        )
        for size in POOL_SIZES
    }
    largest = POOL_SIZES[-1]
    return StudyResult(
        study.title,
        (_main_table(errors), _pointwise_table(errors[largest]), _coefficient_table(misses)),
        {f"lace-a-{round(100 * share):02d}": _figure(errors[largest], index) for index, share in enumerate(SHARES)},
        (
            f"{reps} replicates at every pool size, seed {options.seed}; the three label fractions share each pool "
            "(nested labels), so that their errors are dependent across rows.",
            "Prediction: G / Σ_g {1 − (1 − π) R²(z_g)} over the 17 points, closed form.",
            "Feasible: b = h = M^(−1/3), λ = 1/(nh).",
        ),
    )


def _r_squared() -> FloatArray:
    at = setting_a(POOL_SIZES[0]).at
    return specialists_a(at).r_squared(np.full(len(at), 0.5))


def _main_table(errors: dict[int, FloatArray]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for size in reversed(POOL_SIZES):
        for index, share in enumerate(SHARES):
            profile = errors[size][:, index].mean(axis=2)
            printed = PAPER[share] if size == POOL_SIZES[-1] else (PAPER[share][0], None, None, None)
            rows.append(
                (
                    f"M = {size:,}, π = {share:.2f}",
                    Measured(gain_prediction(_r_squared(), share), paper=printed[0]),
                    log_ratio(profile[:, 0], profile[:, 1]).measured(printed[1]),
                    log_ratio(profile[:, 0], profile[:, 2]).measured(printed[2]),
                    log_ratio(profile[:, 3], profile[:, 4]).measured(printed[3]),
                )
            )
    return ResultTable(
        "Table 33: profile-level RE against θ0 = 1/2",
        ("Pool, label fraction", "Prediction", "Oracle, h = M^(-1/3)", "Feasible, h = M^(-1/3)", "Oracle, h = 0.12"),
        tuple(rows),
        ("[95% Monte Carlo interval], paired delta method",),
    )


def _pointwise(errors: FloatArray, share: int, curve: int) -> list[Measured]:
    """RE at each of the 17 points with its interval."""
    return [
        log_ratio(errors[:, share, 0, point], errors[:, share, curve, point]).measured()
        for point in range(errors.shape[3])
    ]


def _pointwise_table(errors: FloatArray) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for index, share in enumerate(SHARES):
        predicted = 1.0 / (1.0 - (1.0 - share) * _r_squared())
        inside = [
            sum(
                cell.low is not None and cell.high is not None and cell.low <= value <= cell.high
                for cell, value in zip(_pointwise(errors, index, curve), predicted, strict=True)
            )
            for curve in (1, 2)
        ]
        rows.append((f"π = {share:.2f}", f"{inside[0]}/17", f"{inside[1]}/17"))
    return ResultTable(
        f"Points whose 95% interval holds the prediction, M = {POOL_SIZES[-1]:,}",
        ("Label fraction", "Oracle (paper 15, 17, 16)", "Feasible (paper 15, 16, 16)"),
        tuple(rows),
    )


def _coefficient_table(misses: dict[int, FloatArray]) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for size in POOL_SIZES:
        cells: list[Cell] = [f"M = {size:,}"]
        for index in range(len(SHARES)):
            values = misses[size][:, index]
            half = 1.96 * float(values.std(ddof=1)) / np.sqrt(len(values))
            mean = float(values.mean())
            printed = PAPER_COEFFICIENT_ERROR.get(size)
            cells.append(Measured(mean, mean - half, mean + half, printed[index] if printed else None))
        rows.append(tuple(cells))
    return ResultTable(
        "Mean squared error of the feasible coefficients, averaged over the six signals and the 17 points",
        ("Pool", *(f"π = {share:.2f}" for share in SHARES)),
        tuple(rows),
        digits=6,
    )


def _figure(errors: FloatArray, share: int) -> Figure:
    at = [float(point) for point in setting_a(POOL_SIZES[0]).at]
    fine = np.linspace(at[0], at[-1], 161)
    r_squared = specialists_a(fine).r_squared(np.full(len(fine), 0.5))
    predicted = 1.0 / (1.0 - (1.0 - SHARES[share]) * r_squared)
    series = [Series("prediction", fine.tolist(), predicted.tolist(), dashed=True, markers=False, tone=-1)]
    for label, curve, markers in (("oracle", 1, True), ("feasible", 2, True)):
        cells = _pointwise(errors, share, curve)
        low, high = [cell.low or 0.0 for cell in cells], [cell.high or 0.0 for cell in cells]
        series.append(Series(label, at, [cell.value for cell in cells], low, high, markers=markers, line=False))
    fixed = [log_ratio(errors[:, share, 3, p], errors[:, share, 4, p]).measured().value for p in range(len(at))]
    series.append(Series("oracle, h = 0.12", at, fixed, markers=False, tone=3))
    title = f"Pointwise gain at M = {POOL_SIZES[-1]:,}, label fraction {SHARES[share]:.2f}"
    return Figure(title, tuple(series), Axis("z"), Axis("relative efficiency"))


study = Study(
    title="LACE: the gain formula in its asymptotic regime (Table 33, Figure 4)",
    run=run,
    default_reps=1000,
)
