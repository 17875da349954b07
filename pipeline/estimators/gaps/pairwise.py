"""Win rates and Bradley–Terry scores from a few human votes and many judge votes on comparisons of pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.floats import BoolArray, FloatArray, IntArray
from pipeline.estimators.gaps.simultaneous import max_t_quantile
from pipeline.estimators.intervals import check_level, t_quantile, wilson_interval
from pipeline.estimators.results import Estimate

FOLDS = 5
MIN_CLUSTERS = 20
"""Below this many labelled clusters nothing is learnt from the signals."""
SEPARATED = 12.0
"""A difference of scores beyond which a model wins everything: σ(12) = 0.999994."""


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """Comparisons of pairs, all pairs of one pool.

    Attributes:
        first, second: (M,) number 0..K−1 of the two models.
        share: (M,) what the first won by people's votes, in [0, 1]; NaN where nobody voted.
        predicted: (M,) what it would win as the signals say, in or out of [0, 1]; for a labelled comparison by a fit
            that did not see its cluster, so that the correction is unbiased.
        pooled: (M,) the same, the folds' fits averaged by their labels: what stands for the whole pool.
        clusters: (M,) number 0..C−1 of the prompt.
        count: K.
    """

    first: IntArray
    second: IntArray
    share: FloatArray
    predicted: FloatArray
    pooled: FloatArray
    clusters: IntArray
    count: int

    @property
    def labeled(self) -> BoolArray:
        """(M,) which comparisons a person voted on."""
        return np.isfinite(self.share)


def check_votes(
    first: ArrayLike,
    second: ArrayLike,
    share: ArrayLike,
    signals: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    seed: int = 0,
) -> Votes:
    """Votes with what the signals predict of each, out of fold.

    The prediction is ½ plus a ridge fit without intercept on the signals and on the plain Bradley–Terry expectation, so
    that it turns over when the sides do.

    Args:
        first, second: (M,) numbers of the two models.
        share: (M,) what the first won, in [0, 1]; NaN where unknown.
        signals: (M, S) numbers that turn over with the sides (0 means a tie); no NaN.
        clusters: (M,) comparisons of one prompt are not independent; None means that all are.
        seed: of the folds.

    Raises:
        ValueError: shapes, values outside [0, 1], fewer than three votes.
    """
    a, b = np.asarray(first, dtype=np.intp), np.asarray(second, dtype=np.intp)
    v, s = np.asarray(share, dtype=np.float64), np.asarray(signals, dtype=np.float64)
    if not len(a) == len(b) == len(v) == len(s) or s.ndim != 2:
        raise ValueError(f"first, second, share and signals differ in length: {len(a)}, {len(b)}, {len(v)}, {s.shape}")
    if not np.isfinite(s).all():
        raise ValueError("signals must be finite")
    labeled = np.isfinite(v)
    if labeled.sum() < 3:
        raise ValueError(f"at least 3 votes are needed, got {int(labeled.sum())}")
    if ((v[labeled] < 0.0) | (v[labeled] > 1.0)).any():
        raise ValueError("shares must lie in [0, 1]")
    if (a == b).any():
        raise ValueError("a model is compared with itself")
    groups, _ = cluster_index(np.arange(len(a)) if clusters is None else clusters, len(a))
    count = int(max(a.max(), b.max())) + 1
    half = np.full(len(a), 0.5)
    plain = Votes(a, b, v, half, half, groups, count)
    present = np.unique(groups[labeled])
    if s.shape[1] == 0 or len(present) < MIN_CLUSTERS or labeled.all():
        return plain
    fold_of = np.full(int(groups.max()) + 1, -1)
    fold_of[np.random.default_rng(seed).permutation(present)] = np.arange(len(present)) % FOLDS
    folds = np.where(labeled, fold_of[groups], -1)
    predicted, pooled = half.copy(), np.zeros(len(a))
    for fold in range(FOLDS):
        fit = _prediction(plain, s, labeled & (folds != fold))
        predicted = np.where(folds == fold, fit, predicted)
        pooled += fit * (folds == fold).sum() / labeled.sum()
    return Votes(a, b, v, predicted, pooled, groups, count)


def _prediction(votes: Votes, signals: FloatArray, rows: BoolArray) -> FloatArray:
    """(M,) predicted shares, learnt from some labelled rows."""
    moment = _net(votes, np.where(rows, votes.share - 0.5, 0.0)) / rows.sum()
    scores = _solve(votes, moment, np.where(rows, 1.0 / rows.sum(), 0.0), ridge=1.0 / rows.sum())
    expected = expit(scores[votes.first] - scores[votes.second]) - 0.5
    features = np.column_stack([signals, expected])
    scale = np.sqrt(np.mean(features[rows] ** 2, axis=0))
    features = features / np.where(scale > 0.0, scale, 1.0)
    used = features[rows]
    gram = used.T @ used + np.eye(used.shape[1])
    fitted: FloatArray = 0.5 + features @ np.linalg.solve(gram, used.T @ (votes.share[rows] - 0.5))
    return fitted


def _net(votes: Votes, values: FloatArray) -> FloatArray:
    """(K,) Σ x values, x being +1 for the first and −1 for the second model."""
    plus = np.bincount(votes.first, values, votes.count)
    return np.asarray(plus - np.bincount(votes.second, values, votes.count))


def _hessian(votes: Votes, weights: FloatArray) -> FloatArray:
    flat = np.bincount(votes.first * votes.count + votes.second, weights, votes.count**2)
    between = flat.reshape(votes.count, votes.count)
    between = between + between.T
    return np.asarray(np.diag(between.sum(axis=1)) - between)


def _solve(votes: Votes, moment: FloatArray, weights: FloatArray, *, ridge: float = 0.0) -> FloatArray:
    """β with Σ x w (σ(x'β) − ½) + ridge β = moment, Σ β = 0.

    Raises:
        ValueError: there is none: a model wins or loses everything.
    """
    beta = np.zeros(votes.count)
    identity = np.eye(votes.count)
    for _ in range(200):
        sigma = expit(beta[votes.first] - beta[votes.second])
        gap = moment - _net(votes, weights * (sigma - 0.5)) - ridge * beta
        step = np.linalg.pinv(_hessian(votes, weights * sigma * (1.0 - sigma)) + ridge * identity, hermitian=True) @ gap
        largest = float(np.max(np.abs(step)))
        beta = beta + step * min(1.0, 2.0 / largest if largest > 0.0 else 1.0)
        beta -= beta.mean()
        if np.ptp(beta) > SEPARATED or not np.isfinite(beta).all():
            raise ValueError("some models win or lose every vote: their scores have no bounds")
        if largest < 1e-10:
            return beta
    raise ValueError("the scores did not settle; are all models connected by comparisons?")


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseScores:
    """Bradley–Terry scores: the log-odds that one model beats another is the difference of theirs.

    Attributes:
        scores: (K,) centred at 0.
        covariance: (K, K) sandwich over clusters.
        df: degrees of freedom: labelled clusters less the models.
        quantile: of the largest |t| over all pairs: score difference ± quantile·se hold together.
        level: joint coverage.
        n: human votes.
    """

    scores: FloatArray
    covariance: FloatArray
    df: float
    quantile: float
    level: float
    n: int

    def difference(self, a: int, b: int) -> tuple[float, float]:
        """Score of a less that of b, and its standard error."""
        variance = self.covariance[a, a] + self.covariance[b, b] - 2.0 * self.covariance[a, b]
        return float(self.scores[a] - self.scores[b]), math.sqrt(max(float(variance), 0.0))


def bradley_terry(votes: Votes, *, level: float = 0.95, seed: int = 0) -> PairwiseScores:
    """Scores β from Σ_T x(ĝ − σ(x'β))/M + Σ_L x(v − ĝ)/n = 0.

    With every comparison labelled ĝ cancels and β is the maximum likelihood estimate. The covariance is the sandwich
    over clusters (prompts), with the factor n_c/(n_c − K) for few labelled clusters n_c.

    References:
        Bradley and Terry (1952), Biometrika 39: the model. Angelopoulos et al. (2023), Science 382, 669: the corrected
        moment. Zrnic and Candès (2024), PNAS 121: predictions out of fold.

    Raises:
        ValueError: a model that wins or loses everything, models that no comparison connects, fewer clusters than
            models.
    """
    check_level(level)
    labeled = votes.labeled
    total, n = len(votes.first), int(labeled.sum())
    clusters = len(np.unique(votes.clusters[labeled]))
    if clusters <= votes.count:
        raise ValueError(f"{clusters} labelled prompts are too few for {votes.count} models")
    residual = np.where(labeled, np.nan_to_num(votes.share) - votes.predicted, 0.0)
    corrected = labeled.all() or bool(np.ptp(votes.pooled) > 0.0)
    # Without signals the votes speak for themselves: their own pairs, not those of the pool.
    base = np.full(total, 1.0 / total) if corrected else np.where(labeled, 1.0 / n, 0.0)
    moment = _net(votes, base * (votes.pooled - 0.5)) + _net(votes, residual / n)
    scores = _solve(votes, moment, base)
    sigma = expit(scores[votes.first] - scores[votes.second])
    bread = np.linalg.pinv(_hessian(votes, base * sigma * (1.0 - sigma)), hermitian=True)
    influence = base * (votes.pooled - sigma) + residual / n
    size = int(votes.clusters.max()) + 1
    sums = np.bincount(votes.clusters * votes.count + votes.first, influence, size * votes.count)
    sums = sums - np.bincount(votes.clusters * votes.count + votes.second, influence, size * votes.count)
    parts = sums.reshape(size, votes.count) @ bread
    covariance = parts.T @ parts * clusters / (clusters - votes.count)
    df = float(clusters - votes.count)
    first, second = np.triu_indices(votes.count, 1)
    contrasts = np.eye(votes.count)[first] - np.eye(votes.count)[second]
    quantile = max_t_quantile(contrasts @ covariance @ contrasts.T, df, level, rng=seed)
    return PairwiseScores(scores, covariance, df, quantile, level, n)


def win_rate(votes: Votes, rows: BoolArray, sides: FloatArray, *, level: float = 0.95) -> Estimate | None:
    """What one side wins of some comparisons, ties counting half, votes corrected by the signals.

    θ̂ = Σ_T ĝ/M + Σ_L (v − ĝ)/n over the rows; the interval is Wilson's with the effective number of votes.

    Args:
        votes: all comparisons.
        rows: (M,) those that count.
        sides: (M,) +1 where the side stands first, −1 where it stands second.
        level: coverage.

    Returns:
        None where fewer than two clusters of the rows have votes.
    """
    check_level(level)
    use = np.flatnonzero(rows)
    labeled = votes.labeled[use]
    clusters = np.unique(votes.clusters[use][labeled])
    n = int(labeled.sum())
    if len(clusters) < 2:
        return None
    turn = sides[use]
    pooled = 0.5 + turn * (votes.pooled[use] - 0.5)
    residual = np.where(labeled, turn * (np.nan_to_num(votes.share[use]) - votes.predicted[use]), 0.0)
    value = float(pooled.mean() + residual.sum() / n)
    centred = residual - np.where(labeled, residual.sum() / n, 0.0)
    influence = (pooled - pooled.mean()) / len(use) + centred / n
    sums = np.bincount(votes.clusters[use], influence)
    factor = len(clusters) / (len(clusters) - 1.0)
    se = math.sqrt(float(sums @ sums) * factor)
    shares = 0.5 + turn[labeled] * (votes.share[use][labeled] - 0.5)
    df = len(clusters) - 1.0
    quantile = float(t_quantile(df, level))
    inside = min(max(value, 0.0), 1.0)
    effective = inside * (1.0 - inside) / se**2 if se > 0.0 and 0.0 < inside < 1.0 else float(n)
    low, high = wilson_interval(inside, effective, quantile)
    return Estimate(
        value, se, float(low), float(high), level, n, "win_rate", n_items=len(clusters), df=df, interval="wilson",
        pool_size=len(use), outcome_variance=float(np.var(shares, ddof=1)), naive_value=float(shares.mean()),
        naive_se=float(np.std(shares, ddof=1) / math.sqrt(n)),
    )  # fmt: skip
