"""Winner weights: the chance that each candidate wins a random size-N subset, ties split evenly."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.floats import FloatArray

_NEGLIGIBLE = 1e-18
_EXTENDED = float(np.finfo(np.longdouble).eps) < 1e-18


@dataclass(frozen=True, slots=True, eq=False)
class RankWeights:
    """Weights of ascending ranks 0..M−1 when no keys are tied; read-only arrays.

    Attributes:
        single: (M,) float64, w_r = C(r, N−1)/C(M, N).
        extended: (M,) the same in extended precision.
        below: (M+1,) extended, below[r] = Σ_{i<r} w_i = C(r, N)/C(M, N).
        above: (M+1,) float64, above[c] = total weight of the c highest ranks = 1 − C(M−c, N)/C(M, N).
        cut: ranks under ``cut`` carry less than 1e-18 of weight together.
    """

    single: FloatArray
    extended: NDArray[Any]
    below: NDArray[Any]
    above: FloatArray
    cut: int


def check_subset_size(n: int, candidates: int) -> int:
    """``n`` as an int; TypeError unless an integer, ValueError unless 1 ≤ n ≤ M."""
    size = check_integer(n, "n")
    if not 1 <= size <= candidates:
        raise ValueError(f"n must lie in 1..M = 1..{candidates} (the subset is drawn from M candidates), got {size}")
    return size


def check_integer(value: Any, name: str) -> int:
    """``value`` as an int; TypeError for anything that is not an integer (booleans included)."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None


@lru_cache(maxsize=64)
def rank_weights(candidates: int, n: int) -> RankWeights:
    """Weights of the ranks for M candidates and subsets of N.

    The recursion w_{M−1} = N/M, w_{r−1} = w_r·(r − N + 1)/r runs in extended precision (decimal arithmetic
    where the platform has none), so that the relative error at M = 1e5 stays near one float64 rounding.
    """
    extended = _recursion(candidates, n) if _EXTENDED else _decimal_recursion(candidates, n)
    below = np.concatenate([np.zeros(1, extended.dtype), np.cumsum(extended)])
    above = np.concatenate([np.zeros(1, extended.dtype), np.cumsum(extended[::-1])]).astype(np.float64)
    above[candidates - n + 1 :] = 1.0
    weights = RankWeights(
        single=extended.astype(np.float64),
        extended=extended,
        below=below,
        above=np.minimum(above, 1.0),
        cut=int(np.searchsorted(below, _NEGLIGIBLE)) - 1,
    )
    for array in (weights.single, weights.extended, weights.below, weights.above):
        array.setflags(write=False)
    return weights


def _recursion(candidates: int, n: int) -> NDArray[Any]:
    ranks = np.arange(candidates - 1, 0, -1)
    ratios = np.maximum(ranks - n + 1, 0).astype(np.longdouble) / ranks.astype(np.longdouble)
    first = np.array([n], dtype=np.longdouble) / candidates
    with np.errstate(under="ignore"):
        return np.ascontiguousarray(np.multiply.accumulate(np.concatenate([first, ratios]))[::-1])


def _decimal_recursion(candidates: int, n: int) -> NDArray[Any]:
    weights = np.zeros(candidates, dtype=np.float64)
    with decimal.localcontext() as context:
        context.prec = 30
        weight = decimal.Decimal(n) / candidates
        weights[-1] = float(weight)
        for rank in range(candidates - 1, n - 1, -1):
            weight = weight * (rank - n + 1) / rank
            weights[rank - 1] = float(weight)
            if weights[rank - 1] == 0.0:
                break
    return weights


def winner_weights(keys: ArrayLike, n: int) -> FloatArray:
    """Chance q_m that candidate m has the highest key in a uniform size-N subset, ties broken uniformly.

    q_m = [C(L_m + c_m, N) − C(L_m, N)] / (c_m · C(M, N)) with L_m keys below and c_m keys equal to a_m
    (m included); computed as rank weights averaged over each group of equal keys, never by index.
    For 0/1 keys the ones share 1 − C(M − c, N)/C(M, N), which is pass@N.

    Args:
        keys: (M,) finite selection keys; integers are compared exactly, −0.0 equals 0.0.
        n: subset size N, 1 ≤ N ≤ M.

    Returns:
        (M,) weights, ≥ 0, summing to one.

    Raises:
        ValueError: not one-dimensional, empty, non-finite keys, or N outside 1..M.
        TypeError: keys or n are not numbers.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 3.

    Example:
        >>> winner_weights([0.1, 0.5, 0.5], n=2).round(3)
        array([0. , 0.5, 0.5])
    """
    array: NDArray[Any] = np.asarray(keys)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"keys must have shape (M,) with M ≥ 1, got {array.shape}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"keys must be numbers, got dtype {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError("keys must be finite (no NaN or infinity)")
    weights = rank_weights(len(array), check_subset_size(n, len(array)))
    order = np.argsort(array)
    ordered = array[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.diff(np.append(starts, len(array)))
    shared = (np.add.reduceat(weights.extended, starts) / counts).astype(np.float64)
    result = np.empty(len(array), dtype=np.float64)
    result[order] = np.repeat(shared, counts)
    return result
