"""The one-step mean: formulas, rules for λ, pool, clusters, edges and refusals."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from pipeline.estimators import mean_gap, naive_mean, one_step_mean, one_step_values
from pipeline.estimators.one_step.control_variate import left_out_slopes, within_item_test
from pipeline.estimators.one_step.correction import DEFAULT_SEED

FloatArray = NDArray[np.float64]
RULES = (1.0, "tuned", "loo", "cross-fit", "pooled")
CONTRACT = {
    "naive_value", "naive_se", "power", "power_se", "variance_reduction", "variance_reduction_low",
    "variance_reduction_high", "n_effective", "within_item_test_p",
}  # fmt: skip


def episodes(seed: int, n: int = 40, draws: int = 6, strength: float = 1.5) -> tuple[FloatArray, FloatArray]:
    """Binary outcomes and predictions that share the state of episode 0 with them."""
    rng = np.random.default_rng(seed)
    state = rng.normal(size=(n, draws + 1))
    ease = rng.normal(size=(n, 1))
    phi = (ease[:, 0] + state[:, 0] + 0.4 * rng.normal(size=n) > -0.5).astype(float)
    return phi, 1.0 / (1.0 + np.exp(-strength * state - ease))


def test_power_one_is_equation_3_5() -> None:
    phi, tau = episodes(0)
    psi = phi + tau[:, 1:].mean(axis=1) - tau[:, 0]
    estimate = one_step_mean(phi, tau)
    assert (estimate.value, estimate.se) == pytest.approx((psi.mean(), stats.sem(psi)), abs=1e-13)
    assert (estimate.n, estimate.method, estimate.diagnostics["power"]) == (40, "one_step", 1.0)
    assert one_step_values(phi, tau) == pytest.approx(psi, abs=1e-13)
    naive = naive_mean(phi)
    assert estimate.diagnostics["naive_value"] == pytest.approx(naive.value)
    assert estimate.diagnostics["naive_se"] == pytest.approx(naive.se)
    assert estimate.diagnostics["variance_reduction"] == pytest.approx(1 - (estimate.se / naive.se) ** 2)
    assert estimate.diagnostics["n_effective"] == pytest.approx(phi.var(ddof=1) / estimate.se**2)


def test_power_zero_is_the_naive_mean() -> None:
    phi, tau = episodes(1)
    estimate, naive = one_step_mean(phi, tau, power=0.0), naive_mean(phi)
    assert (estimate.value, estimate.se, estimate.low, estimate.high) == pytest.approx(
        (naive.value, naive.se, naive.low, naive.high), abs=1e-14
    )
    assert estimate.diagnostics["variance_reduction"] == 0.0


def test_tuned_is_the_intercept_of_a_regression() -> None:
    phi, tau = episodes(2)
    contrast = tau[:, 0] - tau[:, 1:].mean(axis=1)
    line = stats.linregress(contrast, phi)
    estimate = one_step_mean(phi, tau, power="tuned", interval="t")
    assert estimate.value == pytest.approx(line.intercept, abs=1e-12)
    assert estimate.se == pytest.approx(line.intercept_stderr, abs=1e-12)
    assert estimate.diagnostics["power"] == pytest.approx(line.slope, abs=1e-12)
    assert estimate.diagnostics["power_se"] == pytest.approx(line.stderr, abs=1e-12)
    half = stats.t.ppf(0.975, 38) * line.intercept_stderr
    assert (estimate.low, estimate.high) == pytest.approx((line.intercept - half, line.intercept + half), abs=1e-10)


def test_loo_leaves_each_item_out_and_clips() -> None:
    phi, tau = episodes(3, n=12, strength=0.7)
    contrast = tau[:, 0] - tau[:, 1:].mean(axis=1)
    slopes = [stats.linregress(np.delete(contrast, i), np.delete(phi, i)).slope for i in range(12)]
    psi = phi - np.clip(slopes, 0.0, 1.0) * contrast
    estimate = one_step_mean(phi, tau, power="loo", interval="t")
    assert (estimate.value, estimate.se) == pytest.approx((psi.mean(), stats.sem(psi)), abs=1e-12)
    assert one_step_mean(phi, 1 - tau, power="loo").diagnostics["power"] == 0.0


def test_cross_fit_takes_the_slope_of_the_other_folds() -> None:
    phi, tau = episodes(4, n=53)
    contrast = tau[:, 0] - tau[:, 1:].mean(axis=1)
    psi = np.empty(53)
    for fold in np.array_split(np.random.default_rng(9).permutation(53), 4):
        rest = np.setdiff1d(np.arange(53), fold)
        psi[fold] = phi[fold] - stats.linregress(contrast[rest], phi[rest]).slope * contrast[fold]
    estimate = one_step_mean(phi, tau, power="cross-fit", folds=4, rng=np.random.default_rng(9))
    assert (estimate.value, estimate.se) == pytest.approx((psi.mean(), stats.sem(psi)), abs=1e-12)


def test_pooled_takes_the_common_slope_of_the_other_targets() -> None:
    phi, tau = episodes(5)
    others = [episodes(6), episodes(7, n=25), episodes(8)]
    top = bottom = 0.0
    for outcome, draws in others:
        contrast = draws[:, 0] - draws[:, 1:].mean(axis=1)
        top += np.sum((contrast - contrast.mean()) * outcome)
        bottom += np.sum((contrast - contrast.mean()) ** 2)
    estimate = one_step_mean(phi, tau, power="pooled", power_from=others)
    assert estimate.diagnostics["power"] == pytest.approx(top / bottom, abs=1e-12)
    assert estimate.value == pytest.approx(one_step_mean(phi, tau, power=top / bottom).value, abs=1e-12)


def test_a_pool_replaces_the_contrast_and_shrinks_the_target() -> None:
    phi, tau = episodes(9, n=30)
    pool = np.concatenate([tau, episodes(10, n=90)[1]])
    for power in (1.0, 0.4):
        estimate = one_step_mean(phi, tau, power=power, pool_tau=pool, interval="t")
        residual = phi - power * tau.mean(axis=1)
        assert estimate.value == pytest.approx(residual.mean() + power * pool.mean(), abs=1e-12)
        assert estimate.se == pytest.approx(math.sqrt(residual.var(ddof=1) / 30 * (1 - 30 / 120)), abs=1e-12)
        assert estimate.diagnostics["naive_se"] == pytest.approx(math.sqrt(phi.var(ddof=1) / 30 * 0.75), abs=1e-12)
    assert (estimate.diagnostics["target"], estimate.diagnostics["pool_size"]) == ("pool", 120)


def test_a_fully_labeled_pool_is_known_exactly() -> None:
    phi, tau = episodes(11)
    for rule in RULES:
        estimate = one_step_mean(phi, tau, power=rule, power_from=[episodes(1)], pool_tau=tau)
        assert estimate.value == pytest.approx(phi.mean(), abs=1e-12)
        assert (estimate.se, estimate.low, estimate.high) == pytest.approx((0.0, phi.mean(), phi.mean()), abs=1e-12)


def test_clusters_enter_the_standard_error_and_the_folds() -> None:
    phi, tau = episodes(12, n=60)
    clusters = np.repeat(np.arange(20), 3)
    psi = one_step_values(phi, tau)
    sums = np.bincount(clusters, weights=psi - psi.mean())
    expected = math.sqrt(20 / 19 * np.sum(sums**2)) / 60
    assert one_step_mean(phi, tau, clusters=clusters).se == pytest.approx(expected, rel=1e-12)
    loo = one_step_mean(phi, tau, power="loo", clusters=clusters)
    contrast = tau[:, 0] - tau[:, 1:].mean(axis=1)
    slopes = left_out_slopes(phi, contrast[:, None], clusters, 20)[:, 0]
    keep = clusters != 4
    assert slopes[4] == pytest.approx(stats.linregress(contrast[keep], phi[keep]).slope, abs=1e-12)
    assert loo.diagnostics["clusters"] == 20
    tuned = one_step_mean(phi, tau, power="tuned", clusters=clusters)
    assert tuned.diagnostics["df"] == 19
    with pytest.raises(ValueError, match="at least 2 clusters"):
        one_step_mean(phi, tau, clusters=np.zeros(60))


@pytest.mark.parametrize("rule", RULES)
def test_constant_predictions_give_the_naive_mean(rule: object) -> None:
    phi = episodes(13, n=20)[0]
    estimate, naive = one_step_mean(phi, np.full((20, 4), 0.1), power=rule, power_from=[episodes(2)]), naive_mean(phi)  # type: ignore[arg-type]
    assert (estimate.value, estimate.se, estimate.low, estimate.high) == pytest.approx(
        (naive.value, naive.se, naive.low, naive.high), abs=1e-14
    )
    assert estimate.diagnostics["variance_reduction"] == 0.0
    assert math.isnan(estimate.diagnostics["within_item_test_p"])


@pytest.mark.parametrize("rule", ["tuned", "loo", "cross-fit", 1.0])
def test_all_right_answers_keep_a_wide_interval(rule: object) -> None:
    tau = np.random.default_rng(1).random((15, 4))
    estimate = one_step_mean(np.ones(15), tau, power=rule)  # type: ignore[arg-type]
    assert estimate.high - estimate.low > 0.15
    assert estimate.diagnostics["n_effective"] == 15


def test_the_smallest_inputs() -> None:
    one = one_step_mean([1.0], [[0.2, 0.5]], power="loo")
    assert one.value == 1.0
    assert math.isnan(one.se)
    assert 0.0 < one.low < one.high <= 1.0
    with pytest.raises(ValueError, match="at least 3 items"):
        one_step_mean([1.0, 0.0], [[0.2, 0.5], [0.4, 0.3]], power="tuned")


def test_diagnostics_are_those_of_the_contract_and_strict_json() -> None:
    for rule in RULES:
        estimate = one_step_mean(*episodes(14), power=rule, power_from=[episodes(2)])
        assert set(estimate.diagnostics) >= CONTRACT
        low, high = (estimate.diagnostics[f"variance_reduction_{end}"] for end in ("low", "high"))
        assert low < estimate.diagnostics["variance_reduction"] < high
        json.dumps(estimate.to_dict(), allow_nan=False)


def test_equal_inputs_give_equal_bytes_and_the_default_seed_is_documented() -> None:
    phi, tau = episodes(15, n=60)
    first = one_step_mean(phi, tau, power="cross-fit")
    assert first.to_dict() == one_step_mean(phi, tau, power="cross-fit").to_dict()
    assert (
        first.to_dict() == one_step_mean(phi, tau, power="cross-fit", rng=np.random.default_rng(DEFAULT_SEED)).to_dict()
    )
    assert str(DEFAULT_SEED) in (one_step_mean.__doc__ or "")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"tau": np.full((40, 1), 0.5)}, ValueError, "at least 2"),
        ({"tau": np.full((39, 3), 0.5)}, ValueError, r"got \(39, 3\)"),
        ({"tau": np.full((40, 3), np.nan)}, ValueError, "missing"),
        ({"power": "best"}, ValueError, "one of tuned"),
        ({"power": math.nan}, ValueError, "finite"),
        ({"power": None}, TypeError, "number"),
        ({"power": "pooled"}, ValueError, "power_from"),
        ({"power": "cross-fit", "folds": 1}, ValueError, "folds"),
        ({"pool_tau": np.full((39, 7), 0.5)}, ValueError, "39 rows"),
        ({"interval": "exact"}, ValueError, "interval"),
    ],
)
def test_refusals_name_the_argument(change: dict[str, object], error: type[Exception], words: str) -> None:
    phi, tau = episodes(16)
    with pytest.raises(error, match=words):
        one_step_mean(**{"phi": phi, "tau": tau, **change})  # type: ignore[arg-type]


def test_inputs_are_left_alone() -> None:
    phi, tau = episodes(17)
    before = phi.copy(), tau.copy()
    one_step_mean(phi, tau, power="tuned", pool_tau=tau)
    assert np.array_equal(before[0], phi)
    assert np.array_equal(before[1], tau)


def test_the_within_item_test_holds_its_level_and_finds_a_signal() -> None:
    rng = np.random.default_rng(18)
    hits, reps = 0, 1500
    for _ in range(reps):
        ease = rng.normal(size=(20, 1))
        phi = (ease[:, 0] + rng.normal(size=20) > 0).astype(float)
        hits += within_item_test(phi, 1 / (1 + np.exp(-ease - rng.normal(size=(20, 5))))) < 0.05
    assert abs(hits / reps - 0.05) < 4 * math.sqrt(0.05 * 0.95 / reps)
    assert one_step_mean(*episodes(19, n=80)).diagnostics["within_item_test_p"] < 1e-4


def test_a_paired_gap_uses_the_pairs() -> None:
    rng = np.random.default_rng(20)
    ease = rng.normal(size=200)
    a = (ease + 0.3 * rng.normal(size=200) > -0.4).astype(float)
    b = (ease + 0.3 * rng.normal(size=200) > 0.0).astype(float)
    gap = mean_gap(a, b)
    low, high = stats.t.interval(0.95, 199, (a - b).mean(), stats.sem(a - b))
    assert (gap.value, gap.se, gap.low, gap.high) == pytest.approx(((a - b).mean(), stats.sem(a - b), low, high))
    assert gap.diagnostics["unpaired_se"] > gap.se
    assert gap.diagnostics["power_a"] is None


def test_a_gap_corrects_both_sides() -> None:
    (a, tau_a), (b, tau_b) = episodes(21, n=80), episodes(22, n=80)
    difference = one_step_values(a, tau_a) - one_step_values(b, tau_b)
    gap = mean_gap(a, b, tau_a, tau_b)
    assert (gap.value, gap.se) == pytest.approx((difference.mean(), stats.sem(difference)), abs=1e-12)
    tuned = mean_gap(a, b, tau_a, tau_b, power="tuned")
    contrasts = [tau[:, 0] - tau[:, 1:].mean(axis=1) for tau in (tau_a, tau_b)]
    matrix = np.stack([np.ones(80), contrasts[0], -contrasts[1]], axis=1)
    solution, rss, *_ = np.linalg.lstsq(matrix, a - b)
    assert (tuned.value, tuned.diagnostics["power_a"], tuned.diagnostics["power_b"]) == pytest.approx(tuple(solution))
    assert tuned.se == pytest.approx(math.sqrt(rss[0] / 77 * np.linalg.inv(matrix.T @ matrix)[0, 0]))
    assert tuned.diagnostics["df"] == 77
    only_a = mean_gap(a, b, tau_a, power="loo")
    assert only_a.diagnostics["power_b"] is None
    with pytest.raises(ValueError, match="pool_tau_b needs tau_b"):
        mean_gap(a, b, tau_a, pool_tau_a=tau_a, pool_tau_b=tau_b)


def test_two_models_that_agree_everywhere_are_not_certainly_equal() -> None:
    gap = mean_gap(np.ones(15), np.ones(15))
    assert gap.value == 0.0
    assert gap.low < -0.05
    assert gap.high > 0.05


def test_the_module_loads_neither_scipy_stats_nor_sklearn() -> None:
    code = (
        "import sys, numpy as np, pipeline.estimators as e\n"
        "e.naive_mean([0, 1]); e.one_step_mean([0, 1, 1], np.ones((3, 2)), power='tuned'); e.mean_gap([0, 1], [1, 1])\n"
        "print([m for m in ('scipy.stats', 'sklearn', 'litellm', 'polars') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
