"""Judges held against people: calibration, agreement by slice and model, and whether a judge is kinder to one model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators import Estimate, naive_mean
from pipeline.estimators.floats import FloatArray
from pipeline.evaluation.pool import Pool, TargetPool

BINS = 5
LEAST_IN_A_SLICE = 5
"""Rated responses below which a slice is not shown: one person's whim would be its number."""


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Responses with similar scores.

    Attributes:
        low, high: least and greatest score in it.
        score: mean score.
        gold: what people said of them, with its interval.
    """

    low: float
    high: float
    score: float
    gold: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values."""
        return {"low": self.low, "high": self.high, "score": self.score, "gold": self.gold.to_dict()}


@dataclass(frozen=True, slots=True)
class SliceAgreement:
    """How a judge does on some of the rated responses.

    Attributes:
        by: ``all``, ``model`` or the name of the profile axis.
        value: which model or level.
        n: rated responses.
        correlation: of score and rating; None where one of them is constant.
        bias: mean of score − rating: above 0 the judge is kinder than people.
    """

    by: str
    value: str
    n: int
    correlation: float | None
    bias: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values."""
        return {
            "by": self.by, "value": self.value, "n": self.n, "correlation": self.correlation,
            "bias": self.bias.to_dict(),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kindness:
    """How much kinder a judge is to one model than to another, at equal ratings by people.

    A judge whose scores lie closer together than the ratings scores every poor response too high; that is no favour to
    the poorer model. So scores are compared given the rating: by the slope that both models share.

    Attributes:
        a, b: the models.
        difference: score of a minus that of b at equal ratings, on items where both were rated if there are any.
    """

    a: str
    b: str
    difference: Estimate

    @property
    def biased(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.difference.low > 0.0 or self.difference.high < 0.0

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values."""
        return {"a": self.a, "b": self.b, "difference": self.difference.to_dict(), "biased": self.biased}


