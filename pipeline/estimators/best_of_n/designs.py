"""What to collect next and how far to trust it: design comparison from a pilot, sensitivity to dependence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.best_of_n.blocks import block_values, cyclic_sums
from pipeline.estimators.best_of_n.estimators import best_of_n, best_of_n_batch, best_of_n_reuse, score_columns
from pipeline.estimators.best_of_n.weights import check_integer, check_subset_size, rank_weights
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.results import Result


@dataclass(frozen=True, slots=True)
class Design(Result):
    """One way to spend a unit of budget on one prompt.

    Attributes:
        name: "cyclic" (score matrix, cyclic splitting), "fixed_split" (one split of a matrix's scores, the
            rest spent on the winner) or "fresh_winner" (s fresh scores of each winner).
        n: candidates that the policy picks from.
        j: scores per candidate that select.
        s: scores that evaluate each winner.
        cost: c, cost of one unit.
        variance: V, variance of one unit's estimate over prompts, scores and subsets.
        cost_variance: c·V; the mean squared error at budget B is about c·V/B.
    """

    name: str
    n: int
    j: int
    s: int
    cost: float
    variance: float
    cost_variance: float


@dataclass(frozen=True, slots=True)
class Sensitivity(Result):
    """Evaluation bias of ``best_of_n`` if scores of a candidate are equicorrelated.

    Attributes:
        rho: correlation of two scores of one candidate, given the candidate.
        bias: how much the estimate would exceed the value of the selected candidates, in score units.
    """

    rho: float
    bias: float


@dataclass(frozen=True, slots=True)
class _Winner:
    """Moments of the winner over prompts: variance of its mean, and mean variance of one of its scores."""

    between: float
    within: float


def compare_designs(
    pilot_scores: ArrayLike | Sequence[ArrayLike],
    n: int,
    j: int,
    budget: float,
    *,
    score_cost: float = 1.0,
    generation_cost: float = 0.0,
) -> tuple[Design, ...]:
    """Unbiased designs for one policy, cheapest product of cost and variance first (section 5.1).

    Units: "cyclic" scores all M candidates K times, c = M·(K·score_cost + generation_cost), and has the
    variance of ``best_of_n`` over prompts. "fixed_split" and "fresh_winner" draw N candidates, select with J
    scores each and score the winner s more times, c = N·(J·score_cost + generation_cost) + s·score_cost, with
    variance Var(μ_W) + E[σ²_W]/s; s = K − J for "fixed_split", and s = 1, 2, 4, … and the best s for
    "fresh_winner". Designs whose unit costs more than the budget stand last.

    At J = K the matrix gives no unbiased estimate, so "cyclic" and "fixed_split" are left out, and the pilot's
    winner is studied at depth K − 1, the deepest it can show.

    Args:
        pilot_scores: (P, M, K) array or P matrices (M_p, K_p) from prompts independent of the study; P ≥ 2.
            M and K are the pilot's, their means where they vary.
        n: subset size N.
        j: selection scores J, 1 ≤ J ≤ K.
        budget: B > 0, in the unit of the costs.
        score_cost: cost of one score, > 0.
        generation_cost: cost of one candidate (prompt and generation), ≥ 0.

    Raises:
        ValueError: fewer than two pilot prompts, J > K, costs or budget out of range.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 5.1.

    Example:
        >>> pilot = np.random.default_rng(0).normal(size=(30, 4, 4))
        >>> designs = compare_designs(pilot, n=2, j=2, budget=1000)
        >>> [(design.name, design.cost) for design in designs][:2]
        [('cyclic', 16.0), ('fresh_winner', 8.0)]
    """
    _check_costs(budget, score_cost, generation_cost)
    matrices: list[NDArray[Any]] = [np.asarray(matrix) for matrix in cast(Sequence[ArrayLike], pilot_scores)]
    if len(matrices) < 2:
        raise ValueError(f"a pilot needs at least 2 prompts, got {len(matrices)}")
    depth = check_integer(j, "j")
    fewest = min(matrix.shape[1] if matrix.ndim == 2 else 0 for matrix in matrices)
    if not 1 <= depth <= max(fewest, 1):
        raise ValueError(f"j must lie in 1..K = 1..{fewest}, got {depth}")
    candidates = float(np.mean([len(matrix) for matrix in matrices]))
    draws = float(np.mean([matrix.shape[1] for matrix in matrices]))
    winner = _winner_moments(matrices, n, min(depth, fewest - 1))
    selection = n * (depth * score_cost + generation_cost)

    def split(name: str, fresh: int) -> Design:
        cost = selection + fresh * score_cost
        variance = winner.between + winner.within / fresh
        return Design(name, n, depth, fresh, cost, variance, cost * variance)

    designs = [split("fresh_winner", fresh) for fresh in _fresh_scores(winner, selection / score_cost, int(draws))]
    if depth < fewest:
        designs.append(split("fixed_split", fewest - depth))
        cost = candidates * (draws * score_cost + generation_cost)
        variance = float(np.var(best_of_n_batch(matrices, n, depth), ddof=1))
        designs.append(Design("cyclic", n, depth, fewest - depth, cost, variance, cost * variance))
    return tuple(sorted(designs, key=lambda design: (design.cost > budget, design.cost_variance)))


def dependence_sensitivity(
    scores: ArrayLike | Sequence[ArrayLike], n: int, j: int, rhos: ArrayLike
) -> tuple[Sensitivity, ...]:
    """How far ``best_of_n`` would be off if the scores of a candidate were correlated (section 5.3).

    Under equicorrelation ρ the held-out mean given the selection mean a is μ + f·(a − μ) with
    f = Jρ/(1 + (J−1)ρ), so the evaluation bias is f·(reuse − actual), actual being the value of the selected
    candidates. The estimate itself is then actual + bias; solving for what is observed, reuse and estimate:
    bias = f/(1 − f)·(reuse − estimate) = Jρ/(1 − ρ)·(reuse − estimate).

    Args:
        scores: (M, K) scores of one prompt, or (P, M, K) or P matrices, whose prompts are averaged.
        n, j: the policy, 1 ≤ J < K.
        rhos: correlations in [0, 1).

    Returns:
        One Sensitivity per ρ, in their order.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 5.3.

    Example:
        >>> scores = np.random.default_rng(0).normal(size=(30, 4, 4))
        >>> [round(entry.bias, 3) for entry in dependence_sensitivity(scores, n=2, j=2, rhos=[0.0, 0.2])]
        [0.0, 0.172]
    """
    correlations = np.atleast_1d(np.asarray(rhos, dtype=np.float64))
    if correlations.ndim != 1 or not ((correlations >= 0.0) & (correlations < 1.0)).all():
        raise ValueError("rhos must lie in [0, 1): at 1 every score repeats the first and nothing is held out")
    prompts = cast(Sequence[ArrayLike], scores)
    matrices = [np.asarray(scores)] if np.ndim(prompts[0]) == 1 else prompts
    optimism = np.mean([best_of_n_reuse(matrix, n, j) - best_of_n(matrix, n, j) for matrix in matrices])
    depth = check_integer(j, "j")
    return tuple(Sensitivity(float(rho), float(depth * rho / (1.0 - rho) * optimism)) for rho in correlations)


def _winner_moments(matrices: Sequence[NDArray[Any]], n: int, depth: int) -> _Winner:
    """Var(μ_W) over prompts, subsets and selections, and E[σ²_W], from held-out scores of the pilot's winners.

    One held-out score X of the winner has E[X²] = E[μ_W²] + E[σ²_W]. σ²_W is the sample variance of the winner's
    held-out scores; where only one is held out, of its selection scores, whose spread hardly depends on their mean.
    """
    if depth < 1:
        raise ValueError("the pilot needs at least 2 scores per candidate")
    values, squares, noise = [], [], []
    origin = float(np.mean([np.mean(matrix) for matrix in matrices]))
    for position, matrix in enumerate(matrices):
        try:
            columns, keys = score_columns(matrix)
        except (TypeError, ValueError) as error:
            raise type(error)(f"pilot_scores[{position}]: {error}") from None
        draws, candidates = columns.shape
        columns = columns - origin
        weights = rank_weights(candidates, check_subset_size(n, candidates))
        held_out = draws - depth
        sums = cyclic_sums(keys, depth, depth)
        mean = cyclic_sums(columns, held_out) / held_out
        square = cyclic_sums(columns**2, held_out) / held_out
        values.append(float(block_values(sums, mean, weights).mean()))
        squares.append(float(block_values(sums, square, weights).mean()))
        noise.append(float(block_values(sums, _score_variance(columns, depth), weights).mean()))
    count = len(matrices)
    within = max(float(np.mean(noise)), 0.0)
    # E[X]² is estimated by the mean squared minus its own variance over prompts.
    squared_mean = float(np.mean(values)) ** 2 - float(np.var(values, ddof=1)) / count
    return _Winner(max(float(np.mean(squares)) - squared_mean - within, 0.0), within)


def _score_variance(columns: FloatArray, depth: int) -> FloatArray:
    """(K, M) variance of one score, per block, from scores whose spread the selection leaves alone."""
    held_out = len(columns) - depth
    if max(held_out, depth) < 2:
        return np.full(columns.shape, columns.var(axis=0, ddof=1).mean())
    count, place = (held_out, 0) if held_out > 1 else (depth, depth)
    sums, squares = cyclic_sums(columns, count, place), cyclic_sums(columns**2, count, place)
    return np.asarray((squares - sums**2 / count) / (count - 1))


def _fresh_scores(winner: _Winner, selection_scores: float, draws: int) -> list[int]:
    """1, 2, 4, … up to about the depth of the matrix, and the s that minimises (c₀ + s)(A + B/s): √(B c₀/A)."""
    choices = {2**power for power in range(max(draws - 1, 1).bit_length() + 1)}
    if winner.between > 0.0:
        best = np.sqrt(winner.within * selection_scores / winner.between)
        choices.add(int(np.clip(np.rint(best), 1, 1_000_000)))
    return sorted(choices)


def _check_costs(budget: float, score_cost: float, generation_cost: float) -> None:
    if not (np.isfinite(budget) and budget > 0.0):
        raise ValueError(f"budget must be finite and > 0, got {budget!r}")
    if not (np.isfinite(score_cost) and score_cost > 0.0):
        raise ValueError(f"score_cost must be finite and > 0, got {score_cost!r}")
    if not (np.isfinite(generation_cost) and generation_cost >= 0.0):
        raise ValueError(f"generation_cost must be finite and ≥ 0, got {generation_cost!r}")
