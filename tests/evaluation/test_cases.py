"""Tables that gave a wrong number, with what is right; the files are read from the folder of shared data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipeline
from pipeline.estimators import Estimate, Profile
from pipeline.report.terminal import worth_sentences


@pytest.fixture
def case(shared_path: Path) -> Path:
    folder = shared_path / "cases" / "evaluation"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder


def mean(evaluation: Any, target: str, method: str) -> Estimate:
    found = evaluation[target][method]
    assert isinstance(found, Estimate)
    return found


def test_identical_repeats_are_one_label_each(case: Path) -> None:
    for named in ({"id": "item"}, {"id": "item", "cluster": "item"}):
        found = pipeline.estimate(case / "repeats_identical.csv", gold="gold", model="model", **named)
        assert mean(found, "a", "naive").se == pytest.approx(0.0645, abs=1e-4)
        assert mean(found, "b", "naive").se == pytest.approx(0.0614, abs=1e-4)
        assert mean(found, "a", "naive").worth == 60
        assert found.decisions is not None
        (pair,) = found.decisions.pairs
        assert pair.se == pytest.approx(0.0778, abs=1e-4)
        assert pair.verdict == "undecided"


def test_a_graded_table_decides_nothing_by_itself(case: Path) -> None:
    found = pipeline.estimate(case / "all_graded.csv", gold="gold", signals="judge", model="model", id="item_id")
    assert found.decisions is not None
    assert {pair.verdict for pair in found.decisions.pairs} == {"undecided"}
    these = pipeline.estimate(
        case / "all_graded.csv", gold="gold", signals="judge", model="model", id="item_id", target="pool"
    )
    assert these.decisions is not None
    assert {pair.verdict for pair in these.decisions.pairs} == {None}


def test_a_level_is_its_own(case: Path) -> None:
    found = pipeline.estimate(case / "levels_all.csv", gold="gold", signals="judge", profile="level", id="id")
    profile = found["all"]["lace_profile"]
    assert isinstance(profile, Profile)
    assert profile.value == pytest.approx([0.95, 0.825, 0.675, 0.50, 0.10], abs=1e-12)
    assert not profile.smoothed
    smooth = pipeline.estimate(
        case / "levels_all.csv", gold="gold", signals="judge", profile="level", id="id", smooth=True
    )["all"]["lace_profile"]
    assert isinstance(smooth, Profile)
    assert smooth.smoothed
    assert smooth.value[-1] > 0.15


def test_gap_profiles_weight_for_the_chances(case: Path) -> None:
    found = pipeline.estimate(
        case / "gap_profile_ignores_inclusion.csv", gold="y", signals="judge", model="model", id="id", inclusion="p",
        profile="cat",
    )  # fmt: skip
    (profile,) = [gap.estimate for gap in found.gaps if gap.method == "lace_gap_profile"]
    assert isinstance(profile, Profile)
    for value, se, truth in zip(profile.value, profile.se, (0.361, 0.367), strict=True):
        assert abs(value - truth) < 3 * se
        assert 0.02 < se < 0.15


def test_one_step_weights_for_the_chances(case: Path) -> None:
    found = pipeline.estimate(
        case / "one_step_ignores_inclusion.csv", gold="y", signals="judge", id="id", tau=["t0", "t1", "t2"],
        inclusion="p",
    )  # fmt: skip
    for method in ("naive", "one_step", "lace"):
        estimate = mean(found, "all", method)
        assert abs(estimate.value - 0.647) < 2.5 * estimate.se
    assert not any("hurt" in sentence for sentence in worth_sentences(found))


@pytest.mark.parametrize("name", ["ten_tied.csv", "twenty_tied.csv"])
def test_equally_good_models_are_not_ranked(case: Path, name: str) -> None:
    found = pipeline.estimate(case / name, gold="gold", signals="judge", model="model", id="id")
    assert found.decisions is not None
    assert {pair.verdict for pair in found.decisions.pairs} == {"undecided"}
    assert {entry.best for entry in found.decisions.rank_sets} == {1}
    assert len(found.decisions.rank_sets) == len(found)
    assert "No difference shown" in found.headline


def test_deployment_knows_the_clusters(case: Path) -> None:
    path = case / "clustered_weights.csv"
    alone = pipeline.estimate(path, gold="gold", signals="judge", weights="w")
    grouped = pipeline.estimate(path, gold="gold", signals="judge", weights="w", cluster="doc")
    growth = mean(grouped, "all", "naive").se / mean(alone, "all", "naive").se
    assert growth == pytest.approx(8.10 / 6.27, rel=0.02)
    deployed = mean(grouped, "all", "lace_deployment").se / mean(alone, "all", "lace_deployment").se
    assert deployed == pytest.approx(growth, rel=0.15)


def test_methods_are_about_one_target(case: Path) -> None:
    found = pipeline.estimate(case / "mostly_labelled.csv", gold="gold", signals="s1", id="id")
    naive, lace = mean(found, "all", "naive"), mean(found, "all", "lace")
    assert (naive.target, lace.target) == ("population", "population")
    assert lace.se == pytest.approx(naive.se, rel=0.02)


def test_noise_is_neutral(case: Path) -> None:
    found = pipeline.estimate(case / "noise50.csv", gold="gold", signals=["s1", "s2", "s3", "s4"], id="id")
    lace = mean(found, "all", "lace")
    assert lace.worth_high is not None
    assert lace.worth_high > 0.97 * lace.n
    assert not any("hurt" in sentence or "signals help" in sentence for sentence in worth_sentences(found))


def test_a_signal_that_is_not_monotone_costs_nothing(case: Path) -> None:
    found = pipeline.estimate(case / "ushape20.csv", gold="gold", signals="s", id="id")
    naive, lace = mean(found, "all", "naive"), mean(found, "all", "lace")
    assert lace.se <= 1.12 * naive.se
    assert lace.worth_low is None


@pytest.mark.parametrize("name", ["bon_zero.csv", "bon_rare.csv"])
def test_best_of_n_on_shares_has_an_interval_inside_0_and_1(case: Path, name: str) -> None:
    from pipeline.evaluation.best_of_n import ScoreColumns, estimate_best_of_n

    found = estimate_best_of_n(case / name, ScoreColumns(), [2])
    (value,) = [entry.estimate for entry in found.best_of_n if entry.measure == "score"]
    assert 0.0 <= value.low < value.high <= 1.0
    assert np.isfinite(value.se)
