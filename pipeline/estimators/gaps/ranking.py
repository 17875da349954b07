"""Which model is better: agreement of rankings, and the ranks each model could hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.floats import BoolArray, FloatArray
from pipeline.estimators.gaps.simultaneous import PairedDifference, paired_differences
from pipeline.estimators.results import Result


def _pair_signs(values: ArrayLike, name: str) -> NDArray[np.int8]:
    """Sign of value_a − value_b for every pair a < b: (…, L(L − 1)/2)."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] < 2:
        raise ValueError(f"{name} must have shape (…, L) with L ≥ 2, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has missing or infinite values")
    first, second = np.triu_indices(array.shape[-1], k=1)
    return np.sign(array[..., first] - array[..., second]).astype(np.int8)


def _both_signs(values: ArrayLike, reference: ArrayLike) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    ours, theirs = _pair_signs(values, "values"), _pair_signs(reference, "reference")
    if ours.shape[-1] != theirs.shape[-1]:
        raise ValueError(f"values and reference rank different numbers of models: {ours.shape}, {theirs.shape} pairs")
    return ours, theirs


def exact_match(values: ArrayLike, reference: ArrayLike) -> BoolArray:
    """Whether every pair of models is ordered as in the reference; a tie matches only a tie.

    Args:
        values: (…, L) estimates of L models.
        reference: (L,) or (…, L) reference values of the same models.

    Returns:
        (…) booleans; their mean over trials is the exact-match accuracy.

    Raises:
        ValueError: fewer than two models, different numbers of models, or missing values.

    References:
        Dong, Zhang, Zhou, Jin, Wu and Zhang, "Evaluating LLMs When They Do Not Know the Answer: Statistical
            Evaluation of Mathematical Reasoning via Comparative Signals" (2026), arXiv 2602.03061, section 5.1.

    Example:
        >>> bool(exact_match([0.1, 0.5, 0.3], [1, 3, 2]))
        True
    """
    ours, theirs = _both_signs(values, reference)
    return np.asarray(np.all(ours == theirs, axis=-1))


def kendall_tau(values: ArrayLike, reference: ArrayLike) -> FloatArray:
    """Kendall's τ_a, (concordant − discordant)/(L(L − 1)/2); a pair tied on either side counts for neither.

    Arguments and errors as in :func:`exact_match`; returns (…) numbers in [−1, 1].

    References:
        Kendall, "A New Measure of Rank Correlation" (1938), Biometrika 30.

    Example:
        >>> float(kendall_tau([0.1, 0.5, 0.3], [1, 2, 3]).round(3))
        0.333
    """
    ours, theirs = _both_signs(values, reference)
    return np.asarray(np.mean(ours * theirs, axis=-1, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class RankSet(Result):
    """The ranks one model could hold; rank 1 is the best.

    Attributes:
        name: the model.
        value: its estimate.
        rank: its rank among the estimates; models with equal estimates share the better rank.
        best: lowest rank it could hold: 1 + number of models shown to be better.
        worst: highest rank it could hold: L − number of models shown to be worse.
        level: probability that the sets of all models hold their true ranks together.
    """

    name: str
    value: float
    rank: int
    best: int
    worst: int
    level: float


def rank_sets_from_intervals(
    names: Sequence[str], means: ArrayLike, pairs: Sequence[PairedDifference], *, level: float
) -> tuple[RankSet, ...]:
    """Rank sets from simultaneous intervals of paired differences, however they were estimated.

    Args:
        names: the models.
        means: (L,) their estimates, larger is better.
        pairs: simultaneous intervals of value_a − value_b; a pair that is not there decides nothing.
        level: joint coverage of the intervals.

    References:
        Mogstad, Romano, Shaikh and Wilhelm, "Inference for Ranks with Applications to Mobility across
            Neighbourhoods and Academic Achievement across Countries" (2024), Review of Economic Studies 91.

    Example:
        >>> values = np.random.default_rng(0).normal([0.0, 1.0], 1.0, size=(100, 2))
        >>> pairs = paired_differences(values, names=list('ab'), rng=0)
        >>> [entry.best for entry in rank_sets_from_intervals(list('ab'), values.mean(axis=0), pairs, level=0.95)]
        [2, 1]
    """
    values = np.asarray(means, dtype=np.float64)
    index = {name: position for position, name in enumerate(names)}
    better, worse = np.zeros(len(names), dtype=int), np.zeros(len(names), dtype=int)
    for pair in pairs:
        a, b = index[pair.a], index[pair.b]
        if pair.low > 0.0:
            worse[a] += 1
            better[b] += 1
        elif pair.high < 0.0:
            worse[b] += 1
            better[a] += 1
    return tuple(
        RankSet(
            name=name,
            value=float(values[i]),
            rank=1 + int(np.sum(values > values[i])),
            best=1 + int(better[i]),
            worst=len(names) - int(worse[i]),
            level=level,
        )
        for i, name in enumerate(names)
    )


def rank_sets(
    values: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    clusters: ArrayLike | None = None,
    higher_is_better: bool = True,
    level: float = 0.95,
    fpc: float = 1.0,
    draws: int = 20_000,
    rng: np.random.Generator | int | None = None,
) -> tuple[RankSet, ...]:
    """Joint confidence sets for the ranks of L models on shared items.

    From the simultaneous (max-t) intervals of all paired differences: a model's rank is at least one more than the
    number of models shown to be better and at most L minus the number shown to be worse.

    Args:
        values: (N, L) per-item values of each model (outcomes, or ψ from ``one_step_values``).
        higher_is_better: False where smaller values are better (a loss); ``value`` keeps its sign.
        names, clusters, level, fpc, draws, rng: as in :func:`paired_differences`.

    Returns:
        One row per model, in the order of the columns.

    Raises:
        ValueError, TypeError: as in :func:`paired_differences`.

    References:
        Mogstad, Romano, Shaikh and Wilhelm, "Inference for Ranks with Applications to Mobility across
            Neighbourhoods and Academic Achievement across Countries" (2024), Review of Economic Studies 91.

    Example:
        >>> values = np.random.default_rng(0).normal([0.0, 0.1, 1.0], 1.0, size=(100, 3))
        >>> [(entry.name, entry.best, entry.worst) for entry in rank_sets(values, names=list('abc'), rng=0)]
        [('a', 2, 3), ('b', 2, 3), ('c', 1, 1)]
    """
    array = np.asarray(values, dtype=np.float64)
    signed = array if higher_is_better else -array
    pairs = paired_differences(signed, names=names, clusters=clusters, level=level, fpc=fpc, draws=draws, rng=rng)
    labels = [pairs[0].a, *(pair.b for pair in pairs[: signed.shape[1] - 1])]
    rows = rank_sets_from_intervals(labels, signed.mean(axis=0), pairs, level=level)
    if higher_is_better:
        return tuple(rows)
    return tuple(
        RankSet(row.name, float(mean), row.rank, row.best, row.worst, row.level)
        for row, mean in zip(rows, array.mean(axis=0), strict=True)
    )
