"""Joint coverage of rank sets and simultaneous gaps, and the errors of equivalence and difference decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import ndtri

from pipeline.estimators import PairedDifference, fit_gap, joint_gaps, paired_differences, rank_sets_from_intervals
from pipeline.estimators.floats import BoolArray, FloatArray
from pipeline.estimators.intervals import wilson_interval
from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, Measured, ResultTable, StudyResult
from pipeline.studies.runner import run_tasks

Target: TypeAlias = Literal["pool", "population"]
Estimator: TypeAlias = Literal["labels", "LACE"]

MARGIN, LEVEL, POOL, DRAWS = 0.02, 0.95, 1000, 4000
MODELS, BUDGETS = (3, 6, 12), (50, 100, 200)
TARGETS: tuple[Target, ...] = ("pool", "population")
ESTIMATORS: tuple[Estimator, ...] = ("labels", "LACE")
DEFAULT_REPS, CHUNK = 300, 25
MEASURES = ("ranks", "gaps", "different", "equivalent", "spread", "half")
"""Of one replicate: rank sets hold; gaps hold; a false difference; a false equivalence; mean size of the rank sets;
mean half-width."""


@dataclass(frozen=True, slots=True)
class Law:
    """How accuracies lie and how alike the models are.

    Attributes:
        step: difference of neighbours' accuracies around .7; the outermost stay within .5 and .9.
        shared: share of the latent variance that the item makes, the same for all models.
        what: in words.
    """

    step: float
    shared: float
    what: str

    def accuracies(self, models: int) -> FloatArray:
        """(L,) from the best to the worst."""
        step = min(self.step, 0.4 / (models - 1)) if models > 1 else 0.0
        return np.asarray(0.7 + step * ((models - 1) / 2.0 - np.arange(models)))


LAWS: Mapping[str, Law] = {
    "equal": Law(0.0, 0.6, "all at .7"),
    "unequal": Law(0.1, 0.6, "10 points apart, or evenly from .9 to .5"),
    "margin": Law(MARGIN, 0.98, "neighbours exactly 2 points apart, nearly always right on the same items"),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One cell of the study."""

    law: str
    models: int
    n: int
    target: Target


