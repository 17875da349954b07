"""Every comparator against the same formula written with explicit loops, and the traps they must survive."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pipeline.estimators import Categorical, Gaussian, Ordinal, comparator_profile, lace_profile
from pipeline.estimators.comparators import METHODS
from pipeline.estimators.comparators.conditional import matern_features
from pipeline.estimators.comparators.predictor import fit_standardized
from tests.estimators.comparator_oracle import POINTS, draw, oracle, predictions, value

PREDICTIVE = ("plugin_judge", "plugin_multi", "aug_plugin", "scalar_cv", "strat_ppi", "ppci")
WITHOUT_INTERVAL = ("plugin_judge", "plugin_multi", "local_ppi", "residual_only", "strat_ppi", "ppci")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "method",
    [
        "naive",
        "plugin_judge",
        "plugin_multi",
        "aug_plugin",
        "scalar_cv",
        "lace",
        "residual_only",
        "per_signal_cv",
        "global_cv",
    ],
)
def test_agrees_with_the_loop_oracle(method: str, seed: int) -> None:
    data = draw(seed)
    np.testing.assert_allclose(value(method, data), oracle(method, data), atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_strat_ppi_agrees_with_the_loop_oracle(seed: int) -> None:
    data = draw(seed, size=90, n=30)
    z, y = data["z"], data["y"]
    p = predictions(data, np.column_stack([z, data["signals"]]), out_of_fold=True)
    low, width = z.min(), (z.max() - z.min()) / 5
    heights, middles = [], []
    for g in range(5):
        inside = [i for i in range(90) if min(int((z[i] - low) / width), 4) == g]
        known = [i for i in inside if np.isfinite(y[i])]
        middles.append(low + (g + 0.5) * width)
        if len(known) < 2 or len(inside) < 2:
            heights.append(sum(y[i] for i in known) / len(known) if known else 0.5)
            continue
        pbar, ybar = sum(p[i] for i in known) / len(known), sum(y[i] for i in known) / len(known)
        covariance = sum((p[i] - pbar) * (y[i] - ybar) for i in known) / (len(known) - 1)
        ptotal = sum(p[i] for i in inside) / len(inside)
        variance = sum((p[i] - ptotal) ** 2 for i in inside) / (len(inside) - 1)
        heights.append(ybar - covariance / variance * (pbar - ptotal))
    np.testing.assert_allclose(value("strat_ppi", data), np.interp(data["at"], middles, heights), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_local_ppi_agrees_with_least_squares(seed: int) -> None:
    data = draw(seed)
    z, y, judge = data["z"], data["y"], data["raw_judge"]
    labeled = np.isfinite(y)

    def smooth(values: np.ndarray, outcome: np.ndarray, point: float) -> float:
        root = np.exp(-0.25 * ((values - point) / 0.6) ** 2)
        design = np.column_stack([np.ones(len(values)), values - point])
        return float(np.linalg.lstsq(design * root[:, None], outcome * root, rcond=None)[0][0])

    expected = [
        smooth(z[~labeled], judge[~labeled], point) - smooth(z[labeled], (judge - y)[labeled], point)
        for point in data["at"]
    ]
    np.testing.assert_allclose(value("local_ppi", data), expected, atol=1e-9)


def test_local_ppi_in_two_columns_agrees_with_least_squares() -> None:
    rng = np.random.default_rng(2)
    z, judge, y = rng.normal(size=(50, 2)), rng.normal(size=50), np.full(50, np.nan)
    y[:25] = rng.integers(0, 2, 25)
    at = np.array([[0.2, -0.1]])
    found = comparator_profile("local_ppi", z, y, judge, at=at, locality=Gaussian(0.8)).value[0]

    def smooth(values: np.ndarray, outcome: np.ndarray) -> float:
        root = np.exp(-0.25 * (((values - at[0]) / 0.8) ** 2).sum(axis=1))
        design = np.column_stack([np.ones(len(values)), values - at[0]])
        return float(np.linalg.lstsq(design * root[:, None], outcome * root, rcond=None)[0][0])

    assert found == pytest.approx(smooth(z[25:], judge[25:]) - smooth(z[:25], judge[:25] - y[:25]), abs=1e-9)


def test_matern_features_reproduce_the_kernel() -> None:
    rng = np.random.default_rng(0)
    z, points = rng.normal(size=(80, 1)), np.array([[0.0], [1.5]])
    features, anchors = matern_features(z, points, tolerance=1e-10)
    distance = np.sqrt(5.0) * np.abs(points - z[:, 0]) / z.std()
    expected = (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)
    np.testing.assert_allclose(anchors @ features.T, expected, atol=1e-7)


def test_ppci_weights_solve_the_regularised_equation() -> None:
    """(Σ + λI) w = k(z, ·) on the other fold, by a dense solve of the Gram system with the same penalty."""
    from pipeline.estimators.comparators.conditional import ppci
    from pipeline.estimators.comparators.profile import SplitOptions, build_comparison

    data = draw(5)
    own = {key: data[key] for key in SplitOptions.__dataclass_fields__ if key in data}
    arguments = {key: entry for key, entry in data.items() if key not in ("z", "y", "signals", *own)}
    problem = build_comparison(data["z"], data["y"], data["signals"], SplitOptions(**own), **arguments)
    estimate = ppci(problem)
    weights = problem.pool.conditional_weights[1.0]
    z, at = data["z"] / data["z"].std(), data["at"] / data["z"].std()

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        distance = np.sqrt(5.0) * np.abs(a[:, None] - b[None])
        return (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)

    for fold in (0, 1):
        inside, train = data["pool_fold_of"] == fold, data["pool_fold_of"] != fold
        own, m = kernel(z[train], z[train]), int(train.sum())
        candidates = np.linalg.eigvalsh(own / m)[-1] * np.geomspace(1e-4, 10.0, 25)
        dense = [
            (
                kernel(at, z[inside])
                - kernel(at, z[train]) @ np.linalg.solve(own + m * c * np.eye(m), kernel(z[train], z[inside]))
            )
            / c
            for c in candidates
        ]
        gaps = [np.abs(option - weights[:, inside]).max() / np.abs(option).max() for option in dense]
        assert min(gaps) < 1e-6
        assert 0 < int(np.argmin(gaps)) < 24
    prediction = problem.composite_prediction
    labeled = problem.rows
    expected = (
        weights[:, labeled] @ (problem.y - prediction[labeled]) / len(labeled) + weights @ prediction / len(z)
    ) / weights.mean(axis=1)
    np.testing.assert_allclose(estimate, expected)


def test_lace_oracle_uses_the_given_coefficients() -> None:
    data = draw(1)
    beta = np.full((POINTS, 3), 0.1)
    found = comparator_profile(
        "lace_oracle",
        data["z"],
        data["y"],
        data["signals"],
        at=data["at"],
        locality=data["locality"],
        coefficients=beta,
    )
    expected = lace_profile(
        data["z"], data["y"], data["signals"], at=data["at"], locality=data["locality"], coefficients=beta
    )
    np.testing.assert_array_equal(found.value, expected.value)
    assert found.method == "lace_oracle"


# --- laws -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [m for m in METHODS if m != "lace_oracle"])
def test_order_of_items_does_not_matter(method: str) -> None:
    data = draw(7)
    order = np.random.default_rng(0).permutation(len(data["z"]))
    shuffled = {
        key: (entry[order] if isinstance(entry, np.ndarray) and key != "at" else entry) for key, entry in data.items()
    }
    np.testing.assert_allclose(value(method, shuffled), value(method, data), atol=1e-8)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "lace_oracle"])
def test_outcomes_outside_the_labeled_set_are_never_read(method: str) -> None:
    data = draw(8)
    labeled = np.isfinite(data["y"])
    poisoned = data | {"y": np.where(labeled, data["y"], 1e6), "labeled": labeled}
    np.testing.assert_array_equal(value(method, poisoned), value(method, data))


@pytest.mark.parametrize("method", ["naive", "aug_plugin", "scalar_cv", "global_cv", "per_signal_cv", "lace"])
def test_every_item_labeled_gives_the_pool_profile(method: str) -> None:
    data = draw(9, size=30, n=30)
    np.testing.assert_allclose(value(method, data), value("naive", data), atol=1e-10)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("lace_oracle", "residual_only", "local_ppi")])
def test_constant_signals_change_nothing_for_control_variates(method: str) -> None:
    data = draw(10)
    flat = data | {"signals": np.full((60, 3), 4.0), "raw_judge": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = value(method, flat)
    assert np.isfinite(found).all()
    if method in ("naive", "global_cv", "per_signal_cv", "lace"):  # predictors still differ between their folds
        np.testing.assert_allclose(found, value("naive", data), atol=1e-10)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "lace_oracle"])
@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_single_class_labels(method: str, outcome: float) -> None:
    data = draw(11)
    data["y"] = np.where(np.isfinite(data["y"]), outcome, np.nan)
    found = value(method, data)
    assert np.isfinite(found).all()
    if method != "local_ppi":
        np.testing.assert_allclose(found, outcome, atol=1e-9)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "lace_oracle"])
def test_more_signals_than_labels(method: str) -> None:
    assert np.isfinite(value(method, draw(12, size=50, n=8, signals=20))).all()


@pytest.mark.parametrize("method", [m for m in METHODS if m != "lace_oracle"])
def test_duplicated_profile_values(method: str) -> None:
    data = draw(13)
    data["z"] = np.round(data["z"])
    assert np.isfinite(value(method, data)).all()


@pytest.mark.parametrize("method", ["global_cv", "per_signal_cv", "scalar_cv", "plugin_multi", "lace"])
def test_large_offsets_of_a_signal_change_nothing(method: str) -> None:
    data = draw(14)
    moved = data | {"signals": data["signals"] + np.array([1e8, 0.0, -1e6])}
    np.testing.assert_allclose(value(method, moved), value(method, data), atol=1e-5)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("lace_oracle", "local_ppi", "ppci", "strat_ppi")])
def test_text_levels(method: str) -> None:
    rng = np.random.default_rng(3)
    z = rng.choice(["easy", "hard", "odd"], 90)
    y = np.full(90, np.nan)
    y[:40] = rng.integers(0, 2, 40)
    profile = comparator_profile(method, z, y, rng.normal(size=(90, 2)))
    assert profile.at.tolist() == ["easy", "hard", "odd"]
    assert np.isfinite(profile.value).all()


@pytest.mark.parametrize("method", ["ppci", "strat_ppi"])
def test_methods_that_need_distances_refuse_text(method: str) -> None:
    z, y = np.array(["a", "b"] * 10), np.array([1.0, 0.0] * 5 + [np.nan] * 10)
    with pytest.raises(ValueError, match="numeric"):
        comparator_profile(method, z, y, np.arange(20.0))


def test_a_level_without_labels_has_no_control_variate_value() -> None:
    z, y = np.array([1.0, 2.0, 3.0] * 10), np.full(30, np.nan)
    y[[0, 3, 6, 1, 4, 7]] = [0, 1, 1, 0, 0, 1]
    signals = np.random.default_rng(0).normal(size=(30, 2))
    for method in ("naive", "global_cv", "aug_plugin", "residual_only", "scalar_cv"):
        found = comparator_profile(method, z, y, signals, locality=Categorical()).value
        assert np.isfinite(found[:2]).all()
        assert np.isnan(found[2])
    assert np.isfinite(comparator_profile("plugin_multi", z, y, signals, locality=Categorical()).value).all()


def test_intervals_are_lace_intervals_or_absent() -> None:
    data = draw(15)
    rest = {key: entry for key, entry in data.items() if key not in ("z", "y", "signals")}
    for method in METHODS:
        if method == "lace_oracle":
            continue
        profile = comparator_profile(method, data["z"], data["y"], data["signals"], **rest)
        assert profile.method == method
        if method in WITHOUT_INTERVAL:
            assert np.isnan(profile.se).all()
            assert method in profile.diagnostics["reason"]
        else:
            assert (profile.se > 0).all()
            assert (profile.low <= profile.value).all()


def test_ordinal_kernels_serve_every_numeric_method() -> None:
    data = draw(16) | {"locality": Ordinal(2), "at": np.array([-1.0, 0.0, 1.0])}
    data["z"] = np.round(data["z"])
    for method in METHODS:
        if method != "lace_oracle":
            assert np.isfinite(value(method, data)).all(), method


def test_default_folds_are_fixed_and_seeded_folds_follow_the_generator() -> None:
    data = draw(17)
    del data["fold_of"], data["pool_fold_of"]
    first, again = value("aug_plugin", data), value("aug_plugin", data)
    other = value("aug_plugin", data, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_predictor_is_constant_on_a_constant_outcome_and_ignores_constant_columns() -> None:
    x = np.column_stack([np.arange(6.0), np.full(6, 3.0)])
    assert fit_standardized(x, np.ones(6)).predict(x).tolist() == [1.0] * 6
    fitted = fit_standardized(x, np.array([0.0, 0, 1, 0, 1, 1]))
    alone = fit_standardized(x[:, :1], np.array([0.0, 0, 1, 0, 1, 1]))
    np.testing.assert_allclose(fitted.predict(x), alone.predict(x[:, :1]), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"primary": 3}, "primary"),
        ({"ridge": -1.0}, "ridge"),
        ({"C": 0.0}, "C must be positive"),
        ({"fold_of": np.zeros(5)}, "fold_of"),
        ({"fold_of": np.full(60, 2)}, "fold_of"),
        ({"pool_fold_of": np.full(60, -1)}, "pool_fold_of"),
        ({"coefficients": np.zeros((POINTS, 3))}, "lace_oracle"),
        ({"level": 1.0}, "level"),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        value("aug_plugin", draw(18), **change)


def test_unknown_method_and_outcomes_that_are_no_shares() -> None:
    data = draw(19)
    with pytest.raises(ValueError, match="unknown method"):
        value("magic", data)
    data["y"] = data["y"] * 5.0
    for method in PREDICTIVE:
        with pytest.raises(ValueError, match=r"\[0, 1\]"):
            value(method, data)
    assert np.isfinite(value("global_cv", data)).all()
