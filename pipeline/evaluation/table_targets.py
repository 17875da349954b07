"""The estimates of one target of a user's own table: which estimator, with which options, on which columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import InputError
from pipeline.estimators import (
    Categorical,
    Estimate,
    Ordinal,
    Profile,
    cluster_components,
    fill_missing_signals,
    lace_mean,
    lace_profile,
    naive_mean,
)
from pipeline.evaluation.pool import Axis, TargetPool
from pipeline.evaluation.shrunk_groups import SHRUNK, shrunk_beside
from pipeline.tables.signal_checks import ALL, Notice, imbalanced_columns
from pipeline.tables.user_table import nearest_names

__all__ = [
    "METHODS",
    "TableOptions",
    "effective_labels",
    "filled_signals",
    "label_chances",
    "lace_of_mean",
    "named_errors",
    "placed_profile",
    "profile_place",
    "target_estimates",
]

FloatArray = NDArray[np.float64]

COMPARATORS = (
    "plugin_judge", "plugin_multi", "aug_plugin", "strat_ppi", "scalar_cv", "local_ppi", "ppci", "global_cv",
    "per_signal_cv", "residual_only",
)  # fmt: skip
METHODS = ("naive", "lace", "lace_profile", "lace_deployment", "one_step", "gaps", "comparators", *COMPARATORS)
"""The names that ``--methods`` takes."""
DEFAULT_METHODS = ("naive", "lace", "lace_profile", "lace_deployment", "one_step", "gaps")
_DISTRIBUTION_TOLERANCE = 0.02
MIN_VARIANCE_LABELS = 8.0
"""Below this many labels behind the variance, intervals of a skewed outcome are known to be too short."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How a table is estimated.

    Attributes:
        methods: names of ``METHODS``; those whose columns are not given are passed over.
        level: nominal coverage.
        target: "pool" for the mean of these rows, "population" for that of what they were drawn from.
        distribution: value of the first profile column → its share in deployment; empty means: not given.
        seed: of everything random.
        shrink: adds categorical profiles shrunk towards their common mean, beside the unshrunk ones.
    """

    methods: tuple[str, ...] = DEFAULT_METHODS
    level: float = 0.95
    target: Literal["pool", "population"] = "pool"
    distribution: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    shrink: bool = False


@contextmanager
def named_errors(target: str, method: str, notices: list[Notice]) -> Iterator[None]:
    """What an estimator refuses becomes one line that names target and method; what it warns of, a warning."""
    where = method if target == ALL else f"target {target}, {method}"
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        try:
            yield
        except (ValueError, TypeError, np.linalg.LinAlgError) as error:
            raise InputError(f"{where}: {error}") from error
    notices += [Notice("estimator", f"{method}: {' '.join(str(entry.message).split())}", target) for entry in caught]


def filled_signals(target: TargetPool) -> tuple[FloatArray, tuple[str, ...]]:
    """(M, K) signals without gaps, missing-value indicators last, and their names."""
    if target.signals.shape[1] == 0:
        return target.signals, ()
    filled, index = fill_missing_signals(target.signals)
    return filled, (*target.signal_names, *(f"{target.signal_names[i]}_missing" for i in index.tolist()))


def target_estimates(target: TargetPool, options: TableOptions, notices: list[Notice]) -> dict[str, Estimate | Profile]:
    """Every asked-for estimate of one target whose columns are given: method → estimate.

    Args:
        target: its rows.
        options: which methods, and how.
        notices: grows with what the reader of the numbers must know.

    Raises:
        InputError: fewer than two labels, or an estimator refuses the data.
    """
    n, size = int(target.labeled.sum()), len(target.y)
    if n < 2:
        who = "the table has" if target.name == ALL else f"target {target.name} has"
        raise InputError(
            f"{who} {n} gold label{'' if n == 1 else 's'}; at least 2 are needed, and 20 or more advisable"
        )
    signals, names = filled_signals(target)
    _notice_labels(target, signals, names, n, size, notices)
    found: dict[str, Estimate | Profile] = {}
    steps: dict[str, Callable[[], Estimate | Profile]] = {}
    wanted = options.methods
    if "naive" in wanted:
        steps["naive"] = lambda: _naive(target, options)
    if "lace" in wanted and signals.shape[1]:
        steps["lace"] = lambda: lace_of_mean(target, signals, options.level, options.target)
    for axis in target.profiles if "lace_profile" in wanted else ():
        name = "lace_profile" if len(target.profiles) == 1 else f"lace_profile:{axis.column}"
        steps[name] = lambda axis=axis: _profile(target, axis, signals, options)  # type: ignore[misc]
    if target.clusters is not None and any(name.startswith("lace_profile") for name in steps):
        text = "intervals of profiles take the rows of a cluster for independent; they may be too short"
        notices.append(Notice("profile_clusters", text))
    ratio = _ratio(target, options, notices)
    if ratio is not None and "lace_deployment" in wanted:
        steps["lace_deployment"] = lambda: _deployment(target, signals, ratio, options)
    if target.taus is not None and "one_step" in wanted:
        steps["one_step"] = lambda: _one_step(target, options)
    for method in _comparators(wanted):
        if target.profiles:
            steps[method] = lambda method=method: _comparator(method, target, signals, options)  # type: ignore[misc]
    if _comparators(wanted) and not target.profiles:
        notices.append(Notice("no_profile", "the comparators estimate profiles: give --profile to see them"))
    for method, step in steps.items():
        with named_errors(target.name, method, notices):
            found[method] = step()
            if options.shrink and method.startswith("lace_profile"):
                _add_shrunk(found, method, target.name, notices)
    return found


def _add_shrunk(found: dict[str, Estimate | Profile], method: str, target: str, notices: list[Notice]) -> None:
    """The shrunk profile beside ``method``, under its own name."""
    profile = found[method]
    shrunk = shrunk_beside(profile) if isinstance(profile, Profile) else None
    if shrunk is None:
        text = "--shrink needs a categorical profile with at least 4 groups that have an estimate and a variance"
        notices.append(Notice("not_shrunk", text, target))
        return
    name = method.replace("lace_profile", SHRUNK, 1)
    found[name] = replace(shrunk, method=SHRUNK)


def _comparators(methods: Sequence[str]) -> tuple[str, ...]:
    return COMPARATORS if "comparators" in methods else tuple(name for name in methods if name in COMPARATORS)


def _notice_labels(
    target: TargetPool, signals: FloatArray, names: Sequence[str], n: int, size: int, notices: list[Notice]
) -> None:
    if signals.shape[1] == 0:
        notices.append(Notice("no_signals", "no usable signal; the plain mean is all there is", target.name))
    if n == size:
        message = (
            "every row is labeled, so the mean of these rows is known and intervals about it have no width; "
            "--target population is about what they were drawn from"
        )
        notices.append(Notice("all_labeled", message, target.name))
    elif n < 20:
        notices.append(Notice("few_labels", f"{n} labels are few; intervals may be too short below 20", target.name))
    if (
        not target.binary
        and 20 <= n < size
        and (worth := _variance_labels(target.y[target.labeled])) < MIN_VARIANCE_LABELS
    ):
        message = (
            f"the gold is very skewed: its spread rests on about {worth:.0f} of the {n} labels, so intervals may be "
            "too short; more labels are the only cure"
        )
        notices.append(Notice("skewed_gold", message, target.name))
    if target.sampling.chances is None:
        for name, z in imbalanced_columns(signals, names, target.labeled):
            message = (
                f"labeled rows differ from the pool in {name!r} (z = {z:.1f}): the labels do not look drawn at random; "
                "give --inclusion if they were drawn with known probabilities, else the estimate may be biased"
            )
            notices.append(Notice("labels_not_random", message, target.name))


def _variance_labels(y: FloatArray) -> float:
    """How many labels the variance rests on: 2n/(kurtosis − 1), n for normal outcomes, few for heavy tails."""
    centred = y - y.mean()
    second = float(np.mean(centred**2))
    kurtosis = float(np.mean(centred**4)) / second**2 if second > 0.0 else 0.0
    return min(2.0 * len(y) / (kurtosis - 1.0), float(len(y))) if kurtosis > 1.0 else float(len(y))


def _naive(target: TargetPool, options: TableOptions) -> Estimate:
    """The plain mean of the labels; with unequal inclusion probabilities their Hájek mean."""
    if target.sampling.chances is not None:
        plain = lace_mean(
            target.y, np.empty((len(target.y), 0)), labeled=target.labeled, adapt="average", learner=None,
            clusters=target.clusters, level=options.level, target=options.target,
            inclusion_probabilities=label_chances(target),
        )  # fmt: skip
        return replace(plain, method="naive")
    groups = None if target.clusters is None else target.clusters[target.labeled]
    plain = naive_mean(target.y[target.labeled], clusters=groups, level=options.level)
    if groups is None:
        return plain
    parts = cluster_components(target.y[target.labeled], groups)
    return replace(plain, diagnostics={**plain.diagnostics, "cluster_components": parts})


def label_chances(target: TargetPool) -> FloatArray | None:
    """Inclusion probabilities as the estimators take them: a number everywhere."""
    return target.sampling.chances


def lace_of_mean(
    target: TargetPool, signals: FloatArray, level: float = 0.95, about: Literal["pool", "population"] = "pool"
) -> Estimate:
    """The adaptive mean, with what its signals are worth in the diagnostics."""
    estimate = lace_mean(
        target.y, signals, labeled=target.labeled, adapt="average", learner=None, clusters=target.clusters, level=level,
        target=about, inclusion_probabilities=label_chances(target),
    )  # fmt: skip
    return _with_worth(estimate, target)


def effective_labels(estimate: Estimate, outcome_variance: float, pool: int, clusters: float = 1.0) -> float:
    """How many labels the plain mean would need for the same standard error about the pool: s²/(SE² + s²/M).

    Args:
        estimate: about the pool.
        outcome_variance: s² of the labels (times the design effect of clusters).
        pool: M.
        clusters: design effect of the plain mean, 1 without clusters.
    """
    spread = outcome_variance * clusters
    if spread <= 0.0:
        return float(estimate.n)
    return min(spread / (estimate.se**2 + spread / pool), float(pool))


def _with_worth(estimate: Estimate, target: TargetPool) -> Estimate:
    y = target.y[target.labeled]
    spread = float(np.var(y, ddof=1))
    design = 1.0
    if target.clusters is not None and spread > 0.0 and target.sampling.chances is None:
        plain = naive_mean(y, clusters=target.clusters[target.labeled])
        design = max(plain.se**2 * len(y) / spread, 1e-12)
    facts: dict[str, Any] = dict(estimate.diagnostics)
    if facts.get("target", "pool") == "pool" and len(y) < len(target.y):
        worth = effective_labels(estimate, spread, len(target.y), design)
        facts |= {"effective_labels": worth, "labels_gain": worth / estimate.n}
    return replace(estimate, diagnostics=facts)


def _profile_rows(target: TargetPool, axis: Axis) -> NDArray[np.bool_]:
    known = np.ones(len(target.y), dtype=bool) if axis.kind == "categorical" else np.isfinite(axis.values)
    if not (known & target.labeled).any():
        raise ValueError(f"no labeled row has a value in profile column {axis.column!r}")
    return known


def profile_place(axis: Axis, rows: NDArray[np.bool_]) -> tuple[NDArray[Any], Any, NDArray[Any] | None]:
    """Profile values and locality; an ordered axis by rank, with its levels to put back."""
    values = axis.values[rows]
    if axis.kind == "categorical":
        return values, Categorical(), None
    if len(np.unique(values)) == 1:
        raise ValueError(
            f"profile column {axis.column!r} holds one value only ({values[0]:g}); there is nothing to profile"
        )
    if axis.kind == "continuous":
        return values, None, None
    levels, ranks = np.unique(values, return_inverse=True)
    return ranks.astype(np.float64), Ordinal(), levels


def _profile(target: TargetPool, axis: Axis, signals: FloatArray, options: TableOptions) -> Profile:
    rows = _profile_rows(target, axis)
    z, locality, levels = profile_place(axis, rows)
    chances = label_chances(target)
    profile = lace_profile(
        z, target.y[rows], signals[rows], labeled=target.labeled[rows], locality=locality, adapt="average",
        level=options.level, target=options.target, inclusion_probabilities=None if chances is None else chances[rows],
    )  # fmt: skip
    return placed_profile(profile, axis, levels)


def placed_profile(profile: Profile, axis: Axis, levels: NDArray[Any] | None) -> Profile:
    """The profile with its column's name, and the levels of an ordered axis in the place of their ranks."""
    facts = {**profile.diagnostics, "column": axis.column, "kind": axis.kind}
    return replace(profile, at=profile.at if levels is None else levels, diagnostics=facts)


