"""Critical values of repeated looks: published values, laws, and what a simulated walk does."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from pipeline.estimators import looks

FIFTHS = [0.2, 0.4, 0.6, 0.8, 1.0]


def walks(information, seed, count=200_000):
    """Z of a Brownian walk at each information, (count, K)."""
    steps = np.diff(np.r_[0.0, information])
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.standard_normal((count, len(steps))) * np.sqrt(steps), axis=1) / np.sqrt(information)


def test_published_values_of_lan_and_demets():
    assert looks.critical_values(FIFTHS, FIFTHS) == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=6e-4)
    pocock = looks.critical_values(FIFTHS, FIFTHS, spending="pocock")
    assert pocock == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=6e-4)


@pytest.mark.parametrize("spending", looks.SPENDINGS)
def test_spending_starts_at_nothing_ends_at_alpha_and_never_falls(spending):
    values = [looks.spent(t, 0.05, spending) for t in np.linspace(-0.5, 1.5, 81)]
    assert values[0] == 0.0
    assert values[-1] == 0.05
    assert np.all(np.diff(values) >= 0.0)
    assert looks.spent(1e-3, 0.05, spending) < 1e-3


def test_obrien_fleming_keeps_small_levels():
    assert looks.spent(0.1, 0.05, "obrien-fleming") == pytest.approx(
        4.0 * norm.sf(norm.isf(0.0125) / math.sqrt(0.1)), rel=1e-9
    )


@pytest.mark.parametrize("spending", ["power:0", "power:x", "linear", "power:-1"])
def test_unknown_spending_is_refused(spending):
    with pytest.raises(ValueError, match="spending must be"):
        looks.spent(0.5, 0.05, spending)


def test_one_look_is_the_usual_interval():
    assert looks.critical_values([1.0], [300.0]) == pytest.approx([1.959964], abs=1e-6)
    assert looks.tail_quantile(1.959963984540054, 17) == pytest.approx(student.ppf(0.975, 17), rel=1e-9)
    assert looks.tail_quantile(7.5, 40) == pytest.approx(student.isf(norm.sf(7.5), 40), rel=1e-6)
    assert looks.after_stopping(0.1, 0.03**2, math.inf, [80.0], [], 0) == pytest.approx(
        (0.1, 0.1 - 1.959964 * 0.03, 0.1 + 1.959964 * 0.03), abs=1e-6
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("spending", looks.SPENDINGS)
def test_the_walk_crosses_with_chance_alpha_at_random_looks(seed, spending):
    rng = np.random.default_rng(seed)
    information = np.sort(rng.choice(np.arange(15, 400), size=6, replace=False)).astype(float)
    times = information / information[-1]
    values = np.array(looks.critical_values(times, information, 0.05, spending))
    first = np.cumsum(np.any([np.abs(walks(information, seed)) > values], axis=0), axis=1) > 0
    for k, t in enumerate(times):
        assert first[:, k].mean() == pytest.approx(looks.spent(t, 0.05, spending), abs=0.002)


def test_two_looks_one_label_apart():
    information = [100.0, 101.0, 300.0]
    values = looks.critical_values([0.33, 0.34, 1.0], information, 0.05, "pocock")
    seen = np.abs(walks(np.array(information), 5)) > np.array(values)
    assert seen[:, :2].any(axis=1).mean() == pytest.approx(looks.spent(0.34, 0.05, "pocock"), abs=0.002)
    assert seen.any(axis=1).mean() == pytest.approx(0.05, abs=0.002)


def test_a_look_without_increment_changes_nothing():
    plain = looks.critical_values([0.3, 0.7, 1.0], [30, 70, 100], 0.05, "power:2")
    more = looks.critical_values([0.3, 0.3, 0.7, 1.0], [30, 45, 70, 100], 0.05, "power:2")
    assert more[1] == math.inf
    assert [more[0], *more[2:]] == pytest.approx(plain, abs=1e-5)


def test_the_next_value_from_the_ledger_is_the_next_of_the_list():
    times, information = [0.2, 0.5, 0.9], [40.0, 100.0, 180.0]
    values = looks.critical_values(times, information, 0.05, "power:2")
    increment = looks.spent(0.9, 0.05, "power:2") - looks.spent(0.5, 0.05, "power:2")
    assert looks.next_critical(information, values[:2], increment) == pytest.approx(values[2], abs=1e-7)
    correlation = [[1.0, 0.5], [0.5, 1.0]]
    joint = looks.joint_critical_values(times, information, correlation, 0.05, "power:2")
    assert looks.next_joint_critical(information, joint[:2], increment, correlation) == pytest.approx(
        joint[2], abs=1e-6
    )
    with pytest.raises(ValueError, match="3 looks need the critical values of 2, got 1"):
        looks.next_critical(information, values[:1], increment)


@pytest.mark.parametrize("spending", looks.SPENDINGS)
def test_joint_values_of_one_statistic_are_its_own(spending):
    own = looks.critical_values(FIFTHS, FIFTHS, 0.05, spending)
    assert looks.joint_critical_values(FIFTHS, FIFTHS, [[1.0]], 0.05, spending) == pytest.approx(own, abs=0.01)
    same = [[1.0, -1.0], [-1.0, 1.0]]
    assert looks.joint_critical_values(FIFTHS, FIFTHS, same, 0.05, spending) == pytest.approx(own, abs=0.01)


def test_joint_values_hold_for_all_statistics_together():
    contrasts = np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1]]) / math.sqrt(2.0)
    values = looks.joint_critical_values(FIFTHS, FIFTHS, contrasts @ contrasts.T, 0.05, "power:2")
    three = np.stack([walks(np.array(FIFTHS), seed, 100_000) for seed in (11, 12, 13)])
    largest = np.abs(np.einsum("pm,mnk->pnk", contrasts, three)).max(axis=0)
    assert (largest > np.array(values)).any(axis=1).mean() == pytest.approx(0.05, abs=0.004)
    independent = looks.joint_critical_values(FIFTHS, FIFTHS, np.eye(3), 0.05, "power:2")
    single = looks.critical_values(FIFTHS, FIFTHS, 0.05, "power:2")
    assert all(one < joint < other + 0.02 for one, joint, other in zip(single, values, independent, strict=True))


def test_joint_values_of_tiny_increments_are_bonferronis():
    values = looks.joint_critical_values([0.05, 1.0], [5, 100], np.eye(4), 0.05, "power:2")
    assert values[0] == pytest.approx(norm.isf(0.05 * 0.05**2 / 8), abs=1e-6)


@pytest.mark.parametrize(
    ("sizes", "target", "level"),
    [([50, 60], "population", 0.931), (range(20, 201, 20), "population", 0.807), (range(20, 201, 20), "pool", 0.801)],
)
def test_level_of_looks(sizes, target, level):
    assert looks.level_of_looks(list(sizes), 1319, target) == pytest.approx(level, abs=6e-4)


def test_level_of_one_look_and_of_a_census():
    assert looks.level_of_looks([80], 1000, "population") == pytest.approx(0.95, abs=1e-6)
    assert looks.level_of_looks([80, 80], 1000, "population") == pytest.approx(0.95, abs=1e-6)
    assert looks.level_of_looks([1000], 1000, "pool") == 1.0
    assert looks.level_of_looks([80, 1000], 1000, "pool") == pytest.approx(0.95, abs=1e-6)


@pytest.mark.parametrize("drift", [0.0, 2.5])
def test_after_stopping_is_median_unbiased_and_covers(drift):
    information = np.array([0.4, 0.7, 1.0])
    critical = np.array(looks.critical_values(information, information, 0.05, "power:2"))
    paths = walks(information, 8, 300) + drift * np.sqrt(information)
    below, inside = 0, 0
    for path in paths:
        crossed = np.flatnonzero(np.abs(path[:-1]) > critical[:-1])
        k = int(crossed[0]) if len(crossed) else 2
        side = int(np.sign(path[k])) if abs(path[k]) > critical[k] else 0
        value = path[k] / math.sqrt(information[k])
        estimate, low, high = looks.after_stopping(
            value, 1 / information[k], math.inf, information[: k + 1], critical[:k].tolist(), side
        )
        below += estimate < drift
        inside += low <= drift <= high
        assert low < estimate < high
    assert below / 300 == pytest.approx(0.5, abs=0.08)
    assert inside / 300 == pytest.approx(0.95, abs=0.035)


def test_after_stopping_mirrors_and_shrinks():
    up = looks.after_stopping(0.1, 0.03**2, 40.0, [100, 200], [2.8], 1)
    down = looks.after_stopping(-0.1, 0.03**2, 40.0, [100, 200], [2.8], -1)
    assert up == pytest.approx((-down[0], -down[2], -down[1]), abs=1e-9)
    assert up[0] < 0.1
    with pytest.raises(ValueError, match="side must be"):
        looks.after_stopping(0.1, 0.03**2, 40.0, [100, 200], [2.8], 2)


def test_chance_of_decision_is_what_walks_do():
    later, critical, drift, z, now = np.array([150.0, 220.0, 300.0]), [2.6, 2.4, 2.2], 0.12, 1.2, 90.0
    steps = np.diff(np.r_[now, later])
    rng = np.random.default_rng(3)
    score = z * math.sqrt(now) + np.cumsum(rng.standard_normal((200_000, 3)) * np.sqrt(steps) + drift * steps, axis=1)
    path = score / np.sqrt(later)
    out = np.abs(path) > np.array(critical)
    first = np.where(out.any(axis=1), out.argmax(axis=1), -1)
    above, below, each = looks.chance_of_decision(z, now, later, critical, drift)
    for k in range(3):
        assert each[k] == pytest.approx((first == k).mean(), abs=0.004)
    sign = path[np.arange(len(path)), first] > 0
    assert above == pytest.approx(((first >= 0) & sign).mean(), abs=0.004)
    assert below == pytest.approx(((first >= 0) & ~sign).mean(), abs=0.002)
    assert above + below == pytest.approx(sum(each), abs=1e-9)


def test_chance_before_the_first_look_and_with_looks_that_decide_nothing():
    above, below, each = looks.chance_of_decision(0.0, 0.0, [50, 100], [math.inf, 1.96], 0.0)
    assert each[0] == 0.0
    assert above == pytest.approx(0.025, abs=1e-4)
    assert below == pytest.approx(0.025, abs=1e-4)
    assert looks.chance_of_decision(0.0, 0.0, [50, 100], [math.inf, 1.96], 0.5)[0] == pytest.approx(
        norm.sf(1.96 - 5.0), abs=1e-4
    )


def test_the_anytime_value_is_narrowest_near_its_plan_and_holds():
    assert looks.asymptotic_critical(100.0, 100.0) == pytest.approx(3.035, abs=6e-4)
    assert looks.asymptotic_critical(math.inf, 100.0) == math.inf
    information = np.arange(20.0, 1001.0, 20.0)
    values = np.array([looks.asymptotic_critical(value, 100.0) for value in information])
    assert (np.abs(walks(information, 4, 20_000)) > values).any(axis=1).mean() < 0.05


def test_falling_information_is_lifted():
    lifted = looks.critical_values([0.5, 0.8, 1.0], [50.0, 49.0, 100.0], 0.05, "power:2")
    assert all(math.isfinite(value) for value in lifted)
    with pytest.raises(ValueError, match="information must be positive"):
        looks.critical_values([0.5, 1.0], [0.0, 100.0])
    with pytest.raises(ValueError, match="one length"):
        looks.critical_values([0.5, 1.0], [10.0])
