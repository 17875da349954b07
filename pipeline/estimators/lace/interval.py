"""From local fits to a Profile: variance, degrees of freedom, intervals, local R², gain and verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.floats import BoolArray, FloatArray
from pipeline.estimators.intervals import normal_quantile, t_quantile, wilson_interval
from pipeline.estimators.lace.core import LabeledSample, LocalFit
from pipeline.estimators.results import Profile
from pipeline.estimators.worth import labels_worth

Interval: TypeAlias = Literal["auto", "t", "wilson"]
Target: TypeAlias = Literal["pool", "population"]

_NEIGHBOURHOOD = 0.01  # a labeled item is in reach when its weight is at least this share of the largest

_TIE = 1e-9  # rounding must not decide whether 8 labels, or 2 of the rarer outcome, are enough


@dataclass(frozen=True, slots=True, eq=False)
class PointSummary:
    """What a point keeps of its (n,) arrays; every field is (g,) but ``beta`` (g, K).

    Attributes:
        value, naive, beta: estimate, local labeled mean, coefficients.
        variance: V for the pool; spread: s², the local outcome variance.
        df: degrees of freedom; n_effective: 1/Σw².
        raw_r2, r2: local R² as fitted, and adjusted (the adaptive rule keeps its variance ratio in the first).
        agree: whether all labels in reach are equal.
        noise: Σ f c², the variance per unit of error variance.
        design: design effect of clusters on the local labeled mean, 1 without.
    """

    value: FloatArray
    naive: FloatArray
    beta: FloatArray
    variance: FloatArray
    spread: FloatArray
    df: FloatArray
    n_effective: FloatArray
    raw_r2: FloatArray
    r2: FloatArray
    agree: BoolArray
    noise: FloatArray
    design: FloatArray

    @property
    def independent(self) -> FloatArray:
        """(g,) effective number of independent labels: n_eff over the design effect, at least 1 and at most n_eff."""
        return np.minimum(np.maximum(self.n_effective / self.design, 1.0), self.n_effective)


def join_summaries(parts: list[PointSummary]) -> PointSummary:
    """One summary of all blocks of points."""
    if len(parts) == 1:
        return parts[0]
    return PointSummary(
        **{entry.name: np.concatenate([getattr(part, entry.name) for part in parts]) for entry in fields(PointSummary)}
    )


def summarise(sample: LabeledSample, fit: LocalFit) -> PointSummary:
    """V = Σ f_i c_i² r_i²/(1 − H_i), its degrees of freedom, and the local R² of the signals."""
    square = np.vecdot(fit.weights, fit.weights)
    reached = square > 0.0
    n_effective = np.where(reached, 1.0 / np.where(reached, square, 1.0), 0.0)
    share = fit.linear**2 / (1.0 - fit.leverage) * sample.unsampled
    if sample.clusters is None and sample.draw is None:
        variance = np.vecdot(share, fit.residual**2)
    else:
        variance = sample.pool_variance(fit.linear * fit.residual / np.sqrt(1.0 - fit.leverage))
    df = _degrees(sample.sums(share if not sample.complete else fit.weights**2 / (1.0 - np.minimum(fit.weights, 0.95))))
    spread = outcome_spread(fit.weights, fit.centred, n_effective)
    total = np.vecdot(fit.weights, fit.centred**2)
    left = np.vecdot(fit.weights, fit.residual**2)
    raw = np.where(total > 0.0, 1.0 - left / np.where(total > 0.0, total, 1.0), 0.0)
    adjusted = adjusted_r2(raw, n_effective, fit.beta.shape[1])
    out = [fit.value, variance, df, raw, adjusted]
    value, variance, df, raw, adjusted = (np.where(reached, entry, np.nan) for entry in out)
    naive = np.where(reached, fit.naive, np.nan)
    beta = np.where(reached[:, None], fit.beta, np.nan)
    agree = labels_agree(fit.weights, sample.y)
    noise = np.vecdot(fit.linear**2, sample.unsampled)
    design = sample.design_effect(fit.weights, fit.centred)
    return PointSummary(value, naive, beta, variance, spread, df, n_effective, raw, adjusted, agree, noise, design)


def _degrees(share: FloatArray) -> FloatArray:
    """max{(Σa)²/Σa² − 1, 2}."""
    square = np.vecdot(share, share)
    positive = square > 0.0
    return np.maximum(np.where(positive, share.sum(axis=1) ** 2 / np.where(positive, square, 1.0) - 1.0, 2.0), 2.0)


def outcome_spread(weights: FloatArray, centred: FloatArray, n_effective: FloatArray) -> FloatArray:
    """s² = [Σw²(Y − Ȳ)²/Σw²]/max(1 − 1/n_eff, 0.05), (g,); NaN where nothing is labeled."""
    square = np.vecdot(weights, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        local = np.vecdot(weights**2, centred**2) / square
        return np.asarray(local / np.maximum(1.0 - 1.0 / n_effective, 0.05))


def labels_agree(weights: FloatArray, y: FloatArray) -> BoolArray:
    """(g,) whether all labels with w ≥ 0.01·max w are equal."""
    inside = weights >= _NEIGHBOURHOOD * weights.max(axis=1, keepdims=True)
    inside &= weights > 0.0
    high = np.where(inside, y, -np.inf).max(axis=1)
    low = np.where(inside, y, np.inf).min(axis=1)
    return np.asarray(high <= low)


def adjusted_r2(raw: FloatArray, n_effective: FloatArray, signals: int) -> FloatArray:
    """1 − (1 − R²)(n_eff − 1)/max(n_eff − K − 1, 1), floored at 0 and never above R²."""
    inflation = np.maximum((n_effective - 1.0) / np.maximum(n_effective - signals - 1.0, 1.0), 1.0)
    return np.maximum(1.0 - (1.0 - raw) * inflation, 0.0)


def superpopulation_term(square: FloatArray, spread: FloatArray) -> FloatArray:
    """Σ_T w_T² · s²: what the population target adds to V."""
    return square * spread


def verdicts(raw: FloatArray, adjusted: FloatArray, n_effective: FloatArray, signals: int) -> list[str]:
    """Per point: signals cost precision when R² < K/(n_eff − 2).

    "hurt" when even the fitted R² is below that, "help" when the adjusted one is above, "neutral" between.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(n_effective > 2.0, signals / np.maximum(n_effective - 2.0, 1e-300), np.inf)
    verdict = np.where(raw < needed, "hurt", np.where(adjusted > needed, "help", "neutral"))
    verdict = np.where(n_effective > 0.0, verdict, "none")
    return [str(word) for word in verdict] if signals else ["neutral"] * len(verdict)


