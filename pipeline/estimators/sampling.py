"""How labels were drawn, as a value that travels: weights of the labels, and the variance of sums over them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.floats import BoolArray, FloatArray, IntArray
from pipeline.estimators.validation import check_probabilities


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round of labels: a simple random draw inside every stratum of the rows no earlier round had drawn.

    Attributes:
        drawn: (M,) rows of this round; strata: (M,) labels of the strata it drew from, None for one stratum.
    """

    drawn: BoolArray
    strata: NDArray[Any] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """How the labels of a pool of M rows were drawn; ``Sampling()`` is a simple random draw.

    Attributes:
        rounds: one or more rounds, the number of labels of each fixed before the earlier ones were read: where it
            moves with what a pilot showed, the estimate leans to the extreme. Empty: one simple random draw.
        probabilities: (M,) chances in (0, 1] of independent draws; excludes rounds.
    """

    rounds: tuple[Round, ...] = ()
    probabilities: FloatArray | None = None

    @classmethod
    def unequal(cls, probabilities: ArrayLike) -> Sampling:
        """Every row drawn by its own chance, independently."""
        values = np.asarray(probabilities, dtype=np.float64)
        return cls(probabilities=check_probabilities(values, len(values)))

    @classmethod
    def stratified(cls, strata: ArrayLike) -> Sampling:
        """A simple random draw inside every stratum, numbers fixed beforehand; strata (M,) of all rows."""
        labels: NDArray[Any] = np.asarray(strata)
        return cls((Round(np.ones(len(labels), dtype=np.bool_), labels),))

    @classmethod
    def staged(cls, stage: ArrayLike, strata: ArrayLike) -> Sampling:
        """A simple random first round, then rounds inside strata of what was left.

        Args:
            stage: (M,) round of each row: 1, 2, …; 0 where it was never drawn.
            strata: (M,) strata of every round after the first.

        Raises:
            ValueError: shapes that differ, or a round without rows.
        """
        numbers = np.asarray(stage)
        labels: NDArray[Any] = np.asarray(strata)
        if numbers.ndim != 1 or labels.shape != numbers.shape:
            raise ValueError(f"stage and strata must have one shape (M,), got {numbers.shape} and {labels.shape}")
        last = int(numbers.max(initial=0))
        rounds = tuple(Round(numbers == k, None if k == 1 else labels) for k in range(1, last + 1))
        empty = [k for k, entry in enumerate(rounds, 1) if not entry.drawn.any()]
        if not rounds or empty:
            raise ValueError(f"stage must number the rounds 1, 2, … without gaps; round {(empty or [1])[0]} has no row")
        return cls(rounds)

    def take(self, rows: NDArray[Any]) -> Sampling:
        """The same draw seen on some rows of the pool (a subset that does not depend on the labels)."""
        rounds = tuple(
            Round(entry.drawn[rows], None if entry.strata is None else entry.strata[rows]) for entry in self.rounds
        )
        return Sampling(rounds, None if self.probabilities is None else self.probabilities[rows])

    def chances(self, labeled: BoolArray) -> FloatArray | None:
        """(M,) chances whose inverses weigh the labels as this draw does; None for equal weights.

        What an estimator takes that knows no rounds: its means are weighted rightly, and its variance is that of
        independent draws, which is no smaller. Rows without a label get the labels' mean chance; it is never read.
        """
        if self.probabilities is not None or not self.rounds:
            return self.probabilities
        shares = resolve_draw(self, labeled).shares
        chances = np.full(len(labeled), min(float(labeled.mean()), 1.0 - 1e-9))
        chances[labeled] = np.minimum(1.0 / (shares * len(labeled)), 1.0)
        return chances


