"""pass@k: the chance that at least one of k random samples is correct; Best-of-N with 0/1 keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.best_of_n.population import share_interval, unit_moments
from pipeline.estimators.best_of_n.weights import check_integer, rank_weights
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import check_level
from pipeline.estimators.results import Estimate


def pass_at_k(correct: int, n: int, k: int) -> float:
    """1 − C(n − c, k)/C(n, k), unbiased for one item's pass@k; no cancellation for rare successes.

    Args:
        correct: number c of correct samples, 0 ≤ c ≤ n.
        n: samples drawn, ≥ 1.
        k: 1 ≤ k ≤ n.

    Raises:
        ValueError: c or k out of range.
        TypeError: not integers.

    References:
        Chen et al., "Evaluating Large Language Models Trained on Code" (2021), arXiv 2107.03374, equation 1.

    Example:
        >>> round(pass_at_k(correct=3, n=10, k=2), 4)
        0.5333
    """
    count, samples = check_integer(correct, "correct"), check_integer(n, "n")
    size = _check_k(k, samples)
    if not 0 <= count <= samples:
        raise ValueError(f"correct must lie in 0..n = 0..{samples}, got {count}")
    return float(rank_weights(samples, size).above[count])


def pass_at_k_mean(
    correct: ArrayLike, n: ArrayLike, k: int, *, clusters: ArrayLike | None = None, level: float = 0.95
) -> Estimate:
    """Mean pass@k over items with Wilson's interval at the effective sample size p(1 − p)/se².

    The variance is that of the item values between items (or clusters); samples of one item are never
    replicates. Student's t with (units − 1) degrees of freedom, and the units themselves as sample size
    where all values agree, so that the interval is never empty.

    Args:
        correct: (P,) correct samples per item.
        n: samples per item: a number or (P,).
        k: 1 ≤ k ≤ every n.
        clusters: (P,) items of one cluster are averaged first, and clusters count as units.
        level: nominal coverage.

    Returns:
        Estimate whose ``n`` is the number of units.

    References:
        Chen et al., "Evaluating Large Language Models Trained on Code" (2021), arXiv 2107.03374, equation 1.
        Wilson, "Probable Inference, the Law of Succession, and Statistical Inference" (1927), JASA 22.

    Example:
        >>> round(pass_at_k_mean([3, 10, 0], n=10, k=2).value, 4)
        0.5111
    """
    counts = _integers(correct, "correct")
    if counts.ndim != 1 or counts.size == 0:
        raise ValueError(f"correct must have shape (P,) with P ≥ 1, got {counts.shape}")
    samples = _integers(n, "n")
    if samples.shape not in ((), counts.shape):
        raise ValueError(f"n must be a number or have shape {counts.shape}, got {samples.shape}")
    if counts.min() < 0 or (counts.max() > samples if samples.ndim == 0 else (counts > samples).any()):
        raise ValueError("correct must lie in 0..n for every item")
    level = check_level(level)
    values = _item_values(counts, samples, k)
    mean, se, sd, units = unit_moments(values, clusters)
    low, high = share_interval(mean, se, units, level)
    diagnostics: dict[str, Any] = {
        "prompts": units, "pools": len(values), "sd": sd, "interval": "wilson", "df": units - 1, "k": k,
    }  # fmt: skip
    return Estimate(
        mean, se, low, high, level, units, "pass_at_k", diagnostics, df=float(units - 1), interval="wilson",
        outcome_variance=sd**2, naive_value=mean, naive_se=se,
    )  # fmt: skip


def _item_values(counts: NDArray[Any], samples: NDArray[Any], k: int) -> FloatArray:
    """(P,) pass@k of every item, looked up in the table of its sample size."""
    if samples.ndim == 0:
        return np.asarray(rank_weights(int(samples), _check_k(k, int(samples))).above[counts])
    values = np.empty(len(counts), dtype=np.float64)
    for size in np.unique(samples):
        chosen = samples == size
        values[chosen] = rank_weights(int(size), _check_k(k, int(size))).above[counts[chosen]]
    return values


def _check_k(k: int, samples: int) -> int:
    size = check_integer(k, "k")
    if samples < 1:
        raise ValueError(f"n must be at least 1, got {samples}")
    if not 1 <= size <= samples:
        raise ValueError(f"k must lie in 1..n = 1..{samples}, got {size}: pass@k needs at least k samples per item")
    return size


def _integers(values: ArrayLike, name: str) -> NDArray[Any]:
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind in "iu":
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "b" or (array.dtype.kind == "f" and np.isfinite(array).all() and (array % 1 == 0).all()):
        return array.astype(np.int64)
    raise TypeError(f"{name} must be integers")
