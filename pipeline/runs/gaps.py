"""Paired gaps of all targets of a run: of means and of profiles."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.config import RunConfig
from pipeline.estimators import Estimate, FittedGap, fit_gap, lace_gap, mean_gap
from pipeline.evaluation.document import Gap
from pipeline.runs.arrays import TargetArrays, generator
from pipeline.runs.axis import Axis
from pipeline.runs.refusals import named_refusals

__all__ = ["gap_fits", "paired_gaps"]

FloatArray = NDArray[np.float64]


def gap_fits(pool: Mapping[str, TargetArrays], config: RunConfig) -> list[tuple[str, str, FittedGap]]:
    """(a, b, LACE fit of the mean of Y_a − Y_b) of every pair with at least two shared labels."""
    fits = []
    for a, b in itertools.combinations(pool, 2):
        both = pool[a].labeled & pool[b].labeled
        if both.sum() >= 2:
            with named_refusals(f"{a} − {b}", "gaps"):
                fits.append((a, b, _mean_gap(pool[a], pool[b], both, config)))
    return fits


def paired_gaps(
    pool: dict[str, TargetArrays],
    fits: Sequence[tuple[str, str, FittedGap]],
    axes: dict[str, Axis | None],
    taus: dict[str, FloatArray],
    config: RunConfig,
) -> tuple[Gap, ...]:
    """All paired differences: of means by LACE (and by the one-step estimator), and of profiles."""
    gaps: list[Gap] = []
    for a, b, fit in fits:
        first, second = pool[a], pool[b]
        both = first.labeled & second.labeled
        gaps.append(Gap(a, b, "lace_gap", fit.estimate()))
        with named_refusals(f"{a} − {b}", "gaps"):
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


def _mean_gap(first: TargetArrays, second: TargetArrays, both: NDArray[np.bool_], config: RunConfig) -> FittedGap:
    """LACE of the mean of Y_a − Y_b, with (S_a, S_b, S_a − S_b) as signals."""
    left, right, _ = _shared_signals(first, second)
    return fit_gap(
        np.where(both, first.y - second.y, np.nan),
        np.column_stack([first.signals, second.signals, left - right]),
        labeled=both,
        inclusion_probabilities=first.inclusion,
        rng=generator(config.seed, "lace_gap", first.name, second.name),
    )


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
