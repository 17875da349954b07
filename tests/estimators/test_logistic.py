"""The logistic fit against scikit-learn's, and the folds it is cross-fitted on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from pipeline.estimators import fill_missing_signals, prepare_signals, standardize_signals
from pipeline.estimators.folds import balanced_folds, mid_ranks
from pipeline.estimators.logistic import fit_logistic, predict_logistic


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("kind", ["ordinary", "separable", "collinear", "rare"])
def test_equals_scikit_learn(C: float, kind: str) -> None:
    rng = np.random.default_rng(0)
    covariates = rng.normal(size=(120, 3))
    y = (rng.random(120) < 1 / (1 + np.exp(-1.5 * covariates[:, 0]))).astype(float)
    if kind == "separable":
        y = (covariates[:, 0] > 0).astype(float)
    if kind == "collinear":
        covariates = covariates[:, [0, 0, 1]]
    if kind == "rare":
        y = (np.arange(120) == 7).astype(float)
    ours = fit_logistic(covariates, y, C)[0]
    theirs = LogisticRegression(C=C, tol=1e-12, max_iter=100_000).fit(covariates, y)
    np.testing.assert_allclose(ours[1:], theirs.coef_[0], atol=2e-5)
    np.testing.assert_allclose(
        predict_logistic(covariates, ours[None])[0], theirs.predict_proba(covariates)[:, 1], atol=2e-5
    )


def test_many_fits_at_once_equal_one_by_one() -> None:
    rng = np.random.default_rng(1)
    covariates, y = rng.normal(size=(60, 2)), (rng.random(60) < 0.4).astype(float)
    rows = rng.random((5, 60)) < 0.7
    together = fit_logistic(covariates, y, 1.0, rows)
    for found, use in zip(together, rows, strict=True):
        np.testing.assert_allclose(found, fit_logistic(covariates[use], y[use], 1.0)[0], atol=1e-8)


def test_one_class_predicts_itself() -> None:
    covariates = np.random.default_rng(2).normal(size=(10, 2))
    rows = np.array([np.arange(10) < 5, np.arange(10) >= 5])
    y = (np.arange(10) >= 5).astype(float)
    predicted = predict_logistic(covariates, fit_logistic(covariates, y, 1.0, rows))
    np.testing.assert_array_equal(predicted[0], 0.0)
    np.testing.assert_array_equal(predicted[1], 1.0)


@pytest.mark.parametrize("rng", [None, 3])
def test_folds_hold_about_the_same_outcomes(rng: int | None) -> None:
    keys = np.random.default_rng(4).normal(size=(53, 2))
    y = (np.arange(53) < 17).astype(float)
    fold = balanced_folds(y, keys, 5, rng)
    assert set(np.bincount(fold)) <= {10, 11}
    assert set(np.bincount(fold, weights=y)) <= {3.0, 4.0}


def test_folds_without_a_seed_follow_the_data() -> None:
    rng = np.random.default_rng(5)
    keys, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    order = rng.permutation(40)
    fold = balanced_folds(y, keys, 4, None)
    np.testing.assert_array_equal(balanced_folds(y[order], keys[order], 4, None), fold[order])
    np.testing.assert_array_equal(balanced_folds(y, keys * [-3.0, 10.0] + 7.0, 4, None), fold)
    # They must not follow the keys' order: systematic folds would all look alike.
    high = keys[:, 0] > np.median(keys[:, 0])
    shares = [np.mean([high[balanced_folds(rng.normal(size=40), keys, 4, None) == k].mean()]) for k in range(4)]
    assert np.std(shares) > 0.0


def test_mid_ranks() -> None:
    ranks = mid_ranks(np.array([[3.0], [1.0], [3.0], [2.0]]))
    np.testing.assert_array_equal(ranks[:, 0], [3.5, 1.0, 3.5, 2.0])


def test_standardising() -> None:
    signals = np.random.default_rng(6).normal(size=(50, 2)) * [2.0, 1e-3] + [0.0, 1e8]
    scaled = standardize_signals(np.column_stack([signals, np.full(50, 0.1)]))
    np.testing.assert_allclose(scaled[:, :2].std(axis=0), 1.0, rtol=1e-3)
    np.testing.assert_array_equal(scaled[:, 2], 0.0)
    prepared = prepare_signals(signals)
    np.testing.assert_allclose(prepared.ranks.std(axis=0), 1.0)
    with pytest.raises(ValueError, match="fill_missing_signals"):
        prepare_signals([1.0, np.nan])


def test_filling() -> None:
    signals = np.ones((200, 3))
    signals[0, 0], signals[:3, 1] = np.nan, np.inf
    filled, index = fill_missing_signals(signals)
    assert list(index) == [1]  # 0.5 % missing is below 1 %, complete columns get no indicator
    assert filled.shape == (200, 4)
    np.testing.assert_array_equal(filled[:, :3], 1.0)
    assert filled[:, 3].sum() == 3.0
    assert np.isnan(signals[0, 0])
    with pytest.raises(ValueError, match="column 1 has no finite value"):
        fill_missing_signals(np.array([[1.0, np.nan], [2.0, np.nan]]))
    with pytest.raises(ValueError, match="min_share"):
        fill_missing_signals(signals, min_share=2.0)
