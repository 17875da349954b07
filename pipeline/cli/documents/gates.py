"""The document of gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pipeline.cli.documents.shape import Document, shape_of
from pipeline.evaluation.gate import RunNoise
from pipeline.evaluation.gate_verdict import GateRow

if TYPE_CHECKING:
    GateMetricEntry: TypeAlias = dict[str, Any]
    RunNoiseEntry: TypeAlias = dict[str, Any]
else:
    GateMetricEntry = shape_of(GateRow, "GateMetricEntry", certain=("margin",))
    RunNoiseEntry = shape_of(
        RunNoise, "RunNoiseEntry", certain=("flip_rate", "within", "p", "run_variance"),
        moves=(bool, "Whether that is added to the intervals (p below .01)."),
    )  # fmt: skip


class GateDocument(Document):
    """Whether a candidate may replace its base."""

    base: str | None
    """The base; null with --aa."""
    candidate: str | None
    """The candidate."""
    target: Literal["population", "pool"]
    """What intervals are about."""
    verdict: Literal["SHIP", "BLOCK", "INCONCLUSIVE"] | None
    """The verdict; null about these very items, and with --aa."""
    exit: int
    """The exit code: 0 SHIP, 10 BLOCK, 11 INCONCLUSIVE."""
    items: int | None
    """Shared items."""
    only_base: int | None
    """Items that only the base has."""
    only_candidate: int | None
    """Items that only the candidate has."""
    epochs: list[int] | None
    """Epochs of base and candidate."""
    metrics: list[GateMetricEntry]
    """The metrics, then the slices."""
    notes: list[str]
    """What a reader must know."""
    noise: RunNoiseEntry | None
    """Of several runs of the base."""
