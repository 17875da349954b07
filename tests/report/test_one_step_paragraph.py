"""The paragraph on one target: information, variance, effective sample size, worth in calls and money."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.estimators import Estimate, VarianceComponents, one_step_mean, variance_components
from pipeline.estimators.results import Correction
from pipeline.report.one_step_paragraph import OneStepCosts, StageCost, one_step_paragraph

COSTS = OneStepCosts(StageCost(50, 0.5), StageCost(2750, 4.0))


def made(reduction: float, p: float = 0.0004, pool_size: int | None = None) -> Estimate:
    se = 0.06 * (1 - reduction) ** 0.5
    correction = Correction(
        power=0.9,
        power_rule="pooled",
        variance_reduction=reduction,
        variance_reduction_low=reduction - 0.2,
        variance_reduction_high=reduction + 0.2,
        n_effective=50 / (1 - reduction),
        within_item_test_p=p,
    )
    return Estimate(0.7, se, 0.6, 0.8, 0.95, 50, "one_step", correction=correction, pool_size=pool_size)


def test_a_gain_is_reported_with_its_uncertainty_and_effective_size() -> None:
    text = one_step_paragraph("gpt", made(0.5), COSTS, coupling="episode")
    assert "gpt: draw 0 carries information on its own answer beyond the item (test of λ = 0: p < 0.001)." in text
    assert (
        "with λ = 0.90 (pooled) lowers the variance by 50% (95% bootstrap interval of the reduction 30% to 70%)" in text
    )
    assert "The 50 labeled items count like 100 of a plain mean." in text
    assert "2,750 calls ($4.00)" in text


def test_the_break_even_price_of_a_label() -> None:
    text = one_step_paragraph("gpt", made(0.5), COSTS)
    assert (
        "(a) worth it against labeling only if a gold label costs more than $0.07, as 50 more items (50 calls)" in text
    )
    dear = OneStepCosts(COSTS.answers, COSTS.auxiliary, label_usd=2.0)
    assert "(a) worth it against labeling, where 50 more items (50 calls) would have gained as much for $100.50" in (
        one_step_paragraph("gpt", made(0.5), dear)
    )
    cheap = OneStepCosts(COSTS.answers, COSTS.auxiliary, label_usd=0.01)
    assert "(a) not worth it against labeling" in one_step_paragraph("gpt", made(0.5), cheap)


def test_a_loss_is_called_a_loss() -> None:
    text = one_step_paragraph("gpt", made(-0.3, p=0.4), COSTS)
    assert "no information on the answer beyond the item was found (test of λ = 0: p = 0.400)" in text
    assert "none can be expected from separate stateless calls" in text
    assert "raises the variance by 30%" in text
    assert (
        "bought no precision: (a) not worth it against labeling: the same money would have answered 400 more items"
        in text
    )


def test_information_from_stateless_calls_is_doubted() -> None:
    assert "check how the calls were made" in one_step_paragraph("gpt", made(0.3), COSTS, coupling="independent")
    assert "check how" not in one_step_paragraph("gpt", made(0.3), COSTS, coupling="episode")


@pytest.mark.parametrize(("sampling", "verdict"), [(0.2, "not worth it"), (0.0, "worth it")])
def test_repeated_decoding_is_compared_at_equal_calls_and_money(sampling: float, verdict: str) -> None:
    parts = VarianceComponents(50, 4, 0.7, 0.18 - sampling / 2, sampling, 0.5, 0.06)
    text = one_step_paragraph("gpt", made(0.2), COSTS, components=parts)
    assert (
        f"(b) {verdict} against repeated decoding, 56 answers per item for the same calls or 9 for the same money"
        in text
    )
    rng = np.random.default_rng(0)
    repeats = (rng.random((50, 4)) < rng.random((50, 1))).astype(float)
    assert "whose standard error would be" in one_step_paragraph(
        "gpt", made(0.2), COSTS, components=variance_components(repeats)
    )
    assert "cannot be told from one answer per item" in one_step_paragraph("gpt", made(0.2), COSTS)


def test_the_pool_estimator_is_named_with_its_error() -> None:
    pool = made(0.6, pool_size=198)
    text = one_step_paragraph("gpt", made(-0.1), COSTS, pool=pool)
    assert "(c) better spent on the pool estimator: predictions for all 198 items give a standard error of" in text
    assert "no unlabeled items" in one_step_paragraph("gpt", made(-0.1), COSTS)


def test_unknown_prices_stay_unknown() -> None:
    text = one_step_paragraph("gpt", made(0.5), OneStepCosts(StageCost(50), StageCost(2750)))
    assert "2,750 calls (price unknown)" in text
    assert "prices are not known" in text
    assert "$" not in text


def test_degenerate_estimates_still_read_as_english() -> None:
    flat = one_step_mean(np.ones(10), np.random.default_rng(0).random((10, 4)))
    text = one_step_paragraph("gpt", flat, COSTS)
    assert "cannot be tested" in text
    assert "nan" not in text.lower()
    whole = one_step_mean([0.0, 1.0, 1.0], np.ones((3, 2)) / 2, pool_tau=np.ones((3, 2)) / 2)
    assert "known exactly" in one_step_paragraph("gpt", whole, COSTS)
