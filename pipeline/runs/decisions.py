"""Which target is better: all paired gaps with joint intervals, ranks each could hold, equivalence."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import stdtr

from pipeline.estimators import Estimate, PairedDifference, rank_sets_from_intervals
from pipeline.runs.arrays import TargetArrays

__all__ = ["EQUIVALENCE_MARGIN", "decide"]

EQUIVALENCE_MARGIN = 0.02
"""Two targets whose joint interval lies inside ±0.02 are called equivalent: they differ by less than two points."""


def decide(
    pool: Mapping[str, TargetArrays], values: Mapping[str, float], gap_at: Any, *, level: float = 0.95
) -> dict[str, Any] | None:
    """Joint decisions over all pairs of targets.

    The intervals of all pairs hold together with probability ``level`` (Bonferroni: each at 1 − (1 − level)/pairs);
    the rank sets follow from them.

    Args:
        pool: the targets.
        values: target → its estimate (larger is better).
        gap_at: (target, target, level) → Estimate of their difference, or None where they share too few labels.
    """
    pairs = list(itertools.combinations(pool, 2))
    if not pairs:
        return None
    joint = 1.0 - (1.0 - level) / len(pairs)
    found = [_difference(a, b, gap_at(a, b, level), gap_at(a, b, joint)) for a, b in pairs]
    known = [difference for difference in found if difference is not None]
    known = _holm(known)
    names = list(pool)
    ranks = rank_sets_from_intervals(names, [values[name] for name in names], known, level=level)
    return {
        "method": "lace_gap",
        "adjustment": "Bonferroni",
        "level": level,
        "margin": EQUIVALENCE_MARGIN,
        "pairs": [difference.to_dict() for difference in known],
        "rank_sets": [entry.to_dict() for entry in ranks],
    }


def _difference(a: str, b: str, single: Estimate | None, joint: Estimate | None) -> PairedDifference | None:
    if single is None or joint is None:
        return None
    df = float(single.diagnostics.get("df") or np.inf)
    p = _p_value(single, df)
    inside = joint.low > -EQUIVALENCE_MARGIN and joint.high < EQUIVALENCE_MARGIN
    return PairedDifference(
        a=a,
        b=b,
        value=single.value,
        se=single.se,
        low=joint.low,
        high=joint.high,
        low_single=single.low,
        high_single=single.high,
        p=p,
        p_adjusted=p,
        level=single.level,
        n=single.n,
        margin=EQUIVALENCE_MARGIN,
        equivalent=bool(inside),
    )


def _p_value(estimate: Estimate, df: float) -> float:
    if estimate.se <= 0.0:
        return 1.0 if estimate.value == 0.0 else 0.0
    return float(2.0 * stdtr(min(df, 1e9), -abs(estimate.value / estimate.se)))


def _holm(differences: Sequence[PairedDifference]) -> list[PairedDifference]:
    from dataclasses import replace

    from pipeline.estimators.simultaneous import holm

    adjusted = holm([difference.p for difference in differences])
    return [replace(d, p_adjusted=float(p)) for d, p in zip(differences, adjusted, strict=True)]