@dataclass(frozen=True, slots=True, eq=False)
class LabelDraw:
    """A draw as the labels saw it: how each label weighs, and how sums over the labels vary.

    Attributes:
        shares: (n,) weights that sum to 1: Σ shares·Y estimates the pool mean.
        unsampled: (n,) finite-population factors f of each label.
        moving: (n,) part of a label's weight that its own round's draw moves; the rest was known to that round.
        strata: (n,) stratum of each label within its round; None where values are not centred (one simple draw, or
            independent ones).
        clusters: (n,) cluster codes, or None; whole clusters are then what is independent.
        rows: M.
    """

    shares: FloatArray
    unsampled: FloatArray
    moving: FloatArray
    strata: IntArray | None
    clusters: IntArray | None
    rows: int

    @property
    def n_effective(self) -> float:
        """1/Σ shares²."""
        return 1.0 / float(self.shares @ self.shares)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a plain variance: clusters − 1, else labels − strata."""
        if self.clusters is not None:
            return float(self.clusters.max())
        kinds = 1 if self.strata is None else int(self.strata.max()) + 1
        return float(max(len(self.shares) - kinds, 1))

    def deviations(self, influence: FloatArray, *, finite: bool = True) -> FloatArray:
        """(…, n) values whose sum of squares (over clusters: squared sums) is the variance of Σ influence.

        Args:
            influence: (…, n) weights times errors, of which the draw moves the part ``moving``.
            finite: with finite-population factors (about the pool); without, as if drawn from no end of items.
        """
        moved = influence * self.moving
        if self.strata is not None:
            moved = self._centred(moved)
        return moved * np.sqrt(self.unsampled) if finite else moved

    def _centred(self, moved: FloatArray) -> FloatArray:
        assert self.strata is not None
        count = np.bincount(self.strata).astype(np.float64)
        n = moved.shape[-1]
        member = np.zeros((n, len(count)))
        member[np.arange(n), self.strata] = 1.0
        mean = moved @ member / count
        # One label shows no spread: its own value stands in, about 0, not about itself.
        single = count < 2.0
        stretch = np.where(single, 1.0, (n - 1) / n * count / np.maximum(count - 1.0, 1.0))
        mean = np.where(single, 0.0, mean)
        return np.asarray((moved - mean[..., self.strata]) * np.sqrt(stretch[self.strata]))

    def units(self, deviations: FloatArray) -> FloatArray:
        """Sums over the independent units: the labels themselves, or their clusters (with C/(C − 1))."""
        if self.clusters is None:
            return deviations
        sums = np.bincount(self.clusters, weights=deviations).astype(np.float64)
        return sums * math.sqrt(len(sums) / (len(sums) - 1))

    def variance(self, influence: FloatArray, *, finite: bool = True) -> float:
        """Variance of Σ influence over draws (about the pool), or without finite-population factors."""
        values = self.units(self.deviations(influence, finite=finite))
        return float(values @ values)

    def plain(self, y: FloatArray, weights: FloatArray | None = None) -> tuple[float, FloatArray]:
        """(weighted mean, its influence values (n,)), those already corrected for the mean being fitted.

        Args:
            y: (n,) outcomes.
            weights: (n,) weights that sum to 1; None means the draw's.
        """
        shares = self.shares if weights is None else weights
        mean = float(y[0]) if y.min() == y.max() else float(shares @ y)
        return mean, shares * (y - mean) * self._fitted(shares)

    def _fitted(self, shares: FloatArray) -> float:
        """√(n/(n − 1)) for the fitted mean; clusters are corrected as wholes, in ``units``."""
        if self.clusters is not None:
            return 1.0
        count = float(len(shares)) if self.strata is not None else 1.0 / float(shares @ shares)
        return math.sqrt(1.0 / (1.0 - 1.0 / max(count, 2.0)))

    def design_effect(self, plain: FloatArray, weights: FloatArray) -> float:
        """Variance of the plain mean with its clusters over the same without; 1 without clusters or spread."""
        if self.clusters is None:
            return 1.0
        alone = float(plain @ plain) / (1.0 - float(weights @ weights))
        together = self.units(plain)
        return float(together @ together) / alone if alone > 0.0 else 1.0


def resolve_draw(
    sampling: Sampling | None,
    labeled: BoolArray,
    clusters: ArrayLike | None = None,
    inclusion: FloatArray | None = None,
) -> LabelDraw:
    """The draw as the labels saw it.

    Two rounds with n₁ and n₂ labels of M rows, R = M − n₁ left after the first: θ̂₁ = Ȳ_L₁ and
    θ̂₂ = (Σ_L₁ Y + Σ_h R_h Ȳ_2h)/M are both right and uncorrelated, because E(θ̂₂ | L₁) is the pool mean. They are
    combined as Σ a_k θ̂_k with a_k ∝ (M/R_k)² n_k/(1 − n_k/R_k), from counts only; more rounds by induction.

    Args:
        sampling: the draw; None is a simple random one.
        labeled: (M,) the labels at hand.
        clusters: (M,) labels of groups that were sampled together.
        inclusion: (M,) chances, another way to say ``Sampling.unequal``.

    Raises:
        ValueError: wrong shapes, labels outside every round, a stratum with unlabeled rows and no label.
    """
    rows, n = len(labeled), int(np.count_nonzero(labeled))
    groups = None if clusters is None else labeled_clusters(clusters, labeled)
    if sampling is not None and inclusion is not None:
        raise ValueError("sampling already says how labels were drawn; leave inclusion_probabilities out")
    chances = inclusion if sampling is None else sampling.probabilities
    if chances is not None:
        if chances.shape != labeled.shape:
            raise ValueError(f"inclusion_probabilities must have shape ({rows},), got {chances.shape}")
        if not labeled[chances == 1.0].all():
            raise ValueError("items with inclusion probability 1 are not labeled; give the share that was labeled")
        weights = 1.0 / chances[labeled]
        return LabelDraw(weights / weights.sum(), 1.0 - chances[labeled], np.ones(n), None, groups, rows)
    if sampling is None or not sampling.rounds:
        return simple_draw(n, rows, groups)
    return _staged_draw(sampling.rounds, labeled, groups)


def simple_draw(n: int, rows: int, clusters: IntArray | None = None) -> LabelDraw:
    """n labels drawn at random from M rows."""
    return LabelDraw(np.full(n, 1.0 / n), np.full(n, 1.0 - n / rows), np.ones(n), None, clusters, rows)


def labeled_clusters(clusters: ArrayLike, labeled: BoolArray) -> IntArray | None:
    """(n,) codes of the labels' clusters; None where every label is a cluster of its own."""
    names: NDArray[Any] = np.asarray(clusters)
    if names.shape != labeled.shape:
        raise ValueError(f"clusters must have shape {labeled.shape}, got {names.shape}")
    n = int(labeled.sum())
    codes, count = cluster_index(names[labeled], n)
    return codes if count < n else None


