"""Profile means and Gram matrices of the signals over the pool, accumulated in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.lace.kernel_blocks import KernelBlock, best_block, uniform_block
from pipeline.estimators.lace.localities import ProfileAxis

_CHUNK_VALUES = 400_000  # doubles in the kernel block and the feature block together: they stay in the L2 cache
_CENTRED_ON = 16_384  # rows whose mean is subtracted before products are formed
_LARGE = 20_000  # rows from which the recursion along an even grid pays


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

    def __init__(self, axis: ProfileAxis, centre: FloatArray, block: KernelBlock | None = None) -> None:
        points, signals = len(axis.points), len(centre)
        self._block = best_block(axis) if block is None else block
        self._centre = centre
        self._width = 1 + signals + signals * (signals + 1) // 2
        self._sums = np.zeros((points, self._width))
        self._squares = np.zeros(points)
        self._overall = np.zeros(self._width)
        self._kernel = self._features = np.empty((0, 0))
        self.rows = 0

    @property
    def signals(self) -> int:
        """K."""
        return len(self._centre)

    @property
    def mass(self) -> FloatArray:
        """(G,) kernel mass so far, up to the block's factor."""
        return self._sums[:, 0]

    @property
    def chunk_width(self) -> int:
        """Doubles that one row takes in the buffers."""
        return len(self._sums) + self._width

    def add(self, z: FloatArray, signals: FloatArray) -> None:
        """Add m rows: z (m, q) in the axis's numbers, signals (m, K)."""
        size, count = signals.shape
        if self._kernel.shape[1] != size:
            self._kernel, self._features = np.empty((len(self._sums), size)), np.empty((self._width, size))
        weights, features = self._kernel, self._features
        factor = self._block.fill(z, weights)
        if factor is not None:
            self._sums *= factor[:, None]
            self._squares *= factor**2
        features[0] = 1.0
        centred = np.subtract(signals.T, self._centre[:, None], out=features[1 : 1 + count])
        position = 1 + count
        for first in range(count):
            width = count - first
            np.multiply(centred[first], centred[first:], out=features[position : position + width])
            position += width
        self._sums += weights @ features.T
        self._squares += np.vecdot(weights, weights)
        self._overall += features.sum(axis=1)
        self.rows += size

    def finish(self) -> PoolMoments:
        """Normalise the sums."""
        mass = np.where(self._sums[:, 0] > 0.0, self._sums[:, 0], np.nan)
        mean, gram = self._covariances(self._sums / mass[:, None])
        overall, overall_gram = self._covariances(self._overall[None, :] / self.rows)
        return PoolMoments(self.rows, mean, gram, self._squares / mass**2, self._centre, overall[0], overall_gram[0])

    def _covariances(self, means: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(p, K) means and (p, K, K) covariances from means of (1, S, SS')."""
        count = len(self._centre)
        mean = means[:, 1 : 1 + count]
        gram = np.empty((len(means), count, count))
        rows, columns = _upper_triangle(count)
        gram[:, rows, columns] = means[:, 1 + count :]
        gram[:, columns, rows] = means[:, 1 + count :]
        gram -= mean[:, :, None] * mean[:, None, :]
        return mean, gram


@lru_cache(maxsize=32)
def _upper_triangle(count: int) -> tuple[IntArray, IntArray]:
    return np.triu_indices(count)


def row_chunks(rows: int, width: int) -> Iterator[slice]:
    """Slices of the rows such that ``width`` doubles per row fit the cache."""
    size = int(np.clip(_CHUNK_VALUES // max(width, 1), 256, 65_536))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def pool_moments(axis: ProfileAxis, signals: FloatArray) -> PoolMoments:
    """Moments of ``signals`` (M, K) over the axis's pool at its points."""
    rows = len(signals)
    centre = signals[:: max(1, rows // _CENTRED_ON)].mean(axis=0)  # for rounding alone: a spread of rows will do
    quick = uniform_block(axis) if rows >= _LARGE else None
    if quick is not None:
        accumulator = _accumulated(axis, signals, MomentAccumulator(axis, centre, quick))
        if quick.trusted(accumulator.mass):
            return accumulator.finish()
    return _accumulated(axis, signals, MomentAccumulator(axis, centre)).finish()


def _accumulated(axis: ProfileAxis, signals: FloatArray, accumulator: MomentAccumulator) -> MomentAccumulator:
    for chunk in row_chunks(len(signals), accumulator.chunk_width):
        accumulator.add(axis.z[chunk], signals[chunk])
    return accumulator


def profile_means(
    axis: ProfileAxis, columns: Callable[[slice], FloatArray], width: int
) -> tuple[FloatArray, FloatArray]:
    """Pool profile means (G, width) of columns given chunk by chunk, and Σ_T w_T² (G,); no Gram matrix.

    Args:
        axis: the profile with its pool.
        columns: a slice of the rows to its (m, width) columns.
        width: number of columns.
    """
    points, block = len(axis.points), best_block(axis)
    sums, mass, squares = np.zeros((points, width)), np.zeros(points), np.zeros(points)
    weights = np.empty((points, 0))
    for chunk in row_chunks(len(axis.z), points + 2 * width + 1):
        size = chunk.stop - chunk.start
        weights = weights if weights.shape[1] == size else np.empty((points, size))
        factor = block.fill(axis.z[chunk], weights)
        if factor is not None:
            sums *= factor[:, None]
            mass *= factor
            squares *= factor**2
        sums += weights @ columns(chunk)
        mass += weights.sum(axis=1)
        squares += np.vecdot(weights, weights)
    mass[mass <= 0.0] = np.nan
    return sums / mass[:, None], squares / mass**2
