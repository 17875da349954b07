"""Exact values Θ^(J) of the J-score Best-of-N policy when the score laws are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from pipeline.estimators.best_of_n.lattice import lattice_steps
from pipeline.estimators.best_of_n.weights import check_integer, check_subset_size
from pipeline.estimators.floats import FloatArray

_REACH = 9.0
_PANEL = 1.0
_NODES = 12


def gaussian_target(mu: ArrayLike, sigma: ArrayLike, j: int, n: int) -> float:
    """Θ^(J) for independent Gaussian scores, by quadrature to about 1e-13.

    Θ = Σ_m μ_m p_m with p_m = C(M, N)^{-1} ∫ f_m(x) e_{N−1}({F_l(x)}_{l≠m}) dx, where F_l is the law of a
    mean of J scores and e_{N−1} the elementary symmetric polynomial. For M = N = 2 and one σ this is
    (μ₁+μ₂)/2 + (d/2)·erf(√J d/(2σ)), d = μ₁ − μ₂.

    Args:
        mu: (M,) candidate means.
        sigma: standard deviation of one score, > 0: a number, or (M,).
        j: selection scores J ≥ 1.
        n: subset size N, 1 ≤ N ≤ M.

    Raises:
        ValueError: wrong shapes, non-finite means, σ ≤ 0, J < 1, N outside 1..M.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 4.1.

    Example:
        >>> round(gaussian_target([0.0, 1.0], [1.0, 1.0], j=1, n=2), 4)
        0.7602
    """
    means = _vector(mu, "mu")
    depth, size = _check_target(j, n, len(means))
    try:
        spread = np.broadcast_to(np.asarray(sigma, dtype=np.float64), means.shape)
    except ValueError:
        raise ValueError(f"sigma must be a number or have shape {means.shape}") from None
    if not (np.isfinite(spread).all() and (spread > 0.0).all()):
        raise ValueError("sigma must be finite and > 0")
    scale = spread / np.sqrt(depth)
    chances = np.array([_gaussian_win(m, means, scale, size) for m in range(len(means))])
    centre = float(means.mean())
    # The chances sum to one up to rounding; weighing deviations keeps a large common mean exact.
    return centre + float(chances @ (means - centre))


def gaussian_targets(mu: ArrayLike, sigma: float, j: int, n: int) -> FloatArray:
    """``gaussian_target`` of many pools at once, for one σ and means within a few σ/√J of each other.

    Args:
        mu: (P, M) candidate means.
        sigma: standard deviation of one score, > 0.
        j, n: as in ``gaussian_target``.

    Returns:
        (P,) targets.
    """
    means = np.asarray(mu, dtype=np.float64)
    if means.ndim != 2 or means.size == 0 or not np.isfinite(means).all():
        raise ValueError(f"mu must be finite with shape (P, M), got shape {means.shape}")
    depth, size = _check_target(j, n, means.shape[1])
    scale = _positive_scale(sigma) / np.sqrt(depth)
    low, high = float(means.min()) - _REACH * scale, float(means.max()) + _REACH * scale
    x, weight = _panels(np.linspace(low, high, int(np.ceil((high - low) / (_PANEL * scale))) + 1))
    out = np.empty(len(means))
    rows = max(1, (1 << 20) // (means.shape[1] * len(x)))
    for start in range(0, len(means), rows):
        pools = means[start : start + rows].T
        z = (x - pools[:, :, None]) / scale
        below, density = ndtr(z), np.exp(-(z**2) / 2.0) * (weight / (scale * np.sqrt(2.0 * np.pi)))
        centre = pools.mean(axis=0)
        out[start : start + rows] = centre
        for m, products in enumerate(_products_of_others(below, size - 1)):
            chance = np.einsum("px,px->p", products, density[m]) * size / len(pools)
            out[start : start + rows] += chance * (pools[m] - centre)
    return out


def _positive_scale(sigma: float) -> float:
    if not (np.isfinite(sigma) and sigma > 0.0):
        raise ValueError(f"sigma must be finite and > 0, got {sigma!r}")
    return float(sigma)


def _panels(bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes and weights on every interval between neighbouring bounds."""
    nodes, node_weights = np.polynomial.legendre.leggauss(_NODES)
    half = np.diff(bounds)[:, None] / 2.0
    return (bounds[:-1, None] + half + half * nodes).ravel(), (half * node_weights).ravel()


def _gaussian_win(winner: int, means: FloatArray, scale: FloatArray, n: int) -> float:
    """Chance that candidate ``winner`` wins a random size-n subset: panels no wider than any law's scale."""
    low, high = means[winner] - _REACH * scale[winner], means[winner] + _REACH * scale[winner]
    steps = np.arange(-_REACH, _REACH + _PANEL, _PANEL)
    # A law much narrower than the winner's needs panels of its own scale where it rises.
    narrow = scale < scale[winner] / 2.0
    edges = [means[winner] + scale[winner] * steps]
    edges += [means[other] + scale[other] * steps for other in np.flatnonzero(narrow)]
    bounds = np.unique(np.clip(np.concatenate(edges), low, high))
    x, weight = _panels(bounds)
    density = np.exp(-(((x - means[winner]) / scale[winner]) ** 2) / 2.0) / (scale[winner] * np.sqrt(2.0 * np.pi))
    others = np.delete(np.arange(len(means)), winner)
    below = ndtr((x - means[others, None]) / scale[others, None])
    return float(np.sum(weight * density * _mean_products(below, n - 1)) * n / len(means))


