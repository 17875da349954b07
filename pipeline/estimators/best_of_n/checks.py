"""Warnings about score matrices that a Best-of-N estimate should not be read without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc

from pipeline.estimators.best_of_n.estimators import best_of_n, best_of_n_reuse
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.results import Result

_FEW_LEVELS = 5
_MOSTLY_REPEATED = 0.9
_REPEATED_CONTINUOUS = 0.2
_MANY_LEVELS = 20
_DRIFT_LEVEL = 0.01
_FRAGILE_RHO = 0.1


@dataclass(frozen=True, slots=True)
class ScoreWarning(Result):
    """One warning.

    Attributes:
        code: too_few_scores, repeated_scores, repeated_draws, few_levels, drift or dependence.
        message: what was found, with numbers, and what can be done.
    """

    code: str
    message: str


def best_of_n_warnings(
    scores: ArrayLike | Sequence[ArrayLike], n: int | None = None, j: int | None = None
) -> tuple[ScoreWarning, ...]:
    """What in the scores contradicts the assumptions or makes the estimate fragile.

    * too_few_scores: prompts with K ≤ J, whose J-score policy has no unbiased estimate.
    * repeated_scores: candidates whose scores are all equal, too often for independent draws (a deterministic
      judge, or one reply counted K times).
    * repeated_draws: score columns equal over all candidates of a prompt, more often than independent draws are.
    * few_levels: at most five distinct scores: ties decide most selections.
    * drift: score columns differ in mean over prompts, at the 1% level: the laws are not stable.
    * dependence: a correlation below 0.1 between scores of one candidate would explain the whole gain over a
      single random candidate.

    Args:
        scores: (P, M, K) array or P matrices (M_p, K_p), finite.
        n, j: the policy; without n the dependence check is left out, j=None is J = K − 1.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, sections 2 and
            5.3.

    Example:
        >>> scores = np.repeat(np.random.default_rng(0).normal(size=(20, 4, 1)), 3, axis=2)
        >>> [warning.code for warning in best_of_n_warnings(scores, n=2)]
        ['repeated_scores']
    """
    matrices = [np.asarray(matrix, dtype=np.float64) for matrix in cast(Sequence[ArrayLike], scores)]
    for position, matrix in enumerate(matrices):
        if matrix.ndim != 2 or matrix.size == 0 or not np.isfinite(matrix).all():
            raise ValueError(f"scores[{position}] must be finite with shape (M, K), got shape {matrix.shape}")
    if not matrices:
        return ()
    warnings = [_too_few(matrices, j), *_repeats(matrices), _few_levels(matrices), _drift(matrices)]
    if n is not None:
        warnings.append(_dependence(matrices, n, j))
    return tuple(warning for warning in warnings if warning is not None)


def drift_test(scores: Sequence[ArrayLike]) -> tuple[float, float]:
    """F test that score columns have equal means, and its p value.

    Two-way layout: candidates are blocks, columns the treatment, common to all prompts;
    F = [Σ_m (column effect)²/(K−1)] / [residual sum of squares/((Σ_p M_p − 1)(K−1))]. Exchangeable columns
    (independent scores with stable laws) satisfy its null hypothesis.

    Args:
        scores: P matrices (M_p, K_p); prompts whose K differs from the most common K are left out.

    Returns:
        (F, p); (nan, nan) where nothing can be tested (K = 1, one candidate, or no variation).

    References:
        Scheffé, "The Analysis of Variance" (1959), chapter 4.

    Example:
        >>> scores = np.random.default_rng(0).normal(size=(30, 4, 3)) + [0.0, 0.0, 1.0]
        >>> drift_test(list(scores))[1] < 0.001
        True
    """
    matrices = [np.asarray(matrix, dtype=np.float64) for matrix in scores]
    widths = np.array([matrix.shape[1] for matrix in matrices])
    common = int(np.bincount(widths).argmax())
    rows = np.concatenate([matrix for matrix in matrices if matrix.shape[1] == common])
    if common < 2 or len(rows) < 2:
        return float("nan"), float("nan")
    centred = rows - rows.mean(axis=1, keepdims=True)
    effect = centred.mean(axis=0)
    between = len(rows) * float(effect @ effect) / (common - 1)
    degrees = (len(rows) - 1) * (common - 1)
    residual = float(np.sum((centred - effect) ** 2)) / degrees
    if residual <= 0.0:
        return float("nan"), float("nan")
    ratio = between / residual
    return ratio, float(fdtrc(common - 1, degrees, ratio))


def critical_rho(scores: Sequence[ArrayLike], n: int, j: int | None = None) -> float:
    """Correlation ρ of a candidate's scores at which the bias equals the whole estimated gain over N = 1.

    With gain g = mean(best_of_n − pool mean) and optimism o = mean(reuse − best_of_n):
    Jρ/(1−ρ)·o = g gives ρ = g/(g + J·o). NaN where the gain is not positive; 1 where reuse shows no optimism.

    References:
        Shah and Li, "Holdout Best-of-N: Unbiased Evaluation and Its Cost" (2026), arXiv 2610.08719, section 5.3.

    Example:
        >>> scores = np.random.default_rng(0).normal(np.arange(4)[:, None], 1.0, size=(30, 4, 4))
        >>> round(critical_rho(list(scores), n=2), 2)
        0.74
    """
    gains, optimism = [], []
    for entry in scores:
        matrix = np.asarray(entry, dtype=np.float64)
        depth = matrix.shape[1] - 1 if j is None else j
        value = best_of_n(matrix, n, depth)
        gains.append(value - float(matrix.mean()))
        optimism.append(depth * (best_of_n_reuse(matrix, n, depth) - value))
    gain, excess = float(np.mean(gains)), float(np.mean(optimism))
    if gain <= 0.0:
        return float("nan")
    return 1.0 if excess <= 0.0 else gain / (gain + excess)


def _too_few(matrices: Sequence[FloatArray], j: int | None) -> ScoreWarning | None:
    need = 2 if j is None else j + 1
    short = sum(matrix.shape[1] < need for matrix in matrices)
    if not short:
        return None
    return ScoreWarning(
        "too_few_scores",
        f"{short} of {len(matrices)} prompts have fewer than {need} scores per candidate, so the {need - 1}-score "
        "policy has no unbiased estimate there: lower j, collect more scores, or score each winner once more",
    )


def _repeats(matrices: Sequence[FloatArray]) -> list[ScoreWarning | None]:
    repeated = [matrix for matrix in matrices if matrix.shape[1] > 1]
    if not repeated:
        return []
    constant = np.concatenate([(matrix == matrix[:, :1]).all(axis=1) for matrix in repeated])
    share = float(constant.mean())
    limit = _REPEATED_CONTINUOUS if _levels(matrices) > _MANY_LEVELS else _MOSTLY_REPEATED
    warnings: list[ScoreWarning | None] = []
    if share >= limit:
        warnings.append(
            ScoreWarning(
                "repeated_scores",
                f"{share:.0%} of candidates have the same score in every draw: the judge is deterministic or one "
                "reply was stored several times, so the draws are not independent evidence",
            )
        )
        return warnings
    twins = sum(_twin_columns(matrix) for matrix in repeated)
    expected = sum(_expected_twins(matrix) for matrix in repeated)
    if twins > 1.0 + expected + 3.0 * np.sqrt(expected):
        warnings.append(
            ScoreWarning(
                "repeated_draws",
                f"{twins} draws repeat another draw on every candidate of their prompt ({expected:.1f} expected): "
                "draws were stored twice, or they depend on each other",
            )
        )
    return warnings


def _twin_columns(matrix: FloatArray) -> int:
    """Columns that repeat an earlier one, among rows that vary (none where all rows are constant)."""
    varying = matrix[(matrix != matrix[:, :1]).any(axis=1)]
    return matrix.shape[1] - np.unique(varying, axis=1).shape[1] if len(varying) else 0


def _expected_twins(matrix: FloatArray) -> float:
    """Pairs of columns expected to agree on all varying rows if draws are independent."""
    varying = matrix[(matrix != matrix[:, :1]).any(axis=1)]
    if not len(varying):
        return 0.0
    draws = matrix.shape[1]
    pairs = draws * (draws - 1) / 2.0
    ordered = np.sort(varying, axis=1)
    row = np.repeat(np.arange(len(varying)), draws).reshape(varying.shape)
    new = np.ones(varying.shape, dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    sizes = np.diff(np.append(np.flatnonzero(new.ravel()), new.size))
    matches = np.bincount(row[new], weights=sizes * (sizes - 1) / 2.0)
    return float(pairs * np.prod(matches / pairs))


def _levels(matrices: Sequence[FloatArray]) -> int:
    return len(np.unique(np.concatenate([matrix.ravel() for matrix in matrices])))


def _few_levels(matrices: Sequence[FloatArray]) -> ScoreWarning | None:
    levels = _levels(matrices)
    if levels > _FEW_LEVELS:
        return None
    return ScoreWarning(
        "few_levels",
        f"scores take only {levels} distinct value{'s' if levels != 1 else ''}: many selections are ties, which the "
        "policy breaks at random; a finer scale or a larger J selects better",
    )


def _drift(matrices: Sequence[FloatArray]) -> ScoreWarning | None:
    ratio, chance = drift_test(matrices)
    if not chance < _DRIFT_LEVEL:
        return None
    return ScoreWarning(
        "drift",
        f"mean scores differ between draws (F = {ratio:.1f}, p = {chance:.2g}): the judge is not stable over draws, or "
        "the draws are different judges; the value then refers to their average over columns",
    )


def _dependence(matrices: Sequence[FloatArray], n: int, j: int | None) -> ScoreWarning | None:
    usable = [matrix for matrix in matrices if matrix.shape[0] >= n and matrix.shape[1] > (1 if j is None else j)]
    if not usable:
        return None
    rho = critical_rho(usable, n, j)
    if not rho < _FRAGILE_RHO:
        return None
    return ScoreWarning(
        "dependence",
        f"a correlation of {rho:.3f} between scores of one candidate would explain the whole gain of best-of-{n} over "
        "a random candidate: check that scores are independent draws before relying on it",
    )