@dataclass(frozen=True, slots=True, eq=False)
class FittedProfile:
    """Everything of a profile but its intervals.

    Attributes:
        at: points as the caller reads them; summary: what was estimated there; sample: the labels.
        binary: whether intervals are those of a share in [0, 1].
        square: (G,) Σ_T w_T²; df: (G,) degrees of freedom.
        said: verdict per point; method: name; facts: diagnostics.
        influence: (G, n) values c_i e_i whose sum is the estimate's error, where they were kept.
    """

    at: NDArray[Any]
    summary: PointSummary
    sample: LabeledSample
    binary: bool
    square: FloatArray
    df: FloatArray
    said: list[str]
    method: str
    facts: dict[str, Any]
    influence: FloatArray | None = None

    def profile(self, target: Target, interval: Interval, level: float) -> Profile:
        """The Profile with pointwise intervals."""
        summary, sample = self.summary, self.sample
        variance = summary.variance
        if target == "population":
            variance = variance + superpopulation_term(self.square, summary.spread * summary.design)
        low, high, kinds = point_intervals(summary, variance, self.df, sample, self.binary, target, interval, level)
        unlabeled = 1.0 - len(sample.y) / sample.rows
        gain = 1.0 / (1.0 - unlabeled * np.minimum(summary.r2, 1.0 - 1e-12))
        reasons = [None if count > 0.0 else "no labeled item in reach" for count in summary.n_effective]
        diagnostics = {
            "n_labeled": len(sample.y),
            "n_pool": sample.rows,
            "covers": "pool profile" if target == "pool" else "kernel-smoothed population profile",
            "interval": kinds,
            "verdict": self.said,
            "reason": reasons,
            "binary": self.binary,
            **self.facts,
        }
        return Profile(
            self.at, summary.value, np.sqrt(variance), low, high, summary.n_effective, self.df, variance,
            summary.r2, gain, summary.beta, self.method, target, level, diagnostics, smoothed=self.smoothed,
            worth=self._worth(variance, target), n=len(sample.y), pool_size=sample.rows, interval=tuple(kinds),
            verdict=tuple(self.said), reason=tuple(reasons), localities=self.localities,
            binary=self.binary,
        )  # fmt: skip

    @property
    def localities(self) -> tuple[str, ...]:
        """Names of the kernels, one per profile column."""
        return tuple(self.facts.get("locality") or ())

    @property
    def smoothed(self) -> bool:
        """Whether points share labels: any kernel that is not a level's own."""
        return any(name != "categorical" for name in self.localities)

    def _worth(self, variance: FloatArray, target: Target) -> FloatArray:
        """(G,) labels of the plain local mean with the same standard error."""
        summary, sample = self.summary, self.sample
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = summary.spread * summary.design
            kept = float(sample.unsampled.mean())
            total = kept * spread / summary.n_effective + (spread * self.square if target == "population" else 0.0)
            ratio = total / variance
            size = 1.0 / self.square
        entries = zip(ratio.tolist(), summary.n_effective.tolist(), size.tolist(), strict=True)
        return np.array([labels_worth(r, n, target, m) if n >= 2.0 else math.nan for r, n, m in entries])


