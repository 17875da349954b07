"""Other packages' estimators of a mean from few labels and many signals, for those that are installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np

from pipeline.estimators.floats import FloatArray

MeanEstimator: TypeAlias = Callable[[FloatArray, FloatArray, np.random.Generator], tuple[float, float, float]]
"""(y with NaN where not labeled (M,), signals (M, K), generator) → (value, low, high)."""


def installed_peers() -> dict[str, MeanEstimator]:
    """Name to estimator, for every peer that can be imported (the bench extra)."""
    peers: dict[str, MeanEstimator] = {}
    if find_spec("ppi_py") is not None:
        peers["ppi-python PPI++ (first signal)"] = _ppi_plus_plus
    if find_spec("glide") is not None:
        peers["glide MultiPPI"] = _multi_ppi
        peers["glide MultiPTD"] = _multi_ptd
    if find_spec("doubleml") is not None:
        peers["DoubleML (average potential outcome)"] = _double_ml
    return peers


def _ppi_plus_plus(y: FloatArray, signals: FloatArray, rng: np.random.Generator) -> tuple[float, float, float]:
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate  # type: ignore[import-not-found]

    labeled = np.isfinite(y)
    arguments = (y[labeled], signals[labeled, 0], signals[~labeled, 0])
    value = float(np.ravel(ppi_mean_pointestimate(*arguments))[0])
    low, high = ppi_mean_ci(*arguments, alpha=0.05)
    return value, float(np.ravel(low)[0]), float(np.ravel(high)[0])


def _multi_ppi(y: FloatArray, signals: FloatArray, rng: np.random.Generator) -> tuple[float, float, float]:
    from glide.estimators import MultiPPIMeanEstimator  # type: ignore[import-not-found]

    return _glide_interval(MultiPPIMeanEstimator().estimate(y, signals))


def _multi_ptd(y: FloatArray, signals: FloatArray, rng: np.random.Generator) -> tuple[float, float, float]:
    from glide.estimators import MultiPTDMeanEstimator

    return _glide_interval(MultiPTDMeanEstimator().estimate(y, signals))


def _glide_interval(result: Any) -> tuple[float, float, float]:
    interval = result.confidence_interval
    return float(interval.mean), float(interval.lower_bound), float(interval.upper_bound)


def _double_ml(y: FloatArray, signals: FloatArray, rng: np.random.Generator) -> tuple[float, float, float]:
    """E[Y(1)] with being labeled as the treatment; logistic outcome model, constant labelling probability."""
    import doubleml  # type: ignore[import-not-found]
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression, RidgeCV

    labeled = np.isfinite(y)
    binary = bool(np.isin(y[labeled], (0.0, 1.0)).all())
    np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002  the package draws its folds from the global state
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filler = np.arange(len(y)) % 2  # outcomes of the other treatment level: fitted by the package, used by nothing
        data = doubleml.DoubleMLData.from_arrays(signals, np.where(labeled, y, filler), labeled.astype(float))
        outcome = LogisticRegression(C=1.0, max_iter=1000) if binary else RidgeCV()
        model = doubleml.DoubleMLAPO(data, outcome, DummyClassifier(strategy="prior"), treatment_level=1)
        model.fit()
        low, high = np.ravel(model.confint(level=0.95))
    return float(model.coef[0]), float(low), float(high)
