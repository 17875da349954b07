"""Which target is better: every pair decided together, once, for all outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.estimators import RankSet, joint_gaps, rank_sets_from_intervals
from pipeline.estimators.gaps.simultaneous import PairedDifference
from pipeline.evaluation.document import Decisions, PairDecision, verdict_of
from pipeline.evaluation.gaps import Pair
from pipeline.evaluation.options import Options


def decide(pairs: Sequence[Pair], values: Mapping[str, float], options: Options) -> Decisions | None:
    """The verdict of every pair from intervals that hold together with probability ``options.level`` (max-t).

    Where labels were looked at more than once the intervals hold over all looks too, however many there will be: ten
    looks by intervals of one look call tied models different in 16 of 100 studies.

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
    sequential = inferred and options.sequential
    if sequential:
        joint = tuple(_anytime(gap, pair.fit.df, len(pairs), options) for gap, pair in zip(joint, pairs, strict=True))
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
    adjustment = "anytime" if sequential else "max-t"
    return Decisions("lace_gap", adjustment, options.level, options.margin, options.target, decided, ranks)


def _anytime(gap: PairedDifference, df: float, pairs: int, options: Options) -> PairedDifference:
    """The gap with intervals of an asymptotic confidence sequence, Bonferroni over the pairs; p-values are of one look.

    Narrowest near I₀ = max(100, twice the labels of the first look): a rule that nobody chose after looking.
    """
    # Imported where it is needed: the walks of a plan need scipy.optimize, which estimate starts without.
    from pipeline.estimators.looks import asymptotic_critical, tail_quantile

    planned = max(100.0, 2.0 * options.looks[0] if options.looks else 0.0)
    alpha = 1.0 - options.level
    alone, together = (
        tail_quantile(asymptotic_critical(float(gap.n), planned, error), df) * gap.se
        for error in (alpha, alpha / pairs)
    )
    return replace(
        gap, low=min(gap.low, gap.value - together), high=max(gap.high, gap.value + together),
        low_single=gap.value - alone, high_single=gap.value + alone, p=math.nan, p_adjusted=math.nan,
    )  # fmt: skip
