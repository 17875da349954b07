"""Paired gaps of mean outcomes by LACE, with intervals that hold for all pairs together (max-t) and equivalence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtr

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.gaps.simultaneous import DEFAULT_SEED, PairedDifference, holm, max_t_quantile
from pipeline.estimators.intervals import check_level, t_quantile
from pipeline.estimators.lace.averaged import averaged_fit
from pipeline.estimators.lace.interval import Target
from pipeline.estimators.lace.scalar import ScalarFit, spread_of
from pipeline.estimators.results import Estimate
from pipeline.estimators.sampling import Sampling, resolve_draw
from pipeline.estimators.signals import PreparedSignals
from pipeline.estimators.validation import check_outcome, check_probabilities, check_signals
from pipeline.estimators.worth import with_worth


@dataclass(frozen=True, slots=True, eq=False)
class FittedGap:
    """The gap of one pair before its interval.

    Attributes:
        value, variance, df: θ̂ of value_a − value_b, its variance and degrees of freedom.
        influence: (n,) influence values, finite-population factors included, whose covariance is the pairs'.
        units: (n,) names of what is independent: the items, or their clusters.
        n: labels; rows: pool.
        facts: diagnostics of the fit.
        target: "pool" or "population".
        naive_value, naive_se: of the plain paired difference, with the same design, clusters and target.
        outcome_variance: s² of the differences; design_effect: of the clusters on the plain one; verdict: as in
            ``Estimate``; log_ratio: half width of the range of log(plain/variance), None where it cannot be told.
    """

    value: float
    variance: float
    df: float
    influence: FloatArray
    units: NDArray[Any]
    n: int
    rows: int
    facts: dict[str, Any]
    target: Target = "pool"
    naive_value: float = math.nan
    naive_se: float = math.nan
    outcome_variance: float = math.nan
    design_effect: float = 1.0
    verdict: str = ""
    log_ratio: float | None = None

    def estimate(self, level: float = 0.95) -> Estimate:
        """Student's t interval of this gap alone."""
        # Differences that are all equal and no shares show no spread: that is no certainty, and decides nothing.
        still = self.variance <= 0.0 and not (self.target == "pool" and self.n == self.rows)
        se = math.nan if still else math.sqrt(self.variance)
        half = float(t_quantile(self.df, check_level(level))) * se
        estimate = Estimate(
            self.value, se, self.value - half, self.value + half, level, self.n, "lace_gap", self.facts,
            target=self.target, pool_size=self.rows, df=self.df, interval="none" if still else "t",
            outcome_variance=self.outcome_variance, design_effect=self.design_effect, naive_value=self.naive_value,
            naive_se=self.naive_se, verdict=self.verdict,
        )  # fmt: skip
        return with_worth(estimate, self.log_ratio)


def fit_gap(
    difference: ArrayLike,
    signals: ArrayLike | PreparedSignals,
    *,
    labeled: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    inclusion_probabilities: ArrayLike | None = None,
    items: ArrayLike | None = None,
    target: Target = "pool",
    rng: np.random.Generator | int | None = None,
    sampling: Sampling | None = None,
    adapt: Literal["average", "curved"] = "average",
) -> FittedGap:
    """The adaptive LACE mean of Y_a − Y_b over a pool, as something that can be decided on.

    A difference of outcomes is no share: its interval is Student's t, also where the differences seen happen to be all
    0 or 1. Where outcomes are 0/1 and few labels disagree, the variance seen is too small, or 0: it is kept at or above
    f·(b + c + 1)/(n + 2)², the variance of Agresti and Min with half a count added to every cell (b + c labels that
    disagree, f the finite-population factor), less what the signals explain.

    Args:
        difference: (M,) Y_a − Y_b, NaN where not both are labeled.
        signals: (M, K) of both models.
        labeled: (M,) booleans; None means where ``difference`` is finite.
        clusters: (M,) groups that were sampled together.
        inclusion_probabilities: (M,) as in :func:`lace_mean`.
        items: (M,) names of the items, where the pools of the pairs are not the same rows; clusters need none.
        target: "pool" or "population".
        rng: seed of the candidates' folds.
        sampling: how the labels were drawn (strata, rounds), in place of ``inclusion_probabilities``.
        adapt: the averaging rule, as in :func:`lace_mean`.

    Raises:
        ValueError: shapes that do not fit, non-finite signals, fewer than 2 labels.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 3.
        Agresti and Min, "Simple Improved Confidence Intervals for Comparing Matched Proportions" (2005), Statistics
            in Medicine 24.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> difference = np.where(np.arange(200) < 60, np.sign(signals[:, 0] + rng.normal(size=200)), np.nan)
        >>> round(fit_gap(difference, signals).value, 3)
        0.11
    """
    if adapt not in ("average", "curved"):
        raise ValueError(f"adapt must be 'average' or 'curved', got {adapt!r}")
    values = check_signals(signals)
    rows = len(values)
    outcome, mask = check_outcome(difference, labeled, rows)
    n = int(mask.sum())
    if n < 2:
        raise ValueError(f"a gap needs at least 2 items labeled for both, got {n}")
    inclusion = check_probabilities(inclusion_probabilities, rows)
    draw = resolve_draw(sampling, mask, clusters, inclusion)
    ready = signals if isinstance(signals, PreparedSignals) else values
    fit = averaged_fit(ready, outcome, mask, draw, None, rng, curved=adapt == "curved")
    y = outcome[mask]
    spread = spread_of(fit, y, target)
    named = clusters if clusters is not None else np.arange(rows) if items is None else items
    sampled = float(draw.shares @ draw.unsampled) if target == "pool" else 1.0
    diagnostics = {
        "n_pool": rows, "df": spread.df, "n_effective": draw.n_effective, "interval": "t",
        "target": target, "covers": f"{target} mean", "naive": fit.naive, "r2": fit.r2,
        "verdict": fit.verdict, **fit.facts,
    }  # fmt: skip
    if draw.clusters is not None:
        diagnostics["n_clusters"] = int(draw.clusters.max()) + 1
    influence = draw.deviations(fit.influence)
    floor = _least(y, fit, influence) * sampled
    return FittedGap(
        fit.value, max(spread.variance, floor), spread.df, influence, np.asarray(named)[mask], n, rows, diagnostics,
        target, fit.naive, math.sqrt(max(spread.plain, floor)), spread.outcome, spread.design_effect, fit.verdict,
        spread.log_ratio,
    )  # fmt: skip