def point_intervals(
    summary: PointSummary,
    variance: FloatArray,
    df: FloatArray,
    sample: LabeledSample,
    binary: bool,
    target: Target,
    interval: Interval,
    level: float,
) -> tuple[FloatArray, FloatArray, list[str]]:
    """(low, high, kind per point): t clipped to [0, 1] for binary outcomes, Wilson where t cannot be trusted."""
    half = t_quantile(df, level) * np.sqrt(variance)
    low, high = summary.value - half, summary.value + half
    reached = summary.n_effective > 0.0
    use_wilson = np.zeros(len(low), dtype=bool)
    if binary:
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        use_wilson = reached if interval == "wilson" else reached & (interval == "auto") & needs_wilson(summary)
        if sample.complete and target == "pool":
            use_wilson = np.zeros_like(use_wilson)
    elif interval == "wilson":
        raise ValueError("interval='wilson' needs outcomes that are all 0 or 1; use 'auto' or 't'")
    if use_wilson.any():
        share = np.clip(summary.naive[use_wilson], 0.0, 1.0)
        lower, upper = wilson_interval(share, summary.independent[use_wilson], normal_quantile(level))
        point = np.clip(summary.value[use_wilson], 0.0, 1.0)
        low[use_wilson], high[use_wilson] = np.minimum(lower, point), np.maximum(upper, point)
    finite = np.isfinite(summary.value)
    kinds = ["none" if not hit else "wilson" if wilson else "t" for hit, wilson in zip(finite, use_wilson, strict=True)]
    return low, high, kinds


def needs_wilson(summary: PointSummary) -> BoolArray:
    """Where the labels in reach all agree, are few (n_eff < 8), or hold fewer than 2 of the rarer outcome."""
    naive, count = summary.naive, summary.independent
    with np.errstate(invalid="ignore"):
        return np.asarray(summary.agree | (count < 8.0 - _TIE) | (count * np.minimum(naive, 1.0 - naive) < 2.0 - _TIE))
