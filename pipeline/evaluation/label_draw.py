"""Draws the items to label next: uniformly, or stratified with Neyman allocation on the control variate's residual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import InputError
from pipeline.estimators.label_strata import LabelStrata, Pilot, residual_strata
from pipeline.estimators.planning import neyman_allocation
from pipeline.evaluation.pool import TargetPool
from pipeline.tables.labels import GoldKind, LabelDesign

__all__ = ["DEFAULT_LABELS", "MIN_PILOT", "draw_labels", "pilot_of", "wanted_labels"]

DEFAULT_LABELS = 50
"""How many items are drawn where no number is asked for, or all that are left."""

MIN_PILOT = 10
"""Labels from which a stratified draw is worth its trouble; below, the residual sds are guesses."""


def pilot_of(target: TargetPool) -> Pilot:
    """What a target's labels and signals say about where further labels are worth most."""
    signals = target.filled()[0]
    y = np.where(target.labeled, target.y, np.nan)
    return Pilot(y, signals if signals.shape[1] else np.zeros((target.size, 1)))


def wanted_labels(labels: int | None, free: int) -> int:
    """The number to draw of ``free`` unlabeled items; None means 50 or all of them.

    Raises:
        InputError: nothing is left to label, or more is asked for than is left.
    """
    if free == 0:
        raise InputError("every item is labeled already")
    if labels is None:
        return min(DEFAULT_LABELS, free)
    if not 1 <= labels <= free:
        raise InputError(f"{labels} labels are asked for; between 1 and {free} items are not labeled yet")
    return labels


def draw_labels(
    ids: Sequence[str],
    labels: int | None,
    pilots: Sequence[Pilot],
    *,
    kind: Literal["uniform", "stratified"] = "uniform",
    strata: NDArray[np.intp] | None = None,
    seed: int = 0,
    source: str = "",
    gold: GoldKind = "score",
    roles: Mapping[str, Any] | None = None,
    prior: Sequence[float] = (),
) -> LabelDesign:
    """Draw ``labels`` items that are not labeled yet.

    Uniform: every such item has the same chance. Stratified: strata are fifths of the control variate's prediction
    (or as given); the labels of a stratum, old and new, are n_h ∝ M_h σ_h with σ_h its residual sd; within a stratum
    the draw is uniform.

    Args:
        ids: (M,) the pool.
        labels: how many to draw; None means 50 or all that are left.
        pilots: outcomes on the pool; an item counts as labeled where the first one has a label.
        kind: the design.
        strata: (M,) numbers 0..H−1 instead of the fifths.
        seed, source, gold, roles, prior: kept in the design (see there).

    Raises:
        InputError: too few unlabeled items; a stratified draw with hardly any labels to learn from.
    """
    size = len(ids)
    before = np.isfinite(pilots[0].y) if pilots else np.zeros(size, dtype=bool)
    labels = wanted_labels(labels, int((~before).sum()))
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        groups = LabelStrata(np.zeros(size, dtype=np.intp), np.array([size]), np.ones(1))
        allocation = np.array([int(before.sum()) + labels])
    else:
        known = int(before.sum())
        if known < MIN_PILOT:
            raise InputError(
                f"a stratified draw learns from labels that are there: {known} are too few (at least {MIN_PILOT}); "
                "draw uniformly first"
            )
        groups = residual_strata(pilots, strata=strata)
        allocation = _allocation(groups, before, known + labels)
    drawn = np.concatenate([_from_stratum(rng, groups, before, allocation, h) for h in range(len(groups.sizes))])
    order = rng.permutation(drawn)
    return LabelDesign(
        kind, seed, source, gold, tuple(ids), tuple(int(h) for h in groups.strata),
        tuple(ids[k] for k in np.flatnonzero(before).tolist()), tuple(ids[k] for k in order.tolist()),
        tuple(int(n) for n in allocation), dict(roles or {}),
        tuple(float(chance) for chance in prior),
    )  # fmt: skip


def _allocation(groups: LabelStrata, before: NDArray[np.bool_], total: int) -> NDArray[np.intp]:
    """Neyman with what is there already as the least, and two per stratum where the total allows."""
    have = np.bincount(groups.strata[before], minlength=len(groups.sizes))
    for floor in (2, 1, 0):
        least = np.minimum(np.maximum(have, floor), groups.sizes)
        if least.sum() <= total:
            return neyman_allocation(groups.sizes, groups.deviations, total, minimum=least)
    raise InputError(f"{total} labels are fewer than those that are there")


def _from_stratum(
    rng: np.random.Generator, groups: LabelStrata, before: NDArray[np.bool_], allocation: NDArray[Any], h: int
) -> NDArray[np.intp]:
    inside = groups.strata == h
    wanted = int(allocation[h]) - int((inside & before).sum())
    return rng.choice(np.flatnonzero(inside & ~before), wanted, replace=False).astype(np.intp)
