"""The documents of plan, compare and study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias

from pipeline.cli.documents.care import FindingEntry
from pipeline.cli.documents.estimates import Decisions, JudgeEntry, LeftOutEntry, PairEntry, WarningEntry
from pipeline.cli.documents.numbers import BestOfNEntry, EstimateEntry, GapEntry, ProfileEntry
from pipeline.cli.documents.shape import Document, Shape, shape_of
from pipeline.estimators import Design
from pipeline.estimators.labels.family_worth import FamilyWorth
from pipeline.estimators.labels.planning import LabelPlan
from pipeline.runs.forecast import StageForecast

if TYPE_CHECKING:
    DesignEntry: TypeAlias = dict[str, Any]
    FamilyWorthEntry: TypeAlias = dict[str, Any]
    LabelPlanEntry: TypeAlias = dict[str, Any]
    StageForecastEntry: TypeAlias = dict[str, Any]
else:
    StageForecastEntry = shape_of(StageForecast, "StageForecastEntry")
    LabelPlanEntry = shape_of(
        LabelPlan, "LabelPlanEntry", target=(str, "The target."), what=(str, "Which number the interval is about."),
        about=(NotRequired[str], "pool or population."), at=(Any, ""),
        labels_low=(int | None, "Labels if the pilot's variance lay at the lower end of its 95 % range."),
        labels_high=(int | None, "The same at the upper end; null where no number reaches the half-width."),
        note=(str, "What the table shows beside the numbers."),
    )  # fmt: skip
    FamilyWorthEntry = shape_of(
        FamilyWorth, "FamilyWorthEntry", target=(str, "The target."), sentence=(str, "The same in words."),
    )  # fmt: skip
    DesignEntry = shape_of(Design, "DesignEntry", certain=("cost",), target=(str, "Whose candidates."))


class ForecastEntry(Shape):
    """What a run would do and cost."""

    items: int
    """Items of the benchmark."""
    left_out: dict[str, int]
    """Why rows of the file are no items of the run → how many."""
    calls: int
    """Planned calls."""
    cached: int
    """Of them answered already."""
    tokens: int
    """Of the calls still to make."""
    cost_usd: float | None
    """Of the calls still to make; null where a price is unknown."""
    stages: list[StageForecastEntry]
    """By stage, role and model."""


class LabelsEntry(Shape):
    """How many labels are needed."""

    half_width: NotRequired[float | None]
    """Wanted half-width, as given; runs only."""
    plans: list[LabelPlanEntry]
    """One entry per number and half-width."""
    worth: list[FamilyWorthEntry]
    """One entry per family of signals."""


class PlanDocument(Document):
    """What a run would do and cost, and how many labels a half-width needs."""

    forecast: ForecastEntry | None
    """Null for a TABLE."""
    labels: LabelsEntry | None
    """Null for a CONFIG, and for a RUN that is not finished."""
    findings: NotRequired[list[FindingEntry]]
    """What to know of the items before money is spent; not for a TABLE."""
    designs: NotRequired[list[DesignEntry]]
    """With `--best-of-n`: what to collect next, best first."""


class ComparisonEntry(Shape):
    """One pair of targets, the first run's minus the second's."""

    a: str
    """Target of the first run."""
    b: str
    """Target of the second run."""
    shared: int
    """Items that both runs hold."""
    labeled: int
    """Of them with a label in both."""
    naive: EstimateEntry
    """Paired mean difference over the labeled items."""
    lace: EstimateEntry | None
    """The same with both runs' signals, for all shared items."""
    decision: PairEntry
    """The pair decided together with all others."""


class CompareDocument(Shape):
    """Paired comparison of two runs."""

    schema: Literal[2]
    """Version of this shape."""
    command: Literal["compare"]
    """The command."""
    first: str
    """The first run, as named."""
    second: str
    """The second run, as named."""
    headline: str
    """The sentence that answers."""
    comparisons: list[ComparisonEntry]
    """One entry per pair of targets."""
    targets: dict[str, dict[str, EstimateEntry | ProfileEntry]]
    """Target (of either run) → method → estimate on the shared items."""
    gaps: list[GapEntry]
    """Paired differences, the first run's target minus the second's."""
    decisions: Decisions
    """All pairs decided together."""
    judges: NotRequired[list[JudgeEntry]]
    """Where a signal is a judge's score."""
    warnings: list[WarningEntry]
    """Warnings."""
    left_out: list[LeftOutEntry]
    """Methods that have no number here."""
    best_of_n: list[BestOfNEntry]
    """Empty."""


class MeasuredEntry(Shape):
    """One measured number of a study."""

    value: float | None
    """What was measured."""
    low: NotRequired[float | None]
    """Lower end of its 95 % Monte Carlo interval."""
    high: NotRequired[float | None]
    """Upper end of the same."""
    paper: NotRequired[float | None]
    """The number printed in the paper."""


class StudyTableEntry(Shape):
    """One table of a study."""

    title: str
    """Its title."""
    columns: list[str]
    """Names of its columns."""
    rows: list[list[MeasuredEntry | float | int | str | None]]
    """One list of cells per row."""
    notes: list[str]
    """What stands below it."""


class StudyDocument(Shape):
    """The result of a study."""

    schema: Literal[1]
    """Version of this shape."""
    command: str
    """The whole command line that made the result."""
    title: str
    """One line."""
    notes: list[str]
    """What a reader must know to judge the numbers."""
    tables: list[StudyTableEntry]
    """In reading order."""
    figures: list[str]
    """Names of the figures that `--out` writes."""


class StudySummary(Shape):
    """One study."""

    name: str
    """As typed after `auxeval study`."""
    summary: str
    """One line."""


class StudyListDocument(Shape):
    """The studies there are (`study --list`)."""

    schema: Literal[1]
    """Version of this shape."""
    command: Literal["study --list"]
    """The command."""
    studies: list[StudySummary]
    """In the order of the text output."""
