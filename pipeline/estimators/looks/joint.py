"""Critical values of looks at the largest of several correlated statistics, from simulated walks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.floats import BoolArray
from pipeline.estimators.looks.critical import critical_values, same_looks
from pipeline.estimators.looks.walk import increasing, inside_until, solve, starting_at

_DRAWS, _FEWEST, _SEED = 100_000, 50, 20261


@dataclass(eq=False)
class _JointPaths:
    """Simulated walks of P correlated statistics, those that are still inside; one random stream per look."""

    root: NDArray[np.float32]
    walks: NDArray[np.float32]
    information: float = 0.0
    look: int = 0

    @property
    def statistics(self) -> int:
        """How many are different: one where all are the same up to sign."""
        return len(self.root) if len(self.walks) > 1 else 1

    def step(self, information: float) -> NDArray[np.float32]:
        """The largest |Z| of every path at ``information``."""
        self.look += 1
        rng = np.random.default_rng([_SEED, self.look])
        fresh = rng.standard_normal(self.walks.shape, dtype=np.float32)
        fresh *= np.float32(math.sqrt(information - self.information))
        self.walks = self.walks + fresh
        self.information = information
        largest = np.zeros(self.walks.shape[1], dtype=np.float32)
        for row in self.root:  # a statistic at a time: no (P, draws) block leaves the processor's cache
            seen = row @ self.walks
            np.maximum(largest, np.abs(seen, out=seen), out=largest)
        return largest / np.float32(math.sqrt(information))

    def keep(self, inside: BoolArray) -> None:
        self.walks = self.walks[:, inside]


def _joint_paths(correlation: ArrayLike) -> _JointPaths:
    matrix = np.atleast_2d(np.asarray(correlation, dtype=np.float64))
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"correlation must be a finite (P, P) matrix, got shape {matrix.shape}")
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    kept = values > 1e-8 * values[-1]
    root = (vectors[:, kept] * np.sqrt(values[kept])).astype(np.float32)
    return _JointPaths(root, np.zeros((int(kept.sum()), _DRAWS), dtype=np.float32))


def _largest_value(largest: NDArray[np.float32], increment: float, bonferroni: float) -> float:
    """The value that ``increment`` of all draws exceed, never above Bonferroni's; Bonferroni where that is too few."""
    count = increment * _DRAWS
    if count < _FEWEST or not math.isfinite(bonferroni):
        return bonferroni
    place = len(largest) - min(max(round(count), 1), len(largest))
    return min(float(np.partition(largest, place)[place]), bonferroni)


def next_joint_critical(
    information: ArrayLike, critical: Sequence[float], increment: float, correlation: ArrayLike
) -> float:
    """Critical value of the largest of P statistics at the last information, those of the looks before given.

    Args:
        information: (k,) of all looks so far, this one last.
        critical: (k − 1) values that were used.
        increment: error that this look may spend, over all statistics together.
        correlation: (P, P) correlation of the statistics at one look.
    """
    rising = increasing(information)
    if len(critical) != len(rising) - 1:
        raise ValueError(f"{len(rising)} looks need the critical values of {len(rising) - 1}, got {len(critical)}")
    joint = _joint_paths(correlation)
    bonferroni = solve(inside_until(rising, critical), rising[-1], increment, joint.statistics)
    if joint.statistics == 1 or increment * _DRAWS < _FEWEST:
        return bonferroni
    for value, bound in zip(rising, critical, strict=False):
        joint.keep(joint.step(value) <= bound)
    return _largest_value(joint.step(rising[-1]), increment, bonferroni)


def joint_critical_values(
    times: ArrayLike, information: ArrayLike, correlation: ArrayLike, alpha: float = 0.05, spending: str = "power:2"
) -> list[float]:
    """Critical values of all looks at the largest of P correlated statistics.

    Simulated from 100,000 walks (about two digits); where fewer than 50 of them would cross, Bonferroni's value over
    the statistics.

    Args:
        times, information, alpha, spending: as in ``critical_values``.
        correlation: (P, P).
    """
    increments, rising = same_looks(times, information, alpha, spending)
    joint = _joint_paths(correlation)
    if joint.statistics == 1:
        return critical_values(times, information, alpha, spending)
    paths, values = starting_at(), []
    for k, increment in enumerate(increments):
        largest = joint.step(rising[k])
        values.append(_largest_value(largest, increment, solve(paths, rising[k], increment, joint.statistics)))
        joint.keep(largest <= values[-1])
        if k + 1 < len(rising):
            paths = paths.step(values[-1] * math.sqrt(rising[k]), rising[k], rising[k + 1] - rising[k])
    return values
