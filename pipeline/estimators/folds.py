"""Folds for cross-fitting: balanced in the outcome, random by a seed or fixed by the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.floats import FloatArray, IntArray

_MANY_VALUES = 10  # outcomes with more distinct values are balanced by quarter instead of by value


def balanced_folds(y: FloatArray, keys: FloatArray, count: int, rng: np.random.Generator | int | None) -> IntArray:
    """Fold numbers 0..count−1 (n,), each fold with about the same outcomes.

    Items of one outcome are put in random order and dealt out in turn. Without ``rng`` the order is a fixed scramble
    of the items' ranks in ``keys``: then the folds depend on the data alone, not on the order of the items or of the
    keys, nor on the location, scale or sign of the keys.

    Args:
        y: (n,) outcomes.
        keys: (n, q) values that tell items apart.
        count: number of folds.
        rng: generator, seed or None.
    """
    quarters = np.floor(4.0 * mid_ranks(y[:, None])[:, 0] / (len(y) + 1))
    outcome = quarters if len(np.unique(y)) > _MANY_VALUES else y
    if rng is None:
        keys, ranks = _in_own_order(keys, y)
        order = np.lexsort((*keys.T, _scramble(ranks), outcome))
    else:
        order = np.lexsort((np.random.default_rng(rng).random(len(y)), outcome))
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % count
    return fold


def scrambled(keys: FloatArray) -> NDArray[np.uint64]:
    """(n,) a fixed scramble of the items' ranks in (n, q) keys: a random order that rows in any order agree on."""
    return _scramble(np.round(2.0 * mid_ranks(keys)).astype(np.uint64))


def mid_ranks(columns: FloatArray) -> FloatArray:
    """Ranks 1..M down each column of (M, K), ties at their average; every column lies in one piece of memory."""
    rows = len(columns)
    # Scattering into one column of a row-major table cost as much as half the sort.
    ranks = np.empty(columns.shape[::-1])
    untied = np.arange(1.0, rows + 1.0)
    for own, column in zip(ranks, columns.T, strict=True):
        order = np.argsort(column)  # ties share their ranks, so the sort need not be stable
        ordered = column[order]
        begins = ordered[1:] != ordered[:-1]
        if begins.all():
            own[order] = untied
            continue
        starts = np.flatnonzero(np.concatenate([[True], begins]))
        ends = np.concatenate([starts[1:], [rows]])
        own[order] = np.repeat(0.5 * (starts + 1 + ends), ends - starts)
    return ranks.T


def _from_nearer_end(columns: FloatArray) -> NDArray[np.uint64]:
    """Ranks as whole numbers that a change of sign leaves alone: twice the distance from the middle."""
    return np.abs(2.0 * mid_ranks(columns) - (len(columns) + 1)).round().astype(np.uint64)


def _in_own_order(keys: FloatArray, y: FloatArray) -> tuple[FloatArray, NDArray[np.uint64]]:
    """Keys and their ranks with the columns in an order that the data fix: by a sum of mixes over all items."""
    ranks = _from_nearer_end(keys)
    item = _mix(_from_nearer_end(y[:, None])).sum(axis=1) + _mix(ranks).sum(axis=1)
    signature = _mix(ranks ^ _mix(item)[:, None]).sum(axis=0)
    order = np.argsort(signature, kind="stable")
    return keys[:, order], ranks[:, order]


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """splitmix64's finaliser."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (state ^ (state >> np.uint64(31))) + np.uint64(0x9E3779B97F4A7C15)


def _scramble(ranks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit mix of each row."""
    state = np.full(len(ranks), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in ranks.T:
        state = _mix(state ^ column)
    return state
