"""The LACE formulas at a block of profile points: coefficient, estimate, linear weights, residuals, leverages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.estimators.floats import FloatArray, IntArray
from pipeline.estimators.lace.localities import ProfileAxis, normalise_log_kernel
from pipeline.estimators.sampling import LabelDraw

_BLOCK_VALUES = 4_000_000  # doubles in one (points, labels) block times the number of signals


@dataclass(frozen=True, slots=True, eq=False)
class LabeledSample:
    """The labeled items, in the order of the pool.

    Attributes:
        z: (n, q) profile values in the axis's numbers.
        y: (n,) outcomes.
        signals: (n, K) signals on the scale and centre of the pool moments.
        inclusion: (n,) label inclusion probabilities, or None for equal ones.
        rows: M, the number of pool items.
        clusters: (n,) codes of groups that were sampled together, or None.
        draw: how they were drawn, where that was in strata or rounds; ``inclusion`` then holds what weighs them so.
    """

    z: FloatArray
    y: FloatArray
    signals: FloatArray
    inclusion: FloatArray | None
    rows: int
    clusters: IntArray | None = None
    draw: LabelDraw | None = None

    @property
    def complete(self) -> bool:
        """Whether every pool item is labeled."""
        return len(self.y) == self.rows

    @property
    def unsampled(self) -> FloatArray:
        """(n,) finite-population factors: 1 − n/M, or 1 − the item's inclusion probability."""
        if self.draw is not None:
            return self.draw.unsampled
        if self.inclusion is None:
            return np.full(len(self.y), 1.0 - len(self.y) / self.rows)
        return 1.0 - self.inclusion

    def sums(self, values: FloatArray) -> FloatArray:
        """(g, C) sums of (g, n) values over clusters; the values themselves without clusters."""
        if self.clusters is None:
            return values
        member = np.zeros((len(self.y), int(self.clusters.max()) + 1))
        member[np.arange(len(self.y)), self.clusters] = 1.0
        return values @ member

    def variance(self, influence: FloatArray) -> FloatArray:
        """(g,) variance of Σ_i of independent influence values (g, n), whole clusters times C/(C − 1)."""
        sums = self.sums(influence)
        total = np.vecdot(sums, sums)
        if self.clusters is None:
            return np.asarray(total)
        count = np.count_nonzero(sums, axis=1)
        return np.asarray(total * count / np.maximum(count - 1, 1))

    def pool_variance(self, influence: FloatArray) -> FloatArray:
        """(g,) the same about the pool: with finite-population factors, within strata where labels were drawn so."""
        if self.draw is not None:
            return self.variance(self.draw.deviations(influence))
        return self.variance(influence * np.sqrt(self.unsampled))

    def design_effect(self, weights: FloatArray, centred: FloatArray) -> FloatArray:
        """(g,) variance of the local mean of the labels with its clusters over the same without; 1 without clusters."""
        if self.clusters is None:
            return np.ones(len(weights))
        plain = weights * centred
        square = np.vecdot(weights, weights)
        alone = np.vecdot(plain, plain) / np.maximum(1.0 - square, 0.05)
        return np.where(alone > 0.0, self.variance(plain) / np.where(alone > 0.0, alone, 1.0), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class LocalFit:
    """LACE at g profile points with n labels.

    Attributes:
        value: (g,) θ̂; naive: (g,) Ȳ_L; beta: (g, K) coefficients.
        weights: (g, n) profile weights w; linear: (g, n) c with θ̂ = Σ c Y.
        residual: (g, n) r_i = (Y_i − Ȳ_L) − β'(S_i − S̄_L); centred: (g, n) Y_i − Ȳ_L.
        leverage: (g, n) H_i.
    """

    value: FloatArray
    naive: FloatArray
    beta: FloatArray
    weights: FloatArray
    linear: FloatArray
    residual: FloatArray
    centred: FloatArray
    leverage: FloatArray


def point_blocks(points: int, labels: int, signals: int) -> list[slice]:
    """Slices of the points such that a block of weights and signals stays small."""
    size = max(1, _BLOCK_VALUES // max(labels * (signals + 4), 1))
    return [slice(start, min(start + size, points)) for start in range(0, points, size)]


def label_weights(axis: ProfileAxis, sample: LabeledSample, points: FloatArray, multiple: float = 1.0) -> FloatArray:
    """Profile weights (g, n) over the labeled items, divided by inclusion probabilities where those are unequal."""
    log_kernel = axis.log_kernel(sample.z, points, multiple)
    if sample.inclusion is not None:
        log_kernel -= np.log(sample.inclusion)
    return normalise_log_kernel(log_kernel)


def fit_points(
    sample: LabeledSample,
    weights: FloatArray,
    coefficient_weights: FloatArray,
    pool_mean: FloatArray,
    gram: FloatArray,
    ridge: float,
    coefficients: FloatArray | None = None,
) -> LocalFit:
    """θ̂ = Ȳ_L − β'(S̄_L − S̄_T) with β = (Σ_SS + λI)⁻¹Σ_SY, or with given coefficients.

    Args:
        sample: labels.
        weights: (g, n) profile weights over L.
        coefficient_weights: (g, n) weights of the coefficient; the same array as ``weights`` when b = h.
        pool_mean: (g, K) S̄_T with the profile's locality.
        gram: (g, K, K) Σ_SS with the coefficient's locality.
        ridge: λ.
        coefficients: (g, K) fixed β; then c = w and H = w.
    """
    y, signals = sample.y, sample.signals
    naive = weights @ y
    label_mean = weights @ signals
    gap = np.zeros_like(label_mean) if sample.complete else label_mean - pool_mean
    centred = y - naive[:, None]
    if coefficients is not None:
        beta, linear, leverage = coefficients, weights.copy(), np.minimum(weights, 0.95)
    else:
        same = coefficient_weights is weights
        middle = label_mean if same else coefficient_weights @ signals
        y_around = centred if same else y - (coefficient_weights @ y)[:, None]
        inverse, root = ridge_inverse(gram, ridge)
        # Σ v (S − S̄)(Y − Ȳ) = Σ v S (Y − Ȳ), because Σ v (Y − Ȳ) = 0.
        beta = _times((coefficient_weights * y_around) @ signals, inverse)
        linear = weights - coefficient_weights * _projected(signals, middle, _times(gap, inverse))
        leverage = np.minimum(weights + coefficient_weights * _squared_lengths(signals, middle, root), 0.95)
    residual = centred - _projected(signals, label_mean, beta)
    value = naive - np.vecdot(gap, beta)
    return LocalFit(value, naive, beta, weights, linear, residual, centred, leverage)


def _times(vectors: FloatArray, matrices: FloatArray) -> FloatArray:
    """(g, K) times symmetric (g, K, K)."""
    return np.asarray((vectors[:, None, :] @ matrices)[:, 0, :])


def _projected(signals: FloatArray, middle: FloatArray, direction: FloatArray) -> FloatArray:
    """(g, n): (S_i − middle_g)'direction_g."""
    return np.asarray(direction @ signals.T - np.vecdot(middle, direction)[:, None])


def _squared_lengths(signals: FloatArray, middle: FloatArray, root: FloatArray) -> FloatArray:
    """(g, n): |(S_i − middle_g)'root_g|², from one product of the signals with all roots."""
    points, width = middle.shape
    turned = signals @ root.transpose(1, 0, 2).reshape(width, points * width)
    turned = turned.reshape(len(signals), points, width)
    turned -= _times(middle, root)
    return np.asarray(np.vecdot(turned, turned).T)


def ridge_inverse(gram: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
    """(Σ + λI)⁻¹ for each of (g, K, K), the pseudo-inverse when λ = 0, and a root R with RR' equal to it."""
    if not gram.shape[-1]:
        return gram, gram
    inverse, root = np.full_like(gram, np.nan), np.full_like(gram, np.nan)
    reached = np.isfinite(gram[:, 0, 0])
    if not reached.any():
        return inverse, root
    if ridge > 0.0:
        # A = CC' gives A⁻¹ = C⁻ᵀC⁻¹: the ridge keeps A positive definite unless its scale is beyond repair.
        shifted = gram[reached] + ridge * np.eye(gram.shape[-1])
        try:
            factor = np.linalg.inv(np.linalg.cholesky(shifted))
            root[reached] = np.swapaxes(factor, 1, 2)
            inverse[reached] = np.swapaxes(factor, 1, 2) @ factor
            return inverse, root
        except np.linalg.LinAlgError:
            pass
    values, vectors = np.linalg.eigh(gram[reached])
    values = np.maximum(values, 0.0) + ridge
    kept = values > 1e-10 * values.max(axis=1, keepdims=True)
    scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    root[reached] = vectors * scale[:, None, :]
    inverse[reached] = root[reached] @ np.swapaxes(root[reached], 1, 2)
    return inverse, root
