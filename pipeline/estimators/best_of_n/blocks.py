"""The kernel: selection sums over cyclic column blocks, and each block's winner-weighted value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.best_of_n.ranks import ascending_ranks
from pipeline.estimators.best_of_n.weights import RankWeights
from pipeline.estimators.floats import BoolArray, FloatArray

_CHUNK = 1 << 15
_LEVELS_PER_CANDIDATE = 4
_FEWEST_TO_PARTITION = 512


def cyclic_sums(columns: NDArray[Any], length: int, place: int = 0) -> NDArray[Any]:
    """Sums over ``length`` consecutive columns, cyclically: out[…, t + place, :] = Σ_{r<length} columns[…, t + r, :].

    Every sum adds exactly its own columns, in an order that is the same for all candidates; nothing is
    ever subtracted, so no column outside the window leaves a trace in the rounding. O(K) additions.

    Args:
        columns: (…, K, M) scores or lattice integers.
        length: 1 ≤ length ≤ K.
        place: where window 0 is put; place = length puts every window where its held-out columns begin.
    """
    count = columns.shape[-2]
    if length == 1:
        return columns if place % count == 0 else np.roll(columns, place, axis=-2)
    out = np.empty_like(columns)
    if length == count - 1:
        _leave_one_out(columns, out, place - length)
    else:
        _windows(columns, length, out, place)
    return out


def _leave_one_out(columns: NDArray[Any], out: NDArray[Any], place: int) -> None:
    """out[h + place] = sum of all columns but h: a running prefix plus a running suffix."""
    count = columns.shape[-2]

    def at(column: int) -> NDArray[Any]:
        target: NDArray[Any] = out[..., (column + place) % count, :]
        return target

    np.copyto(at(count - 2), columns[..., count - 1, :])
    for column in range(count - 3, -1, -1):
        np.add(at(column + 1), columns[..., column + 1, :], out=at(column))
    prefix = columns[..., 0, :].copy()
    for column in range(1, count - 1):
        np.add(at(column), prefix, out=at(column))
        prefix += columns[..., column, :]
    np.copyto(at(count - 1), prefix)


def _windows(columns: NDArray[Any], length: int, out: NDArray[Any], place: int) -> None:
    """Each window is a suffix of one block of ``length`` columns and a prefix of the next."""
    count = columns.shape[-2]
    for start in range(0, count, length):
        stop = min(start + length, count)
        running = columns[..., (start + length - 1) % count, :].copy()
        if start + length - 1 < stop:
            out[..., (start + length - 1 + place) % count, :] = running
        for column in range(start + length - 2, start - 1, -1):
            running += columns[..., column % count, :]
            if column < stop:
                out[..., (column + place) % count, :] = running
        running = columns[..., (start + length) % count, :].copy()
        for column in range(start + 1, stop):
            if column > start + 1:
                running += columns[..., (column + length - 1) % count, :]
            out[..., (column + place) % count, :] += running


def block_values(keys: NDArray[Any], values: FloatArray, weights: RankWeights) -> FloatArray:
    """Σ_m q_m v_m of every row, q being the winner weights of the row's keys.

    Args:
        keys: (B, M) selection keys; integers may be counted instead of sorted.
        values: (B, M) evaluation values.
        weights: rank weights for M candidates.

    Returns:
        (B,) winner-weighted values.
    """
    blocks, candidates = keys.shape
    out = np.empty(blocks, dtype=np.float64)
    rows = max(1, _CHUNK // candidates)
    for start in range(0, blocks, rows):
        part = slice(start, start + rows)
        out[part] = _chunk_values(keys[part], values[part], weights)
    return out


def _chunk_values(keys: NDArray[Any], values: FloatArray, weights: RankWeights) -> FloatArray:
    candidates = keys.shape[1]
    if keys.dtype.kind == "i":
        low = keys.min(axis=1, keepdims=True)
        span = int((keys.max(axis=1, keepdims=True) - low).max()) + 1
        if span <= _LEVELS_PER_CANDIDATE * candidates:
            return _counted(keys - low, span, values, weights)
    if candidates - weights.cut < candidates // 3 and candidates > _FEWEST_TO_PARTITION:
        return np.array([_top(row, value, weights) for row, value in zip(keys, values, strict=True)])
    return _sorted(keys, values, weights, 0)


def _counted(levels: NDArray[Any], span: int, values: FloatArray, weights: RankWeights) -> FloatArray:
    """Few integer levels 0..span−1: count candidates and add values per level, no sort."""
    blocks = len(levels)
    if blocks > 1:
        levels += np.arange(blocks)[:, None] * span
    flat = levels.ravel()
    counts = np.bincount(flat, minlength=blocks * span).reshape(blocks, span)
    sums = np.bincount(flat, weights=values.ravel(), minlength=blocks * span).reshape(blocks, span)
    upto = np.cumsum(counts, axis=1)
    shares = (weights.below[upto] - weights.below[upto - counts]).astype(np.float64)
    return np.asarray(np.einsum("bs,bs->b", shares / np.maximum(counts, 1), sums))


def _top(keys: NDArray[Any], values: FloatArray, weights: RankWeights) -> float:
    """Only ranks from ``cut`` on carry weight: sort those alone, all ties at the threshold included."""
    threshold = np.partition(keys, weights.cut)[weights.cut]
    kept = np.flatnonzero(keys >= threshold)
    first = len(keys) - len(kept)
    return float(_sorted(keys[kept][None, :], values[kept][None, :], weights, first)[0])


def _sorted(keys: NDArray[Any], values: FloatArray, weights: RankWeights, first: int) -> FloatArray:
    """Rows whose keys hold the ranks from ``first`` to M−1."""
    order, tied = ascending_ranks(keys)
    # "clip" skips a copy that the bounds check of "raise" would need; the order is a permutation.
    ordered = np.take(np.ascontiguousarray(values).ravel(), order, mode="clip")
    out = np.asarray(np.einsum("bm,m->b", ordered, weights.single[first:]))
    if tied is not None:
        rows = np.flatnonzero(tied.any(axis=1))
        out[rows] = _tied(tied[rows], ordered[rows], weights, first)
    return out


def _tied(tied: BoolArray, values: FloatArray, weights: RankWeights, first: int) -> FloatArray:
    """Sorted rows with equal neighbours: each group of ties shares the weight of its ranks."""
    blocks, count = values.shape
    begins = np.ones((blocks, count), dtype=np.bool_)
    np.logical_not(tied, out=begins[:, 1:])
    starts = np.flatnonzero(begins.ravel())
    sizes = np.diff(np.append(starts, blocks * count))
    rank = starts % count + first
    shares = (weights.below[rank + sizes] - weights.below[rank]).astype(np.float64) / sizes
    groups = shares * np.add.reduceat(values.ravel(), starts)
    return np.bincount(starts // count, weights=groups, minlength=blocks).astype(np.float64, copy=False)
