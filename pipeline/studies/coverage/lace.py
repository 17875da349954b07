"""Pointwise and simultaneous coverage of LACE intervals on settings B, C and the repeated-pool design."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.lace.band import lace_profile_band
from pipeline.estimators.lace.localities import ProfileAxis, resolve_axis
from pipeline.estimators.lace.profile import lace_profile
from pipeline.estimators.results import Profile
from pipeline.studies.lace.designs import Design, repeated_pool, setting_b, setting_c
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

Target: TypeAlias = Literal["pool", "population"]
Rule: TypeAlias = Literal["paper", "average", "band"]

BUDGETS = (50, 100, 200)
TARGETS: tuple[Target, ...] = ("pool", "population")
RULES: tuple[Rule, ...] = ("paper", "average", "band")
DEFAULT_REPS = 500
CHUNK = 50
DESIGNS: dict[str, Callable[[int], Design]] = {
    "B": lambda n: setting_b(),
    "C": lambda n: setting_c(),
    "repeated pool": lambda n: repeated_pool("math500", 1, n),
}
# What an independent implementation measured for the paper's rule, averaged over points.
EXPECTED = {"repeated pool": (0.953, 0.946, 0.945), "B": (0.949, 0.945, 0.935), "C": (0.97, None, None)}


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """Coverage of one design, budget, target and rule.

    Attributes:
        coverage: share of (replicate, point) pairs whose interval holds the truth; for the band, of replicates.
        standard_error: Monte Carlo standard error, replicates being independent.
        worst: coverage at the worst point.
        width: mean length of the intervals.
        answered: share of points with an interval.
    """

    coverage: float
    standard_error: float
    worst: float
    width: float
    answered: float

    @classmethod
    def of(cls, hits: FloatArray, widths: FloatArray, *, joint: bool = False) -> CoverageCell:
        """From (replicates, points) of 1, 0 and NaN (no interval) and of lengths."""
        finite = np.isfinite(hits)
        per_replicate = np.nanmin(hits, axis=1) if joint else np.nanmean(hits, axis=1)
        spread = per_replicate.std(ddof=1) / np.sqrt(len(per_replicate))
        return cls(
            float(per_replicate.mean()),
            float(spread),
            float(np.nanmean(hits, axis=0).min()),
            float(np.nanmean(widths)),
            float(finite.mean()),
        )


def coverage(
    design: Design, n: int, *, reps: int, rng: np.random.Generator, target: Target = "pool", rule: Rule = "paper"
) -> CoverageCell:
    """Coverage over ``reps`` fresh pools with n labels each."""
    rows = [replicate_hits(design, n, rng, target, rule) for _ in range(reps)]
    hits, widths = (np.stack([row[part] for row in rows]) for part in range(2))
    return CoverageCell.of(hits, widths, joint=rule == "band")


def replicate_hits(
    design: Design, n: int, rng: np.random.Generator, target: Target, rule: Rule
) -> tuple[FloatArray, FloatArray]:
    """(G,) whether each point's interval holds the truth (NaN without an interval), and its length."""
    draw = design.draw(rng, n)
    axis = resolve_axis(draw.z, design.at, design.locality)
    truth = pool_truth(axis, draw.y) if target == "pool" else design.smoothed_truth
    with warnings.catch_warnings():  # of thousands of honest draws a few look unlike the pool
        warnings.filterwarnings("ignore", message="labels do not look drawn at random", category=UserWarning)
        profile = _profile(design, draw.z, draw.observed, draw.signals, target, rule, rng)
    inside = (profile.low <= truth) & (truth <= profile.high)
    return np.where(np.isfinite(profile.value), inside.astype(np.float64), np.nan), profile.high - profile.low


def pool_truth(axis: ProfileAxis, y: FloatArray) -> FloatArray:
    """(G,) the pool profile Σ_T w_T Y, known where every outcome is."""
    return np.concatenate([axis.weights(axis.z, point[None, :]) @ y for point in axis.points])


def _profile(
    design: Design,
    z: FloatArray,
    y: FloatArray,
    signals: FloatArray,
    target: Target,
    rule: Rule,
    rng: np.random.Generator,
) -> Profile:
    if rule == "band":
        return lace_profile_band(
            z, y, signals, at=design.at, locality=design.locality, target=target, adapt="average", rng=rng, draws=1000
        )
    adapt: Literal["average"] | None = "average" if rule == "average" else None
    return lace_profile(z, y, signals, at=design.at, locality=design.locality, target=target, adapt=adapt)


def chunk_hits(payload: tuple[str, int, Target, Rule, int], rng: np.random.Generator) -> dict[str, Any]:
    """Hits and lengths of one chunk of replicates."""
    name, n, target, rule, count = payload
    design = DESIGNS[name](n)
    rows = [replicate_hits(design, n, rng, target, rule) for _ in range(count)]
    return {"hits": np.stack([row[0] for row in rows]), "widths": np.stack([row[1] for row in rows])}


def _run(options: StudyOptions) -> StudyResult:
    reps = options.reps or DEFAULT_REPS
    cells: dict[tuple[str, int, Target, Rule], list[str]] = {}
    tasks: dict[str, tuple[str, int, Target, Rule, int]] = {}
    for name in DESIGNS:
        for n in BUDGETS:
            for target in TARGETS:
                for rule in RULES:
                    if rule == "band" and target == "population":
                        continue
                    for start in range(0, reps, CHUNK):
                        task = f"{name}/{n}/{target}/{rule}/{start}"
                        tasks[task] = (name, n, target, rule, min(CHUNK, reps - start))
                        cells.setdefault((name, n, target, rule), []).append(task)
    replicates = run_tasks(
        options,
        chunk_hits,
        tasks,
        stage="coverage",
        signature=f"coverage reps={reps}",
        label=f"chunks of {CHUNK} replicates",
    )
    rows: list[tuple[Cell, ...]] = []
    for (name, n, target, rule), parts in cells.items():
        hits, widths = (
            np.concatenate([np.asarray(replicates[part][key], dtype=np.float64) for part in parts])
            for key in ("hits", "widths")
        )
        cell = CoverageCell.of(hits, widths, joint=rule == "band")
        expected = EXPECTED[name][BUDGETS.index(n)] if rule == "paper" and target == "pool" else None
        half = 1.96 * cell.standard_error
        measured = Measured(cell.coverage, cell.coverage - half, cell.coverage + half)
        rows.append((name, n, target, rule, measured, expected, cell.worst, cell.width, cell.answered))
    columns = ("design", "n", "target", "rule", "coverage", "expected", "worst point", "mean length", "answered")
    notes = (
        "Nominal coverage 0.95, interval='auto'. 'pool' is the profile of the drawn pool, 'population' the "
        "kernel-smoothed profile of the law it is drawn from; neither is the unsmoothed p(z).",
        "'paper' is the fixed rule, 'average' the adaptive one, 'band' its simultaneous band, whose coverage is that "
        "of the whole profile at once.",
        "'expected' is what an independent implementation of the paper's rule measured.",
    )
    return StudyResult(
        "LACE: coverage of intervals and bands", (ResultTable("Coverage", columns, tuple(rows)),), notes=notes
    )


study = Study(
    "LACE: coverage of intervals and bands",
    _run,
    DEFAULT_REPS,
)