def _comparator(method: str, target: TargetPool, signals: FloatArray, options: TableOptions) -> Profile:
    from pipeline.estimators import comparator_profile

    axis = target.profiles[0]
    rows = _profile_rows(target, axis)
    z, locality, levels = profile_place(axis, rows)
    profile = comparator_profile(
        method, z, np.where(target.labeled, target.y, np.nan)[rows], signals[rows], locality=locality,
        rng=np.random.default_rng(options.seed),
    )  # fmt: skip
    return placed_profile(profile, axis, levels)


def _one_step(target: TargetPool, options: TableOptions) -> Estimate:
    """The one-step estimator; with rows beyond the labeled ones their predictions serve as its pool."""
    from pipeline.estimators import one_step_mean

    labeled, taus = target.labeled, target.taus
    assert taus is not None
    if not np.isfinite(taus).all():
        raise ValueError("the tau columns must be complete; fill or remove missing predictions")
    if taus.shape[1] < 2:
        raise ValueError("--tau needs at least 2 columns: draw 0, then the independent draws")
    n = int(labeled.sum())
    groups = None if target.clusters is None else target.clusters[labeled]
    estimate = one_step_mean(
        target.y[labeled], taus[labeled], power="loo" if n < 50 else "cross-fit", clusters=groups, level=options.level,
        pool_tau=None if n == len(labeled) else taus, rng=np.random.default_rng(options.seed),
    )  # fmt: skip
    return replace(estimate, method="one_step")


