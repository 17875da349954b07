"""Paired gaps between the models of a user's own table, joined by item."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators import FittedGap, Profile, fit_gap
from pipeline.evaluation.document import Gap
from pipeline.evaluation.pool import TargetPool
from pipeline.evaluation.table_targets import (
    TableOptions,
    filled_signals,
    label_chances,
    named_errors,
    placed_profile,
    profile_place,
)
from pipeline.tables.signal_checks import Notice

__all__ = ["MAX_PAIRS", "paired_gaps"]

FloatArray = NDArray[np.float64]

MAX_PAIRS = 120
"""With more pairs than this, gaps are those to the best model alone."""


def paired_gaps(
    targets: Sequence[TargetPool], options: TableOptions, notices: list[Notice]
) -> tuple[tuple[Gap, ...], list[tuple[str, str, FittedGap]]]:
    """The gaps of all pairs, and the fits of their means, from which decisions follow.

    Returns:
        (gaps, (a, b, fit) of every pair with enough shared labels; empty where too many models leave only the gaps to
        the best one, which give no ranks).
    """
    if len(targets) < 2:
        return (), []
    if any(target.ids is None for target in targets):
        notices.append(Notice("no_ids", "no paired gaps between models: give --id so that their rows can be joined"))
        return (), []
    pairs = list(itertools.combinations(targets, 2))
    if len(pairs) > MAX_PAIRS:
        best = max(targets, key=lambda target: float(np.mean(target.y[target.labeled])))
        pairs = [(best, other) for other in targets if other is not best]
        notices.append(
            Notice(
                "gaps_to_best",
                f"{len(targets)} models make too many pairs; gaps are those to {best.name}, the best by its labels",
            )
        )
    gaps, fits = [], []
    for a, b in pairs:
        rows_a, rows_b = _joined(a, b)
        both = a.labeled[rows_a] & b.labeled[rows_b]
        if both.sum() < 2:
            shared = "no item in common" if len(rows_a) == 0 else "fewer than 2 items labeled for both"
            notices.append(Notice("no_gap", f"{a.name} − {b.name}: {shared}"))
            continue
        with named_errors(f"{a.name} − {b.name}", "gaps", notices):
            fit = _fit(a, b, rows_a, rows_b, both, options)
            fits.append((a.name, b.name, fit))
            estimate = fit.estimate(options.level)
            facts = {**estimate.diagnostics, "shared_items": len(rows_a)}
            gaps.append(Gap(a.name, b.name, "lace_gap", replace(estimate, diagnostics=facts)))
            if "lace_profile" in options.methods and a.profiles and a.signal_names == b.signal_names:
                profile = _gap_profile(a, b, rows_a, rows_b, both, options)
                gaps.append(Gap(a.name, b.name, "lace_gap_profile", profile))
    return tuple(gaps), fits if len(pairs) == len(targets) * (len(targets) - 1) // 2 else []


def _joined(a: TargetPool, b: TargetPool) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of a and of b about the same item; the k-th repeat of an item goes with the k-th."""
    place = {key: row for row, key in enumerate(_numbered(b.ids))}
    pairs = [(row, place[key]) for row, key in enumerate(_numbered(a.ids)) if key in place]
    joined = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return joined[:, 0], joined[:, 1]


def _numbered(ids: NDArray[np.str_] | None) -> Iterator[tuple[str, int]]:
    seen: Counter[str] = Counter()
    for item in [] if ids is None else ids.tolist():
        yield item, seen[item]
        seen[item] += 1


def _fit(
    a: TargetPool,
    b: TargetPool,
    rows_a: NDArray[np.intp],
    rows_b: NDArray[np.intp],
    both: NDArray[np.bool_],
    options: TableOptions,
) -> FittedGap:
    """LACE of the mean of Y_a − Y_b over shared items, with (S_a, S_b, S_a − S_b) as signals."""
    (first, first_names), (second, second_names) = filled_signals(a), filled_signals(b)
    first, second = first[rows_a], second[rows_b]
    shared = [name for name in first_names if name in second_names]
    difference = first[:, [first_names.index(n) for n in shared]] - second[:, [second_names.index(n) for n in shared]]
    chances = label_chances(a)
    if chances is not None:
        chances = np.where(~both & (chances[rows_a] >= 1.0), 1.0 - 1e-9, chances[rows_a])
    return fit_gap(
        np.where(both, a.y[rows_a] - b.y[rows_b], np.nan), np.column_stack([first, second, difference]), labeled=both,
        clusters=None if a.clusters is None else a.clusters[rows_a], target=options.target,
        items=None if a.ids is None else a.ids[rows_a], inclusion_probabilities=chances,
    )  # fmt: skip


def _gap_profile(
    a: TargetPool, b: TargetPool, rows_a: Any, rows_b: Any, both: NDArray[np.bool_], options: TableOptions
) -> Profile:
    """The paired gap along the first profile axis, read from the rows of a."""
    from pipeline.estimators import lace_gap

    axis = replace(a.profiles[0], values=a.profiles[0].values[rows_a])
    rows = np.ones(len(both), dtype=bool) if axis.kind == "categorical" else np.isfinite(axis.values)
    z, locality, levels = profile_place(axis, rows)
    first, second = _same_columns(a, b)
    profile: Profile = lace_gap(
        z, a.y[rows_a][rows], b.y[rows_b][rows], first[rows_a][rows], second[rows_b][rows], labeled=both[rows],
        locality=locality, adapt="average", level=options.level, target=options.target,
    )  # fmt: skip
    return placed_profile(profile, axis, levels)


def _same_columns(a: TargetPool, b: TargetPool) -> tuple[FloatArray, FloatArray]:
    """The filled signals of both, without indicators that only one of them has."""
    (first, first_names), (second, second_names) = filled_signals(a), filled_signals(b)
    shared = [name for name in first_names if name in second_names]
    columns = [first[:, [first_names.index(n) for n in shared]], second[:, [second_names.index(n) for n in shared]]]
    if not shared:
        return np.zeros((len(first), 1)), np.zeros((len(second), 1))
    return columns[0], columns[1]
