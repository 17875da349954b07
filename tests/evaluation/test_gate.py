"""Ship, block, inconclusive: the paired gap, the verdict over metrics, and the power table."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from pipeline.evaluation.gate import (
    chance_of_block,
    gate,
    items_needed,
    paired_gap,
    run_noise,
    these_items_gap,
)


def outcomes(rng, n, discordant, drop, rate=0.6):
    """Paired 0/1 scores: a share ``discordant`` differs, the candidate is ``drop`` worse."""
    base = (rng.random(n) < rate).astype(float)
    kind = rng.random(n)
    worse, better = (discordant + drop) / 2, (discordant - drop) / 2
    base = np.where(kind < worse, 1.0, np.where(kind < worse + better, 0.0, base))
    candidate = np.where(kind < worse, 0.0, np.where(kind < worse + better, 1.0, base))
    return base, candidate


def metric(base, candidate, margin=0.0, name="m"):
    value, se, df, influence = paired_gap(base, candidate)
    return {"name": name, "value": value, "se": se, "df": df, "margin": margin, "influence": influence}


def test_paired_gap_is_the_mean_difference_with_its_standard_error():
    rng = np.random.default_rng(1)
    base, candidate = rng.normal(size=80), rng.normal(0.3, 1, size=80)
    gap, se, df, influence = paired_gap(base, candidate)
    difference = candidate - base
    assert (gap, se, df) == pytest.approx((difference.mean(), difference.std(ddof=1) / math.sqrt(80), 79))
    assert influence == pytest.approx((difference - difference.mean()) / 80)
    swapped = paired_gap(candidate, base)
    assert swapped[0] == pytest.approx(-gap)
    assert swapped[1] == pytest.approx(se)


def test_epochs_are_averaged_per_item_and_missing_ones_left_out():
    base = np.array([[1.0, 0.0], [1.0, np.nan], [0.0, 0.0], [1.0, 1.0]])
    candidate = np.array([1.0, 0.0, 1.0, 1.0])
    assert paired_gap(base, candidate)[0] == pytest.approx(np.mean([0.5, -1.0, 1.0, 0.0]))
    with pytest.raises(ValueError, match="finite score for every item"):
        paired_gap([[1.0], [np.nan]], [[1.0], [1.0]])
    with pytest.raises(ValueError, match="the same items"):
        paired_gap([1.0, 0.0, 1.0], [1.0, 0.0])


def test_equal_scores_are_no_certainty():
    scores = np.r_[np.ones(60), np.zeros(40)]
    gap, se, _, influence = paired_gap(scores, scores)
    assert gap == 0.0
    assert se == pytest.approx(1.0 / 102.0)
    assert not influence.any()
    ten = np.tile(scores[:, None], 4)
    assert paired_gap(ten, ten)[1] == pytest.approx(0.5 / 102.0)


def test_the_floor_holds_for_few_changed_items():
    base, candidate = np.ones(50), np.ones(50)
    candidate[0] = 0.0
    assert paired_gap(base, candidate)[1] == pytest.approx(math.sqrt(1 + 1 - 1 / 52) / 52)


def test_one_metric_ships_blocks_or_neither():
    base, candidate = outcomes(np.random.default_rng(2), 1000, 0.1, 0.0)
    entry = metric(base, candidate)
    q = student.ppf(0.975, 999)
    for margin, gap, verdict, code in (
        (0.0, 0.05, "SHIP", 0), (0.0, -0.05, "BLOCK", 10), (0.0, 0.0, "INCONCLUSIVE", 11), (0.05, 0.0, "SHIP", 0),
    ):  # fmt: skip
        result = gate([{**entry, "value": gap, "margin": margin}])
        assert (result["verdict"], result["exit"]) == (verdict, code)
        assert result["metrics"][0]["low"] == pytest.approx(gap - q * entry["se"])
        assert result["metrics"][0]["high_joint"] == pytest.approx(gap + q * entry["se"], abs=1e-9)


def test_shipping_pays_nothing_for_more_metrics_and_blocking_does():
    rng = np.random.default_rng(3)
    rows = [rng.normal(size=400) for _ in range(4)]
    entries = [
        {"name": str(k), "value": 0.2, "se": 0.1, "df": 399.0, "margin": 0.0, "influence": row - row.mean()}
        for k, row in enumerate(rows)
    ]
    result = gate(entries)
    assert result["verdict"] == "SHIP"
    low = 0.2 - student.ppf(0.975, 399) * 0.1
    assert [row["low"] for row in result["metrics"]] == pytest.approx([low] * 4)
    joint = student.isf(1.0 - 0.975 ** (1 / 4), 399)
    assert result["metrics"][0]["high_joint"] == pytest.approx(0.2 + joint * 0.1, abs=0.002)
    worst = gate([*entries[:3], {**entries[3], "value": -0.24}])
    assert worst["verdict"] == "INCONCLUSIVE"  # alone it would be blocked
    assert gate([{**entries[3], "value": -0.24}])["verdict"] == "BLOCK"
    assert gate([*entries[:3], {**entries[3], "value": -0.3}])["verdict"] == "BLOCK"


def test_metrics_that_do_not_vary_are_paid_for():
    rng = np.random.default_rng(4)
    row = rng.normal(size=200)
    moving = {"name": "a", "value": 0.0, "se": 0.1, "df": math.inf, "margin": 0.0, "influence": row}
    still = {**moving, "name": "b", "influence": np.zeros(200)}
    high = gate([moving, still])["metrics"][0]["high_joint"]
    assert high == pytest.approx(0.1 * norm.isf(0.0125), abs=0.001)
    same = gate([moving, {**moving, "name": "c"}])["metrics"][0]["high_joint"]
    assert same == pytest.approx(0.1 * norm.isf(0.025), abs=0.002)


def test_an_unknown_standard_error_decides_nothing():
    entry = {
        "name": "a", "value": 1.0, "se": math.nan, "df": 9.0, "margin": 0.0, "influence": np.zeros(10),
    }  # fmt: skip
    assert gate([entry])["verdict"] == "INCONCLUSIVE"
    with pytest.raises(ValueError, match="at least one metric"):
        gate([])
    with pytest.raises(ValueError, match="margin of a must be at least 0"):
        gate([{**entry, "margin": -0.1}])


TABLE = [
    (0.05, (1.000, 1.000, 0.999), (0.37, 0.90, 1.00), (350, 546)),
    (0.10, (1.000, 0.997, 0.937), (0.21, 0.63, 0.93), (717, 1120)),
    (0.15, (0.997, 0.966, 0.810), (0.15, 0.47, 0.80), (1084, 1694)),
    (0.20, (0.983, 0.905, 0.689), (0.13, 0.37, 0.68), (1452, 2268)),
    (0.30, (0.915, 0.759, 0.515), (0.10, 0.26, 0.51), (2187, 3416)),
]


@pytest.mark.parametrize(("discordant", "blocks", "ships", "needed"), TABLE)
def test_the_power_table(discordant, blocks, ships, needed):
    for margin, chance in zip((0.0, 0.01, 0.02), blocks, strict=True):
        assert chance_of_block(0.05, discordant, 1319, margin) == pytest.approx(chance, abs=0.0015)
    for margin, chance in zip((0.01, 0.02, 0.03), ships, strict=True):
        se = math.sqrt(discordant / 1319)
        assert norm.cdf(margin / se - norm.isf(0.025)) == pytest.approx(chance, abs=0.006)
    for margin, items in zip((0.0, 0.01), needed, strict=True):
        assert chance_of_block(0.05, discordant, items, margin) == pytest.approx(0.99, abs=0.0005)


@pytest.mark.parametrize(("discordant", "margin"), [(0.05, 0.0), (0.15, 0.0), (0.15, 0.01), (0.3, 0.02)])
def test_the_power_table_by_simulation(discordant, margin):
    rng, reps = np.random.default_rng(5), 1500
    blocked = 0
    for _ in range(reps):
        blocked += gate([metric(*outcomes(rng, 1319, discordant, 0.05), margin)])["verdict"] == "BLOCK"
    wanted = chance_of_block(0.05, discordant, 1319, margin)
    assert blocked / reps == pytest.approx(wanted, abs=0.006 + 3.5 * math.sqrt(wanted * (1 - wanted) / reps))


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_model_against_itself_is_seldom_blocked(epochs):
    rng, reps, blocked = np.random.default_rng(6), 2000, 0
    for _ in range(reps):
        rate = rng.beta(2, 1, size=300)[:, None]
        runs = [(rng.random((300, epochs)) < rate).astype(float) for _ in range(2)]
        blocked += gate([metric(*runs)])["verdict"] == "BLOCK"
    assert blocked / reps <= 0.025 + 3.0 * math.sqrt(0.025 * 0.975 / reps)


def test_items_needed():
    z = norm.isf(0.025) + norm.ppf(0.8)
    assert items_needed(-0.03, 0.02, 400, 0.0) == math.ceil((z * 0.02 * 20 / 0.03) ** 2)
    assert items_needed(0.0, 0.02, 400, 0.01) == math.ceil((z * 0.02 * 20 / 0.01) ** 2)
    assert items_needed(0.5, 0.02, 400, 0.0) == 401
    assert items_needed(-0.01, 0.02, 400, 0.01) is None


def test_these_items_need_two_epochs():
    rng = np.random.default_rng(7)
    rate = rng.beta(2, 1, size=(500, 1))
    base, candidate = ((rng.random((500, 3)) < rate).astype(float) for _ in range(2))
    gap, se, df = these_items_gap(base, candidate)
    assert gap == pytest.approx((candidate.mean(axis=1) - base.mean(axis=1)).mean())
    assert se < paired_gap(base, candidate)[1] * 1.05
    assert se == pytest.approx(math.sqrt(2 * float((rate * (1 - rate)).mean()) / 3 / 500), rel=0.1)
    assert df == 2000
    with pytest.raises(ValueError, match="at least 2 epochs"):
        these_items_gap(base[:, 0], candidate)


def test_run_noise_sees_what_moves_a_whole_run():
    rng = np.random.default_rng(8)
    rate = rng.beta(2, 1, size=(800, 1))
    quiet = run_noise((rng.random((800, 5)) < rate).astype(float))
    assert quiet.p > 0.01
    assert not quiet.moves
    assert quiet.within == pytest.approx(float((rate * (1 - rate)).mean()), rel=0.1)
    moved = (rng.random((800, 5)) < np.clip(rate + np.array([-0.1, 0.1, 0.0, 0.1, -0.1]), 0, 1)).astype(float)
    loud = run_noise(moved)
    assert loud.moves
    assert loud.run_variance == pytest.approx(0.01, abs=0.006)
    same = run_noise(np.tile(moved[:, :1], 3))
    assert (same.flip_rate, same.p) == (0.0, 1.0)
