"""The LACE formulas at a block of profile points: coefficient, estimate, linear weights, residuals, leverages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators.localities import ProfileAxis, normalise_log_kernel

__all__ = ["LabeledSample", "LocalFit", "fit_points", "label_weights", "point_blocks", "ridge_inverse"]

FloatArray: TypeAlias = NDArray[np.float64]

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
    """

    z: FloatArray
    y: FloatArray
    signals: FloatArray
    inclusion: FloatArray | None
    rows: int

    @property
    def complete(self) -> bool:
        """Whether every pool item is labeled."""
        return len(self.y) == self.rows

    @property
    def unsampled(self) -> FloatArray:
        """(n,) finite-population factors: 1 − n/M, or 1 − the item's inclusion probability."""
        if self.inclusion is None:
            return np.full(len(self.y), 1.0 - len(self.y) / self.rows)
        return 1.0 - self.inclusion


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
    from_mean = signals - label_mean[:, None, :]
    if coefficients is not None:
        beta, linear, leverage = coefficients, weights.copy(), np.minimum(weights, 0.95)
    else:
        same = coefficient_weights is weights
        around = from_mean if same else signals - (coefficient_weights @ signals)[:, None, :]
        y_around = centred if same else y - (coefficient_weights @ y)[:, None]
        cross = np.einsum("gn,gnk->gk", coefficient_weights * y_around, around)
        inverse = ridge_inverse(gram, ridge)
        beta = np.einsum("gkl,gl->gk", inverse, cross)
        spread = around @ inverse
        linear = weights - coefficient_weights * np.einsum("gnk,gk->gn", spread, gap)
        quadratic = np.einsum("gnk,gnk->gn", spread, around)
        leverage = np.minimum(weights + coefficient_weights * quadratic, 0.95)
    residual = centred - np.einsum("gnk,gk->gn", from_mean, beta)
    return LocalFit(naive - np.einsum("gk,gk->g", gap, beta), naive, beta, weights, linear, residual, centred, leverage)


def ridge_inverse(gram: FloatArray, ridge: float) -> FloatArray:
    """(Σ + λI)⁻¹ for each of (g, K, K); the pseudo-inverse when λ = 0."""
    if not gram.shape[-1]:
        return gram
    if ridge > 0.0:
        return np.asarray(np.linalg.inv(gram + ridge * np.eye(gram.shape[-1])))
    inverse = np.full_like(gram, np.nan)
    reached = np.isfinite(gram).all(axis=(1, 2))
    inverse[reached] = np.linalg.pinv(gram[reached], rcond=1e-10, hermitian=True)
    return inverse
