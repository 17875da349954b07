"""Paired differences of all models with intervals that hold together (max-t), Holm p-values and equivalence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from pipeline.estimators.checks import check_matrix, is_binary
from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.intervals import check_level, t_quantile
from pipeline.estimators.results import Result

DEFAULT_SEED = 20261


@dataclass(frozen=True, slots=True)
class PairedDifference(Result):
    """The difference of two models on shared items, value_a − value_b.

    Attributes:
        a, b: names of the models.
        value: mean difference.
        se: its standard error.
        low, high: simultaneous interval: all pairs together are covered with probability ``level``.
        low_single, high_single: interval of this pair alone.
        p: two-sided p-value of no difference for this pair alone.
        p_adjusted: the same after Holm's step-down correction over all pairs.
        level: nominal coverage.
        n: number of items.
        margin: equivalence margin, or None.
        equivalent: whether the simultaneous interval lies strictly inside ±margin; None without a margin.
    """

    a: str
    b: str
    value: float
    se: float
    low: float
    high: float
    low_single: float
    high_single: float
    p: float
    p_adjusted: float
    level: float
    n: int
    margin: float | None = None
    equivalent: bool | None = None


def holm(p: ArrayLike) -> FloatArray:
    """Holm's adjusted p-values: max over the smaller ones of (m − rank)·p, at most 1; NaN stays NaN and counts as 1."""
    raw = np.asarray(p, dtype=np.float64)
    filled = np.where(np.isnan(raw), 1.0, raw)
    order = np.argsort(filled, kind="stable")
    stepped = np.maximum.accumulate(filled[order] * np.arange(len(raw), 0, -1))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(stepped, 1.0)
    return np.where(np.isnan(raw), np.nan, adjusted)


def max_t_quantile(
    covariance: FloatArray, df: float, level: float, *, draws: int = 20_000, rng: np.random.Generator | int
) -> float:
    """Quantile of max |t_k| for statistics with this covariance matrix and a shared variance estimate on df.

    Simulates N(0, correlation) over an independent √(χ²_df/df): a multivariate t. Never below the quantile of one
    interval nor above Bonferroni's.

    Args:
        covariance: (K, K); rows of zero variance take no part.
        df: degrees of freedom; infinite is the normal.
        level: probability that no statistic exceeds the quantile.
        draws: number of simulated vectors.
        rng: generator.

    References:
        Hothorn, Bretz and Westfall, "Simultaneous Inference in General Parametric Models" (2008), Biometrical
            Journal 50.

    Example:
        >>> round(max_t_quantile(np.eye(3), 20.0, 0.95, rng=0), 1)
        2.6
    """
    sd = np.sqrt(np.diag(covariance))
    used = sd > 0.0
    single = float(t_quantile(df, level))
    count = int(used.sum())
    if count <= 1:
        return single
    correlation = covariance[np.ix_(used, used)] / np.outer(sd[used], sd[used])
    values, vectors = np.linalg.eigh(correlation)
    kept = values > 1e-10 * values[-1]
    root = vectors[:, kept] * np.sqrt(values[kept])
    rng = np.random.default_rng(rng)
    largest = np.max(np.abs(rng.standard_normal((draws, int(kept.sum()))) @ root.T), axis=1)
    if math.isfinite(df):
        largest = largest / np.sqrt(rng.chisquare(df, size=draws) / df)
    bonferroni = float(t_quantile(df, 1.0 - (1.0 - level) / count))
    return min(max(float(np.quantile(largest, level)), single), bonferroni)


def _names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(str(position) for position in range(count))
    if len(names) != count or len(set(names)) != count:
        raise ValueError(f"names must be {count} different names, got {list(names)!r}")
    return tuple(str(name) for name in names)


def _mean_covariance(values: FloatArray, clusters: ArrayLike | None) -> tuple[FloatArray, float]:
    """Covariance (L, L) of the column means and its degrees of freedom; whole clusters are independent."""
    n = len(values)
    centred = (values - values.mean(axis=0)) / n
    count = n
    if clusters is not None:
        index, count = cluster_index(clusters, n)
        sums = np.zeros((count, values.shape[1]))
        np.add.at(sums, index, centred)
        centred = sums
    return centred.T @ centred * (count / (count - 1)), float(count - 1)


def _difference_covariance(covariance: FloatArray, contrasts: FloatArray) -> FloatArray:
    """Covariance of the differences, exactly 0 in the rows of models that agree on every item."""
    result = contrasts @ covariance @ contrasts.T
    scale = np.abs(contrasts) @ np.diag(covariance)
    nothing = np.diag(result) <= 1e-14 * scale
    result[nothing, :] = 0.0
    result[:, nothing] = 0.0
    return np.asarray(result)


