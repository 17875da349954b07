"""How each method of a profile is run: where items lie on the axis, by which weights, with which options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators import Categorical, Estimate, Ordinal, Profile, lace_profile
from pipeline.evaluation.options import Options, generator
from pipeline.evaluation.pool import Axis, Pool, TargetPool

LEARNER_FROM = 200
"""Labeled items from which the logistic learner helps a profile of a 0/1 outcome (below, it does not)."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacedAxis:
    """An axis as the estimators take it.

    Attributes:
        axis: as read.
        rows: (M,) items that have a value.
        z: their values; ranks of the levels where an ordinal axis is smoothed.
        locality: the kernel: None is a Gaussian.
        levels: what stands at the ranks, or None.
    """

    axis: Axis
    rows: NDArray[np.bool_]
    z: NDArray[Any]
    locality: Categorical | Ordinal | None
    levels: NDArray[Any] | None = None

    @property
    def smoothed(self) -> bool:
        """Whether points borrow labels from their neighbours."""
        return not isinstance(self.locality, Categorical)

    def named(self, profile: Profile, method: str) -> Profile:
        """The profile under its method's name, with its column's, and levels in the place of ranks."""
        diagnostics = {**profile.diagnostics, "column": self.axis.column, "kind": self.axis.kind}
        return replace(
            profile, at=profile.at if self.levels is None else self.levels, method=method, smoothed=self.smoothed,
            column=self.axis.column, diagnostics=diagnostics,
        )  # fmt: skip


def place(target: TargetPool, options: Options) -> PlacedAxis:
    """The first axis of a target: a level's number is the level's own, unless smoothing of ordered levels is asked for.

    Raises:
        ValueError: no labeled item has a value, or all have the same one.
    """
    axis = target.profiles[0]
    rows = np.ones(target.size, dtype=bool) if axis.kind == "categorical" else np.isfinite(axis.values)
    if not (rows & target.labeled).any():
        raise ValueError(f"no labeled row has a value in profile column {axis.column!r}")
    values = axis.values[rows]
    if axis.kind != "categorical" and len(np.unique(values)) == 1:
        raise ValueError(
            f"profile column {axis.column!r} holds one value only ({values[0]:g}); there is nothing to profile"
        )
    if axis.kind == "continuous":
        return PlacedAxis(axis, rows, values, None)
    if axis.kind == "categorical" or not options.smooth:
        return PlacedAxis(axis, rows, values, Categorical())
    levels, ranks = np.unique(values, return_inverse=True)
    return PlacedAxis(axis, rows, ranks.astype(np.float64), Ordinal(), levels)


def _fit(
    target: TargetPool, options: Options, estimator: Callable[..., Profile], method: str, *, signals: bool, **given: Any
) -> Profile:
    placed = place(target, options)
    rows, chances = placed.rows, target.chances
    columns = target.filled()[0] if signals else np.zeros((target.size, 0))
    # Items without a value on the axis leave their strata with other sizes: what is left is weighed by its chances.
    whole = len(placed.z) == target.size
    design = target.design if whole else {"inclusion_probabilities": None if chances is None else chances[rows]}
    profile = estimator(
        placed.z, target.y[rows], columns[rows], labeled=target.labeled[rows], locality=placed.locality,
        level=options.level, target=options.target,
        clusters=None if target.clusters is None else target.clusters[rows], **design, **given,
    )  # fmt: skip
    if target.complete:  # with every outcome known signals have nothing left to do
        profile = replace(profile, verdict=("neutral",) * len(profile.at))
    return placed.named(profile, method)


def _learner(target: TargetPool) -> str | None:
    return "logistic" if target.binary and target.n >= LEARNER_FROM else None


def lace(pool: Pool, target: TargetPool, options: Options) -> Profile:
    """The adaptive LACE profile; a cross-fitted learner takes part in 0/1 outcomes from 200 labels."""
    return _fit(
        target, options, lace_profile, "lace_profile", signals=True, adapt="average", learner=_learner(target)
    )  # fmt: skip


def banded(pool: Pool, target: TargetPool, options: Options) -> Profile:
    """The same with intervals that hold for the whole curve at once."""
    from pipeline.estimators import lace_profile_band

    seed = generator(options.seed, "band", target.name)
    return _fit(
        target, options, lace_profile_band, "lace_profile_band", signals=True, adapt="average",
        learner=_learner(target), rng=seed,
    )  # fmt: skip


def naive(pool: Pool, target: TargetPool, options: Options) -> Profile:
    """The labels alone along the axis."""
    return _fit(target, options, lace_profile, "naive_profile", signals=False)


def cascade(pool: Pool, target: TargetPool, options: Options) -> Profile:
    """The profile in three layers: signals everywhere, an expensive rater on some items, labels on fewer."""
    from pipeline.estimators import lace_cascade

    assert target.ratings is not None
    placed = place(target, options)
    rows = placed.rows
    profile = lace_cascade(
        placed.z, target.y[rows], target.ratings[rows], target.filled()[0][rows], labeled=target.labeled[rows],
        locality=placed.locality, standardize=True, target=options.target, level=options.level,
    )  # fmt: skip
    return placed.named(profile, "lace_cascade_profile")


def shrunk(pool: Pool, target: TargetPool, options: Options) -> Profile:
    """The groups moved towards their common mean, the more the noisier each is.

    Raises:
        ValueError: fewer than 4 groups with an estimate and a variance.
    """
    from pipeline.estimators import shrink_profile

    profile = lace(pool, target, options)
    noisy = np.isfinite(profile.value) & np.isfinite(profile.variance) & (profile.variance > 0.0)
    if int(noisy.sum()) < 4:
        raise ValueError("--shrink needs a categorical profile with at least 4 groups that have a variance")
    return replace(shrink_profile(profile), method="lace_profile_shrunk")


def comparator(name: str) -> Callable[[Pool, TargetPool, Options], Estimate | Profile]:
    """The runner of one comparator of the paper."""

    def run(pool: Pool, target: TargetPool, options: Options) -> Profile:
        from pipeline.estimators import comparator_profile

        placed = place(target, options)
        signals, names = target.filled()
        profile = comparator_profile(
            name, placed.z, np.where(target.labeled, target.y, np.nan)[placed.rows], signals[placed.rows],
            labeled=target.labeled[placed.rows], locality=placed.locality, standardize=True,
            primary=names.index("judge") if "judge" in names else 0, level=options.level, target=options.target,
            rng=generator(options.seed, "comparators", target.name),
            inclusion_probabilities=None if target.chances is None else target.chances[placed.rows],
            clusters=None if target.clusters is None else target.clusters[placed.rows],
        )  # fmt: skip
        return placed.named(profile, name)

    return run
