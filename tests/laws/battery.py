"""Laws that every estimator obeys, and the register of estimators they are checked on.

To enter an estimator, add a ``Subject`` to ``SUBJECTS``: how to run it on a ``Case``, and which laws hold for it.
A law that does not hold must not be listed; a law that should hold and is left out is a gap that a reader can see.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators import (
    Categorical,
    Estimate,
    Gaussian,
    Ordinal,
    Profile,
    best_of_n,
    comparator_profile,
    lace_cascade,
    lace_deployment,
    lace_gap,
    lace_mean,
    lace_profile,
    lace_profile_splits,
    mean_gap,
    naive_mean,
    one_step_mean,
    repeated_decoding_mean,
)

FloatArray = NDArray[np.float64]

LAWS = (
    "shift",
    "scale",
    "permutation",
    "signal_affine",
    "nan_refused",
    "unread",
    "complete",
    "constant_signals",
    "one_sided",
    "untouched",
)


@dataclass(frozen=True)
class Case:
    """One pool with everything any estimator may want.

    ``y`` is known everywhere (estimators see it through ``labeled``); ``other`` is a second model's outcome, ``folds``
    a split of the items, ``repeats`` (M, 3) further answers, ``ratio`` density ratios, ``expensive`` ratings.
    """

    z: FloatArray
    y: FloatArray
    other: FloatArray
    signals: FloatArray
    other_signals: FloatArray
    labeled: NDArray[np.bool_]
    folds: NDArray[np.intp]
    repeats: FloatArray
    ratio: FloatArray
    expensive: FloatArray

    def permuted(self, order: NDArray[np.intp]) -> Case:
        return Case(**{name: getattr(self, name)[order] for name in self.__dataclass_fields__})


def make_case(seed: int = 0, *, binary: bool = False, rows: int = 90, labels: int = 36) -> Case:
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.0, 2.0, rows)
    noise = rng.normal(size=(rows, 2))
    raw = np.sin(2 * z)[:, None] + noise
    y, other = ((raw > 0.3).astype(float) if binary else raw).T
    signals = y[:, None] * np.array([1.0, 0.4, 0.0]) + rng.normal(size=(rows, 3))
    other_signals = other[:, None] * np.array([1.0, 0.4, 0.0]) + rng.normal(size=(rows, 3))
    labeled = np.zeros(rows, dtype=bool)
    labeled[rng.choice(rows, labels, replace=False)] = True
    repeats = y[:, None] + (0.0 if binary else 0.3) * rng.normal(size=(rows, 3))
    ratio = np.exp(0.3 * z)
    expensive = np.where(labeled | (rng.random(rows) < 0.5), y + 0.3 * rng.normal(size=rows), np.nan)
    return Case(
        z,
        y.copy(),
        other.copy(),
        signals,
        other_signals,
        labeled,
        rng.integers(0, 2, rows),
        repeats,
        ratio / ratio.mean(),
        expensive,
    )


@dataclass(frozen=True)
class Outcome:
    """What the laws look at; ``plain`` is the estimate without signals on the same labels."""

    value: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    se: FloatArray | None = None
    df: FloatArray | None = None


@dataclass(frozen=True)
class Subject:
    """An estimator in the battery.

    Attributes:
        name: shown in the test id.
        run: (case, level) → Outcome.
        laws: which of LAWS hold.
        plain: the same without signals; for "constant_signals" and "complete".
        weight: value + weight·c when every outcome grows by c (0 for a gap of two models).
        binary: whether the outcomes must be 0 or 1.
    """

    name: str
    run: Callable[[Case, float], Outcome]
    laws: tuple[str, ...]
    plain: Callable[[Case], FloatArray] | None = None
    weight: float = 1.0
    binary: bool = False


def of_estimate(estimate: Estimate) -> Outcome:
    df = np.array([float(estimate.diagnostics.get("df", np.inf) or np.inf)])
    value, low, high, se = (np.array([entry]) for entry in (estimate.value, estimate.low, estimate.high, estimate.se))
    return Outcome(value, low, high, se, df)


def of_profile(profile: Profile) -> Outcome:
    return Outcome(profile.value, profile.low, profile.high, profile.se, profile.df)


def quiet(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def _at(locality: Any) -> FloatArray:
    return np.array([0.5, 1.0, 1.5]) if isinstance(locality, Gaussian) else np.array([0.0, 1.0])


def _axis(case: Case, locality: Any) -> FloatArray:
    return case.z if isinstance(locality, Gaussian) else np.floor(case.z)


def _profile(locality: Any, adapt: Any, **options: Any) -> Callable[[Case, float], Outcome]:
    def run(case: Case, level: float) -> Outcome:
        chosen = {} if adapt else {"standardize": True}
        return of_profile(
            lace_profile(
                _axis(case, locality),
                case.y,
                case.signals,
                labeled=case.labeled,
                at=_at(locality),
                locality=locality,
                adapt=adapt,
                level=level,
                **chosen,
                **options,
            )
        )

    return run


def _plain_profile(locality: Any) -> Callable[[Case], FloatArray]:
    def plain(case: Case) -> FloatArray:
        nothing = np.zeros((len(case.y), 0))
        return lace_profile(
            _axis(case, locality), case.y, nothing, labeled=case.labeled, at=_at(locality), locality=locality
        ).value

    return plain


def _mean(**options: Any) -> Callable[[Case, float], Outcome]:
    return lambda case, level: of_estimate(
        lace_mean(case.y, case.signals, labeled=case.labeled, level=level, **options)
    )


def _label_mean(case: Case) -> FloatArray:
    return np.array([case.y[case.labeled].mean()])


def _gap(adapt: Any) -> Callable[[Case, float], Outcome]:
    chosen = {"adapt": adapt} if adapt else {"standardize": True}
    return lambda case, level: of_profile(
        lace_gap(
            case.z,
            case.y,
            case.other,
            case.signals,
            case.other_signals,
            labeled=case.labeled,
            at=[0.5, 1.5],
            locality=Gaussian(0.4),
            level=level,
            **chosen,
        )
    )


def _deployment(adapt: Any) -> Callable[[Case, float], Outcome]:
    chosen = {"adapt": adapt} if adapt else {"standardize": True}
    return lambda case, level: of_estimate(
        lace_deployment(case.y, case.signals, case.ratio, labeled=case.labeled, level=level, **chosen)
    )


def _cascade(case: Case, level: float) -> Outcome:
    return of_profile(
        lace_cascade(
            case.z,
            case.y,
            case.expensive,
            case.signals,
            labeled=case.labeled,
            at=[0.5, 1.5],
            locality=Gaussian(0.4),
            standardize=True,
            level=level,
        )
    )


def _splits(case: Case, level: float) -> Outcome:
    value = lace_profile_splits(
        case.z, case.y, case.signals, case.labeled[None, :], at=[0.5, 1.5], locality=Gaussian(0.4), standardize=True
    )
    return Outcome(value[0])


def _comparator(method: str) -> Callable[[Case, float], Outcome]:
    def run(case: Case, level: float) -> Outcome:
        profile = comparator_profile(
            method,
            case.z,
            case.y,
            case.signals,
            labeled=case.labeled,
            at=[0.5, 1.0, 1.5],
            locality=Gaussian(0.4),
            fold_of=np.where(case.labeled, case.folds, -1),
            pool_fold_of=case.folds,
            standardize=True,
            level=level,
        )
        return of_profile(profile)

    return run


_INTERVAL_LAWS = ("permutation", "signal_affine", "nan_refused", "unread", "one_sided", "untouched")
_EVERY = ("shift", "scale", "complete", "constant_signals", *_INTERVAL_LAWS)
_GAUSSIAN, _ORDINAL, _CATEGORICAL = Gaussian(0.4), Ordinal(2), Categorical()

SUBJECTS: tuple[Subject, ...] = (
    *(
        Subject(f"lace_profile {kind} {adapt or 'paper'}", _profile(locality, adapt), _EVERY, _plain_profile(locality))
        for kind, locality in (("gaussian", _GAUSSIAN), ("ordinal", _ORDINAL), ("categorical", _CATEGORICAL))
        for adapt in (None, "average")
    ),
    Subject("lace_profile cv", _profile(_GAUSSIAN, None, ridge="cv"), _EVERY, _plain_profile(_GAUSSIAN)),
    Subject(
        "lace_profile logistic",
        _profile(_CATEGORICAL, "average", learner="logistic", interval="t"),
        ("constant_signals", "complete", "permutation", "nan_refused", "unread", "untouched"),
        _plain_profile(_CATEGORICAL),
        binary=True,
    ),
    Subject("lace_mean paper", _mean(standardize=True), _EVERY, _label_mean),
    Subject("lace_mean average", _mean(adapt="average", learner=None), _EVERY, _label_mean),
    Subject(
        "lace_mean logistic",
        _mean(adapt="average"),
        ("complete", "constant_signals", "permutation", "signal_affine", "nan_refused", "unread", "untouched"),
        _label_mean,
        binary=True,
    ),
    *(
        Subject(
            f"lace_gap {adapt or 'paper'}",
            _gap(adapt),
            ("shift", "scale", "permutation", "nan_refused", "unread", "one_sided", "untouched"),
            weight=0.0,
        )
        for adapt in (None, "average")
    ),
    *(
        Subject(
            f"lace_deployment {adapt or 'equation 4'}",
            _deployment(adapt),
            ("shift", "scale", *_INTERVAL_LAWS, "constant_signals", "complete"),
            lambda case: np.array([np.average(case.y[case.labeled], weights=case.ratio[case.labeled])]),
        )
        for adapt in (None, "average")
    ),
    Subject("lace_cascade", _cascade, ("shift", "scale", *_INTERVAL_LAWS)),
    Subject(
        "lace_profile_splits", _splits, ("shift", "scale", "permutation", "signal_affine", "nan_refused", "unread")
    ),
    *(
        Subject(
            f"comparator {method}",
            _comparator(method),
            ("permutation", "signal_affine", "nan_refused", "unread"),
            binary=True,
        )
        for method in (
            "naive",
            "plugin_judge",
            "plugin_multi",
            "aug_plugin",
            "strat_ppi",
            "scalar_cv",
            "ppci",
            "global_cv",
            "per_signal_cv",
            "residual_only",
            "lace",
        )
    ),
    *(
        Subject(f"comparator {method}", _comparator(method), ("shift", "scale"))
        for method in ("naive", "global_cv", "per_signal_cv", "residual_only", "lace")
    ),
    Subject(
        "naive_mean",
        lambda case, level: of_estimate(naive_mean(case.y, level=level)),
        ("shift", "scale", "permutation", "one_sided", "untouched"),
    ),
    Subject(
        "one_step_mean",
        lambda case, level: of_estimate(one_step_mean(case.y, case.repeats + 0.0 * case.signals, level=level)),
        ("shift", "scale", "permutation", "nan_refused", "one_sided", "untouched"),
    ),
    Subject(
        "repeated_decoding_mean",
        lambda case, level: of_estimate(repeated_decoding_mean(case.repeats, level=level)),
        ("shift", "scale", "permutation", "one_sided", "untouched"),
    ),
    Subject(
        "mean_gap",
        lambda case, level: of_estimate(mean_gap(case.y, case.other, level=level)),
        ("shift", "scale", "permutation", "one_sided", "untouched"),
        weight=0.0,
    ),
    Subject(
        "best_of_n",
        lambda case, level: Outcome(np.array([best_of_n(case.repeats, 4)])),
        ("shift", "scale", "permutation", "untouched"),
    ),
)


def shifted(case: Case, by: float) -> Case:
    """Every outcome grows by the same amount (and the signals do not move)."""
    return replace(case, y=case.y + by, other=case.other + by, repeats=case.repeats + by)


def scaled(case: Case, by: float) -> Case:
    """Outcomes in another unit."""
    return replace(case, y=case.y * by, other=case.other * by, repeats=case.repeats * by)