def _least_se(values: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Agresti and Min's standard error of each pair of 0/1 columns: half a count is added to every cell."""
    n, both = len(values), values.T @ values
    total = np.diag(both)
    disagree = total[first] + total[second] - 2.0 * both[first, second]
    around = disagree + 1.0 - (total[first] - total[second]) ** 2 / (n + 2.0)
    return np.asarray(np.sqrt(around) / (n + 2.0))


def paired_differences(
    values: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    clusters: ArrayLike | None = None,
    margin: float | None = None,
    level: float = 0.95,
    fpc: float = 1.0,
    draws: int = 20_000,
    rng: np.random.Generator | int | None = None,
) -> tuple[PairedDifference, ...]:
    """All L(L − 1)/2 paired differences with simultaneous intervals, Holm p-values and equivalence.

    Differences are means over shared items, so what makes an item hard for both models cancels. The simultaneous
    interval is difference ± q·SE, q the simulated quantile of max |t| under the estimated correlation of the pairs.
    ``equivalent`` at a margin δ is decided by that interval lying inside ±δ, which holds for all pairs together.

    Where 0/1 values disagree on few items the SE seen is too small: intervals and p-values take at least Agresti and
    Min's √(b + c + 1 − (b − c)²/(N + 2))/(N + 2) for b + c items that disagree. Two models that agree on every item
    have SE 0; for values that are not 0/1 the interval is then NaN: no variation was seen, which proves no equality.

    Args:
        values: (N, L) per-item values of L models, N ≥ 2, L ≥ 2; a column's mean is the model's estimate.
        names: L different names; default "0", "1", …
        clusters: (N,) labels; whole clusters are independent.
        margin: equivalence margin δ > 0 in the unit of the values.
        level: joint coverage.
        fpc: factor on all variances, 1 − N/F where the target is a pool of F items.
        draws: simulated vectors for the quantile.
        rng: generator or seed of the simulation; None is ``default_rng(20261)``.

    Returns:
        Rows in the order (0, 1), (0, 2), …, (L − 2, L − 1).

    Raises:
        ValueError: wrong shapes or names, missing values, a margin or fpc out of range, one cluster.
        TypeError: values that are not numbers.

    References:
        Hothorn, Bretz and Westfall, "Simultaneous Inference in General Parametric Models" (2008), Biometrical
            Journal 50.
        Holm, "A Simple Sequentially Rejective Multiple Test Procedure" (1979), Scandinavian Journal of Statistics
            6.

    Example:
        >>> values = np.random.default_rng(0).normal([0.0, 0.1, 1.0], 1.0, size=(100, 3))
        >>> pairs = paired_differences(values, names=list('abc'), rng=0)
        >>> [(pair.a, pair.b) for pair in pairs if pair.p_adjusted < 0.05]
        [('a', 'c'), ('b', 'c')]
    """
    array = check_matrix(values, "values", min_columns=2)
    if len(array) < 2:
        raise ValueError(f"paired differences need at least 2 items, got {len(array)}")
    check_level(level)
    if margin is not None and not (margin > 0.0 and math.isfinite(margin)):
        raise ValueError(f"margin must be positive, got {margin!r}")
    if not 0.0 <= fpc <= 1.0:
        raise ValueError(f"fpc must lie in [0, 1], got {fpc!r}")
    n, count = array.shape
    labels = _names(names, count)
    first, second = np.triu_indices(count, k=1)
    contrasts = np.zeros((len(first), count))
    contrasts[np.arange(len(first)), first] = 1.0
    contrasts[np.arange(len(first)), second] = -1.0
    covariance, df = _mean_covariance(array, clusters)
    spread = _difference_covariance(covariance * fpc, contrasts)
    generator = np.random.default_rng(DEFAULT_SEED if rng is None else rng)
    joint = max_t_quantile(spread, df, level, draws=draws, rng=generator)
    single = float(t_quantile(df, level))
    difference = contrasts @ array.mean(axis=0)
    se = np.sqrt(np.diag(spread))
    agree = (se == 0.0) & (fpc > 0.0)
    difference[agree] = (array[0, first] - array[0, second])[agree]
    width = np.where(agree, math.nan, se)
    if is_binary(array):
        width = np.fmax(width, _least_se(array, first, second) * math.sqrt(fpc))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(se > 0.0, 2.0 * stdtr(df, -np.abs(difference) / width), np.nan)
    adjusted = holm(p)
    return tuple(
        PairedDifference(
            a=labels[first[k]],
            b=labels[second[k]],
            value=float(difference[k]),
            se=float(se[k]),
            low=float(difference[k] - joint * width[k]),
            high=float(difference[k] + joint * width[k]),
            low_single=float(difference[k] - single * width[k]),
            high_single=float(difference[k] + single * width[k]),
            p=float(p[k]),
            p_adjusted=float(adjusted[k]),
            level=float(level),
            n=n,
            margin=margin,
            equivalent=None if margin is None else bool(abs(difference[k]) + joint * width[k] < margin),
        )
        for k in range(len(first))
    )