@dataclass(frozen=True, slots=True)
class JudgeValidity:
    """One signal of a judge, held against people's ratings.

    Attributes:
        signal: its column.
        calibration: by fifths of the rated responses, from the lowest score.
        slices: all, by model, by level of the axis.
        kindness: every two models.
    """

    signal: str
    calibration: tuple[CalibrationBin, ...]
    slices: tuple[SliceAgreement, ...]
    kindness: tuple[Kindness, ...]

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> JudgeValidity:
        """What ``to_dict`` gave.

        Raises:
            KeyError, TypeError: it is not such a mapping.
        """
        bins = [CalibrationBin(**{**e, "gold": Estimate.from_dict(e["gold"])}) for e in stored["calibration"]]
        slices = [SliceAgreement(**{**e, "bias": Estimate.from_dict(e["bias"])}) for e in stored["slices"]]
        kindness = [Kindness(e["a"], e["b"], Estimate.from_dict(e["difference"])) for e in stored["kindness"]]
        return cls(stored["signal"], tuple(bins), tuple(slices), tuple(kindness))

    @property
    def overall(self) -> SliceAgreement:
        """Over all rated responses."""
        return self.slices[0]

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values."""
        return {
            "signal": self.signal,
            "calibration": [part.to_dict() for part in self.calibration],
            "slices": [part.to_dict() for part in self.slices],
            "kindness": [part.to_dict() for part in self.kindness],
        }


def judge_validity(pool: Pool, signals: Sequence[str]) -> tuple[JudgeValidity, ...]:
    """Each of these signals against the labels of all targets, where a target has both.

    A score on another scale than the labels is put on theirs by least squares first, so that only differences between
    slices and models tell of bias.

    Args:
        pool: targets with labels.
        signals: columns that hold a judge's score.
    """
    return tuple(held for name in signals if (held := _of_signal(pool, name)) is not None)


@dataclass(frozen=True, slots=True, eq=False)
class _Rated:
    """The rated responses of one target: scores, ratings, items, levels."""

    target: str
    score: FloatArray
    gold: FloatArray
    items: NDArray[Any]
    levels: NDArray[Any] | None
    axis: str


def _of_signal(pool: Pool, name: str) -> JudgeValidity | None:
    parts = [part for target in pool.targets if (part := _rated(target, name)) is not None and len(part.score)]
    if sum(len(part.score) for part in parts) < LEAST_IN_A_SLICE:
        return None
    placed = _on_their_scale(parts)
    return JudgeValidity(name, tuple(_calibration(parts)), tuple(_slices(placed)), tuple(_kindness(placed)))


def _on_their_scale(parts: Sequence[_Rated]) -> list[_Rated]:
    """Scores within the range of the ratings as they are, others as the line through the ratings says."""
    score, gold, _ = _joined(parts)
    room = 0.5 * float(np.ptp(gold))
    low, high = float(gold.min()) - room, float(gold.max()) + room
    if np.isin(gold, (0.0, 1.0)).all():
        low, high = 0.0, 1.0
    if (low <= score.min() and score.max() <= high) or float(np.ptp(score)) == 0.0:
        return list(parts)
    slope, start = np.polyfit(score, gold, 1)
    return [replace(part, score=start + slope * part.score) for part in parts]


def _rated(target: TargetPool, name: str) -> _Rated | None:
    if name not in target.signal_names:
        return None
    score = target.signals[:, target.signal_names.index(name)]
    rows = target.labeled & np.isfinite(score)
    ids = np.arange(target.size).astype(str) if target.ids is None else target.ids
    axis = target.profiles[0] if target.profiles and target.profiles[0].kind not in ("continuous", "tags") else None
    levels = None if axis is None else axis.values[rows]
    return _Rated(target.name, score[rows], target.y[rows], ids[rows], levels, axis.column if axis else "")


def _joined(parts: Sequence[_Rated]) -> tuple[FloatArray, FloatArray, NDArray[Any]]:
    score, gold = (np.concatenate([getattr(part, name) for part in parts]) for name in ("score", "gold"))
    return score, gold, np.concatenate([part.items for part in parts])


def _calibration(parts: Sequence[_Rated]) -> Iterator[CalibrationBin]:
    score, gold, items = _joined(parts)
    order = np.argsort(score, kind="stable")
    edges = np.linspace(0, len(order), min(BINS, len(order) // LEAST_IN_A_SLICE) + 1).astype(int)
    for start, end in pairwise(edges):
        rows = order[start:end]
        shares = bool(np.isin(gold, (0.0, 1.0)).all())
        mean = naive_mean(gold[rows], clusters=_clusters(items[rows]), interval="auto" if shares else "t")
        yield CalibrationBin(float(score[rows].min()), float(score[rows].max()), float(score[rows].mean()), mean)


def _slices(parts: Sequence[_Rated]) -> Iterator[SliceAgreement]:
    score, gold, items = _joined(parts)
    yield _agreement("all", "all", score, gold, items)
    if len(parts) > 1:
        for part in parts:
            if len(part.score) >= LEAST_IN_A_SLICE:
                yield _agreement("model", part.target, part.score, part.gold, part.items)
    if all(part.levels is not None for part in parts):
        levels = np.concatenate([part.levels for part in parts if part.levels is not None])
        for level in np.unique(levels):
            rows = levels == level
            if rows.sum() >= LEAST_IN_A_SLICE:
                value = f"{level:g}" if isinstance(level, float) else str(level)
                yield _agreement(parts[0].axis, value, score[rows], gold[rows], items[rows])


def _agreement(by: str, value: str, score: FloatArray, gold: FloatArray, items: NDArray[Any]) -> SliceAgreement:
    told = float(np.std(score)) > 0.0 and float(np.std(gold)) > 0.0
    correlation = float(np.corrcoef(score, gold)[0, 1]) if told else None
    bias = naive_mean(score - gold, clusters=_clusters(items), interval="t")
    return SliceAgreement(by, value, len(score), correlation, bias)


def _clusters(items: NDArray[Any]) -> NDArray[Any] | None:
    """Responses to one item are not independent; None where every item is there once."""
    several = len(np.unique(items)) < len(items)
    return items if several and len(np.unique(items)) > 1 else None


def _kindness(parts: Sequence[_Rated]) -> Iterator[Kindness]:
    slope = _shared_slope(parts)
    for a, b in combinations(parts, 2):
        shared, ours, theirs = np.intersect1d(a.items, b.items, return_indices=True)
        first, second = (part.score - slope * part.gold for part in (a, b))
        if len(shared) >= LEAST_IN_A_SLICE:
            difference = naive_mean(first[ours] - second[theirs], interval="t")
        elif min(len(first), len(second)) >= LEAST_IN_A_SLICE:
            difference = _apart(naive_mean(first, interval="t"), naive_mean(second, interval="t"))
        else:
            continue
        yield Kindness(a.target, b.target, difference)


def _shared_slope(parts: Sequence[_Rated]) -> float:
    """Slope of score on rating within models; 1 where no model has ratings that differ."""
    centred = [(part.score - part.score.mean(), part.gold - part.gold.mean()) for part in parts]
    spread = sum(float(gold @ gold) for _, gold in centred)
    return sum(float(score @ gold) for score, gold in centred) / spread if spread > 0.0 else 1.0


def _apart(a: Estimate, b: Estimate) -> Estimate:
    """The difference of two independent means, Welch's degrees of freedom."""
    from scipy.special import stdtrit  # loaded where two versions were rated on different items only

    value, spread = a.value - b.value, a.se**2 + b.se**2
    parts = a.se**4 / max(a.n - 1, 1) + b.se**4 / max(b.n - 1, 1)
    df = spread**2 / parts if parts > 0.0 else float(a.n + b.n - 2)
    half = float(stdtrit(df, 0.5 + a.level / 2)) * math.sqrt(spread)
    return Estimate(value, math.sqrt(spread), value - half, value + half, a.level, a.n + b.n, "unpaired_difference")
