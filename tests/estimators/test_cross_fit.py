"""Algorithm 1: folds, regressors, predictions out of fold."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.estimators import QuadraticLeastSquares, cross_fit_pool_tau, cross_fit_tau, one_step_mean


def test_a_quadratic_truth_is_recovered_exactly() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4, 2))
    truth = 1.0 + x[..., 0] - 2.0 * x[..., 0] * x[..., 1] + 0.5 * x[..., 1] ** 2
    tau = cross_fit_tau(truth[:, 0], x, rng=np.random.default_rng(1))
    assert tau.shape == (60, 4)
    assert tau == pytest.approx(truth, abs=1e-9)


def test_each_fold_is_predicted_by_a_fit_on_draw_zero_of_the_others() -> None:
    rng = np.random.default_rng(2)
    phi, x = rng.normal(size=31), rng.normal(size=(31, 3, 2))
    tau = cross_fit_tau(phi, x, folds=4, rng=np.random.default_rng(5))
    for fold in np.array_split(np.random.default_rng(5).permutation(31), 4):
        rest = np.setdiff1d(np.arange(31), fold)
        fitted = QuadraticLeastSquares().fit(x[rest, 0], phi[rest])
        assert tau[fold] == pytest.approx(fitted.predict(x[fold].reshape(-1, 2)).reshape(-1, 3), abs=1e-12)


def test_scikit_learn_regressors_are_cloned_and_classifiers_give_probabilities() -> None:
    from sklearn.linear_model import LogisticRegression, Ridge

    rng = np.random.default_rng(3)
    x = rng.normal(size=(80, 3, 2))
    phi = (x[:, 0, 0] + 0.3 * rng.normal(size=80) > 0).astype(float)
    ridge, logistic = Ridge(alpha=1.0), LogisticRegression()
    assert cross_fit_tau(phi, x, regressor=ridge, rng=rng).shape == (80, 3)
    tau = cross_fit_tau(phi, x, regressor=logistic, rng=rng)
    assert not hasattr(ridge, "coef_")
    assert not hasattr(logistic, "coef_")
    assert tau.min() >= 0.0
    assert tau.max() <= 1.0
    assert np.mean(tau[phi == 1, 0]) > np.mean(tau[phi == 0, 0]) + 0.3


def test_an_items_own_outcome_does_not_move_its_prediction() -> None:
    rng = np.random.default_rng(4)
    phi, x = rng.normal(size=20), rng.normal(size=(20, 3, 1))
    changed = phi.copy()
    changed[7] += 100.0
    first, second = (cross_fit_tau(values, x, rng=np.random.default_rng(0)) for values in (phi, changed))
    assert np.array_equal(first[7], second[7])
    assert not np.allclose(first, second)


def test_a_constant_training_outcome_is_its_own_prediction() -> None:
    x = np.random.default_rng(5).normal(size=(10, 2, 1))
    assert np.array_equal(cross_fit_tau(np.ones(10), x, rng=np.random.default_rng(0)), np.ones((10, 2)))


def test_quadratic_features_reduce_the_variance_where_linear_ones_cannot() -> None:
    rng = np.random.default_rng(6)
    epsilon = rng.normal(size=(2000, 21))
    signal = 0.8 * epsilon + 0.6 * rng.normal(size=(2000, 21))
    phi = epsilon[:, 0] ** 2

    class Linear:
        def fit(self, X: np.ndarray, y: np.ndarray) -> None:
            self.line = np.polyfit(X[:, 0], y, 1)

        def predict(self, X: np.ndarray) -> np.ndarray:
            return np.asarray(np.polyval(self.line, X[:, 0]))

    quadratic = one_step_mean(phi, cross_fit_tau(phi, signal[:, :, None], rng=rng)).diagnostics
    linear = one_step_mean(phi, cross_fit_tau(phi, signal[:, :, None], regressor=Linear(), rng=rng)).diagnostics
    assert quadratic["variance_reduction_low"] > 0.2
    assert abs(linear["variance_reduction"]) < 0.05


@pytest.mark.parametrize(
    ("features", "folds", "words"),
    [
        (np.zeros((9, 2)), 5, r"\(10, M \+ 1, d\)"),
        (np.zeros((10, 2, 0)), 5, "must have shape"),
        (np.full((10, 2, 1), np.nan), 5, "20 missing"),
        (np.zeros((10, 2, 1)), 1, "folds must be at least 2"),
        (np.zeros((10, 2, 1)), 11, "at most the number of items"),
    ],
)
def test_bad_features_are_refused(features: np.ndarray, folds: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cross_fit_tau(np.arange(10.0), features, folds=folds, rng=np.random.default_rng(0))


def test_unlabeled_items_get_the_mean_of_the_fold_predictions() -> None:
    rng = np.random.default_rng(7)
    phi, x, other = rng.normal(size=30), rng.normal(size=(30, 3, 1)), rng.normal(size=(12, 3, 1))
    tau, rest = cross_fit_pool_tau(phi, x, other, folds=3, rng=np.random.default_rng(1))
    assert np.array_equal(tau, cross_fit_tau(phi, x, folds=3, rng=np.random.default_rng(1)))
    expected = np.zeros((12, 3))
    for fold in np.array_split(np.random.default_rng(1).permutation(30), 3):
        kept = np.setdiff1d(np.arange(30), fold)
        fitted = QuadraticLeastSquares().fit(x[kept, 0], phi[kept])
        expected += fitted.predict(other.reshape(-1, 1)).reshape(12, 3) / 3
    assert rest == pytest.approx(expected, abs=1e-12)
    assert cross_fit_pool_tau(phi, x, other[:0], rng=rng)[1].shape == (0, 3)
    with pytest.raises(ValueError, match="other_features"):
        cross_fit_pool_tau(phi, x, other[:, :2], rng=rng)
