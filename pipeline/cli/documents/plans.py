"""The documents of plan, compare and study."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pipeline.cli.documents.care import FindingEntry
from pipeline.cli.documents.estimates import Decisions, JudgeEntry, LeftOutEntry, PairEntry, WarningEntry
from pipeline.cli.documents.numbers import BestOfNEntry, EstimateEntry, GapEntry, ProfileEntry
from pipeline.cli.documents.shape import Shape


class StageForecastEntry(Shape):
    """One stage, role and model of a run."""

    stage: str
    """What is asked."""
    role: str
    """In which role."""
    model: str
    """Of which model entry."""
    calls: int
    """Planned calls, expected repairs included."""
    cached: int
    """Of them answered already."""
    prompt_tokens: int
    """Of the calls still to make."""
    completion_tokens: int
    """Of the calls still to make."""
    cost_usd: float | None
    """Of the calls still to make; null where the price is unknown."""
    measured: bool
    """Whether lengths come from replies at hand, not from assumptions."""


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


class LabelPlanEntry(Shape):
    """Gold labels that a wanted half-width needs."""

    target: str
    """The target."""
    what: str
    """Which number the interval is about."""
    about: NotRequired[str]
    """pool or population."""
    half_width: float | None
    """Wanted half-width."""
    labels: int | None
    """Labels needed; null where no number reaches the half-width."""
    labels_low: int | None
    """Labels if the pilot's variance lay at the lower end of its 95 % range; null where unknown."""
    labels_high: int | None
    """The same at the upper end; null where no number reaches the half-width, or unknown."""
    expected_half_width: float | None
    """What so many labels give, or all of them where it is not reachable."""
    quantile: float | None
    """The t quantile at that number of labels."""
    residual_variance: float | None
    """What the signals leave of the outcome's variance."""
    outcome_variance: float | None
    """Variance of the outcome."""
    pool: int | None
    """Items to draw from; null for an endless pool."""
    at: Any
    """The profile point that decides; null for a mean."""
    reason: str | None
    """Why it is not reachable."""
    note: str
    """What the table shows beside the numbers."""


class FamilyWorthEntry(Shape):
    """What a family of signals is worth against what it costs."""

    target: str
    """The target."""
    family: str
    """Its name."""
    gain: float | None
    """Effective labels with all signals over those without it."""
    cost_share: float | None
    """Its share of the cost; null where unknown."""
    cost: float | None
    """What it cost, in ``unit``; null where unknown."""
    effective: float | None
    """Effective labels with all signals."""
    without: float | None
    """Effective labels without it."""
    unit: str
    """What the cost is in: money, tokens, calls; empty where unknown."""
    sentence: str
    """The same in words."""


class LabelsEntry(Shape):
    """How many labels are needed."""

    half_width: NotRequired[float | None]
    """Wanted half-width, as given; runs only."""
    plans: list[LabelPlanEntry]
    """One entry per number and half-width."""
    worth: list[FamilyWorthEntry]
    """One entry per family of signals."""


class DesignEntry(Shape):
    """One way to spend a budget on the value of a best-of-N policy."""

    target: str
    """Whose candidates."""
    name: str
    """cyclic, fixed_split or fresh_winner."""
    n: int
    """Candidates to pick from."""
    j: int
    """Scores per candidate that select."""
    s: int
    """Scores that evaluate each winner."""
    cost: float
    """Cost of one unit."""
    variance: float | None
    """Variance of one unit's estimate."""
    cost_variance: float | None
    """Their product; the squared error at budget B is about this over B."""


class PlanDocument(Shape):
    """What a run would do and cost, and how many labels a half-width needs."""

    schema: Literal[1]
    """Version of this shape."""
    command: Literal["plan"]
    """The command."""
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
