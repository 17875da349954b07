"""The LACE paper's synthetic designs: settings A, B and C (App. I.1, I.3) and the repeated-pool settings (I.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from pipeline.estimators.floats import BoolArray, FloatArray
from pipeline.estimators.lace.localities import Categorical, Gaussian, Locality

SIGNALS = 6


@dataclass(frozen=True, slots=True, eq=False)
class DesignDraw:
    """One pool with a random labeled set: z (M,), y (M,) known everywhere, signals (M, K), labeled (M,)."""

    z: FloatArray
    y: FloatArray
    signals: FloatArray
    labeled: BoolArray

    @property
    def observed(self) -> FloatArray:
        """y with NaN where not labeled."""
        return np.where(self.labeled, self.y, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class SpecialistSignals:
    """Signals S_k = a_k(z) + γ_k(z) X + σ_k(z) ξ_k, tabulated at the support points of Z, with X = Y or 2Y − 1.

    Attributes:
        offset, slope, noise: (Q, K) at the Q support points.
        signed: X = 2Y − 1 instead of Y.
    """

    offset: FloatArray
    slope: FloatArray
    noise: FloatArray
    signed: bool = False

    def moments(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Conditional Σ_SS (Q, K, K) and Σ_SY (Q, K) given Z, with Y Bernoulli(θ)."""
        variance_y = theta * (1.0 - theta)
        slope = self.slope * (2.0 if self.signed else 1.0)
        outer = variance_y[:, None, None] * slope[:, :, None] * slope[:, None, :]
        outer[:, np.arange(slope.shape[1]), np.arange(slope.shape[1])] += self.noise**2
        return outer, variance_y[:, None] * slope

    def coefficients(self, theta: FloatArray) -> FloatArray:
        """β*(z) = Σ_SS(z)⁻¹ Σ_SY(z), (Q, K)."""
        gram, cross = self.moments(theta)
        return np.asarray(np.linalg.solve(gram, cross[:, :, None])[:, :, 0])

    def r_squared(self, theta: FloatArray) -> FloatArray:
        """R²(z) = Σ_SY' Σ_SS⁻¹ Σ_SY / σ_Y², (Q,)."""
        _, cross = self.moments(theta)
        return np.asarray((self.coefficients(theta) * cross).sum(axis=1) / (theta * (1.0 - theta)))

    def population_scale(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Population mean and sd (K,) over a Z that is uniform on the support points."""
        level = 2.0 * theta - 1.0 if self.signed else theta
        second = np.ones_like(theta) if self.signed else theta
        mean = (self.offset + self.slope * level[:, None]).mean(axis=0)
        square = self.offset**2 + 2.0 * self.offset * self.slope * level[:, None] + self.slope**2 * second[:, None]
        return mean, np.sqrt((square + self.noise**2).mean(axis=0) - mean**2)

    def rescaled(self, mean: FloatArray, sd: FloatArray) -> SpecialistSignals:
        """The law of (S − mean)/sd."""
        return SpecialistSignals((self.offset - mean) / sd, self.slope / sd, self.noise / sd, self.signed)


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """A data-generating process with the truths that a study compares with.

    Attributes:
        name: short name.
        support: (Q,) support points of Z; empty for a Z uniform on [0, 1] (setting A).
        theta: (Q,) P(Y = 1 | Z) at the support points.
        signals: the signal law at the support points; None for setting A, whose slopes follow Z itself.
        at: (G,) evaluation points.
        locality: the profile's locality.
        pool_size: M.
        balanced: the pool holds each support point equally often instead of drawing Z.
        truth: (G,) population profile at ``at``.
        smoothed_truth: (G,) the same smoothed by the kernel over the law of Z.
        oracle: (G, K) β*(z) at ``at``.
        primary_scale: (mean, sd) by which the primary signal was standardised, to give its raw score back.
    """

    name: str
    support: FloatArray
    theta: FloatArray
    signals: SpecialistSignals | None
    at: FloatArray
    locality: Locality
    pool_size: int
    balanced: bool
    truth: FloatArray
    smoothed_truth: FloatArray
    oracle: FloatArray
    primary_scale: tuple[float, float] = (0.0, 1.0)

    def raw_judge(self, signals: FloatArray) -> FloatArray:
        """(M,) the primary signal on its own scale, as local PPI wants it."""
        mean, sd = self.primary_scale
        return np.asarray(mean + sd * signals[:, 0])

    def pool(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A fresh pool: z (M,), y (M,), signals (M, K)."""
        size = self.pool_size
        if self.signals is None:
            z = np.sort(rng.random(size))  # the order of the items carries no information
            y = (rng.random(size) < 0.5).astype(np.float64)
            law = specialists_a(z)
            drawn = rng.standard_normal((size, SIGNALS))
            drawn *= law.noise
            drawn += law.slope * y[:, None]
            drawn += law.offset
            return z, y, drawn
        levels = len(self.support)
        which = np.repeat(np.arange(levels), size // levels) if self.balanced else rng.integers(levels, size=size)
        y = (rng.random(size) < self.theta[which]).astype(np.float64)
        effect = 2.0 * y - 1.0 if self.signals.signed else y
        drawn = self.signals.offset[which] + self.signals.slope[which] * effect[:, None]
        drawn += self.signals.noise[which] * rng.standard_normal(drawn.shape)
        return self.support[which], y, drawn

    def draw(self, rng: np.random.Generator, n: int) -> DesignDraw:
        """A fresh pool with n items labeled at random without replacement."""
        z, y, signals = self.pool(rng)
        labeled = np.zeros(len(z), dtype=np.bool_)
        labeled[rng.choice(len(z), size=n, replace=False)] = True
        return DesignDraw(z, y, signals, labeled)


def gain_prediction(r_squared: FloatArray, labeled_share: float) -> float:
    """Theorem 4 for a profile of equal naive variances: G / Σ_g {1 − (1 − π) R²(z_g)}."""
    return float(1.0 / np.mean(1.0 - (1.0 - labeled_share) * r_squared))


def specialists_a(z: FloatArray) -> SpecialistSignals:
    """Setting A: triangular slopes 2(1 − 5|z − μ_k|)₊ at μ_k = (2k − 1)/10, the sixth signal pure noise."""
    centres = (2.0 * np.arange(1, SIGNALS) - 1.0) / 10.0
    slope = np.zeros((len(z), SIGNALS))
    slope[:, :-1] = 2.0 * np.maximum(1.0 - 5.0 * np.abs(z[:, None] - centres), 0.0)
    offset = np.sin(np.pi * z)[:, None] * np.array([1.0, -1.0, 1.0, -1.0, 1.0, 0.0])
    noise = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 1.0])
    return SpecialistSignals(offset, slope, np.broadcast_to(noise, offset.shape))


