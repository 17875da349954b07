"""Which column of a table holds what: the roles that a user names, or that a table of ours carries with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from pipeline.code_permission import require_permission

__all__ = ["GRADED", "INCLUSION", "STAGE", "STRATUM", "TEXT_AXES", "ColumnRoles", "ProfileKind", "ProfileRole"]

ProfileKind = Literal["continuous", "ordinal", "categorical", "tags", "semantic"]
"""What a user says of an axis; ``semantic`` becomes categorical when it is read."""
TEXT_AXES = ("categorical", "tags")
"""Kinds whose values are text."""


@dataclass(frozen=True, slots=True)
class ProfileRole:
    """A profile column and its kind; None means: find out."""

    column: str
    kind: ProfileKind | None = None


STAGE, STRATUM = "label_round", "label_stratum"
"""The columns of a labeled table that say in which round each label was drawn, and from which stratum."""
INCLUSION = "inclusion_probability"
"""The column of a labeled table that says how likely each row was to be labeled."""
GRADED = "graded"
"""Name of the outcomes that are graded from answers."""


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Which column of the user's table holds what.

    Attributes:
        gold: how good each answer is; empty where it is not known.
        signals: label-free numbers, known on every row (a few may be missing).
        id: the item; joins the rows of several models.
        model: splits a long table into targets.
        cluster: rows with one value are not independent (repeats, passages, conversations).
        weights: deployment weight of each row.
        profiles: axes to profile along.
        labeled: yes/no; gold outside it is never read.
        inclusion: probability in (0, 1] with which each row was drawn for labelling.
        taus: columns of predicted outcomes: draw 0 first, then the independent draws (the one-step estimator).
        rated: columns of an expensive rater's scores, empty where it was not asked (LACE in three layers).
        repeats: columns of the outcomes of several answers to the item.
        truth: the outcome of every item, where it is known beyond the labels.
        sampling: how labels were drawn, where that is known: ``uniform``.
        stage: round in which each label was drawn, 1, 2, …; 0 without a label. With ``stratum``.
        stratum: stratum of every item in the rounds after the first.
        targets: models of the table, in the order in which they are shown; empty: as they come.
        families: name of a family of signals → its columns.
        answer: the models' answers, whose agreement becomes signals.
        grading: how two answers are compared: exact, numeric, choice or math.
        gold_answer: right answers, which grade the outcomes; ``gold`` is then the name of the graded column.
        gold_range: (low, high) that every gold value must lie in; None means: judge by the values.
    """

    gold: str
    signals: tuple[str, ...] = ()
    id: str | None = None
    model: str | None = None
    cluster: str | None = None
    weights: str | None = None
    profiles: tuple[ProfileRole, ...] = ()
    labeled: str | None = None
    inclusion: str | None = None
    taus: tuple[str, ...] = ()
    gold_range: tuple[float, float] | None = None
    repeats: tuple[str, ...] = ()
    truth: str | None = None
    sampling: Literal["uniform"] | None = None
    targets: tuple[str, ...] = ()
    stage: str | None = None
    stratum: str | None = None
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answer: str | None = None
    grading: str = "exact"
    gold_answer: str | None = None
    rated: tuple[str, ...] = ()

    def columns(self) -> list[str]:
        """Every named column, once."""
        gold = self.gold if self.gold_answer is None else self.gold_answer
        single = (
            gold,
            self.answer,
            self.id,
            self.model,
            self.cluster,
            self.weights,
            self.labeled,
            self.inclusion,
            self.truth,
            self.stage,
            self.stratum,
        )
        several = (
            *self.signals,
            *self.taus,
            *self.rated,
            *self.repeats,
            *(profile.column for profile in self.profiles),
        )
        return list(dict.fromkeys(name for name in (*single, *several) if name is not None))

    def with_rounds(self, columns: Collection[str]) -> ColumnRoles:
        """The roles with the rounds of the labels, where a table that ``labels import --out`` wrote says them.

        Chances say how labels weigh and rounds how they vary: a table read again by its chances alone had another
        interval than the one that was printed when it was written.
        """
        if self.inclusion != INCLUSION or self.stage is not None or not {STAGE, STRATUM} <= set(columns):
            return self
        return replace(self, stage=STAGE, stratum=STRATUM)

    def to_dict(self) -> dict[str, Any]:
        """What is named, as JSON values; ``from_dict`` reads it again."""
        plain = asdict(ColumnRoles(""))
        return {name: value for name, value in asdict(self).items() if value != plain[name]}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ColumnRoles:
        """What ``to_dict`` wrote.

        Raises:
            TypeError, AttributeError: it is not such a mapping.
            ConfigError: it names code that no one on this machine has allowed.
        """
        require_permission(stored.get("grading"))
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
        }
        values["profiles"] = tuple(ProfileRole(**entry) for entry in values.get("profiles", ()))
        families = dict(stored.get("families", {}))
        values["families"] = {name: tuple(columns) for name, columns in families.items()}
        return cls(**values)
