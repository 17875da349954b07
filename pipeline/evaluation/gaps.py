"""The difference of two targets on the items they share: as a mean, with the one-step correction, along an axis."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import InputError
from pipeline.estimators import Estimate, FittedGap, ModelLabels, Profile, all_gaps, gap_of
from pipeline.estimators.floats import FloatArray
from pipeline.evaluation import profiles
from pipeline.evaluation.options import RULE, Options, generator
from pipeline.evaluation.pool import Pool, TargetPool
from pipeline.tables.signal_checks import Notice

MOST_TARGETS = 60
"""With more targets than this a user names the one that the others are compared with."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two targets on the items that both have, row by row the same item.

    Attributes:
        first, second: the targets, cut to the shared items; the gap is first − second.
        fit: the gap of their means from all labels of both, on the items that either has.
        options: how the pool is evaluated.
    """

    first: TargetPool
    second: TargetPool
    fit: FittedGap
    options: Options

    @property
    def name(self) -> str:
        """As it is said: ``a − b``."""
        return f"{self.first.name} − {self.second.name}"

    @cached_property
    def both(self) -> NDArray[np.bool_]:
        """(M,) items labeled for both."""
        return self.first.labeled & self.second.labeled

    @cached_property
    def chances(self) -> FloatArray | None:
        """(M,) chance that an item is labeled for both: that of the item where labels were drawn per item, the product
        of both where they were drawn row by row; None where all are alike."""
        first, second = self.first.chances, self.second.chances
        if first is None and second is None:
            return None
        if first is None or second is None or np.array_equal(self.first.labeled, self.second.labeled):
            chances = first if first is not None else second
        else:
            chances = first * second
        assert chances is not None
        return np.where(~self.both & (chances >= 1.0), 1.0 - 1e-9, chances)

    @cached_property
    def signals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The signals that both targets have, of each, and those that only one has (a missing-reply indicator, say)."""
        (left, names), (right, others) = self.first.filled(), self.second.filled()
        shared = [name for name in names if name in others]
        alone = [left[:, k] for k, name in enumerate(names) if name not in shared]
        alone += [right[:, k] for k, name in enumerate(others) if name not in shared]
        rest = np.column_stack(alone) if alone else np.empty((len(left), 0))
        return left[:, [names.index(n) for n in shared]], right[:, [others.index(n) for n in shared]], rest


def pairs(pool: Pool, options: Options, notices: list[Notice]) -> Iterator[Pair]:
    """Every pair with an item in common, or all pairs with the baseline where there is one.

    Raises:
        InputError: more than 60 targets without a baseline, or a baseline that is no target.
    """
    targets: Sequence[TargetPool] = pool.targets
    if len(targets) < 2:
        return
    if any(target.ids is None for target in targets):
        notices.append(Notice("no_ids", "no paired gaps between models: give --id so that their rows can be joined"))
        return
    names = [target.name for target in targets]
    if options.baseline is not None and options.baseline not in names:
        raise InputError(f"--baseline {options.baseline}: no such model; there are {', '.join(names[:12])}")
    wanted = list(itertools.combinations(targets, 2))
    if options.baseline is not None:
        base = pool[options.baseline]
        wanted = [(other, base) for other in targets if other is not base]
    elif len(targets) > MOST_TARGETS:
        text = (
            f"{len(targets)} models make too many pairs: no gaps and ranks; give --baseline MODEL to compare with one"
        )
        notices.append(Notice("too_many_pairs", text))
        return
    apart = [(a, b) for a, b in wanted if not len(np.intersect1d(a.ids, b.ids))]  # type: ignore[arg-type]
    notices += [Notice("no_gap", f"{a.name} − {b.name}: no item in common") for a, b in apart]
    together = [pair for pair in wanted if pair not in apart]
    if together:
        fits = all_gaps(
            {target.name: _labels_of(target) for target in targets}, target=options.target, adapt=RULE,
            pairs=[(a.name, b.name) for a, b in together],
        )  # fmt: skip
        for (a, b), (_, _, fit) in zip(together, fits, strict=True):
            yield _cut(a, b, fit, options)


def _labels_of(target: TargetPool) -> ModelLabels:
    signals, names = target.filled()
    y = np.where(target.labeled, target.y, np.nan)
    return ModelLabels(y, signals, target.ids, names, target.clusters, **target.design)


def joined(a: TargetPool, b: TargetPool, options: Options) -> Pair:
    """Two targets as a pair by themselves."""
    return _cut(a, b, gap_of(_labels_of(a), _labels_of(b), target=options.target, adapt=RULE), options)


def _cut(a: TargetPool, b: TargetPool, fit: FittedGap, options: Options) -> Pair:
    """The pair with both targets on the items that both have."""
    assert a.ids is not None
    assert b.ids is not None
    _, rows_a, rows_b = np.intersect1d(a.ids, b.ids, assume_unique=True, return_indices=True)
    return Pair(a.of(rows_a), b.of(rows_b), fit, options)


def without_signals(target: TargetPool) -> TargetPool:
    """The labels alone."""
    return replace(target, signals=np.empty((target.size, 0)), signal_names=())


def lace(pool: Pool, pair: Pair, options: Options) -> Estimate:
    """LACE of the mean difference."""
    return pair.fit.estimate(options.level)


def one_step(pool: Pool, pair: Pair, options: Options) -> Estimate:
    """The difference corrected within each item by both targets' predictions.

    Raises:
        ValueError: fewer than 2 items labeled for both.
    """
    from pipeline.estimators import mean_gap

    both, first, second = pair.both, pair.first, pair.second
    _check_shared(pair)
    assert first.taus is not None
    assert second.taus is not None
    rule: Any = "loo" if int(both.sum()) < 50 else "cross-fit"
    return mean_gap(
        first.y[both], second.y[both], first.taus[both], second.taus[both], power=rule, level=options.level,
        clusters=None if first.clusters is None else first.clusters[both],
        inclusion_probabilities=None if pair.chances is None else pair.chances[both],
        rng=generator(options.seed, "one_step_gap", first.name, second.name),
    )  # fmt: skip


def along(pool: Pool, pair: Pair, options: Options) -> Profile:
    """The difference along the first profile axis, read from the items of the first target."""
    from pipeline.estimators import lace_gap

    _check_shared(pair)
    placed = profiles.place(pair.first, options)
    rows, chances = placed.rows, pair.chances
    left, right, alone = pair.signals
    if not left.shape[1]:
        left = right = np.zeros((len(rows), 1))

    def fit(z: NDArray[Any], **at: Any) -> Profile:
        return lace_gap(
            z, pair.first.y[rows], pair.second.y[rows], left[rows], right[rows], labeled=pair.both[rows],
            pairwise=alone[rows] if alone.shape[1] else None, adapt=RULE, target=options.target,
            inclusion_probabilities=None if chances is None else chances[rows],
            clusters=None if pair.first.clusters is None else pair.first.clusters[rows], **at,
        )  # fmt: skip

    return placed.named(placed.fitted(fit, options.level), "lace_gap_profile")


def _check_shared(pair: Pair) -> None:
    if pair.both.sum() < 2:
        raise ValueError("fewer than 2 items are labeled for both")