def setting_a(pool_size: int, bandwidth: float | None = None) -> Design:
    """Setting A: Z uniform on [0, 1], P(Y = 1) = 1/2; the bandwidth M^(−1/3) unless given."""
    at = np.linspace(0.10, 0.90, 17)
    theta = np.full(len(at), 0.5)
    width = pool_size ** (-1.0 / 3.0) if bandwidth is None else bandwidth
    oracle = specialists_a(at).coefficients(theta)
    empty = np.empty(0)
    return Design("A", empty, empty, None, at, Gaussian(width), pool_size, False, theta, theta, oracle)


def setting_b(seed: int = 0, pool_size: int = 10_000) -> Design:
    """Setting B: five ordered levels, one active specialist each; ``seed`` draws the frozen offsets."""
    rng = np.random.default_rng([seed, 66])
    slope = np.zeros((5, SIGNALS))
    slope[np.arange(5), [0, 1, 2, 3, 0]] = 2.0
    noise = np.broadcast_to(np.array([0.5, 0.5, 0.5, 0.5, 1.0, 1.0]), slope.shape)
    law = SpecialistSignals(rng.standard_normal(slope.shape), slope, noise)
    return _discrete_design("B", np.array([0.3, 0.4, 0.5, 0.6, 0.7]), law, pool_size)


def setting_c(seed: int = 0, pool_size: int = 10_000) -> Design:
    """Setting C: ten categories with one or two specialists each; ``seed`` draws the frozen design."""
    rng = np.random.default_rng([seed, 67])
    slope, noise = np.zeros((10, SIGNALS)), np.ones((10, SIGNALS))
    for level in range(10):
        chosen = rng.choice(SIGNALS, size=int(rng.integers(1, 3)), replace=False)
        slope[level, chosen], noise[level, chosen] = 2.0, 0.5
    theta = rng.uniform(0.25, 0.75, size=10)
    return _discrete_design("C", theta, SpecialistSignals(rng.standard_normal(slope.shape), slope, noise), pool_size)


def _discrete_design(name: str, theta: FloatArray, law: SpecialistSignals, pool_size: int) -> Design:
    if pool_size % len(theta):
        raise ValueError(f"setting {name} is balanced: the pool size must be a multiple of {len(theta)}")
    levels = np.arange(1.0, len(theta) + 1.0)
    oracle = law.coefficients(theta)
    return Design(name, levels, theta, law, levels, Categorical(), pool_size, True, theta, theta, oracle)


