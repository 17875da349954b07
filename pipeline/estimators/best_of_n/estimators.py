"""Estimators of the value of a J-score Best-of-N policy from matrices of repeated scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from math import comb
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf

from pipeline.estimators.best_of_n.blocks import block_values, cyclic_sums
from pipeline.estimators.best_of_n.lattice import Lattice, as_columns, integer_scores, lattice_steps
from pipeline.estimators.best_of_n.weights import RankWeights, check_integer, check_subset_size, rank_weights
from pipeline.estimators.floats import FloatArray, IntArray, as_floats

_CHUNK = 1 << 16
_MOST_SELECTION_SETS = 1_000_000


def best_of_n(scores: ArrayLike, n: int, j: int | None = None, *, lattice: Lattice = "auto") -> float:
    """Unbiased value of the policy "best of N by the mean of J fresh scores": the cyclic Holdout estimator.

    Block t selects on columns t, …, t+J−1 (mod K) and evaluates on the other K−J:
    Θ̂ = (1/K) Σ_t Σ_m q_{m,t} v_{m,t}, q being the winner weights of the block's selection means. Unbiased
    for Θ^(J) = E[μ_winner] when all scores are independent and each candidate's law is the same in every
    column. N = 1 gives the pool mean. Time O(M K log M).

    Args:
        scores: (M, K) scores, one row per candidate; K ≥ 2.
        n: subset size N, 1 ≤ N ≤ M.
        j: selection scores J, 1 ≤ J < K; None is Holdout, J = K − 1.
        lattice: the step of which scores are multiples, so that ties are exact; "auto" detects it, None
            takes scores as continuous. Integer scores are a lattice of step 1.

    Returns:
        The estimate, in units of the scores.

    Raises:
        ValueError: wrong shape, non-finite scores, K = 1, N outside 1..M, J outside 1..K−1.
        TypeError: scores, n or j are not numbers.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 3.

    Example:
        >>> scores = np.array([[0.2, 0.5, 0.4], [0.6, 0.8, 0.7], [0.5, 0.1, 0.9]])
        >>> round(best_of_n(scores, n=2), 3)
        0.5
    """
    matrix = _matrix(scores)
    return float(_cyclic(matrix[None], n, j, lattice, "held_out")[0])


def best_of_n_batch(
    scores: ArrayLike | Sequence[ArrayLike], n: int, j: int | None = None, *, lattice: Lattice = "auto"
) -> FloatArray:
    """``best_of_n`` of many prompts at once.

    Args:
        scores: (P, M, K) array, or a sequence of P matrices (M_p, K_p) of any sizes.
        n, j, lattice: as in ``best_of_n``; j=None is J = K_p − 1 in every prompt.

    Returns:
        (P,) estimates, each equal to ``best_of_n`` of that prompt's matrix.

    Raises:
        ValueError: as ``best_of_n``, naming the prompt (0-based).

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 3.

    Example:
        >>> scores = np.array([[0.2, 0.5, 0.4], [0.6, 0.8, 0.7], [0.5, 0.1, 0.9]])
        >>> best_of_n_batch([scores, scores[:2]], n=2).round(3)
        array([0.5, 0.7])
    """
    if isinstance(scores, np.ndarray) and scores.dtype.kind != "O":
        scores = _unmasked(scores)
        if scores.ndim != 3:
            raise ValueError(f"scores must have shape (P, M, K) or be a list of (M, K) matrices, got {scores.shape}")
        return _cyclic(_checked(scores), n, j, lattice, "held_out")
    matrices = [_named_matrix(entry, position) for position, entry in enumerate(cast(Sequence[ArrayLike], scores))]
    out = np.empty(len(matrices), dtype=np.float64)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, matrix in enumerate(matrices):
        groups.setdefault((matrix.shape, matrix.dtype), []).append(position)
    for positions in groups.values():
        try:
            for part in _parts(positions, matrices[positions[0]].size):
                chosen = [matrices[position] for position in part]
                stacked = np.stack(chosen) if len(chosen) > 1 else chosen[0][None]
                out[part] = _cyclic(stacked, n, j, lattice, "held_out")
        except ValueError as error:
            raise ValueError(f"scores[{positions[0]}]: {error}") from None
    return out


def best_of_n_complete(scores: ArrayLike, n: int, j: int, *, lattice: Lattice = "auto") -> float:
    """The average over all C(K, J) selection sets instead of K cyclic blocks: same target, least variance.

    Equals ``best_of_n`` at J = 1 and J = K − 1. Arguments and errors as in ``best_of_n``; also ValueError
    where C(K, J) exceeds a million.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 4.2.

    Example:
        >>> scores = np.array([[0.2, 0.5, 0.4], [0.6, 0.8, 0.7], [0.5, 0.1, 0.9]])
        >>> round(best_of_n_complete(scores, n=2, j=1), 3)
        0.544
    """
    matrix = _matrix(scores)
    candidates, draws = matrix.shape
    weights = rank_weights(candidates, check_subset_size(n, candidates))
    depth = _check_depth(j, draws)
    sets = comb(draws, depth)
    if sets > _MOST_SELECTION_SETS:
        raise ValueError(f"C(K, J) = C({draws}, {depth}) = {sets} selection sets are too many: use best_of_n (cyclic)")
    keys = _key_columns(matrix[None], lattice)[0]
    columns = _columns(matrix[None])[0]
    everything = np.arange(draws)
    total = 0.0
    for chosen in _selection_sets(draws, depth, candidates):
        held_out = np.array([np.setdiff1d(everything, row, assume_unique=True) for row in chosen])
        values = columns[held_out].sum(axis=1) / (draws - depth)
        total += float(block_values(keys[chosen].sum(axis=1), values, weights).sum())
    return total / sets


def best_of_n_plug_in(scores: ArrayLike, n: int) -> float:
    """E_S[max_{m∈S} R̄_m], the usual plug-in value. **Biased**: the scores that select also evaluate.

    Args:
        scores: (M, K) scores, K ≥ 1.
        n: subset size N.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 1.

    Example:
        >>> scores = np.array([[0.2, 0.5, 0.4], [0.6, 0.8, 0.7], [0.5, 0.1, 0.9]])
        >>> round(best_of_n_plug_in(scores, n=2), 3)
        0.633
    """
    matrix = _matrix(scores, fewest=1)
    means = matrix.mean(axis=1, dtype=np.float64)[None]
    return float(block_values(means, means, rank_weights(len(matrix), check_subset_size(n, len(matrix))))[0])


def best_of_n_reuse(scores: ArrayLike, n: int, j: int | None = None, *, lattice: Lattice = "auto") -> float:
    """Selection scores reused for evaluation, over the blocks of ``best_of_n``. **Biased**: a diagnosis only.

    (1/K) Σ_t Σ_m q_{m,t} a_{m,t}; its excess over ``best_of_n`` is the optimism of score reuse. Arguments
    and errors as in ``best_of_n``.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 6.1.

    Example:
        >>> scores = np.array([[0.2, 0.5, 0.4], [0.6, 0.8, 0.7], [0.5, 0.1, 0.9]])
        >>> round(best_of_n_reuse(scores, n=2), 3)
        0.644
    """
    return float(_cyclic(_matrix(scores)[None], n, j, lattice, "selection")[0])


def best_of_n_fixed_split(scores: ArrayLike, n: int, j: int, *, lattice: Lattice = "auto") -> float:
    """One split: the first J columns select, the other K − J evaluate. Unbiased, noisier than ``best_of_n``.

    Arguments and errors as in ``best_of_n``.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 6.2.

    Example:
        >>> scores = np.array([[0.2, 0.5, 0.4], [0.6, 0.8, 0.7], [0.5, 0.1, 0.9]])
        >>> round(best_of_n_fixed_split(scores, n=2, j=1), 3)
        0.667
    """
    matrix = _matrix(scores)
    weights = rank_weights(len(matrix), check_subset_size(n, len(matrix)))
    depth = _check_depth(j, matrix.shape[1])
    keys = _key_columns(matrix[None], lattice)[0, :depth].sum(axis=0)
    values = matrix[:, depth:].mean(axis=1, dtype=np.float64)
    return float(block_values(keys[None], values[None], weights)[0])


def best_of_n_gold(
    scores: ArrayLike, gold: ArrayLike, n: int, j: int | None = None, *, lattice: Lattice = "auto"
) -> float:
    """Gold value of the candidate that the J-score policy selects: (1/K) Σ_t Σ_m q_{m,t} gold_m.

    The selection blocks are those of ``best_of_n``; the gold label is not a selection score, so here J = K
    is possible too.

    Args:
        scores: (M, K) selection scores.
        gold: (M,) finite gold values of the candidates.
        n, j, lattice: as in ``best_of_n``, with 1 ≤ J ≤ K; K = 1 is enough.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 2.

    Example:
        >>> scores = np.array([[0.2, 0.5, 0.4], [0.6, 0.8, 0.7], [0.5, 0.1, 0.9]])
        >>> round(best_of_n_gold(scores, [0, 1, 0], n=2), 3)
        0.556
    """
    matrix = _matrix(scores, fewest=1)
    truth = as_floats(gold, "gold")
    if truth.shape != (len(matrix),) or not np.isfinite(truth).all():
        raise ValueError(f"gold must be finite with shape ({len(matrix)},), got shape {truth.shape}")
    candidates, draws = matrix.shape
    weights = rank_weights(candidates, check_subset_size(n, candidates))
    depth = max(draws - 1, 1) if j is None else check_integer(j, "j")
    if not 1 <= depth <= draws:
        raise ValueError(f"j must lie in 1..K = 1..{draws}, got {depth}")
    keys = cyclic_sums(_key_columns(matrix[None], lattice), depth)[0]
    return float(block_values(keys, np.broadcast_to(truth, keys.shape), weights).mean())


def two_candidate_umvu(scores: ArrayLike, j: int, sigma: float) -> float:
    """Minimum-variance unbiased estimator for M = N = 2 and Gaussian scores of known σ (equation 3).

    With S = (R̄₁+R̄₂)/2, D = R̄₁−R̄₂, τ = σ√(2/K), q = √(J/(2(K−J))) and z = D/τ:
    T = S + (D/2)·erf(qz) − τ q exp(−q²z²)/√π.

    Args:
        scores: (2, K) scores.
        j: selection scores J, 1 ≤ J < K.
        sigma: known standard deviation of one score, > 0.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, equation 3.

    Example:
        >>> round(two_candidate_umvu([[0.1, 0.3, 0.2], [0.4, 0.2, 0.6]], j=2, sigma=0.2), 4)
        0.3711
    """
    matrix = _matrix(scores)
    if len(matrix) != 2:
        raise ValueError(f"scores must have shape (2, K), got {matrix.shape}")
    if not (np.isfinite(sigma) and sigma > 0.0):
        raise ValueError(f"sigma must be finite and > 0, got {sigma!r}")
    draws = matrix.shape[1]
    depth = _check_depth(j, draws)
    first, second = matrix.mean(axis=1, dtype=np.float64)
    scale = sigma * np.sqrt(2.0 / draws)
    slope = np.sqrt(depth / (2.0 * (draws - depth)))
    reach = slope * (first - second) / scale
    correction = scale * slope * np.exp(-(reach**2)) / np.sqrt(np.pi)
    return float((first + second) / 2.0 + (first - second) / 2.0 * erf(reach) - correction)


def score_columns(scores: ArrayLike, *, lattice: Lattice = "auto") -> tuple[FloatArray, NDArray[Any]]:
    """Checked scores (M, K) as contiguous columns (K, M): float64 values, and summable selection keys.

    On a lattice the keys are integers, so that sums of them tie exactly; else they are the values.
    """
    matrix = _matrix(scores)[None]
    return _columns(matrix)[0], _key_columns(matrix, lattice)[0]


def _cyclic(scores: NDArray[Any], n: int, j: int | None, lattice: Lattice, evaluate: str) -> FloatArray:
    """(P,) cyclic estimates of checked scores (P, M, K); ``evaluate``: "held_out" or "selection" columns."""
    prompts, candidates, draws = scores.shape
    weights = rank_weights(candidates, check_subset_size(n, candidates))
    depth = _check_depth(draws - 1 if j is None else j, draws)
    if n == 1:
        return np.asarray(scores.mean(axis=(1, 2), dtype=np.float64))
    out = np.empty(prompts, dtype=np.float64)
    for part in _parts(range(prompts), candidates * draws):
        chunk = scores[part[0] : part[-1] + 1]
        steps, relative = lattice_steps(chunk, lattice)
        on_lattice = ~np.isnan(steps)
        for group in (on_lattice, ~on_lattice):
            if not group.any():
                continue
            chosen = chunk if group.all() else chunk[group]
            columns = _columns(chosen)
            keys = columns
            if group is on_lattice:
                keys = integer_scores(chosen, steps[group], relative[group], summed=draws)
            out[np.asarray(part)[group]] = _blocks(keys, columns, depth, weights, evaluate)
    return out


def _blocks(keys: NDArray[Any], columns: FloatArray, depth: int, weights: RankWeights, evaluate: str) -> FloatArray:
    """(P,) means over the K cyclic blocks; keys and columns (P, K, M)."""
    prompts, draws, candidates = columns.shape
    if evaluate == "selection":
        sums, values, scale = cyclic_sums(keys, depth), cyclic_sums(columns, depth), depth
    else:
        # Window t of the keys is put where its held-out columns t + J, …, t − 1 begin.
        sums, scale = cyclic_sums(keys, depth, depth), draws - depth
        values = cyclic_sums(columns, scale)
    blocks = block_values(sums.reshape(-1, candidates), values.reshape(-1, candidates), weights)
    return np.asarray(blocks.reshape(prompts, draws).sum(axis=1) / (scale * draws))


def _key_columns(scores: NDArray[Any], lattice: Lattice) -> NDArray[Any]:
    """(P, K, M) columns whose sums are selection keys: integers on a lattice, else the scores; P = 1."""
    steps, relative = lattice_steps(scores, lattice)
    return _columns(scores) if np.isnan(steps[0]) else integer_scores(scores, steps, relative)


def _columns(scores: NDArray[Any]) -> FloatArray:
    """Scores (P, M, K) as (P, K, M) float64 with contiguous columns."""
    return np.asarray(as_columns(scores, np.float64))


def _selection_sets(draws: int, depth: int, candidates: int) -> Iterator[IntArray]:
    """All size-J column sets as (S, J) arrays, a bounded number at a time."""
    every = combinations(range(draws), depth)
    size = max(1, _CHUNK // (candidates * draws))
    while part := list(islice(every, size)):
        yield np.array(part, dtype=np.intp)


def _parts(positions: Sequence[int], size: int) -> Iterator[list[int]]:
    """Positions in order, as many at a time as keep a chunk of matrices of ``size`` scores in cache."""
    count = max(1, _CHUNK // max(1, size))
    for start in range(0, len(positions), count):
        yield list(positions[start : start + count])


def _check_depth(j: int, draws: int) -> int:
    depth = check_integer(j, "j")
    if depth >= draws:
        raise ValueError(
            f"j = {depth} needs j < K = {draws}: no unbiased estimator of the {depth}-score policy exists from "
            f"{draws} scores per candidate; choose a smaller j, collect more scores, or ask for one fresh score of "
            "each winner"
        )
    if depth < 1:
        raise ValueError(f"j must lie in 1..K−1 = 1..{draws - 1}, got {depth}")
    return depth


def _matrix(scores: ArrayLike, *, fewest: int = 2) -> NDArray[Any]:
    array = _unmasked(scores)
    if array.ndim != 2:
        raise ValueError(f"scores must have shape (M, K), one row per candidate, got {array.shape}")
    return _checked(array, fewest=fewest)


def _unmasked(scores: ArrayLike) -> NDArray[Any]:
    """Scores as an array; masked and object entries as floats, NaN where missing."""
    if np.ma.isMaskedArray(scores) and np.ma.getmaskarray(scores).any():
        return as_floats(scores, "scores")
    array: NDArray[Any] = np.asarray(scores)
    return as_floats(array, "scores") if array.dtype.kind == "O" else array


def _named_matrix(scores: ArrayLike, position: int) -> NDArray[Any]:
    try:
        return _matrix(scores)
    except (TypeError, ValueError) as error:
        raise type(error)(f"scores[{position}]: {error}") from None


def _checked(array: NDArray[Any], *, fewest: int = 2) -> NDArray[Any]:
    """Scores (…, M, K) as floats of the precision given, or integers; the checks every estimator shares."""
    if array.dtype.kind not in "biuf":
        raise TypeError(f"scores must be numbers, got dtype {array.dtype}")
    candidates, draws = array.shape[-2:]
    if candidates < 1 or draws < fewest:
        raise ValueError(
            f"scores must have at least 1 candidate and {fewest} scores per candidate (one selects, another "
            f"evaluates), got shape {array.shape}"
        )
    if array.dtype.kind == "f":
        if array.size and not np.isfinite(array.sum(dtype=np.float64)) and not np.isfinite(array).all():
            raise ValueError("scores must be finite: drop or impute missing scores first")
        return array
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.size and max(abs(int(array.max())), abs(int(array.min()))) * draws >= 2**62:
        return array.astype(np.float64)
    return array
