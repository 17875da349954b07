"""Which target is better: every pair decided together, once, for all outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.estimators import RankSet, joint_gaps, rank_sets_from_intervals
from pipeline.evaluation.document import Decisions, PairDecision, verdict_of
from pipeline.evaluation.gaps import Pair
from pipeline.evaluation.options import Options


def decide(pairs: Sequence[Pair], values: Mapping[str, float], options: Options) -> Decisions | None:
    """The verdict of every pair from intervals that hold together with probability ``options.level`` (max-t).

    About a pool there is no verdict and there are no rank sets: a difference of these very items is a fact.

    Args:
        pairs: every pair with enough labels on shared items; a pair that is not there decides nothing.
        values: target → its recommended number (larger is better).
        options: level, margin, target.

    Returns:
        None where there is no pair.
    """
    if not pairs:
        return None
    fits = [(pair.first.name, pair.second.name, pair.fit) for pair in pairs]
    joint = joint_gaps(fits, margin=options.margin, level=options.level)
    inferred = options.target == "population"
    decided = tuple(
        PairDecision(
            a=gap.a, b=gap.b, value=gap.value, se=gap.se, low=gap.low, high=gap.high, low_single=gap.low_single,
            high_single=gap.high_single, p=gap.p, p_adjusted=gap.p_adjusted, level=gap.level, n=gap.n,
            margin=options.margin, target=options.target,
            verdict=verdict_of(gap.low, gap.high, options.margin) if inferred else None,
        )
        for gap in joint
    )  # fmt: skip
    ranks: tuple[RankSet, ...] = ()
    if inferred and options.baseline is None:
        ranks = rank_sets_from_intervals(list(values), list(values.values()), joint, level=options.level)
    return Decisions("lace_gap", "max-t", options.level, options.margin, options.target, decided, ranks)