# --- deployment -----------------------------------------------------------------------------------------------------


def _ratio(target: TargetPool, options: TableOptions, notices: list[Notice]) -> FloatArray | None:
    """Deployment weight of every row: the weights column, or share in deployment over share in the pool."""
    if target.weights is not None:
        return np.asarray(target.weights / target.weights.mean())
    if not options.distribution:
        return None
    if not target.profiles or target.profiles[0].kind == "continuous":
        raise InputError("a target distribution over values needs --profile with an ordinal or categorical column")
    axis = target.profiles[0]
    labels = [_level_name(value) for value in axis.values.tolist()]
    counts = Counter(labels)
    unknown = [name for name in options.distribution if name not in counts]
    if unknown:
        close = nearest_names(unknown[0], sorted(counts))
        hint = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(sorted(counts)[:12])}"
        raise InputError(f"--weights: column {axis.column!r} has no value {unknown[0]!r}; {hint}")
    total = sum(options.distribution.values())
    if abs(total - 1.0) > _DISTRIBUTION_TOLERANCE:
        notices.append(Notice("distribution_rescaled", f"the deployment shares sum to {total:.3g}; divided by it"))
    share = {
        name: options.distribution.get(name, 0.0) / total / (count / len(labels)) for name, count in counts.items()
    }
    return np.array([share[name] for name in labels])


def _level_name(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:g}"
    return str(value)


def _deployment(target: TargetPool, signals: FloatArray, ratio: FloatArray, options: TableOptions) -> Estimate:
    from pipeline.estimators import lace_deployment

    chances = label_chances(target)
    extra: dict[str, Any] = {} if chances is None else {"inclusion_probabilities": chances}
    columns = signals if signals.shape[1] else np.zeros((len(target.y), 1))
    estimate: Estimate = lace_deployment(
        target.y, columns, ratio, labeled=target.labeled, adapt="average", level=options.level, **extra
    )
    return estimate
