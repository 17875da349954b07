"""Synthetic values for profile levels without labels, marked as such."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.estimators.floats import FloatArray
from pipeline.estimators.lace.core import LabeledSample
from pipeline.estimators.lace.interval import PointSummary


def pooled_mean_at_empty(
    summary: PointSummary, sample: LabeledSample, square: FloatArray
) -> tuple[PointSummary, list[bool]]:
    """Ȳ_L where no label is in reach, with variance f·σ²/n + σ²/M_g; M_g = 1/Σ_T w_T².

    The value is synthetic: it assumes that the level's mean is that of the whole pool.

    Args:
        summary: summary of all points.
        sample: labels.
        square: (G,) Σ_T w_T².

    Returns:
        The filled summary, and per point whether its value is synthetic.
    """
    empty = (summary.n_effective <= 0.0) & np.isfinite(square)
    if not empty.any():
        return summary, [False] * len(empty)
    share = np.ones(len(sample.y)) if sample.inclusion is None else 1.0 / sample.inclusion
    share = share / share.sum()
    mean = float(share @ sample.y)
    n_effective = 1.0 / float(share @ share)
    spread = float(share @ (sample.y - mean) ** 2) / max(1.0 - 1.0 / n_effective, 0.05)
    label_part = float((share**2 * sample.unsampled).sum()) * spread

    def fill(values: FloatArray, entry: FloatArray | float) -> FloatArray:
        return np.where(empty, entry, values)

    filled = replace(
        summary,
        value=fill(summary.value, mean),
        naive=fill(summary.naive, mean),
        variance=fill(summary.variance, label_part + spread * np.where(empty, square, 0.0)),
        spread=fill(summary.spread, spread),
        df=fill(summary.df, max(n_effective - 1.0, 2.0)),
        r2=fill(summary.r2, 0.0),
        raw_r2=fill(summary.raw_r2, 0.0),
        agree=np.where(empty, False, summary.agree),
    )
    return filled, [bool(entry) for entry in empty]
