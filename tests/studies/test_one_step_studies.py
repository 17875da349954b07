"""The one-step studies: closed forms against Monte Carlo, features, the printed tables, the frame."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.estimators import cross_fit_tau, one_step_values
from pipeline.report.printers.svg import svg
from pipeline.studies.one_step.printed import PRINTED, disagreements
from pipeline.studies.one_step.ranking import ranking_theory
from pipeline.studies.one_step.simulation import (
    LinearLeastSquares,
    World,
    cubic_features,
    linear_features,
    own_and_averaged,
    quadratic_features,
)
from pipeline.studies.registry import StudyOptions, load_study
from pipeline.studies.results import Measured
from pipeline.studies.runner import run_study

FloatArray = NDArray[np.float64]
TABLE = {
    0.1: (0.023, 0.047, 0.367, -0.045),
    0.5: (0.222, 0.338, 0.689, -0.224),
    1.0: (0.410, 0.541, 0.775, -0.249),
    2.0: (0.609, 0.718, 0.833, -0.203),
    5.0: (0.808, 0.870, 0.897, -0.113),
}


@pytest.mark.parametrize("variance", TABLE)
def test_closed_forms_give_the_known_table(variance: float) -> None:
    world = World(variance)
    one, two, full, literal = TABLE[variance]
    assert world.variance_reduction(1) == pytest.approx(one, abs=6e-4)
    assert world.variance_reduction(2) == pytest.approx(two, abs=6e-4)
    assert world.literal_reduction(2, 500) == pytest.approx(literal, abs=6e-4)
    assert world.full_reduction() == pytest.approx(full, abs=3e-3)
    assert world.full_reduction(100) == pytest.approx(world.full_reduction(300), abs=3e-4)


def _reduction(world: World, tau: FloatArray, phi: FloatArray) -> tuple[float, float]:
    """1 − Var ψ/Var φ with the exact Var φ = 2σ⁴, and its Monte Carlo standard error."""
    psi = one_step_values(phi, tau)
    difference = ((phi - world.variance) ** 2 - (psi - world.variance) ** 2) / (2 * world.variance**2)
    return float(difference.mean()), float(difference.std() / math.sqrt(len(phi)))


@pytest.mark.parametrize("variance", [0.25, 1.0, 3.0])
def test_closed_forms_lie_in_monte_carlo_intervals_under_both_readings(variance: float) -> None:
    world, draws = World(variance), 40
    fresh = world.draw(40_000, draws, np.random.default_rng(1))
    literal = world.draw(40_000, draws, np.random.default_rng(2), "literal")
    shrink = 1.0 - 1.0 / draws
    for data, tau, expected in (
        (fresh, world.tau_one(fresh.s1), shrink * world.variance_reduction(1)),
        (fresh, world.tau_two(fresh.s1, fresh.s2), shrink * world.variance_reduction(2)),
        (fresh, world.tau_full(fresh.s1, fresh.s2, fresh.prefers_first), shrink * world.full_reduction()),
        (literal, world.tau_one(literal.s1), world.literal_reduction(1, draws)),
        (literal, world.tau_two(literal.s1, literal.s2), world.literal_reduction(2, draws)),
    ):
        measured, error = _reduction(world, tau, data.phi)
        assert abs(measured - expected) < 3.5 * error


def test_exact_regressions_are_conditional_means() -> None:
    world = World(1.0)
    data = world.draw(400_000, 1, np.random.default_rng(3))
    phi, s1, s2, v = data.phi, data.s1[:, 0], data.s2[:, 0], data.prefers_first[:, 0]
    one, two, full = world.tau_one(s1), world.tau_two(s1, s2), world.tau_full(s1, s2, v)
    for tau, seen in ((one, [s1]), (two, [s1, s2, s1 * s2]), (full, [s1, s2, s1 * s2, v * 1.0, v * s1])):
        for probe in (np.ones_like(s1), tau, *seen):
            moment = (phi - tau) * probe
            assert abs(moment.mean()) < 4.5 * moment.std() / math.sqrt(len(moment))


def test_one_averaged_draw_stands_for_all_draws_of_a_linear_regression() -> None:
    world = World(1.0)
    data = world.draw(60, 7, np.random.default_rng(4))
    for terms in (linear_features(data), quadratic_features(data), cubic_features(data)):
        whole = cross_fit_tau(
            data.phi, np.stack(terms, axis=-1), regressor=LinearLeastSquares(), rng=np.random.default_rng(5)
        )
        averaged = cross_fit_tau(
            data.phi, own_and_averaged(terms), regressor=LinearLeastSquares(), rng=np.random.default_rng(5)
        )
        assert one_step_values(data.phi, averaged) == pytest.approx(one_step_values(data.phi, whole), abs=1e-10)
    default = cross_fit_tau(data.phi, np.stack([data.s1, data.s2], axis=-1), rng=np.random.default_rng(5))
    quadratic = cross_fit_tau(
        data.phi, own_and_averaged(quadratic_features(data)), regressor=LinearLeastSquares(),
        rng=np.random.default_rng(5),
    )  # fmt: skip
    assert one_step_values(data.phi, quadratic) == pytest.approx(one_step_values(data.phi, default), abs=1e-9)


def test_ranking_theory_reproduces_the_known_accuracies() -> None:
    for base, naive, quadratic in ((0.5, 0.85, 0.94), (1.0, 0.56, 0.76), (2.0, 0.36, 0.56), (3.0, 0.29, 0.47)):
        variances = (base, base + 0.05, base + 0.1)
        gains = [World(variance).variance_reduction(2) for variance in variances]
        assert ranking_theory(variances, [0.0] * 3, 1000) == pytest.approx(naive, abs=0.02)
        assert ranking_theory(variances, gains, 1000) == pytest.approx(quadratic, abs=0.025)


def test_the_four_known_misprints_are_found() -> None:
    found = {(row.table, row.model, row.config): (row.improvement, round(row.recomputed, 2)) for row in disagreements()}
    assert found == {
        (3, "QwQ-32B-Preview", 1): (3.40, 1.85),
        (3, "GPT-5.2", 2): (0.50, 0.00),
        (3, "Qwen3-Next-80B-A3B-Instruct", 2): (0.24, -0.30),
        (9, "DeepSeek-R1-Distill-Qwen-32B", 2): (0.00, -0.02),
    }
    assert len(PRINTED) == 80


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["one-step-signal", "one-step-noise", "one-step-coupling", "one-step-small-n", "one-step-printed"]
)
def test_every_study_runs_and_renders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("one_step.ranking", "one_step.coupling"):
        monkeypatch.setattr(f"pipeline.studies.{module}.ITEMS", 60)
        monkeypatch.setattr(f"pipeline.studies.{module}.DRAWS", 5)
    monkeypatch.setattr("pipeline.studies.one_step.ranking.BASE_VARIANCES", (0.5, 2.0))
    monkeypatch.setattr("pipeline.studies.one_step.ranking.NOISE_VARIANCES", (0.36, 1.0))
    monkeypatch.setattr("pipeline.studies.one_step.small_n.CHUNK", 2)
    study = load_study(name)
    assert study.name == name
    result = run_study(study, StudyOptions(reps=2))
    assert result.to_text() == run_study(study, StudyOptions(reps=2)).to_text()
    assert all(svg(figure).startswith("<svg") for figure in result.figures.values())
    assert bool(result.figures) == (name != "one-step-printed")
    measured = [cell for table in result.tables for row in table.rows for cell in row if isinstance(cell, Measured)]
    assert bool(measured) == (name != "one-step-printed")
