"""The document of labels plan, next and status, and of labels import where a plan is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pipeline.cli.documents.shape import Shape, shape_of
from pipeline.evaluation.plans.ledger import Look, Promise, StatisticEntry, Verdict

if TYPE_CHECKING:
    LookShape: TypeAlias = dict[str, Any]
    PromiseEntry: TypeAlias = dict[str, Any]
else:
    StatisticShape = shape_of(StatisticEntry, "StatisticShape")
    VerdictShape = shape_of(Verdict, "VerdictShape")
    LookShape = shape_of(
        Look, "LookShape", certain=("t", "spent"), estimates=(list[StatisticShape], ""), verdict=(VerdictShape, ""),
    )  # fmt: skip
    PromiseEntry = shape_of(
        Promise, "PromiseEntry", certain=("alpha",),
        goal=(dict[str, object], "What shall be decided: kind, half_width, question, margin, models."),
    )  # fmt: skip


class LabelPlanDocument(Shape):
    """A plan and its looks."""

    schema: Literal[1]
    """Version of this shape."""
    command: str
    """The command."""
    source: str
    """The table or run."""
    file: str
    """The ledger."""
    plan: str | None
    """Its id; null where looks are only counted."""
    state: Literal["open", "decided", "exhausted", "closed"]
    """Of the plan."""
    labels: int
    """Labels it knows."""
    promised: PromiseEntry | None
    """The plan."""
    looks: list[LookShape]
    """So far."""
    says: list[str]
    """What the command prints without --json."""


class CarryDocument(Shape):
    """Labels of an earlier version that hold in the next."""

    schema: Literal[1]
    """Version of this shape."""
    command: Literal["labels carry"]
    """The command."""
    earlier: str
    """Whose labels were taken."""
    later: str
    """The table or run with a plan."""
    labels: int
    """Questions that the earlier version has labels for."""
    holding: int
    """Those of them whose question and answer are the same in the next."""
    added: int
    """Words that the next version's store did not have."""
    disagreeing: int
    """Questions of the next version on which raters disagree."""
    next: str
    """The command to go on with."""


class LabelDocument(Shape):
    """What one rater did in the page, and what comes next."""

    schema: Literal[1]
    """Version of this shape."""
    command: Literal["label"]
    """The command."""
    source: str
    """The table or run."""
    rater: str
    """Who labelled."""
    store: str
    """Where the labels are."""
    answers: int
    """Answers of this rater until now."""
    skipped: int
    """Questions that this rater skipped."""
    left: int
    """Items of this rater's part that are open; under a plan, of the sheet."""
    phase: Literal["label", "waiting", "look", "looked", "end"]
    """Items are open; another rater is not done; a look can be taken; it was taken; there is no more to ask."""
    says: list[str]
    """What the plan says."""
    next: str
    """The command to go on with."""
