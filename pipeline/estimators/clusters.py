"""Cluster-robust variance of a weighted sum, from one partition of the items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.floats import FloatArray, IntArray, is_missing


def cluster_index(clusters: ArrayLike, n: int) -> tuple[IntArray, int]:
    """Cluster labels as 0..C-1 and their number C.

    Raises:
        ValueError: wrong length, a missing label, or fewer than two clusters (no variance can be estimated from one).
    """
    labels: NDArray[Any] = np.asarray(clusters)
    if labels.shape != (n,):
        raise ValueError(f"clusters must have shape ({n},), got {labels.shape}")
    levels, index = np.unique(_comparable(labels), return_inverse=True)
    if len(levels) < 2:
        raise ValueError("clusters must name at least 2 clusters: one cluster gives no standard error")
    return index.astype(np.intp), len(levels)


def _comparable(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels that can be sorted: of mixed kinds as text; ValueError where one is missing."""
    missing = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(labels.shape, dtype=np.bool_)
    if labels.dtype.kind == "O":
        entries = labels.tolist()
        missing = np.array([is_missing(entry) for entry in entries])
        labels = np.array([str(entry) for entry in entries])
    if missing.any():
        raise ValueError(f"clusters has {int(missing.sum())} missing labels; every item needs one")
    return labels


def cluster_variance(contributions: FloatArray, clusters: ArrayLike) -> tuple[float, int]:
    """Variance of Σ_i u_i where whole clusters are independent, and its degrees of freedom.

    V = C/(C − 1) · Σ_c (Σ_{i∈c} u_i)², df = C − 1; ``contributions`` u (n,) are centred influence values
    already divided by n (or multiplied by their weights).
    """
    index, count = cluster_index(clusters, len(contributions))
    sums = np.bincount(index, weights=contributions, minlength=count)
    return float(count / (count - 1) * np.sum(sums**2)), count - 1
