"""Paired gaps of all targets of a run, and what can be decided from them together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.config import RunConfig
from pipeline.estimators import Estimate, lace_gap, lace_mean, mean_gap
from pipeline.report.document import Gap
from pipeline.runs.arrays import TargetArrays, generator
from pipeline.runs.axis import Axis
from pipeline.runs.decisions import decide
from pipeline.runs.refusals import named_refusals

__all__ = ["decisions", "paired_gaps"]

FloatArray = NDArray[np.float64]


def decisions(
    pool: Mapping[str, TargetArrays], values: Mapping[str, float], config: RunConfig
) -> dict[str, Any] | None:
    """Joint intervals of all gaps, rank sets and equivalence; None with a single target."""

    def gap_at(a: str, b: str, level: float) -> Estimate | None:
        both = pool[a].labeled & pool[b].labeled
        if both.sum() < 2:
            return None
        with named_refusals(f"{a} − {b}", "gaps"):
            return _mean_gap(pool[a], pool[b], both, config, level)

    return decide(pool, values, gap_at)


def paired_gaps(
    pool: dict[str, TargetArrays], axes: dict[str, Axis | None], taus: dict[str, FloatArray], config: RunConfig
) -> tuple[Gap, ...]:
    """All paired differences: of means by LACE (and by the one-step estimator), and of profiles."""
    gaps: list[Gap] = []
    for a, b in itertools.combinations(pool, 2):
        first, second = pool[a], pool[b]
        both = first.labeled & second.labeled
        if both.sum() < 2:
            continue
        with named_refusals(f"{a} − {b}", "gaps"):
            gaps.append(Gap(a, b, "lace_gap", _mean_gap(first, second, both, config)))
            if taus:
                gaps.append(Gap(a, b, "one_step_gap", _one_step_gap(first, second, taus, both, config)))
            axis = axes[a]
            if axis is not None:
                left, right, others = _shared_signals(first, second)
                profile = lace_gap(
                    axis.z,
                    first.y,
                    second.y,
                    left,
                    right,
                    pairwise=others if others.shape[1] else None,
                    labeled=both,
                    inclusion_probabilities=first.inclusion,
                    at=axis.at,
                    locality=axis.locality,
                    adapt="average",
                    rng=generator(config.seed, "lace_gap_profile", a, b),
                )
                gaps.append(Gap(a, b, "lace_gap_profile", profile))
    return tuple(gaps)


def _mean_gap(
    first: TargetArrays, second: TargetArrays, both: NDArray[np.bool_], config: RunConfig, level: float = 0.95
) -> Estimate:
    """LACE of the mean of Y_a − Y_b, with (S_a, S_b, S_a − S_b) as signals."""
    left, right, _ = _shared_signals(first, second)
    stacked = np.column_stack([first.signals, second.signals, left - right])
    estimate = lace_mean(
        np.where(both, first.y - second.y, np.nan),
        stacked,
        labeled=both,
        inclusion_probabilities=first.inclusion,
        adapt="average",
        learner=None,
        rng=generator(config.seed, "lace_gap", first.name, second.name),
        level=level,
    )
    return replace(estimate, method="lace_gap")


def _shared_signals(first: TargetArrays, second: TargetArrays) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The signals that both targets have, of each, and those that only one has (a missing-reply indicator, say)."""
    shared = [n for n in first.signal_names if n in second.signal_names]
    left = first.signals[:, [first.signal_names.index(n) for n in shared]]
    right = second.signals[:, [second.signal_names.index(n) for n in shared]]
    alone = [
        arrays.signals[:, k] for arrays in (first, second) for k, n in enumerate(arrays.signal_names) if n not in shared
    ]
    return left, right, np.column_stack(alone) if alone else np.empty((len(left), 0))


def _one_step_gap(
    first: TargetArrays, second: TargetArrays, taus: dict[str, FloatArray], both: NDArray[np.bool_], config: RunConfig
) -> Estimate:
    rule: Any = "loo" if int(both.sum()) < 50 else "cross-fit"
    return mean_gap(
        first.y[both],
        second.y[both],
        taus[first.name][both],
        taus[second.name][both],
        power=rule,
        rng=generator(config.seed, "one_step_gap", first.name, second.name),
    )
