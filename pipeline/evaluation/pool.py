"""The pool: what is known of every item and every target before anything is estimated, and how labels were drawn.

A pool is made by a reader (``table_pool`` of a user's table; a run reads its own exported table through the same one)
and read by everything else of this room. To bring new data in, make a :class:`Pool`; nothing behind it asks where it
came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.estimators import Sampling, fill_missing_signals
from pipeline.estimators.floats import FloatArray
from pipeline.tables.column_roles import ProfileKind
from pipeline.tables.signal_checks import Notice


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One profile axis on the items of one target.

    Attributes:
        column: its name.
        kind: its nature: continuous, ordinal or categorical.
        values: (M,) numbers (NaN where missing) or, if categorical, labels.
    """

    column: str
    kind: ProfileKind
    values: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class TargetPool:
    """One target on its pool of M items, one row per item.

    Attributes:
        name: the target; ``all`` where a table has no model column.
        y: (M,) outcomes, NaN where not labeled.
        labeled: (M,) which items carry a label.
        signals: (M, K), NaN where missing (see :meth:`filled`).
        signal_names: (K,) what each column is.
        profiles: the axes.
        ids: (M,) names of the items, sorted; None where the table has none.
        clusters: (M,) items of one cluster are not independent; None means that all are.
        weights: (M,) deployment weights, or None.
        sampling: how the labels were drawn: the labelling design as a value that travels.
        drawn: whether that is known: ``uniform`` (every item the same chance), ``known`` (as ``sampling`` says),
            ``unknown`` (nobody said; taken for uniform, and looked over).
        taus: (M, D) predicted outcomes: draw 0, then the independent draws; or None.
        ratings: (M, E) scores of an expensive rater, NaN where it was not asked; or None.
        repeats: (M, R) outcomes of several answers to each item, NaN where missing; or None.
        truth: the outcome of every item, where all are known and labels are only what an estimate may see; or None.
    """

    name: str
    y: FloatArray
    labeled: NDArray[np.bool_]
    signals: FloatArray
    signal_names: tuple[str, ...]
    profiles: tuple[Axis, ...] = ()
    ids: NDArray[np.str_] | None = None
    clusters: NDArray[np.str_] | None = None
    weights: FloatArray | None = None
    sampling: Sampling = field(default_factory=Sampling)
    taus: FloatArray | None = None
    repeats: FloatArray | None = None
    truth: FloatArray | None = None
    drawn: Literal["uniform", "known", "unknown"] = "unknown"
    ratings: FloatArray | None = None

    @property
    def design(self) -> dict[str, Any]:
        """How labels were drawn, as the estimators take it."""
        if self.sampling.rounds:
            return {"sampling": self.sampling}
        return {"inclusion_probabilities": self.sampling.probabilities}

    @property
    def chances(self) -> FloatArray | None:
        """(M,) chances for an estimator that knows no rounds and strata; None where all are alike."""
        return self.sampling.chances(self.labeled)

    @property
    def n(self) -> int:
        """Labeled items."""
        return int(self.labeled.sum())

    @property
    def size(self) -> int:
        """M, the items of the pool."""
        return len(self.y)

    @property
    def complete(self) -> bool:
        """Whether every item is labeled."""
        return bool(self.labeled.all())

    @property
    def binary(self) -> bool:
        """Whether every label is 0 or 1."""
        return bool(np.isin(self.y[self.labeled], (0.0, 1.0)).all())

    def filled(self) -> tuple[FloatArray, tuple[str, ...]]:
        """(M, K') signals without gaps, indicators of missing values last, and their names."""
        if self.signals.shape[1] == 0:
            return self.signals, ()
        values, index = fill_missing_signals(self.signals)
        return values, (*self.signal_names, *(f"{self.signal_names[k]}_missing" for k in index.tolist()))

    def of(self, rows: NDArray[Any]) -> TargetPool:
        """The same target on some rows (positions or booleans), in their order."""

        def part(array: Any) -> Any:
            return None if array is None else array[rows]

        return TargetPool(
            self.name, self.y[rows], self.labeled[rows], self.signals[rows], self.signal_names,
            tuple(Axis(axis.column, axis.kind, axis.values[rows]) for axis in self.profiles), part(self.ids),
            part(self.clusters), part(self.weights), self.sampling.take(rows), part(self.taus), part(self.repeats),
            part(self.truth), self.drawn, part(self.ratings),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pool:
    """Everything that is known before anything is estimated.

    Attributes:
        targets: one after the other; items of one id are the same item for all.
        notices: what was noticed while reading.
        families: name of a family of signals → its columns; empty means every signal by itself.
    """

    targets: tuple[TargetPool, ...]
    notices: tuple[Notice, ...] = ()
    families: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def labels_differ(self) -> bool:
        """Whether some target has labels on items that another one has no label on."""
        named = [target for target in self.targets if target.ids is not None]
        labeled = [target.ids[target.labeled] for target in named if target.ids is not None]
        return any(not np.array_equal(labeled[0], other) for other in labeled[1:])

    def __getitem__(self, name: str) -> TargetPool:
        return next(target for target in self.targets if target.name == name)
