"""Ship, block or inconclusive: the mathematics of comparing a candidate with its base on the same items.

References:
    R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24 (1982), theorem 1
    (a candidate that must pass on every metric pays nothing for their number).
    A. Agresti and Y. Min, "Effects and non-effects of paired identical observations in comparing proportions with
    binary matched-pairs data", Statistics in Medicine 23 (2004), section 3 (the least standard error).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc, ndtr, ndtri

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.looks.spending import check_alpha, tail_quantile
from pipeline.estimators.validation import is_binary

EXITS = {"SHIP": 0, "BLOCK": 10, "INCONCLUSIVE": 11}
"""Exit codes of the verdicts; 1, 2, 3 and 130 have meanings already."""

_DRAWS, _SEED = 200_000, 20261


def _scores(values: ArrayLike, name: str) -> FloatArray:
    scores = np.asarray(values, dtype=np.float64)
    scores = scores[:, None] if scores.ndim == 1 else scores
    if scores.ndim != 2 or scores.shape[1] < 1:
        raise ValueError(f"{name} must have shape (n,) or (n, E), got {np.shape(values)}")
    if np.isinf(scores).any() or np.isnan(scores).all(axis=1).any():
        raise ValueError(f"{name} must hold a finite score for every item")
    return scores


def _pair(base: ArrayLike, candidate: ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = _scores(base, "base"), _scores(candidate, "candidate")
    if len(first) != len(second):
        raise ValueError(f"base and candidate must hold the same items, got {len(first)} and {len(second)}")
    if len(first) < 2:
        raise ValueError(f"a paired gap needs at least 2 items, got {len(first)}")
    return first, second


def paired_gap(base: ArrayLike, candidate: ArrayLike) -> tuple[float, float, float, FloatArray]:
    """Candidate − base about items like these, with the items paired and epochs averaged first.

    The noise of running a model again is part of the spread of the differences: one run of each is enough. Where all
    scores are 0 or 1 the standard error is at least √((Σ|D| + 1 − (ΣD)²/(n + 2))/E)/(n + 2), E the smaller number of
    epochs, so that few items that changed do not look like certainty.

    Args:
        base, candidate: (n,) scores, or (n, E) of E epochs with NaN where one is missing; the same items in one order.

    Returns:
        (gap, its standard error, n − 1 degrees of freedom, influence values (D_i − D̄)/n of shape (n,)).

    Raises:
        ValueError: shapes that do not fit, fewer than 2 items, an item without a score.
    """
    first, second = _pair(base, candidate)
    difference = np.nanmean(second, axis=1) - np.nanmean(first, axis=1)
    n = len(difference)
    gap = float(difference.mean())
    influence = (difference - gap) / n
    se = math.sqrt(float(influence @ influence) * n / (n - 1))
    if is_binary(first[np.isfinite(first)]) and is_binary(second[np.isfinite(second)]):
        epochs = min(first.shape[1], second.shape[1])
        around = float(np.abs(difference).sum()) + 1.0 - float(difference.sum()) ** 2 / (n + 2.0)
        se = max(se, math.sqrt(max(around, 0.0) / epochs) / (n + 2.0))
    return gap, se, float(n - 1), influence


def these_items_gap(base: ArrayLike, candidate: ArrayLike) -> tuple[float, float, float]:
    """(gap, standard error, degrees of freedom) about these very items: only running the models again is chance.

    Args:
        base, candidate: (n, E) scores, E ≥ 2 each.

    Raises:
        ValueError: one epoch only, from which nothing is seen of a rerun's noise.
    """
    first, second = _pair(base, candidate)
    if min(first.shape[1], second.shape[1]) < 2:
        raise ValueError("an interval about these very items needs at least 2 epochs of both")
    gap = float((np.nanmean(second, axis=1) - np.nanmean(first, axis=1)).mean())
    n, variance, df = len(first), 0.0, 0.0
    for scores in (first, second):
        counts = np.isfinite(scores).sum(axis=1)
        inside = np.nansum((scores - np.nanmean(scores, axis=1, keepdims=True)) ** 2, axis=1).sum()
        freedom = float((counts - 1).sum())
        if freedom <= 0.0:
            raise ValueError("an interval about these very items needs items with at least 2 epochs of both")
        variance += float(inside) / freedom * float((1.0 / counts).sum()) / n**2
        df += freedom
    return gap, math.sqrt(variance), df


def joint_upper_critical(influence: Sequence[ArrayLike], alpha: float = 0.05) -> float:
    """One-sided max-t value of several metrics: all upper bounds hold together with 1 − α/2.

    Simulated under the metrics' correlation with a fixed seed; metrics that do not vary are paid by Bonferroni.

    Args:
        influence: (n,) influence values of every metric over the same items.
        alpha: two-sided error; each side has half of it.
    """
    check_alpha(alpha)
    rows = np.asarray([np.asarray(row, dtype=np.float64) for row in influence])
    single, most = -float(ndtri(alpha / 2.0)), -float(ndtri(alpha / 2.0 / max(len(rows), 1)))
    if len(rows) < 2:
        return single
    square = (rows**2).sum(axis=1)
    moving = rows[square > 1e-14 * square.max()]
    silent = len(rows) - len(moving)
    if not len(moving):
        return most
    scaled = moving / np.sqrt((moving**2).sum(axis=1))[:, None]
    values, vectors = np.linalg.eigh(scaled @ scaled.T)
    kept = values > 1e-10 * values[-1]
    root = vectors[:, kept] * np.sqrt(values[kept])
    rng = np.random.default_rng(_SEED)
    draws = rng.standard_normal((int(kept.sum()), _DRAWS))
    largest = np.max([row @ draws for row in root], axis=0)
    tail = float(ndtr(-np.quantile(largest, 1.0 - alpha / 2.0)))
    room = alpha / 2.0
    tail = room / (silent + room / tail)
    return min(max(-float(ndtri(tail)), single), most)


def gate(metrics: Sequence[Mapping[str, Any]], *, alpha: float = 0.05) -> dict[str, Any]:
    """The verdict over metrics of a candidate against its base.

    SHIP if every metric's own lower bound lies above −margin; BLOCK if the joint upper bound of some metric lies below
    −margin; else INCONCLUSIVE. Each of the first two is wrong with chance at most α/2.

    Args:
        metrics: mappings with ``name``, ``value`` (candidate − base), ``se``, ``df``, ``margin`` δ ≥ 0 and
            ``influence`` over the same items.
        alpha: two-sided error.

    Returns:
        ``verdict``, ``exit`` and ``metrics``: name, gap, margin, low, high, high_joint, ships, blocks of each.

    Raises:
        ValueError: no metric, a margin that is negative or no number.
    """
    check_alpha(alpha)
    if not metrics:
        raise ValueError("a gate needs at least one metric")
    joint = joint_upper_critical([entry["influence"] for entry in metrics], alpha)
    return verdict_of([bounds_of(entry, -float(ndtri(alpha / 2.0)), joint) for entry in metrics])


def bounds_of(entry: Mapping[str, Any], critical: float, joint: float) -> dict[str, Any]:
    """One metric with its own interval at ``critical`` and its joint upper bound at ``joint``, both normal values."""
    value, se, df, margin = (float(entry[key]) for key in ("value", "se", "df", "margin"))
    if not (margin >= 0.0 and math.isfinite(margin)):
        raise ValueError(f"the margin of {entry['name']} must be at least 0, got {margin!r}")
    own, together = tail_quantile(critical, df), tail_quantile(joint, df)
    reach = [math.inf if math.isinf(q) else q * se for q in (own, together)]
    return {
        "name": str(entry["name"]),
        "gap": value,
        "margin": margin,
        "low": value - reach[0],
        "high": value + reach[0],
        "high_joint": value + reach[1],
        "ships": bool(value - reach[0] > -margin),
        "blocks": bool(value + reach[1] < -margin),
    }


def verdict_of(metrics: Sequence[Mapping[str, Any]], *, advisory: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The verdict over bounds; ``advisory`` ones (slices) may block and need not ship."""
    if any(entry["blocks"] for entry in (*metrics, *advisory)):
        verdict = "BLOCK"
    else:
        verdict = "SHIP" if all(entry["ships"] for entry in metrics) else "INCONCLUSIVE"
    return {"verdict": verdict, "exit": EXITS[verdict], "metrics": [dict(entry) for entry in metrics]}


