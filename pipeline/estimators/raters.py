"""People who rate: how far two of them agree, and what a rate becomes once a rater's errors are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.intervals import t_quantile
from pipeline.estimators.means import naive_mean
from pipeline.estimators.results import Estimate

Scale = Literal["nominal", "interval"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters agree on the items that both rated.

    Attributes:
        n: items rated by both.
        raw: share of items with the same rating.
        alpha: Krippendorff's α; 1 is perfect, 0 what chance gives. Its interval is by the delete-one jackknife.
        scale: how far two different ratings are apart: all alike (``nominal``) or by their squared distance.
    """

    n: int
    raw: Estimate
    alpha: Estimate
    scale: Scale

    def to_dict(self) -> dict[str, Any]:
        """Field names to JSON values."""
        return {"n": self.n, "raw": self.raw.to_dict(), "alpha": self.alpha.to_dict(), "scale": self.scale}


def krippendorff_alpha(first: ArrayLike, second: ArrayLike, *, scale: Scale = "nominal") -> float:
    """Krippendorff's α of two raters on the items that both rated.

    Args:
        first, second: (N,) ratings; NaN where not rated.
        scale: ``nominal`` or ``interval``.

    Returns:
        1 − observed over expected disagreement; 1.0 where every rating is the same; NaN without two items.

    Raises:
        ValueError: the shapes differ.

    References:
        K. Krippendorff, "Computing Krippendorff's alpha-reliability", 2011 (two raters; the finite-sample form).
    """
    a, b = _paired(first, second)
    return _alpha(a, b, scale)


def rater_agreement(
    first: ArrayLike, second: ArrayLike, *, scale: Scale | None = None, level: float = 0.95
) -> Agreement:
    """Raw and chance-corrected agreement of two raters, with intervals.

    Args:
        first, second: (N,) ratings; NaN where not rated.
        scale: None takes ``nominal`` for at most two different ratings and ``interval`` for more.
        level: nominal coverage.

    Raises:
        ValueError: the shapes differ, or fewer than two items were rated by both.

    Example:
        >>> found = rater_agreement([1, 0, 1, 1, 0, 1], [1, 0, 1, 0, 0, 1])
        >>> round(found.raw.value, 3), round(found.alpha.value, 3)
        (0.833, 0.686)
    """
    a, b = _paired(first, second)
    if len(a) < 2:
        raise ValueError(f"agreement needs at least 2 items that both rated, got {len(a)}")
    chosen: Scale = scale or ("nominal" if len(np.unique(np.concatenate([a, b]))) <= 2 else "interval")
    raw = naive_mean((a == b).astype(float), level=level)
    value = _alpha(a, b, chosen)
    keep = ~np.eye(len(a), dtype=bool)
    left_out = np.array([_alpha(a[row], b[row], chosen) for row in keep]) if len(a) > 2 else np.array([value])
    n = len(a)
    se = math.sqrt((n - 1) / n * float(np.sum((left_out - left_out.mean()) ** 2)))
    half = float(t_quantile(n - 1, level)) * se
    alpha = Estimate(value, se, max(value - half, -1.0), min(value + half, 1.0), level, n, "krippendorff_alpha")
    return Agreement(n, raw, alpha, chosen)


def rogan_gladen(
    rate: Estimate, sensitivity: float, specificity: float, *, n_right: int | None = None, n_wrong: int | None = None
) -> Estimate:
    """A share as it would be without the rater's errors.

    Args:
        rate: share of items that the fallible rater called right.
        sensitivity: chance that the rater calls a right item right, in (0, 1].
        specificity: chance that the rater calls a wrong item wrong, in (0, 1].
        n_right, n_wrong: adjudicated items that the two were estimated from; None: known exactly.

    Returns:
        (p + specificity − 1)/(sensitivity + specificity − 1), with the delta method's variance and a t interval.

    Raises:
        ValueError: the two are no chances, or together no better than a coin.

    References:
        W. J. Rogan, B. Gladen, "Estimating prevalence from the results of a screening test", American Journal of
        Epidemiology 107, 1978, equation 1.
    """
    for name, chance in (("sensitivity", sensitivity), ("specificity", specificity)):
        if not 0.0 < chance <= 1.0:
            raise ValueError(f"{name} must be in (0, 1], got {chance}")
    gain = sensitivity + specificity - 1.0
    if gain <= 0.0:
        raise ValueError(
            f"sensitivity {sensitivity:g} and specificity {specificity:g} together are no better than a coin;"
            " nothing can be learnt from such ratings"
        )
    value = (rate.value + specificity - 1.0) / gain
    spread = rate.se**2
    if n_right is not None:
        spread += value**2 * sensitivity * (1.0 - sensitivity) / n_right
    if n_wrong is not None:
        spread += (1.0 - value) ** 2 * specificity * (1.0 - specificity) / n_wrong
    se = math.sqrt(spread) / gain
    half = float(t_quantile(max(rate.n - 1, 1), rate.level)) * se
    return Estimate(value, se, max(value - half, 0.0), min(value + half, 1.0), rate.level, rate.n, "rogan_gladen")


def _paired(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"two raters need ratings of one shape (N,), got {a.shape} and {b.shape}")
    both = np.isfinite(a) & np.isfinite(b)
    return a[both], b[both]


def _alpha(a: FloatArray, b: FloatArray, scale: Scale) -> float:
    if len(a) < 2:
        return math.nan
    everything = np.concatenate([a, b])
    size = len(everything)
    if scale == "nominal":
        observed = float(np.mean(a != b))
        _, counts = np.unique(everything, return_counts=True)
        expected = 1.0 - float(np.sum(counts * (counts - 1.0))) / (size * (size - 1.0))
    else:
        observed = float(np.mean((a - b) ** 2))
        expected = 2.0 * float(np.var(everything, ddof=1))
    return 1.0 if expected == 0.0 else 1.0 - observed / expected
