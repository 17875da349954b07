"""Every comparable estimator of a mean that is installed, under one signature: (y, signals, best) → interval.

``y`` holds NaN where an item is not labeled; ``signals`` is (M, K); ``best`` is the one signal that correlates most
with the full gold, turned and scaled to the outcome's mean and spread. Packages that take one judge get ``best``,
which no user knows in advance: it favours them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators import Estimate, lace_mean

FloatArray = NDArray[np.float64]
Interval = tuple[float, float, float]
"""Point, low end, high end."""
Estimator = Callable[[FloatArray, FloatArray, FloatArray], Interval]


@dataclass(frozen=True, slots=True)
class Method:
    """One estimator: its name, its call, the signals it takes, and whether one call takes tens of milliseconds."""

    name: str
    call: Estimator
    signals: str = "all"
    slow: bool = False
    ours: bool = False


def version(distribution: str) -> str | None:
    """The installed version, or None."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def installed(module: str) -> Any | None:
    """The module, or None; warnings filters that its import changes are put back."""
    with warnings.catch_warnings():
        try:
            return importlib.import_module(module)
        except ImportError:
            return None


def our_methods() -> list[Method]:
    """The adaptive rule without and with logistic candidates."""

    def plain(y: FloatArray, signals: FloatArray, best: FloatArray, target: Any = "pool") -> Interval:
        return ends(lace_mean(y, signals, adapt="average", learner=None, target=target))

    def logistic(y: FloatArray, signals: FloatArray, best: FloatArray, target: Any = "pool") -> Interval:
        return ends(lace_mean(y, signals, adapt="average", target=target))

    return [
        Method("auxeval lace_mean, learner=None", plain, ours=True),
        Method("auxeval lace_mean", logistic, ours=True),
    ]


def ends(estimate: Estimate) -> Interval:
    """The interval of one of our estimates."""
    return estimate.value, estimate.low, estimate.high


def plain_mean(y: FloatArray) -> Interval:
    """The labeled mean with the normal interval; also what a user falls back on when a package raises."""
    known = y[np.isfinite(y)]
    half = 1.96 * float(known.std(ddof=1)) / len(known) ** 0.5
    return float(known.mean()), float(known.mean()) - half, float(known.mean()) + half


def peer_methods() -> list[Method]:
    """What is installed of the peers."""
    found = [*_glide(), *_ppi_python(), *_truescore(), *_fewhumans(), *_evalstats(), *_cje(), *_doubleml()]
    return found


def _glide() -> list[Method]:
    package = installed("glide.estimators")
    if package is None:
        return []

    def read(result: Any) -> Interval:
        interval = result.confidence_interval
        return float(result.mean), float(interval.lower_bound), float(interval.upper_bound)

    ppi, multi, ptd = package.PPIMeanEstimator(), package.MultiPPIMeanEstimator(), package.MultiPTDMeanEstimator()
    return [
        Method("glide PPI++", lambda y, signals, best: read(ppi.estimate(y, best)), "best"),
        Method("glide MultiPPI", lambda y, signals, best: read(multi.estimate(y, signals))),
        Method("glide MultiPTD", lambda y, signals, best: read(ptd.estimate(y, signals, random_seed=0)), slow=True),
    ]


def _ppi_python() -> list[Method]:
    package = installed("ppi_py")
    if package is None:
        return []

    def call(y: FloatArray, signals: FloatArray, best: FloatArray) -> Interval:
        known = np.isfinite(y)
        parts = y[known], best[known], best[~known]
        low, high = package.ppi_mean_ci(*parts, alpha=0.05)
        point = package.ppi_mean_pointestimate(*parts)
        return tuple(float(np.ravel(value)[0]) for value in (point, low, high))  # type: ignore[return-value]

    return [Method("ppi-python PPI++", call, "best")]


def _truescore() -> list[Method]:
    package = installed("truescore")
    if package is None:
        return []

    def call(y: FloatArray, signals: FloatArray, best: FloatArray) -> Interval:
        known = np.isfinite(y)
        found = package.ppi_estimate(best, y[known], np.flatnonzero(known))
        return float(found.point), float(found.low), float(found.high)

    return [Method("truescore ppi_estimate", call, "best")]


def _fewhumans() -> list[Method]:
    package = installed("fewhumans.estimators.pp_plus")
    if package is None:
        return []

    def call(y: FloatArray, signals: FloatArray, best: FloatArray) -> Interval:
        known = np.isfinite(y)
        found = package.ppi_plus_mean(best[~known], y[known], best[known])
        return float(found.value), float(found.lo), float(found.hi)

    return [Method("fewhumans ppi_plus_mean", call, "best")]


def _evalstats() -> list[Method]:
    package = installed("evalstats")
    if package is None:
        return []

    def call(y: FloatArray, signals: FloatArray, best: FloatArray) -> Interval:
        found = package.judge_debias_mean_ci(best, y, rng=0)
        return float(found.mean), float(found.ci_low), float(found.ci_high)

    return [Method("evalstats judge_debias_mean_ci", call, "best", slow=True)]


def _cje() -> list[Method]:
    package = installed("cje.array_api")
    if package is None:
        return []

    def call(y: FloatArray, signals: FloatArray, best: FloatArray) -> Interval:
        found = package.calibrated_mean_ci(best, y)
        return float(found.estimate), float(found.ci[0]), float(found.ci[1])

    return [Method("cje-eval calibrated_mean_ci", call, "best", slow=True)]


def _doubleml() -> list[Method]:
    """The average potential outcome of being labeled, with known constant propensity: the AIPW mean.

    DoubleML also fits the outcome of the unlabeled rows, which the score of this estimate does not use; it gets
    alternating zeros and ones there, since a classifier refuses one class.
    """
    package = installed("doubleml")
    if package is None:
        return []
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def call(y: FloatArray, signals: FloatArray, best: FloatArray) -> Interval:
        known = np.isfinite(y)
        binary = bool(np.isin(y[known], (0.0, 1.0)).all())
        learner = LogisticRegression() if binary else RidgeCV(np.logspace(-2, 3, 11))
        data = package.DoubleMLData.from_arrays(signals, np.where(known, y, np.arange(len(y)) % 2), known.astype(float))
        np.random.seed(0)  # noqa: NPY002 - DoubleML draws its folds from the global generator
        model = package.DoubleMLAPO(data, make_pipeline(StandardScaler(), learner), DummyClassifier(), 1, n_folds=5)
        model.fit()
        low, high = model.confint(level=0.95).to_numpy()[0]
        return float(model.coef[0]), float(low), float(high)

    return [Method("DoubleML APO, 5 folds", call, slow=True)]


PEERS = (
    "cje-eval", "DoubleML", "evalica", "evalstats", "fewhumans", "glide-py", "passk-inference", "ppi-python",
    "truescore",
)  # fmt: skip
"""Distributions that are compared by ``benchmarks/peers*.py``."""


def absent() -> str:
    """One line that names what is not installed, or nothing."""
    missing = [name for name in PEERS if version(name) is None]
    return f"absent here: {', '.join(missing)}" if missing else ""
