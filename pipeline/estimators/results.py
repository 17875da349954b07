"""What estimators return: a number with its interval, or a profile of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.floats import FloatArray


def _plain(value: Any) -> Any:
    """The value as strict JSON would hold it: arrays become lists, NaN and infinities become None."""
    if isinstance(value, np.ndarray):
        return [_plain(entry) for entry in value.tolist()]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value


class Result:
    """A frozen dataclass that can be written down."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values; arrays are lists, NaN is None."""
        return {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]


def heavy_share(n: int) -> float:
    """Share of the variance above which one of n labels makes intervals cover less than they say."""
    return float(0.24 * (10.0 / max(n, 1)) ** 0.25)


def _empty() -> FloatArray:
    return np.empty(0)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _given(entry: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """The fields of ``kind`` that the document holds; older documents hold fewer."""
    return {spec.name: entry[spec.name] for spec in fields(kind) if spec.name in entry}


Part = TypeVar("Part", bound="Result")


def _part(kind: type[Part], entry: Mapping[str, Any] | None) -> Part | None:
    """A part of an estimate that ``to_dict`` wrote."""
    if entry is None:
        return None
    return kind(**{k: v if isinstance(v, str) else _number(v) for k, v in _given(entry, kind).items()})


@dataclass(frozen=True, slots=True)
class VarianceComponents(Result):
    """Var φ = item + sampling, from R answers to each of N items.

    Attributes:
        items: N.
        repeats: R.
        mean: mean over all answers.
        item: variance of the items' own means, Var E[φ | x]; unbiased, so it may be slightly negative; NaN if R = 1.
        sampling: mean variance of an item's answers, E Var[φ | x]; NaN if R = 1.
        item_share: item/(item + sampling) floored at 0: the correlation of two answers to one item.
        se: standard error of the mean over all N·R answers.
    """

    items: int
    repeats: int
    mean: float
    item: float
    sampling: float
    item_share: float
    se: float

    def standard_error(self, *, items: int, repeats: float) -> float:
        """SE of a study with other numbers of items and answers, also endless: √((item + sampling/repeats)/items)."""
        return math.sqrt(max(max(self.item, 0.0) + self.sampling / repeats, 0.0) / items)


@dataclass(frozen=True, slots=True)
class Correction(Result):
    """What the one-step correction of a mean was, and what it did; NaN where a number is not defined.

    Attributes:
        power: the power λ of the correction, averaged over items.
        power_rule: how it was chosen; "fixed" for a number.
        variance_reduction: 1 − SE²/SE² of the plain mean of the same labels.
        variance_reduction_low: lower end of its bootstrap interval over items.
        variance_reduction_high: upper end of the same.
        n_effective: labels of a plain mean with this standard error; infinite where the whole pool is labeled.
        within_item_test_p: chance of such draws if "draw 0 carries nothing on its own answer beyond the item" (p).
    """

    power: float = math.nan
    power_rule: str = "fixed"
    variance_reduction: float = math.nan
    variance_reduction_low: float = math.nan
    variance_reduction_high: float = math.nan
    n_effective: float = math.nan
    within_item_test_p: float = math.nan


@dataclass(frozen=True, slots=True)
class Estimate(Result):
    """One estimated number.

    Attributes:
        value: point estimate, never clipped.
        se: standard error (same unit as ``value``).
        low: lower end of the two-sided interval at ``level``.
        high: upper end of the interval.
        level: nominal coverage in (0, 1).
        n: number of labeled rows (or clusters' items) that carry the estimate.
        method: short name of the estimator.
        diagnostics: curiosities about the fit that no code reads; plain numbers, strings, lists and mappings.
        target: what the interval covers: "population" (items like these), "pool" (these very items) or "deployment"
            (items reweighted to another mix).
        n_items: distinct labeled items; ``n`` where not given.
        pool_size: items of the pool, labeled or not; None where only labeled items were given.
        df: degrees of freedom of the interval; infinite for a normal one, NaN where it has none.
        interval: form of the interval: "t", "z", "wilson", "agresti-min", "hypergeometric", "none".
        outcome_variance: s² of the labeled outcomes, weighted as the labels are; NaN for one label.
        design_effect: variance of the plain mean with its clusters over the same without; 1 without clusters.
        naive_value: plain mean of the same labels.
        naive_se: its standard error under the same design, clusters and target; NaN where it is not defined.
        worth: labels of the plain mean that have the same standard error (``estimators.worth``); None where undefined.
        worth_low: lower end of the 95 % range of ``worth``; None below 30 labeled items.
        worth_high: upper end of the same.
        verdict: what the signals did: "help", "neutral", "hurt"; "" where there are none to judge.
        binary: whether every labeled outcome is 0 or 1.
        largest_share: of ``se``², what the label that carries most of it carries, in (0, 1]; None where not told.
        correction: of the one-step methods; None for all others.
        components: of a mean over several answers to each item; None for all others.
    """

    value: float
    se: float
    low: float
    high: float
    level: float
    n: int
    method: str
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    target: str = "population"
    n_items: int = -1
    pool_size: int | None = None
    df: float = math.nan
    interval: str = "t"
    outcome_variance: float = math.nan
    design_effect: float = 1.0
    naive_value: float = math.nan
    naive_se: float = math.nan
    worth: float | None = None
    worth_low: float | None = None
    worth_high: float | None = None
    verdict: str = ""
    binary: bool = False
    largest_share: float | None = None
    correction: Correction | None = None
    components: VarianceComponents | None = None

    @property
    def heavy_tailed(self) -> bool:
        """Whether one label carries so much of the variance that the interval covers less than it says.

        Lognormal values and costs that are mostly zero are above .24·(10/n)^.25 in 95 % of samples of 10 to 200; their
        intervals cover .82 to .91 at a nominal .95, and no interval of this kind repairs it.
        """
        share = self.largest_share
        return share is not None and not self.binary and share > heavy_share(self.n)

    def __post_init__(self) -> None:
        if self.n_items < 0:
            object.__setattr__(self, "n_items", self.n)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Estimate:
        """The estimate that ``to_dict`` wrote, of this version or an older one; NaN where a number is None.

        Raises:
            KeyError, TypeError, ValueError: it is not such a mapping.
        """
        values = _given(entry, cls)
        for name in _ESTIMATE_NUMBERS & values.keys():
            values[name] = _number(values[name])
        values["diagnostics"] = values.get("diagnostics") or {}
        earlier = values["diagnostics"]  # where documents held these parts before they had types
        tested = earlier if "within_item_test_p" in earlier else None
        values["correction"] = _part(Correction, entry.get("correction", tested))
        values["components"] = _part(VarianceComponents, entry.get("components", earlier.get("components")))
        return cls(**values)


_ESTIMATE_NUMBERS = {
    *("value", "se", "low", "high", "level", "df", "outcome_variance", "design_effect", "naive_value", "naive_se"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Profile(Result):
    """An estimated curve: one value, interval and diagnosis per profile point.

    Attributes:
        at: (G,) or (G, q) points; levels may be numbers or strings.
        value: (G,) point estimates, NaN where there is no labeled item in reach.
        se: (G,) standard errors.
        low: (G,) lower ends of the pointwise intervals.
        high: (G,) their upper ends.
        n_effective: (G,) effective number of labeled items, 1/Σw².
        df: (G,) degrees of freedom of the t interval.
        variance: (G,) estimated variance of ``value`` (se²).
        r2: (G,) adjusted local R² of the signals, floored at 0.
        gain: (G,) variance ratio against the naive local mean, 1/(1 − (1 − π)·r2).
        beta: (G, K) control-variate coefficients.
        method: short name of the estimator.
        target: "pool" or "population".
        level: nominal pointwise coverage.
        diagnostics: curiosities about the fit that no code reads.
        smoothed: whether points borrow their labels from each other (a kernel), or each is its own level's.
        worth: (G,) labels of the plain local mean that have the same standard error, NaN where undefined.
        n: labeled rows.
        pool_size: items of the pool; None where they were not given.
        interval: (G,) form of each interval.
        verdict: (G,) what the signals did there: "help", "neutral", "hurt", "none" without labels.
        reason: (G,) why there is no value, None where there is one.
        localities: kernel of every profile column: "gaussian", "ordinal", "categorical".
        binary: whether every labeled outcome is 0 or 1.
        column: name of the profile axis, where it has one.
    """

    at: NDArray[Any]
    value: FloatArray
    se: FloatArray
    low: FloatArray
    high: FloatArray
    n_effective: FloatArray
    df: FloatArray
    variance: FloatArray
    r2: FloatArray
    gain: FloatArray
    beta: FloatArray
    method: str
    target: str
    level: float
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    _: KW_ONLY
    smoothed: bool = False
    worth: FloatArray = field(default_factory=_empty)
    n: int = 0
    pool_size: int | None = None
    interval: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    reason: tuple[str | None, ...] = ()
    localities: tuple[str, ...] = ()
    binary: bool = False
    column: str = ""

    def __post_init__(self) -> None:
        points = len(self.value)
        if len(self.worth) != points:
            object.__setattr__(self, "worth", np.full(points, np.nan))
        for name, blank in (("interval", "t"), ("verdict", ""), ("reason", None)):
            if len(getattr(self, name)) != points:
                object.__setattr__(self, name, (blank,) * points)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Profile:
        """The profile that ``to_dict`` wrote, of this version or an older one; NaN where a number is None.

        Raises:
            KeyError, TypeError, ValueError: it is not such a mapping.
        """
        values = _given(entry, cls)
        for name in _PROFILE_NUMBERS & values.keys():
            values[name] = np.array([_number(value) for value in values[name]], dtype=np.float64)
        points = len(entry["at"])
        values["at"] = np.array(entry["at"])
        rows = [[_number(value) for value in row] for row in entry["beta"]]
        values["beta"] = np.array(rows, dtype=np.float64).reshape(points, -1) if points else np.empty((0, 0))
        for name in ("interval", "verdict", "reason", "localities"):
            values[name] = tuple(values.get(name) or ())
        values["diagnostics"] = values.get("diagnostics") or {}
        return cls(**values)


_PROFILE_NUMBERS = {
    *("value", "se", "low", "high", "n_effective", "df", "variance", "r2", "gain", "worth"),
}