def items_needed(
    gap: float, se: float, n: int, margin: float, *, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Items after which the gate would decide if the gap stays as it is: SHIP above −margin, BLOCK below.

    max(⌈((z_{α/2} + z_β) · se · √n/|gap + margin|)²⌉, n + 1); None where gap = −margin.

    Args:
        gap, se: of n items.
        margin: δ.
        alpha, power: two-sided error and wanted chance of a decision.
    """
    check_alpha(alpha)
    if not 0.0 < power < 1.0:
        raise ValueError(f"power must lie strictly between 0 and 1, got {power!r}")
    distance = abs(gap + margin)
    if distance == 0.0:
        return None
    needed = ((-float(ndtri(alpha / 2.0)) + float(ndtri(power))) * se * math.sqrt(n) / distance) ** 2
    return max(math.ceil(needed), n + 1)


def chance_of_block(drop: float, discordant: float, n: int, margin: float, *, alpha: float = 0.05) -> float:
    """Chance that a candidate that is truly ``drop`` worse is blocked on n paired 0/1 items.

    Args:
        drop: base − candidate, at least 0.
        discordant: share of items whose score differs between the two.
        n: items.
        margin: δ.
        alpha: two-sided error.

    Raises:
        ValueError: fewer items differ than the drop needs.
    """
    check_alpha(alpha)
    if not abs(drop) <= discordant <= 1.0:
        raise ValueError(f"discordant must lie between the drop and 1, got {discordant!r} for a drop of {drop!r}")
    variance = discordant - drop**2
    if variance <= 0.0:
        return float(drop > margin)
    return float(ndtr((drop - margin) / math.sqrt(variance / n) + float(ndtri(alpha / 2.0))))


@dataclass(frozen=True, slots=True)
class RunNoise:
    """What several runs of one version show of the noise of a run.

    Attributes:
        runs: R, how many.
        items: n, items that all of them scored.
        flip_rate: share of (item, pair of runs) whose scores differ.
        within: s_w², variance of an item's score over runs, after the runs' own means.
        ratio: F = n·Var(run means)/s_w², about 1 where nothing moves whole runs.
        p: chance of such a ratio if runs were the same but for each item's noise.
        run_variance: variance that moves a whole run, at least 0.
    """

    runs: int
    items: int
    flip_rate: float
    within: float
    ratio: float
    p: float
    run_variance: float

    @property
    def moves(self) -> bool:
        """Whether something moves whole runs (p < .01): then it belongs into the gate's standard error."""
        return self.p < 0.01


def run_noise(scores: ArrayLike) -> RunNoise:
    """The noise of a run from R runs of one version on the same items (a two-way layout of items and runs).

    Args:
        scores: (n, R) finite scores, n ≥ 2, R ≥ 2.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or min(table.shape) < 2 or not np.isfinite(table).all():
        raise ValueError(f"run noise needs finite scores of at least 2 items in 2 runs, got shape {table.shape}")
    n, runs = table.shape
    means = table.mean(axis=0)
    residual = table - table.mean(axis=1, keepdims=True) - means + table.mean()
    within = float((residual**2).sum()) / ((n - 1) * (runs - 1))
    between = float(means.var(ddof=1))
    flips = [float((table[:, a] != table[:, b]).mean()) for a in range(runs) for b in range(a)]
    still = math.inf if between > 0.0 else 0.0
    ratio = n * between / within if within > 0.0 else still
    p = 0.0 if math.isinf(ratio) else float(fdtrc(runs - 1, (n - 1) * (runs - 1), ratio))
    return RunNoise(runs, n, float(np.mean(flips)), within, ratio, p, max(between - within / n, 0.0))
