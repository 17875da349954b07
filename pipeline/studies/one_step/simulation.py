"""The one-step paper's simulated world (section 5.1): data, exact regressions τ, closed-form variance reductions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import log_ndtr

from pipeline.estimators.floats import BoolArray, FloatArray

Coupling = Literal["fresh", "literal"]


@dataclass(frozen=True, slots=True)
class Draws:
    """One simulated data set of one model.

    Attributes:
        phi: (N,) squared errors ε_i0².
        s1, s2: (N, M + 1) auxiliary responses less the input, W − X.
        prefers_first: (N, M + 1) whether W1 lies at least as close to that draw's answer as W2.
    """

    phi: FloatArray
    s1: FloatArray
    s2: FloatArray
    prefers_first: BoolArray


@dataclass(frozen=True, slots=True)
class World:
    """Y = X + ε, W_s = X + ρ_s ε + η_s, φ = (Y − X)² = ε².

    X drops out of everything once W is centred at it, so it is never drawn.

    Attributes:
        variance: σ_l² of ε, which is also θ = E φ.
        rho: (ρ1, ρ2).
        noise_variance: σ_η².
    """

    variance: float
    rho: tuple[float, float] = (0.8, 0.6)
    noise_variance: float = 0.36

    def draw(self, items: int, draws: int, rng: np.random.Generator, coupling: Coupling = "fresh") -> Draws:
        """N items with draw 0 from the episode of the scored answer and M more.

        ``fresh``: draws 1..M come from episodes with their own ε. ``literal``: one ε is shared by all M + 1 draws,
        as the paper's text prints it.
        """
        shape = (items, draws + 1)
        if coupling == "fresh":
            epsilon = math.sqrt(self.variance) * rng.standard_normal(shape)
        else:
            own = math.sqrt(self.variance) * rng.standard_normal((items, 1))
            epsilon = np.broadcast_to(own, shape)
        noise = math.sqrt(self.noise_variance)
        s1 = self.rho[0] * epsilon + noise * rng.standard_normal(shape)
        s2 = self.rho[1] * epsilon + noise * rng.standard_normal(shape)
        return Draws(epsilon[:, 0] ** 2, s1, s2, np.abs(s1 - epsilon) <= np.abs(s2 - epsilon))

    def _posterior(self, rho: tuple[float, ...]) -> tuple[float, float]:
        """(gain of ρ'S in the posterior mean of ε, posterior variance)."""
        total = self.variance * sum(value**2 for value in rho) + self.noise_variance
        return self.variance / total, self.variance * self.noise_variance / total

    def r_squared(self, responses: int) -> float:
        """R² = |ρ|²σ²/(|ρ|²σ² + σ_η²) of ε on one or two responses."""
        signal = self.variance * sum(value**2 for value in self.rho[:responses])
        return signal / (signal + self.noise_variance)

    def variance_reduction(self, responses: int) -> float:
        """Closed form without the preference: VR = (R²)², M → ∞."""
        return self.r_squared(responses) ** 2

    def literal_reduction(self, responses: int, draws: int) -> float:
        """Closed form where all draws share ε: VR = −(1 + 1/M) v (1 − v) with v = (R²)²."""
        v = self.variance_reduction(responses)
        return -(1.0 + 1.0 / draws) * v * (1.0 - v)

    def tau_one(self, s1: FloatArray) -> FloatArray:
        """E[ε² | S1]: equation B.1."""
        gain, spread = self._posterior(self.rho[:1])
        return np.asarray((gain * self.rho[0] * s1) ** 2 + spread)

    def tau_two(self, s1: FloatArray, s2: FloatArray) -> FloatArray:
        """E[ε² | S1, S2]."""
        gain, spread = self._posterior(self.rho)
        return np.asarray((gain * (self.rho[0] * s1 + self.rho[1] * s2)) ** 2 + spread)

    def tau_full(self, s1: FloatArray, s2: FloatArray, prefers_first: BoolArray) -> FloatArray:
        """E[ε² | S1, S2, V]: second moment of the posterior normal, cut at (S1 + S2)/2 on the side V points to."""
        gain, spread = self._posterior(self.rho)
        mean, sd = gain * (self.rho[0] * s1 + self.rho[1] * s2), math.sqrt(spread)
        cut = (0.5 * (s1 + s2) - mean) / sd
        side = np.where(prefers_first == (s1 > s2), 1.0, -1.0)
        log_density = -0.5 * cut**2 - 0.5 * math.log(2.0 * math.pi)
        mills = side * np.exp(log_density - log_ndtr(-side * cut))
        return np.asarray(mean**2 + 2.0 * mean * sd * mills + spread * (1.0 + cut * mills))

    def full_reduction(self, points: int = 200) -> float:
        """VR with the preference, Var τ/Var φ by Gauss–Hermite quadrature over (S1, S2) and both values of V."""
        node, weight = np.polynomial.hermite_e.hermegauss(points)
        weight = weight / weight.sum()
        covariance = self.variance * np.outer(self.rho, self.rho) + self.noise_variance * np.eye(2)
        root = np.linalg.cholesky(covariance)
        first, second = np.meshgrid(node, node, indexing="ij")
        s1, s2 = root[0, 0] * first, root[1, 0] * first + root[1, 1] * second
        grid = weight[:, None] * weight[None, :]
        gain, spread = self._posterior(self.rho)
        mean = gain * (self.rho[0] * s1 + self.rho[1] * s2)
        cut = (0.5 * (s1 + s2) - mean) / math.sqrt(spread)
        square = 0.0
        for prefers_first in (True, False):
            side = np.where(np.full_like(s1, prefers_first, dtype=bool) == (s1 > s2), 1.0, -1.0)
            tau = self.tau_full(s1, s2, np.full(s1.shape, prefers_first))
            square += float(np.sum(grid * np.exp(log_ndtr(-side * cut)) * tau**2))
        return (square - self.variance**2) / (2.0 * self.variance**2)


def linear_features(data: Draws) -> list[FloatArray]:
    """s1, s2, each (N, M + 1)."""
    return [data.s1, data.s2]


def quadratic_features(data: Draws) -> list[FloatArray]:
    """s1, s2, s1², s1·s2, s2², each (N, M + 1)."""
    s1, s2 = data.s1, data.s2
    return [s1, s2, s1 * s1, s1 * s2, s2 * s2]


def cubic_features(data: Draws) -> list[FloatArray]:
    """The nine cubic terms in (s1, s2), and all terms and 1 times B = (2v − 1)·sign(w1 − w2)."""
    s1, s2 = data.s1, data.s2
    side = np.where(data.prefers_first, 1.0, -1.0) * np.sign(s1 - s2)
    square1, square2 = s1 * s1, s2 * s2
    terms = [s1, s2, square1, s1 * s2, square2, square1 * s1, square1 * s2, s1 * square2, square2 * s2]
    return [*terms, side, *(term * side for term in terms)]


def own_and_averaged(terms: list[FloatArray]) -> FloatArray:
    """(N, 2, d): the features of draw 0, and their mean over draws 1..M."""
    return np.stack([np.stack([term[:, 0], term[:, 1:].mean(axis=1)], axis=1) for term in terms], axis=-1)


class LinearLeastSquares:
    """Least squares on an intercept and the given features.

    Linear in the features, so the mean prediction over draws is the prediction at their mean features: a data set of
    M + 1 draws can be handed to ``cross_fit_tau`` as draw 0 and one averaged draw.
    """

    def fit(self, X: FloatArray, y: FloatArray) -> None:
        """Fit on X (n, d) and y (n,)."""
        self.coefficients_ = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), y, rcond=None)[0]

    def predict(self, X: FloatArray) -> Any:
        """Fitted values (n,)."""
        return self.coefficients_[0] + X @ self.coefficients_[1:]