def _products_of_others(factors: FloatArray, size: int) -> Iterator[FloatArray]:
    """``_mean_products`` of all factors but the m-th, for every m in turn."""
    if size < len(factors) - 1:
        for m in range(len(factors)):
            yield _mean_products(np.delete(factors, m, axis=0), size)
        return
    after = np.ones_like(factors)
    np.cumprod(factors[:0:-1], axis=0, out=after[-2::-1])
    before = np.ones_like(factors[0])
    for m, factor in enumerate(factors):
        yield before * after[m]
        before = before * factor


def _mean_products(factors: FloatArray, size: int) -> FloatArray:
    """e_size / C(L, size): the mean product over all size-subsets of L factors, shape (L, …) to (…).

    Recursion over factors on the means themselves (they stay in [0, 1]): with L factors seen,
    g_s ← ((L − s)·g_s + s·F·g_{s−1})/L.
    """
    means: FloatArray = np.zeros((size + 1, *factors.shape[1:]))
    means[0] = 1.0
    for seen, factor in enumerate(factors, start=1):
        top = min(size, seen)
        order = np.arange(1, top + 1).reshape(-1, *([1] * factor.ndim))
        means[1 : top + 1] = ((seen - order) * means[1 : top + 1] + order * factor * means[:top]) / seen
    return np.asarray(means[size])


def lattice_target(pmf: ArrayLike, values: ArrayLike, j: int, n: int) -> float:
    """Θ^(J) for independent discrete scores, ties broken uniformly; exact up to rounding.

    p_m = C(M, N)^{-1} Σ_x f_m(x) ∫₀¹ e_{N−1}({F_l(x−) + u f_l(x)}_{l≠m}) du over the law of a sum of J
    scores; Gauss–Legendre with more than N/2 nodes integrates the polynomial exactly.

    Args:
        pmf: (M, L) probabilities of each candidate's score; rows sum to one.
        values: (L,) distinct score values.
        j: selection scores J ≥ 1.
        n: subset size N, 1 ≤ N ≤ M.

    Raises:
        ValueError: wrong shapes, probabilities negative or not summing to one, J < 1, N outside 1..M.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 2.

    Example:
        >>> round(lattice_target([[0.5, 0.5], [0.2, 0.8]], [0.0, 1.0], j=1, n=2), 3)
        0.695
    """
    support = _vector(values, "values")
    laws = np.asarray(pmf, dtype=np.float64)
    if laws.ndim != 2 or laws.shape[1] != len(support):
        raise ValueError(f"pmf must have shape (M, {len(support)}), got {laws.shape}")
    if not (np.isfinite(laws).all() and (laws >= 0.0).all() and np.allclose(laws.sum(axis=1), 1.0, atol=1e-9)):
        raise ValueError("every row of pmf must be probabilities that sum to one")
    if len(np.unique(support)) != len(support):
        raise ValueError("values must be distinct")
    depth, size = _check_target(j, n, len(laws))
    at = _sum_law(laws, support, depth)
    below = np.cumsum(at, axis=1) - at
    nodes, node_weights = np.polynomial.legendre.leggauss(size // 2 + 1)
    chances = np.zeros(len(laws))
    for node, weight in zip((nodes + 1.0) / 2.0, node_weights / 2.0, strict=True):
        reached = below + node * at
        for m in range(len(laws)):
            products = _mean_products(np.delete(reached, m, axis=0), size - 1)
            chances[m] += weight * float(at[m] @ products)
    return float((chances * size / len(laws)) @ (laws @ support))


def bernoulli_target(p: ArrayLike, j: int, n: int) -> float:
    """Θ^(J) for 0/1 scores with success probabilities ``p`` (M,): ``lattice_target`` on binomial laws.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 2.

    Example:
        >>> round(bernoulli_target([0.2, 0.8], j=1, n=2), 6)
        0.68
    """
    success = _vector(p, "p")
    if not ((success >= 0.0) & (success <= 1.0)).all():
        raise ValueError("p must lie in [0, 1]")
    return lattice_target(np.column_stack([1.0 - success, success]), np.array([0.0, 1.0]), j, n)


def _sum_law(laws: FloatArray, support: FloatArray, depth: int) -> FloatArray:
    """(M, S) law of a sum of ``depth`` scores over its distinct values in ascending order."""
    grid = (support - support.min())[None, :, None]
    steps, _ = lattice_steps(grid, "auto")
    # Off every lattice, sums are equal when they agree to 1e-12 of the range.
    unit = float(steps[0]) if np.isfinite(steps[0]) else max(float(grid.max()), 1e-300) * 1e-12
    score: NDArray[Any] = np.rint(grid.ravel() / unit).astype(np.int64)
    sums, law = np.array([0], dtype=np.int64), np.ones((len(laws), 1))
    for _ in range(depth):
        reached, where = np.unique(sums[:, None] + score[None, :], return_inverse=True)
        joint = (law[:, :, None] * laws[:, None, :]).reshape(len(laws), -1)
        law = np.stack([np.bincount(where.ravel(), weights=row, minlength=len(reached)) for row in joint])
        sums = reached
    return law


def _check_target(j: int, n: int, candidates: int) -> tuple[int, int]:
    depth = check_integer(j, "j")
    if depth < 1:
        raise ValueError(f"j must be at least 1, got {depth}")
    return depth, check_subset_size(n, candidates)


def _vector(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite with shape (M,), M ≥ 1, got shape {array.shape}")
    return array
