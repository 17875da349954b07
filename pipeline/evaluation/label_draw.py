"""Draws the items to label next: uniformly, or stratified with Neyman allocation on the control variate's residual."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import InputError
from pipeline.estimators import Sampling
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.labels.planning import neyman_allocation
from pipeline.estimators.labels.strata import LabelStrata, Pilot, residual_strata
from pipeline.evaluation.pool import TargetPool
from pipeline.tables.labels import GoldKind, LabelDesign, realised_inclusion

DEFAULT_LABELS = 50
"""How many items are drawn where no number is asked for, or all that are left."""

MIN_PILOT = 10
"""Labels from which a stratified draw is worth its trouble; below, the residual sds are guesses."""


def permanent_number(seed: int) -> Callable[[str], bytes]:
    """Item → its permanent random number under a seed: the same whatever else is in the pool, and for all models."""

    def number(item: str) -> bytes:
        return hashlib.sha256(f"{seed}\x1f{item}".encode("utf-8", "backslashreplace")).digest()

    return number


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
    items: Sequence[str] | None = None,
    kind: Literal["uniform", "stratified"] = "uniform",
    strata: NDArray[np.intp] | None = None,
    seed: int = 0,
    source: str = "",
    gold: GoldKind = "score",
    roles: Mapping[str, Any] | None = None,
    prior: Sequence[float] = (),
    rounds: Sequence[int] = (),
) -> LabelDesign:
    """Draw ``labels`` items that are not labeled yet.

    Uniform: every such item has the same chance. Stratified: strata are fifths of the control variate's prediction
    (or as given); the new labels of a stratum are n_h ∝ R_h σ_h, at least 2, with R_h its unlabeled items and σ_h its
    residual sd; within a stratum the draw is uniform: the items with the lowest permanent random numbers, so that
    models whose pools share items share labels, which is what a paired gap is made of. Later rounds keep the strata of
    the second, a uniform one in proportion to what is left of each. The number of labels is fixed before the pilot is
    read: where it moves with what the pilot shows, the combined estimate leans to the extreme.

    Args:
        ids: (M,) the pool.
        labels: how many to draw; None means 50 or all that are left.
        items: (M,) the item that each row of the pool is about; None means its id.
        pilots: outcomes on the pool; an item counts as labeled where the first one has a label.
        kind: the design.
        strata: (M,) numbers 0..H−1 instead of the fifths.
        rounds: (M,) round in which each item was labeled, 0 without; empty where there was one round at most.
        seed, source, gold, roles, prior: kept in the design (see there).

    Raises:
        InputError: too few unlabeled items; a stratified draw with hardly any labels to learn from.
    """
    size = len(ids)
    before = np.isfinite(pilots[0].y) if pilots else np.zeros(size, dtype=bool)
    labels = wanted_labels(labels, int((~before).sum()))
    if kind == "uniform" and strata is not None:
        sizes = np.bincount(strata)
        groups = LabelStrata(strata, sizes, np.ones(len(sizes)))
        allocation = _allocation(groups, before, labels)
    elif kind == "uniform":
        groups = LabelStrata(np.zeros(size, dtype=np.intp), np.array([size]), np.ones(1))
        allocation = np.array([labels])
    else:
        labeled_before = int(before.sum())
        if labeled_before < MIN_PILOT:
            raise InputError(
                f"a stratified draw learns from labels that are there: {labeled_before} are too few "
                f"(at least {MIN_PILOT}); draw uniformly first"
            )
        groups = residual_strata(pilots, strata=strata)
        allocation = _allocation(groups, before, labels)
    number = permanent_number(seed)
    numbers = [number(item) for item in (ids if items is None else items)]
    queue = np.array(sorted(np.flatnonzero(~before).tolist(), key=numbers.__getitem__), dtype=np.intp)
    drawn = [queue[groups.strata[queue] == h][: int(count)] for h, count in enumerate(allocation)]
    order = sorted(np.concatenate(drawn).tolist(), key=numbers.__getitem__)
    return LabelDesign(
        kind, seed, source, gold, tuple(ids), tuple(int(h) for h in groups.strata),
        tuple(ids[k] for k in np.flatnonzero(before).tolist()), tuple(ids[k] for k in order),
        tuple(int(n) for n in allocation), dict(roles or {}),
        tuple(float(chance) for chance in prior), tuple(int(k) for k in rounds),
    )  # fmt: skip


def _allocation(groups: LabelStrata, before: NDArray[np.bool_], labels: int) -> NDArray[np.intp]:
    """New labels per stratum by Neyman among the items that are left, two each where the number allows."""
    left = groups.sizes - np.bincount(groups.strata[before], minlength=len(groups.sizes))
    open_ = np.flatnonzero(left > 0)
    allocation = np.zeros(len(left), dtype=np.intp)
    floor = next(least for least in (2, 1, 0) if np.minimum(least, left).sum() <= labels)
    allocation[open_] = neyman_allocation(left[open_], groups.deviations[open_], labels, minimum=floor)
    return allocation


@dataclass(frozen=True, slots=True, eq=False)
class RealisedDraw:
    """How the labels of a sheet came to be, with those from before.

    Attributes:
        chances: (M,) chances whose inverses weigh the labels as the draw does.
        stage: (M,) round of each label, 1, 2, …; 0 without a label. None: chances say it all.
        strata: (M,) stratum of every item in the rounds after the first; None with ``stage``.
    """

    chances: FloatArray
    stage: NDArray[np.intp] | None = None
    strata: NDArray[np.intp] | None = None


def realised_draw(design: LabelDesign, labeled: Sequence[str], rows: NDArray[np.intp] | None = None) -> RealisedDraw:
    """The draw of a stratified sheet, given which labels came back; empty ones are taken as missing at random.

    The labels from before are a simple first round, or the rounds that the design says, and the new ones a round
    inside strata of what was left. Pooled by n_h/M_h they lean to the extreme, because the allocation looked at the
    earlier ones. In a second round strata with fewer than two new labels join their neighbour; later the strata stand,
    and where one got none the chances of all rounds are combined.

    Args:
        design: of the sheet.
        labeled: ids that carry a label now.
        rows: of one model's pool, where the design holds several; None means all.

    Raises:
        InputError: fewer than two new labels, or, where labels from before had unequal chances, a bare stratum.
    """
    if design.prior and not design.rounds:
        return RealisedDraw(realised_inclusion(design, labeled))
    own = np.arange(len(design.ids)) if rows is None else rows
    have, before = set(labeled), set(design.before)
    old = np.array([design.ids[k] in before for k in own])
    new = np.array([design.ids[k] in have for k in own]) & ~old
    strata = np.unique(np.asarray(design.strata, dtype=np.intp)[own], return_inverse=True)[1].astype(np.intp)
    past = np.asarray(design.rounds, dtype=np.intp)[own] if design.rounds else old.astype(np.intp)
    stage = np.where(new, past.max(initial=0) + 1, past)
    if not new.any() or not old.any():
        return RealisedDraw(np.full(len(own), min(float((old | new).mean()), 1.0 - 1e-9)))
    if new.sum() < 2:
        raise InputError("fewer than 2 labels of the sheet are filled in; a stratified draw needs more")
    if past.max() > 1 and any((~old & (strata == h)).any() and not new[strata == h].any() for h in set(strata)):
        return RealisedDraw(realised_inclusion(design, labeled)[own])
    while strata.max() > 0 and past.max() <= 1:
        thin = [
            h for h in range(int(strata.max()) + 1) if 0 < (~old & (strata == h)).sum() > new[strata == h].sum() < 2
        ]
        if not thin:
            break
        into = thin[0] - 1 if thin[0] else 1
        strata[strata == thin[0]] = into
        strata = np.unique(strata, return_inverse=True)[1].astype(np.intp)
    chances = Sampling.staged(stage, strata).chances(stage > 0)
    assert chances is not None
    return RealisedDraw(chances, stage, strata)