# Relative frequencies of the levels of the three ordered benchmarks, and (mean, sd) of the log length in words of
# the five others: what the "benchmark-derived profile marginals" of App. I.4 are derived from here.
REPEATED_POOL_LEVELS: dict[str, dict[int, int]] = {
    "math500": {1: 43, 2: 90, 3: 105, 4: 128, 5: 134},
    "scienceqa": {2: 91, 3: 111, 4: 129, 5: 114, 6: 89, 7: 112, 8: 84, 9: 49, 10: 37, 11: 40, 12: 34},
    "gsm8k": {3: 364, 4: 290, 5: 138, 6: 57, 7: 21, 8: 9},
}
_LOG_LENGTHS: dict[str, tuple[float, float]] = {
    "mmlu": (3.22, 1.02),
    "winogrande": (2.94, 0.166),
    "hellaswag": (3.50, 0.45),
    "truthfulqa": (2.26, 0.44),
    "arc": (2.94, 0.60),
}
REPEATED_POOL_BENCHMARKS: tuple[str, ...] = (*REPEATED_POOL_LEVELS, *_LOG_LENGTHS)
_SOURCE_ITEMS = 500
_OUTCOME_OFFSETS = (0.35, 0.50, 0.65)


@lru_cache(maxsize=32)
def _midranks(benchmark: str, jitter: bool) -> FloatArray:
    """The sorted midranks in [0, 1] of a benchmark's 500 source profile values."""
    order = (np.arange(_SOURCE_ITEMS) + 0.5) / _SOURCE_ITEMS
    if benchmark in REPEATED_POOL_LEVELS:
        counts = REPEATED_POOL_LEVELS[benchmark]
        levels = np.array(list(counts), dtype=np.float64)
        cumulative = np.cumsum(list(counts.values())) / sum(counts.values())
        source = order if jitter else levels[np.searchsorted(cumulative, order)]
    else:
        location, scale = _LOG_LENGTHS[benchmark]
        source = np.rint(np.exp(location + scale * ndtri(order)))
    below = np.searchsorted(source, source, side="left")
    ties = np.searchsorted(source, source, side="right") - below
    ranks = np.asarray((below + 0.5 * ties) / _SOURCE_ITEMS)
    ranks.setflags(write=False)
    return ranks


def repeated_pool(benchmark: str, regime: int, n: int, *, pool_size: int | None = None, jitter: bool = True) -> Design:
    """One of the 24 repeated-pool settings.

    Args:
        benchmark: one of ``REPEATED_POOL_BENCHMARKS``; it fixes the law of Z.
        regime: 0, 1 or 2: lower, middle or higher accuracy.
        n: label budget; M is 10 n unless ``pool_size`` is given.
        pool_size: M.
        jitter: ordered benchmarks are jittered before they are ranked (as in the paper's main experiments), so that
            they have no ties.
    """
    support = _midranks(benchmark, jitter)
    size = 10 * n if pool_size is None else pool_size
    theta = _OUTCOME_OFFSETS[regime] + 0.15 * np.cos(2.0 * np.pi * support)
    raw = _smooth_specialists(support)
    mean, sd = raw.population_scale(theta)
    law = raw.rescaled(mean, sd)
    quantiles = 0.05 + 0.90 * np.arange(20) / 19.0
    index = np.minimum(np.ceil(quantiles * _SOURCE_ITEMS - 1e-9).astype(np.intp) - 1, _SOURCE_ITEMS - 1)
    at = support[index]
    bandwidth = 1.5 * 1.06 * float(support.std()) * size**-0.2
    kernel = np.exp(-0.5 * ((support - at[:, None]) / bandwidth) ** 2)
    smoothed = kernel @ theta / kernel.sum(axis=1)
    oracle = law.coefficients(theta)[index]
    name = f"{benchmark}/{('lower', 'middle', 'higher')[regime]}"
    scale = (float(mean[0]), float(sd[0]))
    kind = Gaussian(bandwidth)
    return Design(name, support, theta, law, at, kind, size, False, theta[index], smoothed, oracle, scale)


def _smooth_specialists(z: FloatArray) -> SpecialistSignals:
    turn = 2.0 * np.pi * z
    offset = 0.75 * np.sin(turn)[:, None] * np.array([1.0, -1.0, 1.0, -1.0, 1.0, 0.0])
    columns: Sequence[FloatArray] = (
        0.5 * np.cos(turn),
        2.0 * np.sin(turn),
        2.0 * np.cos(2.0 * turn),
        2.0 * np.sin(2.0 * turn),
        2.0 * np.cos(3.0 * turn),
        np.zeros_like(z),
    )
    noise = np.broadcast_to(np.array([0.25, 0.25, 0.25, 0.25, 0.25, 0.50]), offset.shape)
    return SpecialistSignals(offset, np.stack(columns, axis=1), noise, signed=True)
