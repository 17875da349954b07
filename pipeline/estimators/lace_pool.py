"""Profile means and Gram matrices of the signals over the pool, accumulated in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.localities import Gaussian, ProfileAxis

__all__ = ["MomentAccumulator", "PoolMoments", "pool_moments", "profile_means", "row_chunks"]

FloatArray: TypeAlias = NDArray[np.float64]

_CHUNK_VALUES = 400_000  # doubles in the kernel block and the feature block together: they stay in the L2 cache
_UNDERFLOW = -600.0  # exponents below this are shifted by their maximum before exp


@dataclass(frozen=True, slots=True, eq=False)
class PoolMoments:
    """What LACE needs of the pool at G profile points, on the signals' own scale.

    Attributes:
        rows: M, the number of pool items.
        mean: (G, K) profile means of S − centre; NaN where no pool item is in reach.
        gram: (G, K, K) local covariance matrices Σ_SS.
        square: (G,) Σ_T w_T².
        centre: (K,) shift subtracted from every signal before anything else.
        overall_mean: (K,) pool mean of S − centre.
        overall_gram: (K, K) pool covariance matrix, weights 1/M.
    """

    rows: int
    mean: FloatArray
    gram: FloatArray
    square: FloatArray
    centre: FloatArray
    overall_mean: FloatArray
    overall_gram: FloatArray

    @property
    def spread(self) -> FloatArray:
        """(K,) pool sd (ddof 0) of each signal; 0 up to rounding is 0."""
        return np.sqrt(np.maximum(np.diag(self.overall_gram), 0.0))

    def rescaled(self, scale: FloatArray) -> PoolMoments:
        """The moments of (S − pool mean)/scale."""
        outer = np.outer(scale, scale)
        return replace(
            self,
            mean=(self.mean - self.overall_mean) / scale,
            gram=self.gram / outer,
            centre=self.centre + self.overall_mean,
            overall_mean=np.zeros_like(self.overall_mean),
            overall_gram=self.overall_gram / outer,
        )


class MomentAccumulator:
    """Running kernel-weighted sums of 1, S and SS' at the points of an axis: one pass, no (G, M) array."""

    def __init__(self, axis: ProfileAxis, centre: FloatArray) -> None:
        points, signals = len(axis.points), len(centre)
        self._axis, self._centre = axis, centre
        self._expansion = _gaussian_expansion(axis)
        self._width = 1 + signals + signals * (signals + 1) // 2
        self._sums = np.zeros((points, self._width))
        self._squares = np.zeros(points)
        self._top = np.full(points, -np.inf)  # largest exponent seen; +inf once exp needs no shift
        self._overall = np.zeros(signals)
        self._overall_gram = np.zeros((signals, signals))
        self._kernel = self._features = np.empty((0, 0))
        self.rows = 0

    @property
    def signals(self) -> int:
        """K."""
        return len(self._centre)

    @property
    def chunk_width(self) -> int:
        """Doubles that one row takes in the buffers."""
        return len(self._sums) + self._width

    def add(self, z: FloatArray, signals: FloatArray) -> None:
        """Add m rows: z (m, q) in the axis's numbers, signals (m, K)."""
        size, count = signals.shape
        if self._kernel.shape[1] != size:
            self._kernel, self._features = np.empty((len(self._sums), size)), np.empty((self._width, size))
        weights, features = self._weights(z), self._features
        features[0] = 1.0
        centred = np.subtract(signals.T, self._centre[:, None], out=features[1 : 1 + count])
        position = 1 + count
        for first in range(count):
            width = count - first
            np.multiply(centred[first], centred[first:], out=features[position : position + width])
            position += width
        self._sums += weights @ features.T
        self._squares += np.vecdot(weights, weights)
        self._overall += centred.sum(axis=1)
        self._overall_gram += centred @ centred.T
        self.rows += size

    def _weights(self, z: FloatArray) -> FloatArray:
        if self._expansion is None:
            kernel = self._axis.log_kernel(z, out=self._kernel)
        else:
            left, middle, scale = self._expansion
            moved = (z[:, 0] - middle) * scale
            kernel = np.matmul(left, np.stack([moved, moved * moved, np.ones_like(moved)]), out=self._kernel)
        self._shift(kernel)
        return np.exp(kernel, out=kernel)

    def _shift(self, kernel: FloatArray) -> None:
        """Subtract the largest exponent at points where every item so far would underflow."""
        far = np.flatnonzero(np.isneginf(self._top) | np.isfinite(self._top))
        if not len(far):
            return
        near = kernel[far, :: max(1, kernel.shape[1] // 64)].max(axis=1) >= _UNDERFLOW
        top = np.where(near, np.inf, np.maximum(self._top[far], kernel[far].max(axis=1)))
        top[top >= _UNDERFLOW] = np.inf
        before = np.where(np.isfinite(self._top[far]), self._top[far], 0.0)
        after = np.where(np.isfinite(top), top, 0.0)
        factor = np.exp(np.minimum(before - after, 0.0))
        self._sums[far] *= factor[:, None]
        self._squares[far] *= factor**2
        moved = far[after != 0.0]
        kernel[moved] -= after[after != 0.0][:, None]
        self._top[far] = top

    def finish(self) -> PoolMoments:
        """Normalise the sums."""
        mass = np.where(self._sums[:, 0] > 0.0, self._sums[:, 0], np.nan)
        count = len(self._centre)
        mean = self._sums[:, 1 : 1 + count] / mass[:, None]
        gram = np.empty((len(mass), count, count))
        rows, columns = np.triu_indices(count)
        gram[:, rows, columns] = self._sums[:, 1 + count :] / mass[:, None]
        gram[:, columns, rows] = gram[:, rows, columns]
        gram -= mean[:, :, None] * mean[:, None, :]
        overall = self._overall / self.rows
        overall_gram = self._overall_gram / self.rows - np.outer(overall, overall)
        return PoolMoments(self.rows, mean, gram, self._squares / mass**2, self._centre, overall, overall_gram)


def _gaussian_expansion(axis: ProfileAxis) -> tuple[FloatArray, float, float] | None:
    """−(a − t)² as the product of (2a, −1, −a²) and (t, t², 1): one matrix product instead of three passes.

    Only for one Gaussian column whose points lie within 64 bandwidths of their middle: the rounding of t² and a²
    then stays below 1e-12 wherever the weight is not negligible.
    """
    if len(axis.localities) != 1 or not isinstance(axis.localities[0], Gaussian):
        return None
    scale = float(np.sqrt(0.5) / np.asarray(axis.localities[0].bandwidth).reshape(-1)[0])
    points = axis.points[:, 0]
    middle = 0.5 * float(points.min() + points.max())
    moved = (points - middle) * scale
    if np.abs(moved).max() > 64.0:
        return None
    return np.stack([2.0 * moved, np.full_like(moved, -1.0), -(moved**2)], axis=1), middle, scale


def row_chunks(rows: int, width: int) -> Iterator[slice]:
    """Slices of the rows such that ``width`` doubles per row fit the cache."""
    size = int(np.clip(_CHUNK_VALUES // max(width, 1), 256, 65_536))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def pool_moments(axis: ProfileAxis, signals: FloatArray) -> PoolMoments:
    """Moments of ``signals`` (M, K) over the axis's pool at its points."""
    rows = len(signals)
    accumulator = MomentAccumulator(axis, np.full(rows, 1.0 / rows) @ signals)
    for chunk in row_chunks(rows, accumulator.chunk_width):
        accumulator.add(axis.z[chunk], signals[chunk])
    return accumulator.finish()


def profile_means(axis: ProfileAxis, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pool profile means (G, K) of ``columns`` (M, K) and Σ_T w_T² (G,); no Gram matrix."""
    points = len(axis.points)
    sums = np.zeros((points, columns.shape[1] + 1))
    squares = np.zeros(points)
    top = np.full(points, -np.inf)
    for chunk in row_chunks(len(columns), points + columns.shape[1] + 1):
        block = axis.log_kernel(axis.z[chunk])
        new = np.maximum(top, block.max(axis=1))
        shift = np.where(np.isfinite(new), new, 0.0)
        factor = np.where(np.isfinite(top), np.exp(np.where(np.isfinite(top), top, 0.0) - shift), 0.0)
        block -= shift[:, None]
        np.exp(block, out=block)
        sums *= factor[:, None]
        squares *= factor**2
        sums[:, 0] += block.sum(axis=1)
        sums[:, 1:] += block @ columns[chunk]
        squares += np.vecdot(block, block)
        top = new
    mass = np.where(sums[:, 0] > 0.0, sums[:, 0], np.nan)
    return sums[:, 1:] / mass[:, None], squares / mass**2