def _least(y: FloatArray, fit: ScalarFit, influence: FloatArray) -> float:
    """The floor of the variance where Y_a − Y_b is −1, 0 or 1; 0 for any other outcome."""
    if not np.isin(y, (-1.0, 0.0, 1.0)).all():
        return 0.0
    n = 1.0 / float(fit.weights @ fit.weights)
    disagree = float(fit.weights @ np.abs(y)) * n
    centred = disagree + 1.0 - (float(fit.weights @ y) * n) ** 2 / (n + 2.0)
    plain = float(fit.naive_influence @ fit.naive_influence)
    explained = min(float(fit.influence @ fit.influence) / plain, 1.0) if plain > 0.0 else 1.0
    return explained * centred / (n + 2.0) ** 2


def joint_gaps(
    fits: Sequence[tuple[str, str, FittedGap]],
    *,
    margin: float | None = None,
    level: float = 0.95,
    draws: int = 20_000,
    rng: np.random.Generator | int | None = None,
) -> tuple[PairedDifference, ...]:
    """Intervals of all pairs that hold together, Holm p-values and equivalence.

    The level of each pair's interval is raised until all hold together with probability ``level``: the quantile of
    max |t| is simulated under the correlation of the pairs' influence values, as for normal statistics, and turned
    into the level of one interval, which each pair takes at its own degrees of freedom. It lies between no adjustment
    and Bonferroni's. A pair without any disagreement has its own floor and takes no part in the correlation.

    Args:
        fits: (a, b, its fit) for every pair that is decided.
        margin: equivalence margin δ > 0; ``equivalent`` says whether the joint interval lies strictly inside ±δ.
        level: joint coverage.
        draws: simulated vectors.
        rng: of the simulation; None is a fixed seed.

    References:
        Hothorn, Bretz and Westfall, "Simultaneous Inference in General Parametric Models" (2008), Biometrical
            Journal 50.
        Holm, "A Simple Sequentially Rejective Multiple Test Procedure" (1979), Scandinavian Journal of Statistics
            6.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> y = signals + rng.normal(size=(200, 2)) > [0.0, 1.0]
        >>> fit = fit_gap(np.where(np.arange(200) < 80, y[:, 0] * 1.0 - y[:, 1], np.nan), signals)
        >>> joint_gaps([('a', 'b', fit)])[0].low > 0
        True
    """
    check_level(level)
    if margin is not None and not (margin > 0.0 and math.isfinite(margin)):
        raise ValueError(f"margin must be positive, got {margin!r}")
    if not fits:
        return ()
    generator = np.random.default_rng(DEFAULT_SEED if rng is None else rng)
    joint = _joint_level([fit for _, _, fit in fits], level, draws, generator)
    p = np.array([_p_value(fit) for _, _, fit in fits])
    adjusted = holm(p)
    return tuple(
        _difference(a, b, fit, float(p[k]), float(adjusted[k]), joint, level, margin)
        for k, (a, b, fit) in enumerate(fits)
    )


def _joint_level(fits: Sequence[FittedGap], level: float, draws: int, rng: np.random.Generator) -> float:
    """The level of one interval at which all hold together."""
    lowest = 1.0 - (1.0 - level) / len(fits)
    units = np.unique(np.concatenate([fit.units for fit in fits]))
    influence = np.zeros((len(fits), len(units)))
    for row, fit in zip(influence, fits, strict=True):
        np.add.at(row, np.searchsorted(units, fit.units), fit.influence)
    still = float((influence**2).sum(axis=1).max()) * 1e-14
    influence[(influence**2).sum(axis=1) <= still] = 0.0
    silent = int((~influence.any(axis=1)).sum())
    quantile = max_t_quantile(influence @ influence.T, math.inf, level, draws=draws, rng=rng)
    alpha, room = 2.0 * float(ndtr(-quantile)), 1.0 - level
    # A pair that does not vary is not in the simulation: it is paid for by Bonferroni.
    alpha = room / (silent + room / alpha)
    return min(max(1.0 - alpha, level), lowest) if len(fits) > 1 else level


def _p_value(fit: FittedGap) -> float:
    if fit.variance <= 0.0:
        return 0.0 if fit.value != 0.0 and fit.target == "pool" and fit.n == fit.rows else 1.0
    return float(2.0 * stdtr(min(fit.df, 1e9), -abs(fit.value) / math.sqrt(fit.variance)))


def _difference(
    a: str, b: str, fit: FittedGap, p: float, adjusted: float, joint: float, level: float, margin: float | None
) -> PairedDifference:
    single, together = fit.estimate(level), fit.estimate(joint)
    inside = None if margin is None else bool(together.low > -margin and together.high < margin)
    return PairedDifference(
        a=a, b=b, value=fit.value, se=single.se, low=together.low, high=together.high, low_single=single.low,
        high_single=single.high, p=p, p_adjusted=adjusted, level=level, n=fit.n, margin=margin, equivalent=inside,
    )  # fmt: skip
