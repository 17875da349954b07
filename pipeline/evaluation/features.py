"""What data can have that a method may or may not be able to use, and which of it a pool has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

from pipeline.evaluation.options import Options
from pipeline.evaluation.pool import Pool, TargetPool

FEW_LABELS = 10


class Feature(StrEnum):
    """Something that data can have; the value is how it is said."""

    CHANCES = "unequal inclusion probabilities"
    STRATA = "labels drawn by strata"
    STAGES = "several label rounds"
    CLUSTERS = "clusters"
    WEIGHTS = "deployment weights"
    POPULATION = "target population"
    POOL = "target pool"
    CONTINUOUS = "a continuous profile axis"
    ORDINAL = "an ordinal profile axis"
    CATEGORICAL = "a categorical profile axis"
    TAGS = "a profile axis of overlapping tags"
    REPEATS = "several answers to each item"
    MISSING_TAUS = "missing predictions τ"
    MISSING_SIGNALS = "missing signals"
    OTHER_ITEMS = "labels on different items per target"
    CONSTANT = "labels that all agree"
    FEW = "fewer than 10 labels"
    CENSUS = "every item labeled"


@dataclass(frozen=True, slots=True)
class Support:
    """What a method does with a feature.

    Attributes:
        how: ``handled``; ``refused``: an error where the method was asked for by name, else it is left out;
            ``left out``: it is left out, and every output says so.
        reason: why, and what to do instead.
    """

    how: Literal["handled", "refused", "left out"]
    reason: str = ""


HANDLED = Support("handled")


def refused(reason: str) -> Support:
    """An error where the method was asked for by name."""
    return Support("refused", reason)


def left_out(reason: str) -> Support:
    """No number, and a notice."""
    return Support("left out", reason)


_AXES = {"continuous": Feature.CONTINUOUS, "ordinal": Feature.ORDINAL, "categorical": Feature.CATEGORICAL,
         "tags": Feature.TAGS}  # fmt: skip


def features_of(pool: Pool, target: TargetPool, options: Options) -> frozenset[Feature]:
    """What this target's data have; of the profile axes the first one alone."""
    features = {Feature.POOL if options.target == "pool" else Feature.POPULATION}
    sampling = target.sampling
    chances = sampling.probabilities
    features |= {Feature.CHANCES} if chances is not None and np.ptp(chances[target.labeled]) > 0.0 else set()
    features |= {Feature.STRATA} if any(entry.strata is not None for entry in sampling.rounds) else set()
    features |= {Feature.STAGES} if len(sampling.rounds) > 1 else set()
    features |= {Feature.CLUSTERS} if target.clusters is not None else set()
    features |= {Feature.WEIGHTS} if target.weights is not None or options.distribution else set()
    features |= {_AXES[target.profiles[0].kind]} if target.profiles else set()
    features |= {Feature.REPEATS} if target.repeats is not None else set()
    if target.taus is not None and not np.isfinite(target.taus).all():
        features.add(Feature.MISSING_TAUS)
    if not np.isfinite(target.signals).all():
        features.add(Feature.MISSING_SIGNALS)
    y = target.y[target.labeled]
    features |= {Feature.CONSTANT} if len(y) and np.ptp(y) == 0.0 else set()
    features |= {Feature.FEW} if len(y) < FEW_LABELS else set()
    features |= {Feature.CENSUS} if target.complete else set()
    features |= {Feature.OTHER_ITEMS} if pool.labels_differ else set()
    return frozenset(features)
