"""Gaps between models from all their labels: shared, partly shared or drawn apart, and all pairs of a table at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.estimators.clusters import cluster_index
from pipeline.estimators.floats import BoolArray, FloatArray, IntArray
from pipeline.estimators.gaps.decisions import FittedGap, fit_gap
from pipeline.estimators.labels.strata import Pilot, control_variate_fit
from pipeline.estimators.lace.averaged import averaged_fit
from pipeline.estimators.lace.interval import Target
from pipeline.estimators.lace.scalar import ScalarFit, Spread, spread_of
from pipeline.estimators.sampling import Sampling, resolve_draw
from pipeline.estimators.validation import check_outcome, check_probabilities, check_signals, is_binary

Adapt: TypeAlias = Literal["average", "curved"]

_LEAST_SHARED = 5
"""Shared labels below which a covariance is not estimated but taken for 0."""
_PRIOR_SHARED = 10.0
"""Shared labels that the guess of no covariance is worth."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelLabels:
    """One model's pool: what gaps to other models are made of.

    Attributes:
        y: (M,) outcomes, NaN where not labeled.
        signals: (M, K) finite signals; K may be 0.
        items: (M,) distinct names that say which rows of two models are about the same item; None means the position.
        names: K names of the signals, which say what two models have in common; None means by position.
        clusters: (M,) labels of groups that were sampled together.
        inclusion_probabilities, sampling: how the labels were drawn, as in :func:`lace_mean`.
    """

    y: ArrayLike
    signals: ArrayLike
    items: ArrayLike | None = None
    names: tuple[str, ...] | None = None
    clusters: ArrayLike | None = None
    inclusion_probabilities: ArrayLike | None = None
    sampling: Sampling | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """A checked model: arrays in the order of its pool."""

    y: FloatArray
    signals: FloatArray
    labeled: BoolArray
    items: NDArray[Any]
    names: tuple[str, ...]
    clusters: NDArray[Any] | None
    inclusion: FloatArray | None
    sampling: Sampling | None


@dataclass(frozen=True, slots=True, eq=False)
class _Mean:
    """The model's own mean from all its labels, with predictions over its pool."""

    fit: ScalarFit
    spread: Spread
    floor: float
    prediction: FloatArray


def _checked(model: ModelLabels) -> _Model:
    signals = check_signals(model.signals)
    rows = len(signals)
    y, labeled = check_outcome(model.y, None, rows)
    items = np.arange(rows) if model.items is None else np.asarray(model.items)
    if items.shape != (rows,) or len(np.unique(items)) != rows:
        raise ValueError(f"items must be {rows} distinct names, one per row")
    names = tuple(str(k) for k in range(signals.shape[1])) if model.names is None else model.names
    if len(names) != signals.shape[1]:
        raise ValueError(f"names must be {signals.shape[1]} names of signals, got {len(names)}")
    clusters = None if model.clusters is None else np.asarray(model.clusters)
    if clusters is not None and clusters.shape != (rows,):
        raise ValueError(f"clusters must have shape ({rows},), got {clusters.shape}")
    inclusion = check_probabilities(model.inclusion_probabilities, rows)
    return _Model(y, signals, labeled, items, names, clusters, inclusion, model.sampling)


