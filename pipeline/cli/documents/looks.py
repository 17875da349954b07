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
