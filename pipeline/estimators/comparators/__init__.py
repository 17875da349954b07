"""The methods LACE is compared with, each by name, on one labeled split of one pool."""

from __future__ import annotations

from pipeline.estimators.comparators.comparison import Comparison, ComparisonPool
from pipeline.estimators.comparators.profile import METHODS, comparator_profile, comparator_value

__all__ = ["METHODS", "Comparison", "ComparisonPool", "comparator_profile", "comparator_value"]