def _staged_draw(rounds: tuple[Round, ...], labeled: BoolArray, groups: IntArray | None) -> LabelDraw:
    rows = len(labeled)
    left = np.ones(rows, dtype=np.bool_)
    precision, own, code = [], np.zeros(rows), np.full(rows, -1, dtype=np.intp)
    unsampled, round_of = np.zeros(rows), np.full(rows, -1)
    strata = 0
    for number, entry in enumerate(rounds):
        if entry.drawn.shape != labeled.shape:
            raise ValueError(f"the draw is of {len(entry.drawn)} rows, the pool has {rows}")
        drawn = entry.drawn & labeled & left
        size, count = int(left.sum()), int(drawn.sum())
        if not count:
            raise ValueError(f"round {number + 1} of the draw has no label")
        kinds = np.zeros(rows, dtype=np.intp) if entry.strata is None else _codes(entry.strata)
        sizes, counts = (np.bincount(kinds[part], minlength=int(kinds.max()) + 1) for part in (left, drawn))
        if ((sizes > 0) & (counts == 0)).any():
            bare = int(((sizes > 0) & (counts == 0)).sum())
            raise ValueError(
                f"{bare} strata of the draw have rows but no label in round {number + 1}; label at least 2 in each, "
                "or join strata"
            )
        own[drawn] = (sizes / np.maximum(counts, 1))[kinds[drawn]] / rows
        unsampled[drawn] = (1.0 - counts / np.maximum(sizes, 1))[kinds[drawn]]
        code[drawn] = strata + np.unique(kinds[drawn], return_inverse=True)[1]
        strata = int(code.max()) + 1
        round_of[drawn] = number
        precision.append((rows / size) ** 2 * count / (1.0 - count / size) if count < size else math.inf)
        left &= ~drawn
    outside = int((labeled & (round_of < 0)).sum())
    if outside:
        raise ValueError(f"{outside} labeled rows belong to no round of the draw")
    share = _combination(np.array(precision))
    stage = round_of[labeled]
    later = np.concatenate([np.cumsum(share[::-1])[::-1][1:], [0.0]])
    moved = share[stage] * own[labeled]
    shares = moved + later[stage] / rows
    codes = None if strata == 1 else code[labeled]
    return LabelDraw(shares, unsampled[labeled], moved / shares, codes, groups, rows)


def _codes(strata: NDArray[Any]) -> IntArray:
    labels = strata if strata.dtype.kind != "O" else strata.astype(str)
    return np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.intp)


def _combination(precision: FloatArray) -> FloatArray:
    """Weights of the rounds from their precisions; a round that took all that was left is exact and has them all."""
    exact = np.isinf(precision)
    return np.asarray(exact / exact.sum() if exact.any() else precision / precision.sum())
