"""What a look looks at: the numbers of a goal from the labels so far, and their intervals at a critical value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.errors import InputError
from pipeline.estimators import FittedGap
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import wilson_interval
from pipeline.estimators.looks import tail_quantile
from pipeline.evaluation import gaps, means
from pipeline.evaluation.options import Options
from pipeline.evaluation.plans.ledger import Goal
from pipeline.evaluation.pool import Pool, TargetPool


@dataclass(frozen=True, slots=True)
class Statistic:
    """One number of a goal.

    Attributes:
        name: ``a − b`` of a pair, or a target.
        value, variance, df: as estimated.
        naive: the plain mean of the labels, of a share; None for a gap. binary: whether it is a share of 0/1 labels.
        n, share: labels, and the finite-population factor 1 − n/M (1 for a population).
        plain: half-width of the plain 95 % interval.
    """

    name: str
    value: float
    variance: float
    df: float
    naive: float | None
    binary: bool
    n: float
    share: float
    plain: float

    def interval(self, critical: float) -> tuple[float, float]:
        """The interval at a normal critical value: Wilson's form for shares, else θ̂ ± q·se; endless at ∞."""
        if math.isinf(critical):
            return (0.0, 1.0) if self.binary else (-math.inf, math.inf)
        q = tail_quantile(critical, self.df)
        if self.binary and self.naive is not None and self.share > 0.0:
            sampled = max(self.share, 1e-12)
            spread = self.naive * (1.0 - self.naive)
            worth = spread / self.variance if self.variance > 0.0 else self.n / sampled
            count = min(max(worth, 1.0), 50.0 * self.n / sampled)
            ends = wilson_interval(min(max(self.value, 0.0), 1.0), count, q)
            return float(ends[0]), float(ends[1])
        reach = q * math.sqrt(self.variance) if math.isfinite(q) else math.inf
        low, high = self.value - reach, self.value + reach
        return (max(low, 0.0), min(high, 1.0)) if self.binary else (low, high)

    def half_width(self, critical: float) -> float:
        """Half of it."""
        low, high = self.interval(critical)
        return 0.5 * (high - low)


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """All numbers of a goal at one look, with the correlation (P, P) of their errors."""

    rows: tuple[Statistic, ...]
    correlation: FloatArray


def statistics_of(pool: Pool, goal: Goal, options: Options) -> Statistics:
    """Estimate what the goal is about, by the product's own rule.

    Raises:
        InputError: a model of the goal is not there.
    """
    targets = [_target(pool, name) for name in goal.models] if goal.models else list(pool.targets)
    if goal.kind == "width":
        rows = tuple(_mean(pool, target, options) for target in targets)
        return Statistics(rows, np.eye(len(rows)))
    wanted = [(targets[0], targets[1])] if goal.kind == "gap" else list(itertools.combinations(targets, 2))
    fits = [(a.name, b.name, gaps.joined(a, b, options).fit) for a, b in wanted]
    return Statistics(tuple(_gap(a, b, fit) for a, b, fit in fits), _correlation([fit for *_, fit in fits]))


def _target(pool: Pool, name: str) -> TargetPool:
    for target in pool.targets:
        if target.name == name:
            return target
    raise InputError(f"no model {name!r} with labels; there are {', '.join(t.name for t in pool.targets)}")


def _mean(pool: Pool, target: TargetPool, options: Options) -> Statistic:
    signals = target.signals.shape[1] > 0
    estimate = means.lace(pool, target, options, ranged=False) if signals else means.naive(pool, target, options)
    share = 1.0 - target.n / target.size if options.target == "pool" else 1.0
    return Statistic(
        target.name, estimate.value, estimate.se**2, estimate.df, estimate.naive_value, target.binary, float(target.n),
        share, 0.5 * (estimate.high - estimate.low),
    )  # fmt: skip


def _gap(a: str, b: str, fit: FittedGap) -> Statistic:
    estimate = fit.estimate()
    variance = fit.variance if math.isfinite(estimate.se) else math.inf  # no spread was seen, which is no certainty
    half = 0.5 * (estimate.high - estimate.low)
    return Statistic(f"{a} - {b}", fit.value, variance, fit.df, None, False, float(fit.n), 1.0, half)


def _correlation(fits: Sequence[FittedGap]) -> FloatArray:
    units = np.unique(np.concatenate([fit.units for fit in fits]))
    rows = np.zeros((len(fits), len(units)))
    for row, fit in zip(rows, fits, strict=True):
        np.add.at(row, np.searchsorted(units, fit.units), fit.influence)
    norm = np.sqrt((rows**2).sum(axis=1))
    still = norm <= 1e-12 * max(float(norm.max()), 1e-300)
    scaled = rows / np.where(still, 1.0, norm)[:, None]
    matrix = scaled @ scaled.T
    matrix[still, still] = 1.0  # what does not vary is taken for independent: no smaller critical value for it
    return np.asarray(matrix)