def gap_of(a: ModelLabels, b: ModelLabels, *, target: Target = "population", adapt: Adapt = "average") -> FittedGap:
    """θ_a − θ_b from all labels of both models.

    Where the same items are labeled for both, the paired fit of :func:`fit_gap` on Y_a − Y_b with the signals
    (S_a, S_b, S_a − S_b). Otherwise the difference of the two adaptive means, with

        V = V_a + V_b − 2Ĉ,  Ĉ = ŝ_ab·(Σ_shared w_a w_b − M_ab/(M_a M_b))

    from counts (n_ab/(n_a n_b) − 1/M with equal weights), ŝ_ab the covariance of the left-out errors on the n_ab
    shared labels, shrunk to 0 by n_ab/(n_ab + 10) and 0 below 5; with clusters, of their sums. About a population V
    grows by the variance of the pools' own difference, s_a²/M_a + s_b²/M_b − 2(M_ab/(M_a M_b))(cov_T(m_a, m_b) + ŝ_ab),
    m the fitted predictions: what is not identified counts as uncorrelated, which is wider. Degrees of freedom are
    Satterthwaite's over V_a, V_b; of 0/1 outcomes each V is at least Agresti and Caffo's.

    Args:
        a, b: the models; items with one name are the same item.
        target: "population" or "pool".
        adapt: the averaging rule, "average" or "curved", as in :func:`lace_mean`.

    Raises:
        ValueError: shapes that do not fit, repeated item names, fewer than 2 labels of a model.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 3.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> y = signals + rng.normal(size=(200, 2)) > [0.0, 0.5]
        >>> a, b = (ModelLabels(np.where(np.arange(200) < 60, y[:, k], np.nan), signals[:, [k]]) for k in (0, 1))
        >>> round(gap_of(a, b).value, 3)
        -0.008
    """
    (_, _, fitted), *_ = all_gaps({"a": a, "b": b}, target=target, adapt=adapt)
    return fitted


def all_gaps(
    models: Mapping[str, ModelLabels],
    *,
    target: Target = "population",
    pairs: Sequence[tuple[str, str]] | None = None,
    adapt: Adapt = "average",
) -> list[tuple[str, str, FittedGap]]:
    """The gaps of all pairs of models (or of some), as :func:`joint_gaps` takes them; see :func:`gap_of`.

    Args:
        models: name → its labels and signals.
        target: "population" or "pool".
        pairs: which pairs, by name; None means all, in the models' order.
        adapt: the averaging rule, "average" or "curved", as in :func:`lace_mean`.

    Raises:
        ValueError: as in :func:`gap_of`, with the model's name; fewer than two models.

    References:
        Zhang, Lyu, Kang and Zhou, "Conditional Evaluation of Language Models with Cheap Auxiliary Signals" (2026),
            equation 3.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> signals = rng.normal(size=(200, 2))
        >>> y = signals + rng.normal(size=(200, 2)) > [0.0, 0.5]
        >>> labeled = np.arange(200) < 60
        >>> own = [ModelLabels(np.where(labeled, y[:, k], np.nan), signals[:, [k]]) for k in (0, 1)]
        >>> models = dict(zip('ab', own))
        >>> [(a, b, round(fit.value, 3)) for a, b, fit in all_gaps(models)]
        [('a', 'b', -0.008)]
    """
    if len(models) < 2:
        raise ValueError(f"gaps need at least 2 models, got {len(models)}")
    checked: dict[str, _Model] = {}
    for name, model in models.items():
        try:
            checked[name] = _checked(model)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    means: dict[str, _Mean] = {}
    gaps = []
    for first, second in itertools.combinations(checked, 2) if pairs is None else pairs:
        a, b = checked[first], checked[second]
        rows_a, rows_b = _shared(a.items, b.items)
        if _same_labels(a, b, rows_a, rows_b):
            fitted = _paired(a, b, rows_a, rows_b, target, adapt)
        else:
            for name in (first, second):
                if name not in means:
                    means[name] = _own_mean(checked[name], name, target, adapt)
            fitted = _difference(a, b, means[first], means[second], rows_a, rows_b, target)
        gaps.append((first, second, fitted))
    return gaps


