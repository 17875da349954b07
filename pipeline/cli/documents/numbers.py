"""Estimated numbers as documents hold them: one number, a curve, a difference, the value of a policy."""

from __future__ import annotations

from typing import Any

from pipeline.cli.documents.shape import Shape

Points = list[float | None]


class EstimateEntry(Shape):
    """One estimated number."""

    value: float | None
    """Point estimate; null where it is not defined."""
    se: float | None
    """Standard error, in the unit of the value."""
    low: float | None
    """Lower end of the interval."""
    high: float | None
    """Upper end of the interval."""
    level: float
    """Nominal coverage."""
    n: int
    """Labeled items that carry the estimate."""
    method: str
    """Short name of the estimator."""
    target: str
    """What the interval covers: population (items like these), pool (these very items) or deployment."""
    n_items: int
    """Distinct labeled items."""
    pool_size: int | None
    """Items of the pool, labeled or not; null where only labeled ones were given."""
    df: float | None
    """Degrees of freedom of the interval; null where it has none."""
    interval: str
    """Form of the interval: t, z, wilson, agresti-min, hypergeometric, none."""
    outcome_variance: float | None
    """Variance of the labeled outcomes."""
    design_effect: float | None
    """Variance of the plain mean with its clusters over the same without; 1 without clusters."""
    naive_value: float | None
    """Plain mean of the same labels."""
    naive_se: float | None
    """Its standard error under the same design, clusters and target."""
    worth: float | None
    """Labels of the plain mean that have the same standard error; null where undefined."""
    worth_low: float | None
    """Lower end of its 95 % range; null below 30 labeled items."""
    worth_high: float | None
    """Upper end of the same."""
    verdict: str
    """What the signals did: help, neutral, hurt; empty where there are none."""
    binary: bool
    """Whether every labeled outcome is 0 or 1."""
    largest_share: float | None
    """Share of the variance that rests on one label; null where the rule does not tell."""
    diagnostics: dict[str, Any]
    """Curiosities about the fit, as its method's page explains them."""


class ProfileEntry(Shape):
    """One estimated curve; the lists have one entry per point."""

    at: list[Any]
    """Points of the profile: numbers, names of levels, or lists of coordinates."""
    value: Points
    """Point estimates."""
    se: Points
    """Standard errors."""
    low: Points
    """Lower interval ends."""
    high: Points
    """Upper interval ends."""
    n_effective: Points
    """Effective number of labeled items."""
    df: Points
    """Degrees of freedom of the t interval."""
    variance: Points
    """se²."""
    r2: Points
    """Adjusted local R² of the signals."""
    gain: Points
    """Variance of the naive local mean over that of the estimate."""
    beta: list[Points]
    """Control-variate coefficients, one list per point."""
    method: str
    """Short name of the estimator."""
    target: str
    """What the intervals are about: pool or population."""
    level: float
    """Nominal pointwise coverage."""
    smoothed: bool
    """Whether points borrow labels from each other; else each is its own level's."""
    worth: Points
    """Labels of the plain local mean that have the same standard error."""
    n: int
    """Labeled items."""
    pool_size: int | None
    """Items of the pool."""
    interval: list[str]
    """Form of each interval."""
    verdict: list[str]
    """What the signals did at each point: help, neutral, hurt, none."""
    reason: list[str | None]
    """Why there is no value."""
    localities: list[str]
    """Kernel of every profile column: gaussian, ordinal, categorical."""
    binary: bool
    """Whether every labeled outcome is 0 or 1."""
    column: str
    """Name of the profile axis; empty where it has none."""
    diagnostics: dict[str, Any]
    """Named facts about the fit."""


class GapEntry(Shape):
    """The paired difference a − b of two targets."""

    a: str
    """First target."""
    b: str
    """Second target."""
    method: str
    """Short name of the estimator."""
    estimate: EstimateEntry | ProfileEntry
    """The difference, or its profile."""


class BestOfNEntry(Shape):
    """The value of picking the best of N candidates by the mean of J scores."""

    target: str
    """Whose candidates."""
    n: int
    """Candidates to pick from."""
    j: int
    """Scores per candidate that select."""
    measure: str
    """What is averaged: score, gain over a single candidate, gold, and others."""
    estimate: EstimateEntry
    """Its value."""
