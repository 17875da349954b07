"""The document of gate."""

from __future__ import annotations

from typing import Literal

from pipeline.cli.documents.shape import Shape


class GateMetricEntry(Shape):
    """One metric, on all shared items or on one slice."""

    metric: str
    """Its name."""
    column: str | None
    """The slice's column; null for all items."""
    level: str | None
    """The slice's value."""
    n: int
    """Items compared."""
    gap: float | None
    """Candidate minus base."""
    margin: float
    """How much worse the candidate may be."""
    low: float | None
    """Lower end of this metric's own 95 % interval: above −margin it ships."""
    high: float | None
    """Upper end of the same."""
    high_joint: float | None
    """Upper bound that holds together with those of all metrics and slices: below −margin it blocks."""
    ships: bool | None
    """Whether it ships by itself; null where it is not judged."""
    blocks: bool | None
    """Whether it blocks."""
    needed: int | None
    """Items after which it would be decided if the difference stays as it is (80 %)."""


class RunNoiseEntry(Shape):
    """What several runs of the base show of the noise of a run."""

    runs: int
    """How many."""
    items: int
    """Items that all of them scored."""
    flip_rate: float
    """Share of scores that differ between two runs."""
    within: float
    """Variance of one item's score over runs."""
    ratio: float | None
    """Variance of the runs' means, times items, over the variance within: about 1 where nothing moves whole runs."""
    p: float
    """Chance of such a ratio if nothing does."""
    run_variance: float
    """Variance that moves whole runs."""
    moves: bool
    """Whether that is added to the intervals (p below .01)."""


class GateDocument(Shape):
    """Whether a candidate may replace its base."""

    schema: Literal[1]
    """Version of this shape."""
    command: Literal["gate"]
    """The command."""
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
