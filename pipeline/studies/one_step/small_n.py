"""`one-step-small-n`: coverage and mean squared error at N = 15 to 200 for good, biased, anti-calibrated τ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import wilson_interval
from pipeline.estimators.means import interval_of_mean, sample_variance
from pipeline.estimators.one_step import control_variate as cv
from pipeline.estimators.one_step.correction import Design, Power, contrast_of, correct, other_targets
from pipeline.report.values import Axis, Figure, Series
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

Quality = Literal["good", "biased", "anti-calibrated", "independent"]
QUALITIES: tuple[Quality, ...] = ("good", "biased", "anti-calibrated", "independent")
SIZES = (15, 30, 50, 100, 200)
RULES: tuple[Power, ...] = (1.0, "tuned", "loo", "cross-fit", "pooled")
DRAWS, TARGETS, ACCURACY, CHUNK = 10, 4, 0.86, 100
POOL, POOL_LABELED = 198, 50


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Binary outcomes from an item's ease, the episode's state and noise; τ sees ease and state, in part.

    Attributes:
        accuracy: E φ.
        quality: good: τ = E[φ | what it sees]; biased: 0.3 + 0.5τ clipped; anti-calibrated: 1 − τ; independent: the
            answer's state is none of the draws', as with separate stateless calls.
        ease_sd: spread of the items' ease; the state has sd 1, the rest 0.5.
    """

    accuracy: float = ACCURACY
    quality: Quality = "good"
    ease_sd: float = 1.0


def simulate(
    world: Benchmark, items: int, rng: np.random.Generator, draws: int = DRAWS
) -> tuple[FloatArray, FloatArray]:
    """(φ (N,), τ (N, M + 1))."""
    ease = world.ease_sd * rng.standard_normal((items, 1))
    state = rng.standard_normal((items, draws + 1))
    seen = 0.8 * state + 0.4 * rng.standard_normal(state.shape)
    own = rng.standard_normal(items) if world.quality == "independent" else state[:, 0]
    total = math.sqrt(world.ease_sd**2 + 1.25)
    level = float(ndtri(world.accuracy)) * total + ease
    phi = (level[:, 0] + own + 0.5 * rng.standard_normal(items) > 0.0).astype(float)
    tau = ndtr((level + seen) / math.sqrt(1.25 - 0.8))
    if world.quality == "biased":
        tau = np.clip(0.3 + 0.5 * tau, 0.0, 1.0)
    elif world.quality == "anti-calibrated":
        tau = 1.0 - tau
    return phi, np.asarray(tau)


def _one(phi: FloatArray, contrast: FloatArray, design: Design, truth: float) -> list[float]:
    """(squared error, error, SE², covered by Wilson's, covered by t) of one estimate."""
    fit = correct(phi, contrast[:, None], design)
    variance, n = sample_variance(phi), len(phi)
    covered = []
    for kind in ("wilson", "t"):
        low, high, _ = interval_of_mean(
            fit.value, fit.se, fit.df, phi_variance=variance, n=n, level=0.95, interval=kind
        )
        covered.append(float(low <= truth <= high))
    return [(fit.value - truth) ** 2, fit.value - truth, fit.se**2, *covered]


def small_sample(payload: tuple[int, Quality], rng: np.random.Generator) -> dict[str, Any]:
    """Sums over a chunk of replicates of every rule's errors."""
    items, quality = payload
    world = Benchmark(quality=quality)
    sums = {rule: np.zeros(5) for rule in ("naive", *map(str, RULES))}
    for _ in range(CHUNK):
        data = [simulate(world, items, rng) for _ in range(TARGETS)]
        phi, tau = data[0]
        contrast = cv.within_item_contrast(tau)
        others = other_targets(data[1:], False)
        for name, rule in (("naive", 0.0), *((str(rule), rule) for rule in RULES)):
            sums[name] += _one(phi, contrast, Design(rule, others, None, 5, 1.0, rng), world.accuracy)
    return {name: total.tolist() for name, total in sums.items()}


def pool_sample(payload: tuple[Quality, float], rng: np.random.Generator) -> dict[str, Any]:
    """The same for a pool of 198 items of which 50 are labeled; truth is the pool's own mean outcome."""
    quality, ease_sd = payload
    world = Benchmark(quality=quality, accuracy=0.7, ease_sd=ease_sd)
    rules: tuple[tuple[str, Power, bool], ...] = (
        ("naive", 0.0, True),
        ("within-item, λ = 1", 1.0, False),
        ("pool, λ = 1", 1.0, True),
        ("pool, tuned", "tuned", True),
        ("pool, pooled", "pooled", True),
    )
    sums = {name: np.zeros(5) for name, _, _ in rules}
    for _ in range(CHUNK):
        data = [simulate(world, POOL, rng) for _ in range(TARGETS)]
        phi, tau = data[0][0][:POOL_LABELED], data[0][1][:POOL_LABELED]
        truth = float(data[0][0].mean())
        labeled = [(outcome[:POOL_LABELED], draws[:POOL_LABELED]) for outcome, draws in data[1:]]
        for name, rule, pooled in rules:
            contrast, _ = contrast_of(tau, data[0][1] if pooled else None, "pool_tau")
            fpc = 1.0 - POOL_LABELED / POOL if pooled else 1.0
            design = Design(rule, other_targets(labeled, pooled), None, 5, fpc, rng)
            sums[name] += _one(phi, contrast, design, truth)
    return {name: total.tolist() for name, total in sums.items()}