def _shared(a: NDArray[Any], b: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Rows of a and of b about the same item, in the order of a."""
    _, rows_a, rows_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    order = np.argsort(rows_a)
    return rows_a[order], rows_b[order]


def _same_labels(a: _Model, b: _Model, rows_a: IntArray, rows_b: IntArray) -> bool:
    """Whether the very same items are labeled for both."""
    both = int((a.labeled[rows_a] & b.labeled[rows_b]).sum())
    return both >= 2 and both == int(a.labeled.sum()) == int(b.labeled.sum())


def _paired(a: _Model, b: _Model, rows_a: IntArray, rows_b: IntArray, target: Target, adapt: Adapt) -> FittedGap:
    first, second = a.signals[rows_a], b.signals[rows_b]
    common = [name for name in a.names if name in b.names]
    contrast = first[:, [a.names.index(name) for name in common]] - second[:, [b.names.index(name) for name in common]]
    chances = a.inclusion
    if chances is not None and b.inclusion is not None:
        chances = np.minimum(chances[rows_a], b.inclusion[rows_b])  # both are read where both were drawn
    elif chances is not None:
        chances = chances[rows_a]
    return fit_gap(
        a.y[rows_a] - b.y[rows_b], np.column_stack([first, second, contrast]), target=target, items=a.items[rows_a],
        adapt=adapt,
        clusters=None if a.clusters is None else a.clusters[rows_a], inclusion_probabilities=chances,
        sampling=None if a.sampling is None else a.sampling.take(rows_a),
    )  # fmt: skip


def _own_mean(model: _Model, name: str, target: Target, adapt: Adapt) -> _Mean:
    n = int(model.labeled.sum())
    if n < 2:
        raise ValueError(f"{name}: a gap needs at least 2 labels of each model, got {n}")
    draw = resolve_draw(model.sampling, model.labeled, model.clusters, model.inclusion)
    fit = averaged_fit(model.signals, model.y, model.labeled, draw, None, None, curved=adapt == "curved")
    y = model.y[model.labeled]
    spread = spread_of(fit, y, target)
    floor = 0.0
    if is_binary(y):
        count = draw.n_effective
        share = (fit.naive * count + 1.0) / (count + 2.0)
        plain = float(fit.naive_influence @ fit.naive_influence)
        kept = min(float(fit.influence @ fit.influence) / plain, 1.0) if plain > 0.0 else 1.0
        sampled = float(draw.shares @ draw.unsampled) if target == "pool" else 1.0
        floor = sampled * kept * share * (1.0 - share) / (count + 2.0)
    return _Mean(fit, spread, floor, control_variate_fit(Pilot(model.y, model.signals))[0])


def _difference(
    a: _Model, b: _Model, mean_a: _Mean, mean_b: _Mean, rows_a: IntArray, rows_b: IntArray, target: Target
) -> FittedGap:
    """The difference of two means with what their errors have in common."""
    fit_a, fit_b = mean_a.fit, mean_b.fit
    own = [max(mean.spread.variance, mean.floor) for mean in (mean_a, mean_b)]
    covariance, shared = _covariance(a, b, mean_a, mean_b, rows_a, rows_b, target)
    covariance = min(max(covariance, -math.sqrt(own[0] * own[1])), math.sqrt(own[0] * own[1]))
    total = sum(own)
    variance = max(total - 2.0 * covariance, 0.0)
    df = total**2 / sum(v**2 / m.spread.df for v, m in zip(own, (mean_a, mean_b), strict=True)) if total else 2.0
    units, influence = _joined_influence(a, b, fit_a, fit_b)
    plain = max(mean_a.spread.plain, mean_a.floor) + max(mean_b.spread.plain, mean_b.floor)
    rows = len(a.items) + len(b.items) - len(rows_a)
    n = int(a.labeled.sum()) + int(b.labeled.sum()) - shared
    kept = variance / total if total else 1.0
    diagnostics = {
        "n_pool": rows, "df": df, "interval": "t", "target": target, "covers": f"{target} mean",
        "naive": fit_a.naive - fit_b.naive, "shared_labels": shared, "labels_a": int(a.labeled.sum()),
        "labels_b": int(b.labeled.sum()), "rule": "difference of means",
    }  # fmt: skip
    return FittedGap(
        fit_a.value - fit_b.value, variance, df, influence, units, n, rows, diagnostics, target,
        fit_a.naive - fit_b.naive, math.sqrt(plain * kept), mean_a.spread.outcome + mean_b.spread.outcome, 1.0, "",
    )  # fmt: skip


def _covariance(
    a: _Model, b: _Model, mean_a: _Mean, mean_b: _Mean, rows_a: IntArray, rows_b: IntArray, target: Target
) -> tuple[float, int]:
    """(covariance of the two means about the target, labels they share)."""
    draws = mean_a.fit.draw, mean_b.fit.draw
    codes, count = _units(a, b)
    own_a, own_b = codes
    sides = ((a, mean_a, draws[0], own_a), (b, mean_b, draws[1], own_b))
    errors, weights, pools, seen = [], [], [], []
    for model, mean, draw, code in sides:
        at = code[model.labeled]
        errors.append(np.bincount(at, weights=draw.deviations(mean.fit.influence, finite=False), minlength=count))
        weights.append(np.bincount(at, weights=mean.fit.weights * draw.moving, minlength=count))
        pools.append(np.bincount(code, minlength=count) / len(code))
        seen.append(np.bincount(at, minlength=count) > 0)
    both = seen[0] & seen[1]
    shared = int((a.labeled[rows_a] & b.labeled[rows_b]).sum())
    common = int(both.sum())
    moment = 0.0
    overlap = float(weights[0] @ weights[1])
    if common >= _LEAST_SHARED and overlap > 0.0:
        moment = float(errors[0][both] @ errors[1][both]) / overlap * common / (common + _PRIOR_SHARED)
    drawn_together = overlap - float(pools[0] @ pools[1])
    covariance = moment * drawn_together
    if target == "population":
        covariance += _pool_covariance(a, b, mean_a, mean_b, rows_a, rows_b, moment)
    return covariance, shared


def _pool_covariance(
    a: _Model, b: _Model, mean_a: _Mean, mean_b: _Mean, rows_a: IntArray, rows_b: IntArray, moment: float
) -> float:
    """Covariance of the two pools' own means as samples, at most what their variances allow."""
    if len(rows_a) < 2:
        return 0.0
    first, second = mean_a.prediction[rows_a], mean_b.prediction[rows_b]
    predicted = float((first - first.mean()) @ (second - second.mean())) / (len(rows_a) - 1)
    effect = math.sqrt(mean_a.spread.design_effect * mean_b.spread.design_effect)
    covariance = len(rows_a) / (len(a.items) * len(b.items)) * (predicted + moment) * effect
    most = math.sqrt(mean_a.spread.rest * mean_b.spread.rest)
    return min(max(covariance, -most), most)


def _units(a: _Model, b: _Model) -> tuple[tuple[IntArray, IntArray], int]:
    """Codes of the independent units (items, or clusters) of both models' rows in one numbering."""
    clustered = a.clusters is not None and b.clusters is not None
    names = [model.clusters if clustered else model.items for model in (a, b)]
    joined = np.concatenate([np.asarray(entry).astype(str) for entry in names])
    codes, count = cluster_index(joined, len(joined))
    return (codes[: len(a.items)], codes[len(a.items) :]), count


def _joined_influence(a: _Model, b: _Model, fit_a: ScalarFit, fit_b: ScalarFit) -> tuple[NDArray[Any], FloatArray]:
    """(names of units, influence values of the difference): what the joint level of many pairs is simulated from."""
    names, values = [], []
    clustered = a.clusters is not None and b.clusters is not None
    for sign, model, fit in ((1.0, a, fit_a), (-1.0, b, fit_b)):
        named = model.clusters if clustered and model.clusters is not None else model.items
        names.append(named[model.labeled])
        values.append(sign * fit.draw.deviations(fit.influence))
    return np.concatenate(names), np.concatenate(values)
