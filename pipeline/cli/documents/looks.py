"""The document of labels plan, next and status, and of labels import where a plan is there."""

from __future__ import annotations

from typing import Literal

from pipeline.cli.documents.shape import Shape


class PromiseEntry(Shape):
    """What was declared."""

    goal: dict[str, object]
    """What shall be decided: kind, half_width, question, margin, models."""
    target: Literal["population", "pool"]
    """About what."""
    items: int
    """Items of the pool."""
    alpha: float
    """Two-sided error over all looks."""
    spending: str
    """How it is spent."""
    n_max: int
    """At most so many labeled items."""
    first: int
    """Labels before which nothing is shown."""
    sheet: int
    """Items of one sheet."""
    blind: bool
    """Whether numbers stay hidden until the width is reached."""
    design: Literal["uniform", "auto"]
    """How sheets are drawn."""
    columns: dict[str, object]
    """Of a table."""
    order_seed: int
    """Of the order of items."""
    labels_before: int
    """Labels that were there."""
    items_sha256: str
    """Of the pool's ids."""
    estimator: dict[str, object]
    """The rule that estimates."""
    excluded: list[str]
    """Items whose labels serve for planning only."""


class StatisticShape(Shape):
    """One number at one look."""

    name: str
    """A model, or a pair."""
    value: float | None
    """The estimate."""
    variance: float | None
    """Its variance."""
    df: float | None
    """Degrees of freedom."""
    naive: float | None
    """The labels' own mean."""
    binary: bool
    """Whether it is a share."""
    low: float | None
    """Interval at this look's critical value; null is endless."""
    high: float | None
    """The same."""
    low_all: float | None
    """What all looks together leave."""
    high_all: float | None
    """The same."""


class VerdictShape(Shape):
    """What a look says."""

    decided: bool
    """Whether that ends the question."""
    says: str
    """In words."""
    contradiction: bool
    """Whether two looks exclude each other."""


class LookShape(Shape):
    """One look."""

    look: int
    """Its number."""
    n: int
    """Labeled items."""
    at: str
    """When."""
    information: float | None
    """Of these labels; null is endless."""
    t: float
    """Time in the plan."""
    spent: float
    """Error spent until now."""
    critical: float | None
    """Critical value; null where nothing can be decided."""
    labels_sha256: str
    """Of the labels."""
    amended: int
    """Labels corrected since the look before."""
    skipped: int
    """Items left empty."""
    estimates: list[StatisticShape]
    """Empty while the plan is blind."""
    verdict: VerdictShape
    """What it says."""
    state: str
    """Of the plan after it."""
    half_width: float | None
    """That a width plan has reached."""


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