def _share(hits: float, count: int) -> Measured:
    low, high = wilson_interval(hits / count, count, 1.96)
    return Measured(hits / count, float(low), float(high))


def _rows(chunks: list[dict[str, Any]], head: tuple[Cell, ...]) -> list[tuple[Cell, ...]]:
    count = CHUNK * len(chunks)
    naive = np.array([chunk["naive"][0] for chunk in chunks])
    rows: list[tuple[Cell, ...]] = []
    for name in chunks[0]:
        parts = np.array([chunk[name] for chunk in chunks])
        total = parts.sum(axis=0)
        ratio = total[0] / naive.sum()
        error = (parts[:, 0] - ratio * naive) / naive.mean()
        half = 1.96 * float(error.std(ddof=1)) / math.sqrt(len(chunks)) if len(chunks) > 1 else math.nan
        rows.append(
            (
                *head,
                f"λ = {float(name):g}" if name in {"1.0"} else name,
                _share(total[3], count),
                _share(total[4], count),
                Measured(float(ratio), float(ratio) - half, float(ratio) + half),
                Measured(total[1] / count, digits=4),
                total[2] / total[0],
            )
        )
    return rows


def _run(options: StudyOptions) -> StudyResult:
    reps = options.reps or study.default_reps
    chunks = max(2, -(-reps // CHUNK))
    small = run_tasks(
        options, small_sample, {f"{q}:{n}:{c}": (n, q) for q in QUALITIES for n in SIZES for c in range(chunks)},
        stage="small", signature=f"chunks={chunks}", label="chunks of within-item replicates",
    )  # fmt: skip
    pool = run_tasks(
        options, pool_sample,
        {f"{q}:{sd}:{c}": (q, sd) for q in ("good", "independent") for sd in (1.0, 2.0) for c in range(chunks)},
        stage="pool", signature=f"chunks={chunks}", label="chunks of pool replicates",
    )  # fmt: skip
    measures = ("rule", "coverage", "coverage of t", "MSE ratio", "bias", "mean SE²/MSE")
    tables, curves = [], []
    for quality in QUALITIES:
        rows = [row for n in SIZES for row in _rows([small[f"{quality}:{n}:{c}"] for c in range(chunks)], (n,))]
        tables.append(ResultTable(f"{quality} τ", ("N", *measures), tuple(rows)))
        curves.append(_curve(quality, "pooled", rows))
    rows = [
        row
        for q in ("good", "independent")
        for sd in (1.0, 2.0)
        for row in _rows([pool[f"{q}:{sd}:{c}"] for c in range(chunks)], (q, sd))
    ]
    tables.append(
        ResultTable(
            f"Pool: {POOL_LABELED} labels, signals on all {POOL} items, accuracy 0.7",
            ("draws", "sd of ease", *measures),
            tuple(rows),
        )
    )
    chart = Figure(
        "Coverage of the default interval at accuracy 0.86, λ pooled",
        tuple(curves),
        Axis("labeled items", log=True),
        Axis("coverage", low=0.9, high=1.0, marks=(0.95,)),
    )
    return StudyResult(
        title=study.title,
        tables=tuple(tables),
        figures={"one-step-small-n": chart},
        notes=(
            f"Binary outcomes, accuracy {ACCURACY}, M = {DRAWS}, {TARGETS} targets (three of them lend λ to `pooled`),"
            f" {chunks * CHUNK} replicates per cell.",
            "coverage: the default interval (Wilson's at n_eff); coverage of t: Student's t. MSE ratio: against the"
            " naive mean of the same data. mean SE²/MSE: 1 for an honest standard error.",
            "independent: draws from separate stateless calls. No within-item rule can gain there, λ = 1 loses, and"
            " only the pool estimator helps. The within-item rows of the pool table report the standard error for the"
            " population, a wider target than the pool's own mean.",
        ),
    )


def _curve(quality: str, rule: str, rows: list[tuple[Cell, ...]]) -> Series:
    values = [row[2].value for row in rows if row[1] == rule and isinstance(row[2], Measured)]
    return Series(quality, SIZES, values)


study = Study(
    title="One-step estimator: coverage and mean squared error at small N",
    run=_run,
    default_reps=4000,
)
