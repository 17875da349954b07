"""Estimated numbers as documents hold them: one number, a curve, a difference, the value of a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pipeline.cli.documents.shape import Shape, shape_of
from pipeline.estimators import Estimate, Profile

if TYPE_CHECKING:
    EstimateEntry: TypeAlias = dict[str, Any]
    ProfileEntry: TypeAlias = dict[str, Any]
else:
    EstimateEntry = shape_of(Estimate, "EstimateEntry", certain=("level",))
    ProfileEntry = shape_of(Profile, "ProfileEntry", certain=("level",), beta=(list[list[float | None]], ""))


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
