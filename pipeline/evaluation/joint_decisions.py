"""Which target is better: all paired gaps with joint intervals, ranks each could hold, equivalence; as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.estimators import FittedGap, joint_gaps, rank_sets_from_intervals

__all__ = ["EQUIVALENCE_MARGIN", "joint_decisions"]

EQUIVALENCE_MARGIN = 0.02
"""Two targets whose joint interval lies inside ±0.02 are called equivalent: they differ by less than two points."""


def joint_decisions(
    fits: Sequence[tuple[str, str, FittedGap]], values: Mapping[str, float], *, level: float = 0.95
) -> dict[str, Any] | None:
    """The entry ``decisions`` of estimates.json; None where no pair of targets can be compared.

    The intervals of all pairs hold together with probability ``level`` (max-t); the rank sets follow from them.

    Args:
        fits: (a, b, fit) of every pair with enough shared labels; a pair that is not there decides nothing.
        values: target → its estimate (larger is better).
        level: joint coverage.
    """
    if not fits:
        return None
    pairs = joint_gaps(fits, margin=EQUIVALENCE_MARGIN, level=level)
    ranks = rank_sets_from_intervals(list(values), list(values.values()), pairs, level=level)
    return {
        "method": "lace_gap",
        "adjustment": "max-t",
        "level": level,
        "margin": EQUIVALENCE_MARGIN,
        "pairs": [pair.to_dict() for pair in pairs],
        "rank_sets": [entry.to_dict() for entry in ranks],
    }
