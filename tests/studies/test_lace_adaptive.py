"""The adaptive study: scores computed as stated, every rule present, and the rule itself no worse than labels alone."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.errors import InputError
from pipeline.studies.lace import adaptive as lace_adaptive
from pipeline.studies.lace import adaptive_cells
from pipeline.studies.lace.adaptive_cells import BUDGETS
from pipeline.studies.real import robustness as real_robustness
from pipeline.studies.real import splits as real_splits
from pipeline.studies.real.tables import RealCell, build_cell, spread_targets
from pipeline.studies.registry import StudyOptions, load_study
from pipeline.studies.runner import map_replicates


def synthetic_cell(seed: int, kind: str = "continuous", size: int = 400) -> RealCell:
    rng = np.random.default_rng(seed)
    z = rng.choice(["a", "b", "c"], size) if kind == "categorical" else rng.normal(size=size)
    y = (rng.random(size) < 0.5).astype(float)
    raw = np.column_stack(
        [y + rng.normal(size=size) * 0.5, rng.normal(size=size), np.where(rng.random(size) < 0.1, np.nan, y)]
    )
    families = {"good": "judge", "noise": "noise", "gappy": "judge"}
    return build_cell("t/axis", f"m{seed}", z, kind, y, raw, families)  # type: ignore[arg-type]


def test_missing_signals_get_an_indicator_in_their_own_family() -> None:
    cell = synthetic_cell(0)
    assert cell.signals.shape[1] == 4
    assert cell.families == {"judge": (0, 2, 3), "noise": (1,)}
    np.testing.assert_allclose(cell.signals.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(cell.signals.std(axis=0), 1.0)


def test_score_is_error_coverage_and_length_over_reached_points() -> None:
    found = adaptive_cells._Interval(np.array([0.5, 0.2, 9.0]), np.array([0.4, 0.1, 8.0]), np.array([0.6, 0.15, 10.0]))
    score = adaptive_cells._score(found, np.array([0.45, 0.2, 0.0]), np.array([True, True, False]))
    assert score == pytest.approx([0.05**2 / 2, 0.5, (0.2 + 0.05) / 2])
    alone = adaptive_cells._score(adaptive_cells._no_interval([0.5]), np.array([0.0]), np.array([True]))
    assert alone[0] == 0.25
    assert np.isnan(alone[1:]).all()


@pytest.mark.parametrize("kind", ["continuous", "categorical"])
def test_the_adaptive_rule_beats_labels_alone_with_a_good_signal(kind: str) -> None:
    record = adaptive_cells.profile_cell(synthetic_cell(1, kind), 12, np.random.default_rng(2))
    naive = np.array(record["naive"])[:, :, 0].mean(axis=1)
    adaptive = np.array(record["average"])[:, :, 0].mean(axis=1)
    assert (adaptive[1:] < 0.9 * naive[1:]).all()
    assert ("ppci" in record) == (kind == "continuous")
    assert all(len(rows) == 12 for rows in record["lace"])
    covered = np.array(record["average"])[1:, :, 1]
    assert covered.mean() > 0.85


def test_means_gaps_and_deployment_have_every_rule_and_budget() -> None:
    cell, other = synthetic_cell(3), synthetic_cell(3)
    rng = np.random.default_rng(4)
    mean = adaptive_cells.mean_cell(cell, 3, rng)
    assert {"naive", "ridge 0.3", "mean rule", "mean rule, no learner", "profile rule"} <= set(mean)
    gap = adaptive_cells.gap_cell(cell, other, 2, rng)
    assert set(gap) == {"naive", "lace", "average"}
    assert max(row[0] for row in gap["naive"][0]) == 0.0  # identical outcomes: no gap anywhere
    deployment = adaptive_cells.deployment_cell(cell, 3, rng)
    for record in (mean, gap, deployment):
        assert all(len(budgets) == len(BUDGETS) and len(budgets[-1]) >= 2 for budgets in record.values())


def test_a_peer_that_refuses_gets_the_labeled_mean() -> None:
    def refuses(*_: object) -> tuple[float, float, float]:
        raise RuntimeError("singular")

    found = adaptive_cells._peer(refuses, np.array([1.0, 0.0, np.nan]), np.zeros((3, 1)), np.random.default_rng(0))
    assert found.value.tolist() == [0.5]
    assert np.isnan(found.low).all()


def test_a_tiny_run_without_table_shows_the_synthetic_designs() -> None:
    result = load_study("lace-adaptive").run(StudyOptions(reps=2))
    assert [table.title.split(":")[0] for table in result.tables] == [lace_adaptive.TITLES["synthetic"]] * 2
    rules = {row[0] for row in result.tables[0].rows}
    assert {"LACE, adaptive", "LACE, adaptive + logistic", "PPCI", "Local PPI"} <= rules


def test_targets_are_spread_over_the_mean_outcome() -> None:
    cells = [synthetic_cell(seed) for seed in range(5)]
    chosen = spread_targets(cells, 3)
    means = [float(cell.y.mean()) for cell in cells]
    assert [float(cell.y.mean()) for cell in chosen] == [sorted(means)[index] for index in (0, 2, 4)]


def test_grid_and_families_use_the_same_splits_for_every_variant() -> None:
    cell = synthetic_cell(5)
    found = map_replicates(_families, {"x": cell}, seed=1)["x"]
    assert set(found) == {"naive", "all", "without judge", "judge alone", "without noise", "noise alone"}
    assert np.mean(found["judge alone"][1]) < np.mean(found["noise alone"][1])
    grid = real_robustness.grid(cell, 3, np.random.default_rng(0))
    assert grid["naive 0.03 1.0"] == grid["naive 3.0 1.0"]
    assert grid["lace 0.03 1.0"] != grid["lace 3.0 1.0"]


def _families(cell: RealCell, rng: np.random.Generator) -> object:
    return real_robustness.families(cell, 6, rng)


def test_tuning_folds_are_balanced_and_selection_stays_in_its_grid() -> None:
    rng = np.random.default_rng(6)
    y = np.array([1.0] * 10 + [0.0] * 20)
    folds = real_robustness._balanced_folds(y, rng)
    for fold in range(3):
        assert abs((y[folds == fold]).sum() - 10 / 3) < 1.0
        assert (folds == fold).sum() == 10
    cell = synthetic_cell(7)
    prepared = real_splits.cell_pool(cell)
    problem = real_splits.split(prepared, rng.permutation(400)[:60], rng)
    parts = real_robustness._balanced_folds(problem.y, rng)
    for method in real_splits.methods_for(cell):
        chosen = real_robustness._select(method, prepared, problem, parts, rng)
        assert (chosen is None) == (method in ("naive", "lace_adaptive"))
        assert chosen is None or chosen in real_splits.tuning_grid(method)


def test_tuned_value_at_the_default_is_the_default() -> None:
    cell = synthetic_cell(8)
    prepared = real_splits.cell_pool(cell)
    rng = np.random.default_rng(9)
    problem = real_splits.split(prepared, rng.permutation(400)[:60], rng)
    defaults = {"strat_ppi": 5.0, "ppci": 1.0, "local_ppi": 1.0, "lace": 0.3, "global_cv": 0.3, "scalar_cv": 1.0}
    for method, parameter in defaults.items():
        expected = real_splits.method_value(method, prepared, problem)
        np.testing.assert_allclose(real_splits.tuned_value(method, prepared, problem, parameter), expected, atol=1e-12)


def test_proportional_draws_take_each_stratum_by_its_share() -> None:
    rng = np.random.default_rng(10)
    groups = np.repeat(np.arange(4), (40, 30, 20, 10))
    for _ in range(20):
        rows = real_robustness._proportional(groups, 25, rng)
        assert len(set(rows.tolist())) == 25
        counts = np.bincount(groups[rows], minlength=4)
        assert np.all(np.abs(counts - np.array([10, 7.5, 5, 2.5])) < 1.0)


def test_peers_must_not_make_a_checkpoint_of_other_peers_pass(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    options = StudyOptions(reps=2, out=tmp_path / "a.txt")
    monkeypatch.setattr(lace_adaptive, "_designs", lambda: {"B": lace_adaptive.setting_b(1, 500)})
    load_study("lace-adaptive").run(options)
    monkeypatch.setattr(lace_adaptive, "installed_peers", lambda: {"someone": None})
    with pytest.raises(InputError, match="other options"):
        load_study("lace-adaptive").run(options)
