"""Signals that treated labeled items differently are left out: what is missing must not depend on what is labeled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from pipeline.evaluation.pool import TargetPool
from pipeline.tables.signal_checks import Notice

LEVEL = 1e-4
"""Chance of such a difference, or a larger one, among columns that are missing at random."""


def without_uneven(target: TargetPool, notices: list[Notice]) -> TargetPool:
    """The target without the signals whose share of missing values differs between labeled items and the rest."""
    labeled = target.labeled
    missing = ~np.isfinite(target.signals)
    if not missing.any() or labeled.all() or not labeled.any():
        return target
    kept = []
    for k, name in enumerate(target.signal_names):
        inside, outside = int(missing[labeled, k].sum()), int(missing[~labeled, k].sum())
        if fisher_p(inside, int(labeled.sum()), outside, int((~labeled).sum())) >= LEVEL:
            kept.append(k)
            continue
        text = (
            f"signal {name!r} is left out: it is missing in {inside / labeled.sum():.0%} of the labeled items and in"
            f" {outside / (~labeled).sum():.0%} of the others, so it was not made the same way for both"
        )
        notices.append(Notice("uneven_signal", text, target.name))
    if len(kept) == len(target.signal_names):
        return target
    return replace(target, signals=target.signals[:, kept], signal_names=tuple(target.signal_names[k] for k in kept))


def fisher_p(first: int, of_first: int, second: int, of_second: int) -> float:
    """Two-sided Fisher p of two shares first/of_first and second/of_second."""
    total, size = first + second, of_first + of_second
    possible = np.arange(max(0, total - of_second), min(total, of_first) + 1)
    logs = (
        _log_choose(of_first, possible)
        + _log_choose(of_second, total - possible)
        - _log_choose(size, np.array([total]))
    )
    mass = np.exp(logs)
    own = mass[first - possible[0]]
    return float(min(mass[mass <= own * (1.0 + 1e-7)].sum(), 1.0))


def _log_choose(n: int, k: np.ndarray) -> np.ndarray:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