def draw_pool(law: Law, models: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Outcomes (M, L) by a probit model, and signals (M, L, 2): a noisy latent of the model and one of the item."""
    item, own = rng.standard_normal((POOL, 1)), rng.standard_normal((POOL, models))
    latent = ndtri(law.accuracies(models)) + np.sqrt(law.shared) * item + np.sqrt(1.0 - law.shared) * own
    noise = rng.standard_normal((POOL, models, 2))
    signals = np.stack([latent, np.broadcast_to(item, latent.shape)], axis=2) + noise
    return (latent > 0.0).astype(np.float64), signals


def decisions(
    outcomes: FloatArray, signals: FloatArray, labeled: BoolArray, target: Target, estimator: Estimator
) -> tuple[PairedDifference, ...]:
    """All paired gaps with joint intervals, from the labels alone or by LACE."""
    models = outcomes.shape[1]
    if estimator == "labels":
        fpc = 1.0 - float(labeled.mean()) if target == "pool" else 1.0
        return paired_differences(outcomes[labeled], margin=MARGIN, level=LEVEL, fpc=fpc, draws=DRAWS)
    fits = []
    for a, b in combinations(range(models), 2):
        difference = np.where(labeled, outcomes[:, a] - outcomes[:, b], np.nan)
        columns = np.column_stack([signals[:, a], signals[:, b], signals[:, a] - signals[:, b]])
        fits.append((str(a), str(b), fit_gap(difference, columns, labeled=labeled, target=target)))
    return joint_gaps(fits, margin=MARGIN, level=LEVEL, draws=DRAWS)


def replicate(setting: Setting, rng: np.random.Generator) -> dict[str, list[float]]:
    """Estimator → the measures of one fresh pool, in the order of ``MEASURES``."""
    law = LAWS[setting.law]
    outcomes, signals = draw_pool(law, setting.models, rng)
    labeled = np.zeros(POOL, dtype=bool)
    labeled[rng.choice(POOL, setting.n, replace=False)] = True
    truth = outcomes.mean(axis=0) if setting.target == "pool" else law.accuracies(setting.models)
    return {
        estimator: _judged(decisions(outcomes, signals, labeled, setting.target, estimator), truth)
        for estimator in ESTIMATORS
    }


def _judged(pairs: tuple[PairedDifference, ...], truth: FloatArray) -> list[float]:
    gaps = np.array([truth[int(pair.a)] - truth[int(pair.b)] for pair in pairs])
    low, high = (np.array([getattr(pair, end) for pair in pairs]) for end in ("low", "high"))
    ranks = rank_sets_from_intervals([str(k) for k in range(len(truth))], truth, pairs, level=LEVEL)
    better = (truth[None, :] > truth[:, None] + 1e-12).sum(axis=1)
    worse = (truth[None, :] < truth[:, None] - 1e-12).sum(axis=1)
    held = [r.best <= 1 + better[k] and r.worst >= len(truth) - worse[k] for k, r in enumerate(ranks)]
    called = np.array([pair.p_adjusted < 1.0 - LEVEL for pair in pairs])
    wrong = called & (np.array([pair.value for pair in pairs]) * gaps <= 1e-12)
    equal = np.array([bool(pair.equivalent) for pair in pairs]) & (np.abs(gaps) >= MARGIN - 1e-12)
    sizes = [r.worst - r.best + 1 for r in ranks]
    inside = (low <= gaps + 1e-12) & (gaps - 1e-12 <= high)
    return [
        float(all(held)), float(inside.all()), float(wrong.any()), float(equal.any()), float(np.mean(sizes)),
        float(np.mean(high - low) / 2.0),
    ]  # fmt: skip


def chunk(payload: tuple[str, int, int, Target, int], rng: np.random.Generator) -> dict[str, Any]:
    """The measures of one chunk of replicates, by estimator."""
    law, models, n, target, count = payload
    rows = [replicate(Setting(law, models, n, target), rng) for _ in range(count)]
    return {estimator: [row[estimator] for row in rows] for estimator in ESTIMATORS}


def _tasks(reps: int) -> dict[str, tuple[str, int, int, Target, int]]:
    """Twelve models make 66 pairs and take as long as the others together: a third of the replicates."""
    tasks: dict[str, tuple[str, int, int, Target, int]] = {}
    for law in LAWS:
        for models in MODELS:
            wanted = max(2, reps if models < 12 else reps // 3)
            for n in BUDGETS:
                for target in TARGETS:
                    for start in range(0, wanted, CHUNK):
                        name = f"{law}/{models}/{n}/{target}/{start}"
                        tasks[name] = (law, models, n, target, min(CHUNK, wanted - start))
    return tasks


def _run(options: StudyOptions) -> StudyResult:
    reps = options.reps or DEFAULT_REPS
    tasks = _tasks(reps)
    replicates = run_tasks(
        options,
        chunk,
        tasks,
        stage="ranks",
        signature=f"rank-coverage reps={reps}",
        label=f"chunks of {CHUNK} replicates",
    )
    cells: dict[tuple[str, int, int, Target, str], list[list[float]]] = {}
    for name, (law, models, n, target, _) in tasks.items():
        for estimator in ESTIMATORS:
            cells.setdefault((law, models, n, target, estimator), []).extend(replicates[name][estimator])
    rows = tuple((*cell, *_summary(np.array(values))) for cell, values in cells.items())
    whole: dict[tuple[str, str], list[list[float]]] = {}
    for (law, _, _, _, judged), values in cells.items():
        whole.setdefault((law, judged), []).extend(values)
    overall = tuple((*key, *_summary(np.array(values))) for key, values in whole.items())
    columns_of = (
        "rank sets hold",
        "gaps hold",
        "false difference",
        "false equivalence",
        "ranks in a set",
        "half-width",
    )
    notes = (
        f"Nominal .95 for rank sets (all together) and gaps (all pairs together), at most .05 for any false decision"
        f" among all pairs. Pools of {POOL:,} items; equivalence margin {MARGIN:g}.",
        *(f"'{name}': accuracies {law.what}; the item makes {law.shared:g} of the latent variance." for name, law in
          LAWS.items()),
        "'labels': paired_differences on the labeled items (max-t, Holm). 'LACE': joint_gaps, what runs and tables"
        " decide by. A false difference has a Holm p-value below .05 and the wrong sign or no true gap; a false"
        " equivalence a true gap of at least the margin.",
        "Models of equal accuracy hold every rank between them: their set must contain them all.",
    )  # fmt: skip
    return StudyResult(
        "Decisions: coverage of rank sets and joint gaps",
        (
            ResultTable("By law, over all numbers of models and labels", ("law", "estimator", *columns_of), overall),
            ResultTable("By setting", ("law", "models", "n", "target", "estimator", *columns_of), rows),
        ),
        notes=notes,
    )


def _summary(values: FloatArray) -> tuple[Cell, ...]:
    """Shares with Wilson's 95 % Monte Carlo interval, and two means."""
    shares: list[Cell] = []
    for column in values[:, :4].T:
        low, high = wilson_interval(column.mean(), float(len(column)), 1.96)
        shares.append(Measured(float(column.mean()), float(low), float(high)))
    return (*shares, float(values[:, 4].mean()), float(values[:, 5].mean()))


study = Study(
    "Decisions: coverage of rank sets and joint gaps",
    _run,
    DEFAULT_REPS,
)
