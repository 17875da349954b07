"""The LACE studies: closed forms to the printed digits, shortcuts against the library, Monte Carlo slices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline.estimators import Gaussian, lace_profile
from pipeline.estimators.comparators.control_variates import lace_value
from pipeline.studies.lace import a as lace_a
from pipeline.studies.lace import discrete as lace_discrete
from pipeline.studies.lace import repeated_pool as lace_repeated_pool
from pipeline.studies.lace.designs import (
    REPEATED_POOL_BENCHMARKS,
    gain_prediction,
    repeated_pool,
    setting_a,
    setting_b,
    setting_c,
    specialists_a,
)
from pipeline.studies.lace.efficiency import geometric_mean, log_ratio
from pipeline.studies.lace.methods import design_comparison
from pipeline.studies.registry import StudyOptions, load_study
from pipeline.studies.results import Measured
from pipeline.studies.runner import map_replicates


def test_theorem_4_predictions_to_three_decimals() -> None:
    r_squared = specialists_a(np.linspace(0.1, 0.9, 17)).r_squared(np.full(17, 0.5))
    assert [round(gain_prediction(r_squared, share), 3) for share in (0.05, 0.10, 0.15)] == [3.245, 2.902, 2.625]


@pytest.mark.parametrize("design", [setting_b(4), setting_c(4), repeated_pool("mmlu", 2, 100, pool_size=200_000)])
def test_closed_form_moments_are_those_of_the_draws(design: object) -> None:
    assert isinstance(design, type(setting_b()))
    z, y, signals = design.pool(np.random.default_rng(0))
    assert design.signals is not None
    gram, cross = design.signals.moments(design.theta)
    for level in (0, len(design.support) // 2):
        rows = z == design.support[level]
        count = rows.sum()
        tolerance = 6.0 * math.sqrt(max(gram[level].max(), 1.0) ** 2 / count)
        if count < 200:
            continue
        support = design.support == design.support[level]
        np.testing.assert_allclose(y[rows].mean(), design.theta[support].mean(), atol=3.0 / math.sqrt(count))
        np.testing.assert_allclose(np.cov(signals[rows].T, ddof=0), gram[support].mean(axis=0), atol=tolerance)
        mixed = (signals[rows] - signals[rows].mean(axis=0)).T @ (y[rows] - y[rows].mean()) / count
        np.testing.assert_allclose(mixed, cross[support].mean(axis=0), atol=tolerance)


@pytest.mark.parametrize("benchmark", REPEATED_POOL_BENCHMARKS)
def test_repeated_pool_signals_are_standardised_by_the_population(benchmark: str) -> None:
    design = repeated_pool(benchmark, 0, 50, pool_size=40_000)
    _, _, signals = design.pool(np.random.default_rng(1))
    np.testing.assert_allclose(signals.mean(axis=0), 0.0, atol=5.0 / 200.0)
    np.testing.assert_allclose(signals.std(axis=0), 1.0, atol=5.0 / 200.0)
    assert len(design.at) == 20
    assert isinstance(design.locality, Gaussian)


def test_setting_a_shortcut_agrees_with_lace_profile() -> None:
    design = setting_a(3_000)
    z, y, signals = design.pool(np.random.default_rng(2))
    labeled = np.zeros(len(z), dtype=bool)
    labeled[np.random.default_rng(3).permutation(len(z))[:300]] = True
    curves, _ = lace_a._estimates(design, z, y, signals, labeled)
    assert isinstance(design.locality, Gaussian)
    width = float(np.asarray(design.locality.bandwidth))
    observed = np.where(labeled, y, np.nan)
    options = {"at": design.at, "locality": design.locality, "interval": "t"}
    feasible = lace_profile(z, observed, signals, ridge=1.0 / (300 * width), **options)
    oracle = lace_profile(z, observed, signals, coefficients=design.oracle, **options)
    fixed = lace_profile(z, observed, signals, coefficients=design.oracle, at=design.at, locality=Gaussian(0.12))
    np.testing.assert_allclose(curves[1], oracle.value, atol=1e-10)
    np.testing.assert_allclose(curves[2], feasible.value, atol=1e-10)
    np.testing.assert_allclose(curves[4], fixed.value, atol=1e-10)


def test_study_shortcut_agrees_with_lace_profile() -> None:
    design = repeated_pool("arc", 1, 100)
    rng = np.random.default_rng(4)
    draw = design.draw(rng, 100)
    problem = design_comparison(design, draw, rng)
    profile = lace_profile(draw.z, draw.observed, draw.signals, at=design.at, locality=design.locality)
    np.testing.assert_allclose(lace_value(problem)[0], profile.value, atol=1e-10)


def test_log_ratio_interval_covers_at_its_level() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(400):
        naive = rng.chisquare(3, size=60)
        cell = log_ratio(naive, 0.25 * naive + rng.chisquare(3, size=60) * 0.25).measured()
        assert cell.low is not None
        assert cell.high is not None
        hits += cell.low <= 2.0 <= cell.high
    assert 0.95 - 4 * math.sqrt(0.05 * 0.95 / 400) <= hits / 400


def test_log_ratio_leaves_out_missing_replicates_and_groups_add_up() -> None:
    naive, errors = np.array([1.0, 2.0, np.nan, 3.0]), np.array([0.5, 1.0, 7.0, 1.5])
    cell = log_ratio(naive, errors)
    assert math.exp(cell.value) == pytest.approx(2.0)
    assert cell.variance == pytest.approx(0.0)
    noisy = log_ratio(np.array([1.0, 3.0, 2.0, 5.0]), np.array([1.0, 1.0, 4.0, 2.0]))
    apart, joint = geometric_mean([noisy, noisy]), geometric_mean([noisy, noisy], groups=["a", "a"])
    assert apart.value == joint.value
    assert joint.low is not None
    assert apart.low is not None
    assert joint.low < apart.low
    assert math.isnan(geometric_mean([log_ratio(np.zeros(3), np.zeros(3))]).value)


def test_repeated_pool_slice_is_near_the_printed_numbers() -> None:
    """Six settings of Table 34 under the printed reading; tolerances are four Monte Carlo standard errors."""
    tasks = {
        f"{benchmark}/{regime}": (benchmark, regime, 100, "printed", True, lace_repeated_pool.METHODS, 30)
        for benchmark in ("math500", "mmlu")
        for regime in range(3)
    }
    errors = [np.asarray(rows) for rows in map_replicates(lace_repeated_pool.replicate_errors, tasks, seed=6).values()]
    for method in ("lace", "global_cv", "per_signal_cv", "aug_plugin", "local_ppi", "ppci"):
        column = lace_repeated_pool.METHODS.index(method)
        cells = [log_ratio(block[:, 0], block[:, column]) for block in errors]
        measured = math.log(geometric_mean(cells).value)
        spread = math.sqrt(sum(cell.variance for cell in cells)) / len(cells)
        assert abs(measured - math.log(lace_repeated_pool.PAPER[method][1])) < 4 * spread + 0.03, method


def test_stress_tests_rank_methods_as_the_paper_does() -> None:
    rng = np.random.default_rng(7)
    for setting in ("B", "C"):
        blocks = [np.asarray(lace_discrete.replicate_errors((setting, design, 500, 6), rng)) for design in range(5)]
        means = np.mean([block.mean(axis=0) for block in blocks], axis=0)
        error = dict(zip(lace_discrete.METHODS, means, strict=True))
        assert error["lace_oracle"] < error["lace"] < error["global_cv"] < error["naive"]
        assert error["naive"] < error["plugin_judge"]
        assert error["residual_only"] > 10 * error["naive"]


@pytest.mark.parametrize("name", ["lace-b", "lace-c"])
def test_a_tiny_run_has_every_number(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lace_discrete, "DESIGNS", 1)
    result = load_study(name).run(StudyOptions(reps=2))
    cells = [cell for table in result.tables for row in table.rows for cell in row if isinstance(cell, Measured)]
    assert all(np.isfinite(cell.value) for cell in cells)
    assert "paper" in result.to_text()
