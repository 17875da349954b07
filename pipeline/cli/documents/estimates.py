"""The document of estimates: estimates.json, and what run, resume, replay, estimate and labels import print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias

from pipeline.cli.documents.numbers import BestOfNEntry, EstimateEntry, GapEntry, ProfileEntry
from pipeline.cli.documents.shape import Shape, shape_of
from pipeline.estimators import RankSet
from pipeline.evaluation.document import PairDecision
from pipeline.evaluation.reading import GradingError, StageReplies, Unread
from pipeline.evaluation.rehearsal import Rehearsed

__all__ = ["EstimateEntry", "EstimatesDocument", "ProfileEntry"]


if TYPE_CHECKING:
    AuditEntry: TypeAlias = dict[str, Any]
    PairEntry: TypeAlias = dict[str, Any]
    RankEntry: TypeAlias = dict[str, Any]
    RehearsalEntry: TypeAlias = dict[str, Any]
    UnreadEntry: TypeAlias = dict[str, Any]
    RepliesEntry: TypeAlias = dict[str, Any]
else:
    AuditEntry = shape_of(GradingError, "AuditEntry", certain=("rate", "low", "high", "level"))
    PairEntry = shape_of(PairDecision, "PairEntry", certain=("level",))
    RankEntry = shape_of(RankSet, "RankEntry", certain=("level",))
    RehearsalEntry = shape_of(Rehearsed, "RehearsalEntry")
    RepliesEntry = shape_of(StageReplies, "RepliesEntry")
    UnreadEntry = shape_of(Unread, "UnreadEntry", certain=("share",), forms=(list[list[Any]], ""))


class WarningEntry(Shape):
    """Something the reader of the numbers must know."""

    code: str
    """Stable name of the kind."""
    message: str
    """One sentence."""


class LeftOutEntry(Shape):
    """A method that was asked for and has no number here."""

    target: str
    """The target, or the pair a − b."""
    method: str
    """Its name."""
    reason: str
    """Why, and what to do instead."""


class Decisions(Shape):
    """Which target is better, all pairs decided together."""

    method: str
    """Estimator of the differences."""
    adjustment: str
    """How the intervals are made to hold together."""
    level: float
    """Nominal joint coverage."""
    margin: float | None
    """Equivalence margin, or null."""
    target: str
    """What differences are about: population or pool."""
    pairs: list[PairEntry]
    """Every pair with enough labels."""
    rank_sets: list[RankEntry]
    """Every target."""


class WorthEntry(Shape):
    """What a family of signals adds to the LACE mean of one target."""

    target: str
    """The target."""
    family: str
    """The family of signals."""
    gain: float | None
    """Effective labels with all signals over those without this family."""
    effective: float | None
    """Effective labels with all signals."""
    without: float | None
    """Effective labels without this family."""


class CurvePoint(Shape):
    """One point of a best-of-N curve."""

    n: int
    """Candidates to pick from."""
    j: int
    """Scores per candidate that select."""
    estimate: EstimateEntry
    """The value of the policy."""


class SimulatedTruth(Shape):
    """What is known of a simulated target."""

    true_accuracy: float
    """Its expected accuracy on the items."""


class CalibrationEntry(Shape):
    """Responses with similar scores of a judge."""

    low: float
    """Least score."""
    high: float
    """Greatest score."""
    score: float
    """Mean score."""
    gold: EstimateEntry
    """Mean label."""


class JudgeSliceEntry(Shape):
    """A judge on some of the labeled responses."""

    by: str
    """`all`, `model` or the profile axis."""
    value: str
    """Which model or level."""
    n: int
    """Labeled responses."""
    correlation: float | None
    """Of score and label; null where one is constant."""
    bias: EstimateEntry
    """Mean of score − label; above 0 the judge is kinder than people."""


class KindnessEntry(Shape):
    """How much kinder a judge is to one model than to another."""

    a: str
    """The one."""
    b: str
    """The other."""
    difference: EstimateEntry
    """Bias on a minus bias on b."""
    biased: bool
    """Whether its interval leaves 0 out."""


class JudgeEntry(Shape):
    """A judge's score held against the labels."""

    signal: str
    """Its column."""
    calibration: list[CalibrationEntry]
    """By fifths, from the lowest score."""
    slices: list[JudgeSliceEntry]
    """All, by model, by level."""
    kindness: list[KindnessEntry]
    """Every two models."""


class CriterionEntry(Shape):
    """One further thing that people rated."""

    headline: str
    """The sentence that answers."""
    targets: dict[str, dict[str, EstimateEntry | ProfileEntry]]
    """Target → method → estimate or profile."""
    gaps: list[GapEntry]
    """Paired differences."""
    decisions: NotRequired[Decisions]
    """Where gaps were estimated."""
    judges: NotRequired[list[JudgeEntry]]
    """Judges held against its ratings."""


class LooksEntry(Shape):
    """Several looks at growing labels."""

    sizes: list[int]
    """Labels of a target at each look, these last."""
    level: float
    """Chance that the plain 95 % intervals of all these looks are right together."""
    decisions: Literal["anytime", "as_if_once"]
    """By intervals that hold however often one looks, or by those of one look, as asked."""


class EstimatesDocument(Shape):
    """Every estimate, with interval, method and diagnostics."""

    schema: Literal[2]
    """Version of this shape."""
    headline: str
    """The sentence that answers."""
    targets: dict[str, dict[str, EstimateEntry | ProfileEntry]]
    """Target → method → estimate or profile. A table without a model column has the one target `all`."""
    gaps: list[GapEntry]
    """Paired differences."""
    best_of_n: list[BestOfNEntry]
    """Values of best-of-N policies."""
    warnings: list[WarningEntry]
    """Warnings."""
    left_out: list[LeftOutEntry]
    """Methods that have no number here, and why."""
    decisions: NotRequired[Decisions]
    """Where gaps were estimated."""
    judges: NotRequired[list[JudgeEntry]]
    """Where a signal is a judge's score."""
    criteria: NotRequired[dict[str, CriterionEntry]]
    """Where people rated more than one thing: the others by name."""
    unread: NotRequired[dict[str, UnreadEntry]]
    """Where a run collected answers: target → those in which none could be read."""
    replies: NotRequired[list[RepliesEntry]]
    """Where a run collected replies: what became of them, by target and stage."""
    audit: NotRequired[AuditEntry]
    """Where a person checked a random sample of the grading."""
    looks: NotRequired[LooksEntry]
    """Where labels came in several rounds."""
    worth: NotRequired[list[WorthEntry]]
    """Where a run estimated LACE."""
    simulated: NotRequired[dict[str, SimulatedTruth]]
    """Simulated targets → what is known of them."""
    best_of_n_curves: NotRequired[dict[str, list[CurvePoint]]]
    """Target → the value for every N, where a run estimated best-of-N."""
    rehearsal: NotRequired[list[RehearsalEntry]]
    """With `estimate --rehearse`."""
