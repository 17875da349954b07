"""The walk of one statistic over looks: its density over the paths that are still inside, by Simpson's rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr

from pipeline.estimators.floats import FloatArray

_LARGEST = 8.0  # beyond it the tail is rounding
_POINTS, _MOST_POINTS, _STEP = 513, 6001, 0.15
_SHORTEST = 1e-4  # of the information: a shorter step than the finest grid carries counts as this one


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The density of the walk over the paths that are still inside: points and Simpson mass, and where it is seen."""

    points: FloatArray
    mass: FloatArray
    information: float

    def above(self, bound: float, ahead: float, drift: float = 0.0) -> float:
        """Chance to be inside until now and above ``bound`` after ``ahead`` more information."""
        return float(self.mass @ ndtr((self.points + drift * ahead - bound) / math.sqrt(ahead)))

    def below(self, bound: float, ahead: float, drift: float = 0.0) -> float:
        """The same below ``bound``."""
        return float(self.mass @ ndtr((bound - self.points - drift * ahead) / math.sqrt(ahead)))

    def step(self, bound: float, information: float, following: float | None, drift: float = 0.0) -> Paths:
        """The paths inside ±bound at ``information``; ``following`` more is what comes next and sets the grid."""
        ahead = information - self.information
        reach = bound if math.isfinite(bound) else self._reach(information, drift)
        shortest = ahead if following is None else min(ahead, following)
        points, weights = _grid(reach, math.sqrt(shortest))
        scale = math.sqrt(ahead)
        distance = (points[:, None] - (self.points + drift * ahead)[None, :]) / scale
        np.multiply(distance, distance, out=distance)
        np.multiply(distance, -0.5, out=distance)
        density = np.exp(distance, out=distance) @ self.mass / (scale * math.sqrt(2.0 * math.pi))
        return Paths(points, density * weights, information)

    def _reach(self, information: float, drift: float) -> float:
        ahead = information - self.information
        before = _LARGEST * math.sqrt(self.information) + abs(drift) * self.information
        now = min(float(np.max(np.abs(self.points))), before) + abs(drift) * ahead
        return now + _LARGEST * math.sqrt(ahead)


def starting_at(point: float = 0.0, information: float = 0.0) -> Paths:
    return Paths(np.array([point]), np.array([1.0]), information)


def _grid(reach: float, short: float) -> tuple[FloatArray, FloatArray]:
    """Simpson points and weights on [−reach, reach], with steps that resolve a kernel of width ``short``."""
    count = min(max(_POINTS, math.ceil(2.0 * reach / (_STEP * short)) + 1), _MOST_POINTS)
    count += 1 - count % 2
    points = np.linspace(-reach, reach, count)
    weights = np.full(count, 2.0)
    weights[1::2] = 4.0
    weights[0] = weights[-1] = 1.0
    return points, weights * (2.0 * reach / (count - 1) / 3.0)


def increasing(information: ArrayLike) -> list[float]:
    """Information as floats that rise: one that falls or stands still is lifted by the shortest step."""
    values: list[float] = []
    for value in np.atleast_1d(np.asarray(information, dtype=np.float64)).tolist():
        if not value > 0.0:
            raise ValueError(f"information must be positive, got {value!r}")
        least = values[-1] * (1.0 + _SHORTEST) if values else 0.0
        finite = value if math.isfinite(value) else 1e9 * max(least, 1.0)  # a census is a walk's endless end
        values.append(max(finite, least))
    return values


def inside_until(information: Sequence[float], critical: Sequence[float]) -> Paths:
    """The paths inside ±c at every look before the last of ``information``."""
    paths = starting_at()
    for k, bound in enumerate(critical):
        following = information[k + 1] - information[k] if k + 1 < len(information) else None
        paths = paths.step(bound * math.sqrt(information[k]), information[k], following)
    return paths


def solve(paths: Paths, information: float, increment: float, statistics: int = 1) -> float:
    """c with P(inside until now, |Z| > c at ``information``) = increment/statistics; ∞ beyond 8."""
    wanted = increment / statistics
    ahead, root = information - paths.information, math.sqrt(information)

    def excess(critical: float) -> float:
        chance = paths.above(critical * root, ahead) + paths.below(-critical * root, ahead)
        return math.log(max(chance, 1e-300)) - math.log(wanted)

    if not wanted > 0.0 or excess(_LARGEST) > 0.0:
        return math.inf
    if excess(0.0) <= 0.0:
        return 0.0
    return float(brentq(excess, 0.0, _LARGEST, xtol=1e-12, rtol=1e-12))


def crossings(
    paths: Paths, information: Sequence[float], critical: Sequence[float], drift: float
) -> tuple[list[float], list[float], Paths]:
    """Chances to leave above and below at each look with a critical value, and the paths that did not."""
    above, below = [], []
    for k, bound in enumerate(critical):
        ahead, limit = information[k] - paths.information, bound * math.sqrt(information[k])
        above.append(paths.above(limit, ahead, drift))
        below.append(paths.below(-limit, ahead, drift))
        following = information[k + 1] - information[k] if k + 1 < len(information) else None
        paths = paths.step(limit, information[k], following, drift)
    return above, below, paths
