"""The plain mean of the labels of a pool, under the draw that made them: what every other estimate is held against."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.checks import Interval, check_interval
from pipeline.estimators.floats import FloatArray, as_floats
from pipeline.estimators.intervals import check_level
from pipeline.estimators.lace.near_census import near_census_interval
from pipeline.estimators.lace.scalar import ScalarFit, spread_of
from pipeline.estimators.means import interval_of_mean
from pipeline.estimators.results import Estimate
from pipeline.estimators.sampling import Sampling, resolve_draw
from pipeline.estimators.validation import check_outcome, check_probabilities, is_binary
from pipeline.estimators.worth import with_worth


def labels_mean(
    y: ArrayLike,
    *,
    labeled: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    ratio: ArrayLike | None = None,
    inclusion_probabilities: ArrayLike | None = None,
    sampling: Sampling | None = None,
    target: Literal["population", "pool"] = "population",
    interval: Interval = "auto",
    level: float = 0.95,
) -> Estimate:
    """Σ_L w_i Y_i with the weights of the draw: the mean of the labels, of strata, of rounds, or by their chances.

    About a population V = Σ(w_i(Y_i − θ̂))²·n/(n − 1) from items or clusters and, where labels are part of a pool, the
    draw's own variance with the pool's as a sample on top; about the pool the draw's variance alone. With equal
    weights and no pool beyond the labels it is :func:`naive_mean`.

    Args:
        y: (M,) outcomes of the pool, NaN where not labeled.
        labeled: (M,) booleans; None means where ``y`` is finite.
        clusters: (M,) labels; whole clusters are independent.
        ratio: (M,) deployment weights ≥ 0; None means equal.
        inclusion_probabilities: (M,) chances of being labeled (Hájek weights); or ``sampling``.
        target: "population" (items like these) or "pool" (these very items).
        interval: ``auto`` is Wilson's at n_eff = s²/SE² where every label is 0 or 1, else Student's t.
        level: nominal coverage.

    Raises:
        ValueError: shapes that do not fit, no label, options that exclude each other.

    References:
        Särndal, Swensson and Wretman, "Model Assisted Survey Sampling" (1992), chapter 5.

    Example:
        >>> labels_mean([1, 0, 1, 1, np.nan, np.nan]).value
        0.75
    """
    check_level(level)
    if target not in ("population", "pool"):
        raise ValueError(f"target must be 'pool' or 'population', got {target!r}")
    outcome, mask = check_outcome(y, labeled)
    rows = len(outcome)
    inclusion = check_probabilities(inclusion_probabilities, rows)
    draw = resolve_draw(sampling, mask, clusters, inclusion)
    own = outcome[mask]
    form = check_interval(interval, own)
    weights, square = draw.shares, 1.0 / rows
    if ratio is not None:
        rho = _check_ratio(ratio, rows)
        weights = draw.shares * rho[mask]
        if weights.sum() <= 0.0:
            raise ValueError("no labeled item has a positive ratio: the deployment mean cannot be estimated")
        weights, square = weights / weights.sum(), float(rho @ rho) / float(rho.sum()) ** 2
    value, influence = draw.plain(own, weights)
    fit = ScalarFit(value, value, influence, influence, 0.0, weights, draw, square, draw.freedom, 0.0, "", {})
    spread = spread_of(fit, own, target)
    exact = target == "pool" and len(own) == rows
    # No spread seen is not certainty: equal outcomes that are no shares have no standard error.
    several = len(own) > 1 and (is_binary(own) or own.min() < own.max())
    se = math.sqrt(spread.variance) if several or exact else math.nan
    kind: str = form if several or exact or form == "wilson" else "none"
    low, high, effective = interval_of_mean(
        value, se, spread.df, phi_variance=spread.outcome, n=len(own), level=level, interval=form,
        clustered=draw.clusters is not None,
    )  # fmt: skip
    if exact:
        low, high = value, value
    elif target == "pool" and ratio is None and sampling is None and inclusion is None and is_binary(own):
        closer = near_census_interval(own, rows, value, level)
        if closer is not None and interval == "auto":
            (low, high), kind = closer, "hypergeometric"
    estimate = Estimate(
        value, se, low, high, float(level), len(own), "naive", {"n_effective": effective},
        target=target if ratio is None else "deployment", pool_size=rows, df=spread.df, interval=kind,
        outcome_variance=spread.outcome if several else math.nan, design_effect=spread.design_effect,
        naive_value=value, naive_se=se, binary=is_binary(own),
    )  # fmt: skip
    return with_worth(estimate)


def _check_ratio(ratio: ArrayLike, rows: int) -> FloatArray:
    rho = as_floats(ratio, "ratio")
    if rho.shape != (rows,):
        raise ValueError(f"ratio must have shape ({rows},), got {rho.shape}")
    if not np.isfinite(rho).all() or np.any(rho < 0.0) or rho.sum() <= 0.0:
        raise ValueError("ratio must be finite and >= 0, with a positive sum")
    return rho
