"""Do the labels look drawn as they are said to be: one joint test over all signals and profile axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc, gammaincc

from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.floats import BoolArray, FloatArray
from pipeline.estimators.sampling import LabelDraw, Sampling, resolve_draw
from pipeline.estimators.signals import prepare_signals
from pipeline.estimators.validation import check_labeled, check_probabilities, check_signals

_FEWEST = 5
_KEPT = 1e-8
"""Share of the largest eigenvalue below which a direction counts as one the columns do not have."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawCheck:
    """Whether labels differ from the pool by more than their draw explains.

    Attributes:
        statistic: d'V⁺d, d the labels' weighted mean minus the pool's, V its variance under the draw.
        df: rank of V.
        p: chance of a larger one where the labels were drawn as said; 1 where there is nothing to compare.
        z: (P,) d over its standard error, column by column; 0 for a constant column.
    """

    statistic: float
    df: int
    p: float
    z: FloatArray

    @property
    def column(self) -> int | None:
        """The column that differs most; None without columns."""
        return int(np.argmax(np.abs(self.z))) if len(self.z) else None


def check_draw(
    columns: ArrayLike,
    labeled: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    inclusion_probabilities: ArrayLike | None = None,
    sampling: Sampling | None = None,
) -> DrawCheck:
    """χ² test of the hypothesis that the labels were drawn as said, on all columns jointly.

    The columns are taken as mid-ranks, so that heavy tails raise no false alarm; d = S̄_L − S̄_T with the draw's weights.
    A simple draw has V = Σ_T(1/n − 1/M); chances p Σ_T (1 − p)/p (S − S̄)(S − S̄)'/M²; clusters add the covariance of
    members for every pair of labels that share one; of strata and rounds V is estimated from the labels, and the test
    is Hotelling's. Column by column, or on a profile alone, it is weak: labels drawn with chance ∝ exp(.4·difficulty)
    were noticed in 23 %.

    Args:
        columns: (M, P) finite numbers: signals, numeric axes, indicators of the levels of the others.
        labeled: (M,) booleans.
        clusters, inclusion_probabilities, sampling: how they were drawn, as in :func:`lace_mean`.

    Raises:
        ValueError: shapes that do not fit, a draw that cannot be.

    References:
        Särndal, Swensson and Wretman, "Model Assisted Survey Sampling" (1992), chapter 5.

    Example:
        >>> columns = np.arange(100.0)[:, None]
        >>> labeled = np.arange(100) < 20
        >>> check_draw(columns, labeled).p < 0.001
        True
    """
    values = check_signals(columns, name="columns")
    rows = len(values)
    mask = check_labeled(labeled, np.zeros(rows))
    n = int(mask.sum())
    if n < _FEWEST or rows - n < _FEWEST or not values.shape[1]:
        return DrawCheck(0.0, 0, 1.0, np.zeros(values.shape[1]))
    inclusion = check_probabilities(inclusion_probabilities, rows)
    draw = resolve_draw(sampling, mask, clusters, inclusion)
    ranks = prepare_signals(values).scales(slice(None))[1]
    difference = draw.shares @ ranks[mask] - ranks.mean(axis=0)
    chances = inclusion if sampling is None else sampling.probabilities
    if draw.strata is not None:
        return _hotelling(difference, draw, ranks[mask])
    variance = _variance(ranks, mask, draw, chances, clusters)
    statistic, df = _quadratic(difference, variance)
    p = float(gammaincc(df / 2.0, statistic / 2.0)) if df else 1.0
    return DrawCheck(statistic, df, p, _each(difference, variance))


def _variance(
    ranks: FloatArray, mask: BoolArray, draw: LabelDraw, chances: FloatArray | None, clusters: Any
) -> FloatArray:
    """(P, P) variance of d, from the pool."""
    rows, n = len(ranks), int(mask.sum())
    centred = ranks - ranks.mean(axis=0)
    if chances is not None:
        variance = (centred * ((1.0 - chances) / chances)[:, None]).T @ centred / rows**2
        kept = float(draw.shares**2 @ draw.unsampled) / float(draw.shares @ draw.shares)
    else:
        kept = 1.0 - n / rows
        variance = centred.T @ centred / (rows - 1) * (kept / n)
    if draw.clusters is not None and clusters is not None:
        index, count = cluster_index(clusters, rows)
        sums = np.zeros((count, centred.shape[1]))
        np.add.at(sums, index, centred)
        sizes = np.bincount(index).astype(np.float64)
        pairs = float(sizes @ (sizes - 1.0))
        between = (sums.T @ sums - centred.T @ centred) / max(pairs, 1.0)
        own = np.bincount(draw.clusters, weights=draw.shares)
        variance = variance + kept * between * max(float(own @ own) - float(draw.shares @ draw.shares), 0.0)
    return np.asarray(variance, dtype=np.float64)


def _hotelling(difference: FloatArray, draw: LabelDraw, own: FloatArray) -> DrawCheck:
    """T² with the draw's variance estimated from the labels, against F."""
    influence = draw.shares[:, None] * (own - draw.shares @ own)
    moved = np.column_stack([draw.units(draw.deviations(column)) for column in influence.T])
    variance = moved.T @ moved
    statistic, rank = _quadratic(difference, variance)
    left = draw.freedom - rank + 1.0
    z = _each(difference, variance)
    if rank == 0 or left <= 0.0:
        return DrawCheck(statistic, rank, 1.0, z)
    return DrawCheck(statistic, rank, float(fdtrc(rank, left, statistic * left / (draw.freedom * rank))), z)


def _quadratic(difference: FloatArray, variance: FloatArray) -> tuple[float, int]:
    """(d'V⁺d, rank of V), on the scale of unit variances."""
    scale = np.sqrt(np.maximum(np.diag(variance), 0.0))
    used = scale > 1e-12
    if not used.any():
        return 0.0, 0
    unit = variance[np.ix_(used, used)] / np.outer(scale[used], scale[used])
    values, vectors = np.linalg.eigh(unit)
    kept = values > _KEPT * values[-1]
    along = vectors[:, kept].T @ (difference[used] / scale[used])
    return float(np.sum(along**2 / values[kept])), int(kept.sum())


def _each(difference: FloatArray, variance: FloatArray) -> FloatArray:
    scale = np.sqrt(np.maximum(np.diag(variance), 0.0))
    return np.asarray(np.divide(difference, scale, out=np.zeros_like(difference), where=scale > 1e-12))
