"""One target's one-step estimate in plain English: is there information, what was gained, was it worth the calls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pipeline.estimators import Estimate, VarianceComponents
from pipeline.estimators.results import Correction

SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class StageCost:
    """Calls and money; usd is None where a price is unknown."""

    calls: int
    usd: float | None = None

    def to_text(self) -> str:
        """``550 calls ($1.20)``, ``1 call (price unknown)``."""
        money = "price unknown" if self.usd is None else _usd(self.usd)
        return f"{_count(self.calls, 'call')} ({money})"


@dataclass(frozen=True, slots=True)
class OneStepCosts:
    """What one target's estimate took.

    Attributes:
        answers: the target's own answers to the labeled items, one each.
        auxiliary: everything the correction needed on the labeled items: chains, fresh episodes, comparisons and
            predictions; chains shared by several targets count by this target's share.
        label_usd: price of one gold label; None if it is not known.
    """

    answers: StageCost
    auxiliary: StageCost
    label_usd: float | None = None


def one_step_paragraph(
    target: str,
    estimate: Estimate,
    costs: OneStepCosts,
    *,
    coupling: Literal["independent", "episode"] = "independent",
    pool: Estimate | None = None,
    components: VarianceComponents | None = None,
) -> str:
    """The report's paragraph on one target.

    Args:
        target: its name.
        estimate: of ``one_step_mean``.
        costs: calls and money.
        coupling: how draw 0 was tied to the scored answer.
        pool: the estimate of the same target with ``pool_tau``, if there are unlabeled items.
        components: variance components of repeated answers to the same items, if there are any.

    Returns:
        Four sentences: information, variance, effective sample size, worth.
    """
    correction = _of(estimate)
    parts = (
        _information(target, correction, coupling),
        _variance(correction, estimate.level),
        _effective(correction, estimate.n),
        _worth(estimate, costs, pool, components),
    )
    return " ".join(parts)


def _of(estimate: Estimate) -> Correction:
    return estimate.correction or Correction()


def _information(target: str, correction: Correction, coupling: str) -> str:
    p = _finite(correction.within_item_test_p)
    if p is None:
        return f"{target}: whether draw 0 carries information on its own answer cannot be tested, nothing varies."
    p_text = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if p < SIGNIFICANT:
        sentence = f"{target}: draw 0 carries information on its own answer beyond the item (test of λ = 0: {p_text})"
        warning = (
            ", which separate stateless calls cannot; check how the calls were made" if coupling != "episode" else ""
        )
        return f"{sentence}{warning}."
    why = ""
    if coupling == "independent":
        why = "; none can be expected from separate stateless calls, where the draws are independent of the answer"
    return f"{target}: no information on the answer beyond the item was found (test of λ = 0: {p_text}){why}."


def _variance(correction: Correction, level: float) -> str:
    reduction, power = _finite(correction.variance_reduction), _finite(correction.power)
    used = f"with λ = {power:.2f} ({correction.power_rule})" if power is not None else "as made"
    if reduction is None:
        return f"The correction {used} has no measurable effect: the outcomes do not vary."
    low, high = _finite(correction.variance_reduction_low), _finite(correction.variance_reduction_high)
    if reduction == 0.0:
        return f"The correction {used} leaves the variance as it is."
    change = (
        f"lowers the variance by {_percent(reduction)}"
        if reduction > 0
        else f"raises the variance by {_percent(-reduction)}"
    )
    if low is None or high is None:
        return f"The correction {used} {change}."
    span = f"{level:.0%} bootstrap interval of the reduction {_percent(low)} to {_percent(high)}"
    return f"The correction {used} {change} ({span})."


def _effective(correction: Correction, n: int) -> str:
    effective = _finite(correction.n_effective)
    if effective is None:
        return f"The {n} labeled items are the whole pool, so its mean is known exactly."
    return f"The {n} labeled items count like {effective:.0f} of a plain mean."


def _worth(
    estimate: Estimate,
    costs: OneStepCosts,
    pool: Estimate | None,
    components: VarianceComponents | None,
) -> str:
    reduction = _finite(_of(estimate).variance_reduction)
    gained = reduction is not None and reduction > 0.0
    labels = _labels(estimate, costs) if gained else _labels_none(costs)
    against = (f"(a) {labels}", f"(b) {_repeats(estimate, costs, components)}", f"(c) {_pool(estimate, pool)}")
    verdict = "bought precision" if gained else "bought no precision"
    return (
        f"The auxiliary {costs.auxiliary.to_text()}, beside {costs.answers.to_text()} for the answers, {verdict}:"
        f" {'; '.join(against)}."
    )


def _per_answer(costs: OneStepCosts) -> float | None:
    return None if costs.answers.usd is None or costs.answers.calls == 0 else costs.answers.usd / costs.answers.calls


def _labels(estimate: Estimate, costs: OneStepCosts) -> str:
    """Against more labels: how many would do the same, and from which price of a label on the calls were cheaper."""
    effective = _finite(_of(estimate).n_effective)
    extra = math.ceil(effective - estimate.n) if effective is not None else 0
    if extra <= 0:
        return "not worth it against labeling, where one more item would have gained as much"
    same = f"{_count(extra, 'more item')} ({_count(extra, 'call')}) would have gained as much"
    answer = _per_answer(costs)
    if answer is None or costs.auxiliary.usd is None:
        return f"against labeling, {same}; prices are not known"
    break_even = costs.auxiliary.usd / extra - answer
    if break_even <= 0.0:
        return f"worth it against labeling, where {same} but their answers alone cost more, {_usd(answer)} each"
    if costs.label_usd is None:
        return f"worth it against labeling only if a gold label costs more than {_usd(break_even)}, as {same}"
    spent = extra * (answer + costs.label_usd)
    worth = "worth it" if spent > costs.auxiliary.usd else "not worth it"
    return f"{worth} against labeling, where {same} for {_usd(spent)}"


def _labels_none(costs: OneStepCosts) -> str:
    answer = _per_answer(costs)
    calls = costs.auxiliary.calls
    if answer is None or costs.auxiliary.usd is None:
        return f"not worth it against labeling: as many calls would have answered {_count(calls, 'more item')}"
    price = answer + (costs.label_usd or 0.0)
    if price <= 0.0:
        return "not worth it against labeling: further items would have cost nothing to answer"
    what = "answered and labeled" if costs.label_usd is not None else "answered"
    more = _count(int(costs.auxiliary.usd / price), "more item")
    return f"not worth it against labeling: the same money would have {what} {more}"


def _repeats(estimate: Estimate, costs: OneStepCosts, components: VarianceComponents | None) -> str:
    """Against repeated decoding with the same calls and, where prices are known, the same money."""
    by_calls = 1 + costs.auxiliary.calls // max(estimate.n, 1)
    answer = _per_answer(costs)
    by_money = None
    if answer is not None and answer > 0.0 and costs.auxiliary.usd is not None:
        by_money = 1 + int(costs.auxiliary.usd / (answer * estimate.n))
    parts = _component_parts(components)
    budget = f"{_count(by_calls, 'answer')} per item for the same calls" + (
        f" or {by_money} for the same money" if by_money is not None else ""
    )
    if parts is None:
        return f"against repeated decoding, {budget}, it cannot be told from one answer per item"
    phrases = []
    for label, repeats in (("calls", by_calls), ("money", by_money)):
        if repeats is not None:
            phrases.append((label, math.sqrt(max(parts[0] + parts[1] / repeats, 0.0) / estimate.n)))
    errors = " and ".join(f"{error:.4f} ({label})" for label, error in phrases)
    best = min(error for _, error in phrases)
    worth = "not worth it" if best < estimate.se else "worth it"
    return (
        f"{worth} against repeated decoding, {budget}, whose standard error would be {errors}"
        f" beside {estimate.se:.4f} here"
    )


def _component_parts(components: VarianceComponents | None) -> tuple[float, float] | None:
    if components is None:
        return None
    item, sampling = _finite(components.item), _finite(components.sampling)
    return None if item is None or sampling is None else (max(item, 0.0), sampling)


def _pool(estimate: Estimate, pool: Estimate | None) -> str:
    if pool is None:
        return "there are no unlabeled items for the pool estimator to use"
    size, gain = pool.pool_size, _finite(_of(pool).variance_reduction)
    gained = "" if gain is None else f", {_change(gain)} the plain mean's on the same pool"
    better = "better spent on" if pool.se < estimate.se else "no better spent on"
    return (
        f"{better} the pool estimator: predictions for all {size} items give a standard error of {pool.se:.4f}"
        f" for the pool's mean{gained}, beside {estimate.se:.4f} here for the population's"
    )


def _change(reduction: float) -> str:
    return f"a variance {_percent(abs(reduction))} {'below' if reduction >= 0 else 'above'}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f}%"


def _usd(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 0.1 or amount == 0.0 else f"${amount:.2g}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
