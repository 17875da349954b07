"""The sentence that answers: what a reader who reads nothing else must take away."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pipeline.estimators import Estimate
from pipeline.evaluation.document import Decisions, PairDecision

_NAMED = 4
_MOST_LABELS = 100_000


def headline(recommended: Mapping[str, Estimate | None], decisions: Decisions | None) -> str:
    """One or two sentences; under ``pool`` without a verb of decision.

    Args:
        recommended: target → its recommended number; None where it has none.
        decisions: of its pairs, or None.
    """
    numbers = {name: estimate for name, estimate in recommended.items() if estimate is not None}
    if not numbers:
        return "Nothing could be estimated from these labels."
    percent = all(
        estimate.binary or (0.0 <= estimate.value <= 1.0 and estimate.low >= -0.2 and estimate.high <= 1.2)
        for estimate in numbers.values()
    )
    if decisions is None or len(numbers) < 2 or decisions.target == "pool" or len(decisions.rank_sets) < 2:
        listed = [_alone(name, estimate, percent) for name, estimate in list(numbers.items())[:_NAMED]]
        more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
        of = " (of these very items)" if next(iter(numbers.values())).target == "pool" else ""
        return f"{'; '.join(listed)}{more}{of}."
    return " ".join([_best(decisions, percent), *_open(decisions, percent)])


def _alone(name: str, estimate: Estimate, percent: bool) -> str:
    right = " right" if estimate.binary else ""
    value = f"{_amount(estimate.value, percent)} %{right}" if percent else f"{_amount(estimate.value, percent)}"
    sentence = value if name == "all" else f"*{name}*: {value}"
    if not estimate.se > 0.0:
        return sentence
    return f"{sentence}, {_amount(estimate.low, percent)} to {_amount(estimate.high, percent)}"


def _amount(value: float, percent: bool) -> str:
    return f"{100 * value:.0f}" if percent else f"{value:.3g}"


def _best(decisions: Decisions, percent: bool) -> str:
    level = f"{100 * decisions.level:g} % jointly"
    names = [entry.name for entry in decisions.rank_sets]
    sure = [entry.name for entry in decisions.rank_sets if entry.worst == 1]
    points = " points" if percent else ""
    if sure:
        leads = [_lead(pair, sure[0]) for pair in decisions.pairs if sure[0] in (pair.a, pair.b)]
        low, high = min(low for low, _ in leads), max(high for _, high in leads)
        others = "the others" if len(names) > 2 else f"*{next(name for name in names if name != sure[0])}*"
        return (
            f"*{sure[0]}* is best: {_amount(low, percent)} to {_amount(high, percent)}{points} above {others}, {level}."
        )
    tops = [entry.name for entry in decisions.rank_sets if entry.best == 1]
    if len(tops) == len(names):
        what = _listed(names) if len(names) <= _NAMED else f"the {len(names)} targets"
        return f"No difference shown between {what}, {level}."
    return f"The best is among {_listed(tops) if len(tops) <= 2 * _NAMED else f'{len(tops)} targets'}, {level}."


def _lead(pair: PairDecision, name: str) -> tuple[float, float]:
    return (pair.low, pair.high) if pair.a == name else (-pair.high, -pair.low)


def _open(decisions: Decisions, percent: bool) -> list[str]:
    """What cannot be told apart, and what would tell it."""
    undecided = [pair for pair in decisions.pairs if pair.verdict == "undecided"]
    if not undecided:
        return []
    if len(undecided) > 1:
        return [f"{len(undecided)} of {len(decisions.pairs)} pairs cannot be told apart."]
    pair = undecided[0]
    sentence = f"*{pair.a}* and *{pair.b}* cannot be told apart"
    more = _labels_to_tell(pair)
    return [
        f"{sentence}; about {more} more labels would tell them, if the gap is as it looks." if more else f"{sentence}."
    ]


def _labels_to_tell(pair: PairDecision) -> int | None:
    """Labels beyond those there that shrink the joint interval to the gap seen, its width ∝ 1/√n; two digits."""
    half = (pair.high - pair.low) / 2.0
    if not (math.isfinite(half) and pair.value != 0.0):
        return None
    more = pair.n * ((half / abs(pair.value)) ** 2 - 1.0)
    if not 0.0 < more < _MOST_LABELS:
        return None
    step = 10 ** max(math.floor(math.log10(more)) - 1, 0)
    return int(math.ceil(more / step) * step)


def _listed(names: Sequence[str]) -> str:
    marked = [f"*{name}*" for name in names]
    return "".join(marked) if len(marked) < 2 else f"{', '.join(marked[:-1])} and {marked[-1]}"
