"""How each method of a profile is run: where items lie on the axis, by which weights, with which options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.benchmark.axes import SEPARATOR, tags_of
from pipeline.estimators import Categorical, Estimate, Ordinal, Profile, lace_profile
from pipeline.evaluation.options import Options, generator
from pipeline.evaluation.pool import Axis, Pool, TargetPool

_NUMBERS = ("value", "se", "low", "high", "n_effective", "df", "variance", "r2", "gain", "beta", "worth")
_WORDS = ("interval", "verdict", "reason")
_IN, _OUT = "holds it", "does not"
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

    def fitted(self, fit: Callable[..., Profile], level: float = 0.95, *, joint: bool = False) -> Profile:
        """What ``fit(z, locality=…, at=…, level=…)`` makes along the axis.

        Tags overlap, so each is a profile of its own, of the items that hold it beside those that do not; where the
        intervals are to hold jointly each has its part of the error (Bonferroni), however they overlap.
        """
        if self.axis.kind != "tags":
            return fit(self.z, locality=self.locality, level=level)
        tags = tags_of(self.z.tolist())
        each = 1.0 - (1.0 - level) / len(tags) if joint else level
        parts = [
            fit(np.where(has_tag(self.z, tag), _IN, _OUT), locality=Categorical(), at=[_IN], level=each) for tag in tags
        ]
        return replace(stacked(parts, np.array(tags, dtype=np.str_)), level=level)


def has_tag(texts: NDArray[Any], tag: str) -> NDArray[np.bool_]:
    """(M,) which canonical texts hold a tag."""
    return np.array([tag in text.split(SEPARATOR) for text in texts.tolist()], dtype=bool)


def stacked(parts: Sequence[Profile], at: NDArray[np.str_]) -> Profile:
    """Profiles of one point each as one profile."""
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _NUMBERS}
    joined |= {name: tuple(entry for part in parts for entry in getattr(part, name)) for name in _WORDS}
    return replace(
        parts[0], at=at, localities=("tags",), diagnostics={}, binary=all(part.binary for part in parts), **joined
    )


def place(target: TargetPool, options: Options) -> PlacedAxis:
    """The first axis of a target: a level's number is the level's own, unless smoothing of ordered levels is asked for.

    Raises:
        ValueError: no labeled item has a value, or all have the same one.
    """
    axis = target.profiles[0]
    worded = axis.kind in ("categorical", "tags")
    rows = np.ones(target.size, dtype=bool) if worded else np.isfinite(axis.values)
    if not (rows & target.labeled).any():
        raise ValueError(f"no labeled row has a value in profile column {axis.column!r}")
    values = axis.values[rows]
    if not worded and len(np.unique(values)) == 1:
        raise ValueError(
            f"profile column {axis.column!r} holds one value only ({values[0]:g}); there is nothing to profile"
        )
    if axis.kind == "continuous":
        return PlacedAxis(axis, rows, values, None)
    if worded or not options.smooth:
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
    clusters = None if target.clusters is None else target.clusters[rows]

    def fit(z: NDArray[Any], **at: Any) -> Profile:
        return estimator(
            z, target.y[rows], columns[rows], labeled=target.labeled[rows], target=options.target, clusters=clusters,
            **design, **given, **at,
        )  # fmt: skip

    profile = placed.fitted(fit, options.level, joint=method.endswith("_band"))
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
    ratings, signals = target.ratings[rows], target.filled()[0][rows]

    def fit(z: NDArray[Any], **at: Any) -> Profile:
        return lace_cascade(
            z, target.y[rows], ratings, signals, labeled=target.labeled[rows], standardize=True, target=options.target,
            **at,
        )  # fmt: skip

    return placed.named(placed.fitted(fit, options.level), "lace_cascade_profile")


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

        def fit(z: NDArray[Any], **at: Any) -> Profile:
            return comparator_profile(
                name, z, np.where(target.labeled, target.y, np.nan)[placed.rows], signals[placed.rows],
                labeled=target.labeled[placed.rows], standardize=True,
                primary=names.index("judge") if "judge" in names else 0, target=options.target,
                rng=generator(options.seed, "comparators", target.name),
                inclusion_probabilities=None if target.chances is None else target.chances[placed.rows],
                clusters=None if target.clusters is None else target.clusters[placed.rows], **at,
            )  # fmt: skip

        return placed.named(placed.fitted(fit, options.level), name)

    return run
