"""Ascending order and exact ties of many rows of keys, faster than argsort.

Each key and its position are packed into one 64-bit integer and the integers are sorted: sorting values is
cheaper than sorting positions, and the sorted keys need not be gathered again to find ties. Where keys are
too close for the bits that are left, their order is settled on the keys themselves, so the result is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.floats import BoolArray

_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)


def ascending_ranks(keys: NDArray[Any]) -> tuple[NDArray[np.int64], BoolArray | None]:
    """Sort every row of keys.

    Args:
        keys: (B, M) finite float64 or int64 keys; −0.0 equals 0.0.

    Returns:
        order: (B, M) positions in ``keys.ravel()``, ascending by key within each row.
        tied: (B, M−1) whether an ordered key equals the one before it; None where no keys are equal.
    """
    blocks, count = keys.shape
    bits = max(1, int(count - 1).bit_length())
    packed, exact = _packed(keys, bits)
    packed.sort(axis=1)
    below = np.int64(1) << np.int64(bits)
    near = packed[:, 1:] ^ packed[:, :-1]
    np.right_shift(near, bits, out=near)
    close = near == 0
    packed &= below - 1
    if blocks > 1:
        packed += np.arange(blocks, dtype=np.int64)[:, None] * count
    if not close.any():
        return packed, None
    if exact:
        return packed, close
    return packed, _settled(keys.ravel(), packed, close)


def _packed(keys: NDArray[Any], bits: int) -> tuple[NDArray[np.int64], bool]:
    """Keys in the high bits (order kept), positions in the low ones; and whether the whole key fitted."""
    positions = np.arange(keys.shape[1], dtype=np.int64)
    if keys.dtype.kind == "i":
        low, high = int(keys.min()), int(keys.max())
        if (high - low).bit_length() + bits < 63:
            packed = keys - np.int64(low)
            np.left_shift(packed, bits, out=packed)
            packed |= positions
            return packed, True
        packed = keys.copy()
    else:
        # Adding 0.0 turns −0.0 into 0.0; flipping the magnitude of negatives makes integers sort as floats do.
        packed = (keys + 0.0).view(np.int64)
        flip = packed >> 63
        flip &= _MAGNITUDE
        packed ^= flip
    packed &= -(np.int64(1) << np.int64(bits))
    packed |= positions
    return packed, False


def _settled(keys: NDArray[Any], order: NDArray[np.int64], close: BoolArray) -> BoolArray | None:
    """Reorder in place the runs of keys that share their high bits; return which neighbours are equal."""
    blocks, count = order.shape
    involved = np.zeros((blocks, count), dtype=np.bool_)
    involved[:, 1:] |= close
    involved[:, :-1] |= close
    places = np.flatnonzero(involved)
    flat = order.ravel()
    members = flat[places]
    exact = keys[members]
    # A run starts where the ordered key is not close to the one before it.
    starts = np.ones((blocks, count), dtype=np.bool_)
    np.logical_not(close, out=starts[:, 1:])
    run = np.cumsum(starts.ravel()[places])
    same_run = run[1:] == run[:-1]
    if (same_run & (exact[1:] < exact[:-1])).any():
        settled = np.lexsort((members, exact, run))
        exact = exact[settled]
        flat[places] = members[settled]
    equal = same_run & (exact[1:] == exact[:-1])
    if not equal.any():
        return None
    tied = np.zeros(blocks * count, dtype=np.bool_)
    tied[places[1:][equal]] = True
    return tied.reshape(blocks, count)[:, 1:]
