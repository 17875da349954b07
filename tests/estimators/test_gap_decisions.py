"""Paired gaps by LACE that are decided on together."""

from itertools import combinations

import numpy as np
import pytest

from pipeline.estimators import FittedGap, fit_gap, joint_gaps


def _pool(models: int, rows: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    signals = rng.standard_normal((rows, models))
    outcomes = (signals + rng.standard_normal((rows, models)) > 0.0).astype(float)
    labeled = np.zeros(rows, dtype=bool)
    labeled[:80] = True
    return outcomes, signals, labeled


def _fits(models: int, **options: object) -> list[tuple[str, str, FittedGap]]:
    outcomes, signals, labeled = _pool(models)
    return [
        (
            str(a),
            str(b),
            fit_gap(
                np.where(labeled, outcomes[:, a] - outcomes[:, b], np.nan),
                np.column_stack([signals[:, a], signals[:, b]]),
                **options,  # type: ignore[arg-type]
            ),
        )
        for a, b in combinations(range(models), 2)
    ]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_item_on_which_models_differ_decides_nothing(sign: float) -> None:
    y = np.full(300, np.nan)
    y[:50] = 0.0
    y[7] = sign
    gap = fit_gap(y, np.random.default_rng(1).standard_normal((300, 3))).estimate()
    assert gap.low < 0.0 < gap.high


def test_agreement_on_every_label_is_no_proof_of_equality() -> None:
    y = np.full(300, np.nan)
    y[:50] = 0.0
    signals = np.random.default_rng(1).standard_normal((300, 2))
    (pair,) = joint_gaps([("a", "b", fit_gap(y, signals))], margin=0.02)
    assert pair.low < -0.02 < 0.02 < pair.high
    assert pair.equivalent is False
    assert pair.p == 1.0


def test_joint_intervals_lie_between_single_ones_and_bonferronis() -> None:
    fits = _fits(4)
    for (_, _, fit), pair in zip(fits, joint_gaps(fits), strict=True):
        bonferroni = fit.estimate(1.0 - 0.05 / 6)
        assert bonferroni.low <= pair.low < pair.low_single < pair.value < pair.high_single
        assert pair.high <= bonferroni.high


def test_correlated_pairs_need_less_than_bonferroni_and_a_copied_pair_needs_nothing() -> None:
    fits = _fits(4)
    assert joint_gaps(fits)[0].high < fits[0][2].estimate(1.0 - 0.05 / 6).high
    (a, b, fit), *_ = fits
    twice = joint_gaps([(a, b, fit), (a, "copy of b", fit)])
    assert twice[0].high - twice[0].value == pytest.approx(twice[0].high_single - twice[0].value, rel=0.02)


def test_the_population_is_less_certain_than_the_pool() -> None:
    (_, _, pool), *_ = _fits(2)
    (_, _, population), *_ = _fits(2, target="population")
    assert population.value == pool.value
    assert population.variance > pool.variance


def test_clusters_are_the_units_and_widen_the_gap() -> None:
    y = np.full(200, np.nan)
    y[:60] = np.repeat(np.random.default_rng(3).choice([-1.0, 0.0, 1.0], 12), 5)
    groups = np.arange(200) // 5
    none = np.zeros((200, 0))
    alone, together = fit_gap(y, none), fit_gap(y, none, clusters=groups)
    assert together.variance > 2.0 * alone.variance
    assert set(together.units.tolist()) == set(range(12))


def test_pairs_on_different_rows_are_correlated_by_the_names_of_their_items() -> None:
    (a, b, fit), *_ = _fits(2)
    outcomes, signals, labeled = _pool(2)
    order = np.random.default_rng(0).permutation(len(labeled))
    y = np.where(labeled, outcomes[:, 0] - outcomes[:, 1], np.nan)[order]
    moved = fit_gap(y, signals[order], items=order)
    twice = joint_gaps([(a, b, fit), (a, "c", moved)])
    assert twice[0].high == pytest.approx(twice[0].high_single, abs=0.005)


def test_refusals_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="at least 2 items"):
        fit_gap([1.0, np.nan], np.zeros((2, 1)))
    with pytest.raises(ValueError, match="margin"):
        joint_gaps(_fits(2), margin=0.0)
    assert joint_gaps([]) == ()


def test_cluster_components_of_equal_clusters_are_the_repeated_answers() -> None:
    from pipeline.estimators import cluster_components, variance_components

    rng = np.random.default_rng(5)
    phi = (rng.random((30, 4)) < rng.random((30, 1))).astype(float)
    parts = cluster_components(phi.ravel(), np.repeat(np.arange(30), 4))
    whole = variance_components(phi)
    assert parts is not None
    assert parts["size"] == pytest.approx(4.0)
    assert parts["between"] == pytest.approx(max(whole.item, 0.0))
    assert parts["within"] == pytest.approx(whole.sampling)
    assert cluster_components(phi[:, 0], np.arange(30)) is None
