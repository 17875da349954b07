"""Kernel weights of a chunk of pool rows at every point: the general way, and two quick ones for Gaussian profiles."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.lace.localities import Gaussian, ProfileAxis

_UNDERFLOW = -300.0  # exponents below this are shifted by their maximum before exp
_EXPANDED_REACH = 64.0  # scaled distance of the outermost point from the middle, for the expansion
_UNIFORM_REACH = 16.0  # the same for the recursion: exp(2 · 16²) is still far from overflow


class KernelBlock(Protocol):
    """Fills (G, m) weights of a chunk, up to one factor per point and per state of the running sums."""

    def fill(self, z: FloatArray, out: FloatArray) -> FloatArray | None:
        """Write weights of rows z (m, q) to ``out``; returns what earlier sums must be multiplied by, if anything."""
        ...


class GeneralBlock:
    """exp(log kernel), relative to the largest exponent so far at points where everything would underflow."""

    def __init__(self, axis: ProfileAxis) -> None:
        self._axis = axis
        self._top = np.full(len(axis.points), -np.inf)  # largest exponent seen; +inf once exp needs no shift
        self._pending = True

    def fill(self, z: FloatArray, out: FloatArray) -> FloatArray | None:
        """See ``KernelBlock``."""
        self._exponents(z, out)
        factor = self._shift(out) if self._pending else None
        np.exp(out, out=out)
        return factor

    def _exponents(self, z: FloatArray, out: FloatArray) -> None:
        self._axis.log_kernel(z, out=out)

    def _shift(self, kernel: FloatArray) -> FloatArray | None:
        far = np.flatnonzero(self._top < np.inf)
        near = kernel[far, :: max(1, kernel.shape[1] // 64)].max(axis=1) >= _UNDERFLOW
        top = np.where(near, np.inf, np.maximum(self._top[far], kernel[far].max(axis=1)))
        top[top >= _UNDERFLOW] = np.inf
        before = np.where(np.isfinite(self._top[far]), self._top[far], 0.0)
        after = np.where(np.isfinite(top), top, 0.0)
        self._top[far] = top
        self._pending = bool((top < np.inf).any())
        moved = after != 0.0
        kernel[far[moved]] -= after[moved][:, None]
        if not (moved.any() or before.any()):
            return None
        factor = np.ones(len(self._top))
        factor[far] = np.exp(np.minimum(before - after, 0.0))
        return factor


class ExpandedBlock(GeneralBlock):
    """−(a − t)² as the product of (2a, −1, −a²) and (t, t², 1): one matrix product instead of three passes.

    For one Gaussian column whose points lie within 64 bandwidths of their middle: the rounding of t² and a² then
    stays below 1e-12 wherever the weight is not negligible.
    """

    def __init__(self, axis: ProfileAxis, points: FloatArray, middle: float, scale: float) -> None:
        super().__init__(axis)
        self._left = np.stack([2.0 * points, np.full_like(points, -1.0), -(points**2)], axis=1)
        self._middle, self._scale = middle, scale
        self._right = np.ones((3, 0))

    def _exponents(self, z: FloatArray, out: FloatArray) -> None:
        if self._right.shape[1] != len(z):
            self._right = np.ones((3, len(z)))
        moved = np.multiply(z[:, 0], self._scale, out=self._right[0])
        moved -= self._middle * self._scale
        np.multiply(moved, moved, out=self._right[1])
        np.matmul(self._left, self._right, out=out)


class UniformBlock:
    """exp(−t² + 2at) along an even grid of points a by multiplication: three exponentials per row instead of G.

    The factor exp(−a²) of each point is left out: it cancels when the sums are normalised. Rows so far from the middle
    that exp(−t²) underflows get weight 0, which is right as long as every point has nearer rows: ``trusted`` says so.
    """

    def __init__(self, points: FloatArray, middle: float, scale: float) -> None:
        self._points, self._middle, self._scale = points, middle, scale
        self._start = len(points) // 2
        self._step = float(points[-1] - points[0]) / (len(points) - 1)

    def fill(self, z: FloatArray, out: FloatArray) -> None:
        """See ``KernelBlock``."""
        moved = z[:, 0] * self._scale
        moved -= self._middle * self._scale
        start = self._start
        first = np.subtract(2.0 * self._points[start], moved, out=out[start])
        first *= moved
        np.exp(first, out=first)
        moved *= 2.0 * self._step
        np.clip(moved, -600.0, 600.0, out=moved)
        ratio = np.exp(moved)
        for row in range(start + 1, len(out)):
            np.multiply(out[row - 1], ratio, out=out[row])
        np.divide(1.0, ratio, out=ratio)
        for row in range(start - 1, -1, -1):
            np.multiply(out[row + 1], ratio, out=out[row])

    def trusted(self, mass: FloatArray) -> bool:
        """Whether the rows near each point outweigh anything that underflowed."""
        with np.errstate(divide="ignore"):
            return bool(np.all(np.log(mass) - self._points**2 > -100.0))


def _scaled_points(axis: ProfileAxis) -> tuple[FloatArray, float, float] | None:
    """Points about their middle in units where the kernel is exp(−(a − t)²); None unless one Gaussian column."""
    if len(axis.localities) != 1 or not isinstance(axis.localities[0], Gaussian):
        return None
    scale = float(np.sqrt(0.5) / np.asarray(axis.localities[0].bandwidth).reshape(-1)[0])
    points = axis.points[:, 0]
    middle = 0.5 * float(points.min() + points.max())
    return (points - middle) * scale, middle, scale


def best_block(axis: ProfileAxis) -> KernelBlock:
    """The quickest block that is always right."""
    scaled = _scaled_points(axis)
    if scaled is None or np.abs(scaled[0]).max() > _EXPANDED_REACH:
        return GeneralBlock(axis)
    return ExpandedBlock(axis, *scaled)


def uniform_block(axis: ProfileAxis) -> UniformBlock | None:
    """The recursion, where the points are an even grid of moderate length; to be checked with ``trusted`` after."""
    scaled = _scaled_points(axis)
    if scaled is None or len(axis.points) < 4:
        return None
    points, middle, scale = scaled
    span = float(points[-1] - points[0])
    even = points[0] + span * np.arange(len(points)) / (len(points) - 1)
    if not 0.0 < span <= 2.0 * _UNIFORM_REACH or np.abs(points - even).max() > 1e-13 * span:
        return None
    return UniformBlock(points, middle, scale)
