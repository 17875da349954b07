"""How much of a mean's variance comes from the choice of items and how much from sampling the answers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.checks import check_matrix, check_vector
from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.results import VarianceComponents


def variance_components(phi: ArrayLike) -> VarianceComponents:
    """One-way random-effects components of repeated outcomes.

    With MSB the mean square between items and MSW within: sampling = MSW, item = (MSB − MSW)/R, SE² = MSB/(N·R).

    Args:
        phi: (N, R) outcomes, N ≥ 2; with R = 1 the parts cannot be told apart and are NaN.

    Raises:
        ValueError: wrong shape, fewer than two items, missing values.
        TypeError: outcomes that are not numbers.

    References:
        Searle, Casella and McCulloch, "Variance Components" (1992), chapter 3.

    Example:
        >>> round(variance_components([[1, 1], [0, 1], [0, 0]]).sampling, 3)
        0.167
    """
    outcome = check_matrix(phi, "phi")
    items, repeats = outcome.shape
    if items < 2:
        raise ValueError(f"variance components need at least 2 items, got {items}")
    means = outcome.mean(axis=1)
    between = float(repeats * np.var(means, ddof=1))
    se = math.sqrt(between / (items * repeats))
    mean = float(means.mean())
    if repeats == 1:
        return VarianceComponents(items, repeats, mean, math.nan, math.nan, math.nan, se)
    within = float(np.sum((outcome - means[:, None]) ** 2) / (items * (repeats - 1)))
    item = (between - within) / repeats
    total = item + within
    share = min(max(item / total, 0.0), 1.0) if total > 0.0 else math.nan
    return VarianceComponents(items, repeats, mean, item, within, share, se)


def cluster_components(phi: ArrayLike, clusters: ArrayLike) -> dict[str, float] | None:
    """Variance between and within clusters of unequal sizes, by one-way analysis of variance.

    With C clusters of sizes n_c, N rows and n0 = (N − Σn_c²/N)/(C − 1): within = MSW, between = (MSB − MSW)/n0, not
    below 0; the standard error of a mean of C clusters of n0 rows is √((between + within/n0)/C).

    Args:
        phi: (N,) outcomes.
        clusters: (N,) labels.

    Returns:
        clusters, size (n0), between, within, share (of the variance that lies between); None where every row is a
        cluster of its own, so that the parts cannot be told apart.

    Raises:
        ValueError: wrong shapes, missing values, fewer than two clusters.

    References:
        Searle, Casella and McCulloch, "Variance Components" (1992), chapter 3.

    Example:
        >>> cluster_components([1, 1, 0, 0, 1, 0], ['a', 'a', 'b', 'b', 'c', 'c'])['within'].__round__(3)
        0.167
    """
    outcome = check_vector(phi, "phi")
    index, count = cluster_index(clusters, len(outcome))
    rows = len(outcome)
    if rows == count:
        return None
    sizes = np.bincount(index, minlength=count).astype(np.float64)
    means = np.bincount(index, weights=outcome, minlength=count) / sizes
    within = float(np.sum((outcome - means[index]) ** 2)) / (rows - count)
    among = float(sizes @ (means - outcome.mean()) ** 2) / (count - 1)
    size = (rows - float(sizes @ sizes) / rows) / (count - 1)
    between = max((among - within) / size, 0.0)
    share = between / (between + within) if between + within > 0.0 else math.nan
    return {"clusters": float(count), "size": size, "between": between, "within": within, "share": share}
