"""A seeded slice of the coverage study, and its bookkeeping."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.studies.coverage.lace import CoverageCell, Rule, Target, coverage, replicate_hits
from pipeline.studies.lace.designs import Design, repeated_pool, setting_b, setting_c
from pipeline.studies.registry import load_study


def design_of(name: str, n: int) -> Design:
    if name == "repeated pool":
        return repeated_pool("math500", 1, n)
    return setting_b(pool_size=2_000) if name == "B" else setting_c(pool_size=2_000)


@pytest.mark.parametrize("rule", ["paper", "average"])
@pytest.mark.parametrize("target", ["pool", "population"])
@pytest.mark.parametrize("name", ["B", "C", "repeated pool"])
def test_coverage_is_near_nominal(name: str, target: Target, rule: Rule) -> None:
    n = 100
    cell = coverage(design_of(name, n), n, reps=60, rng=np.random.default_rng(7), target=target, rule=rule)
    # The full study finds .94 to .99; replicates are independent, points within one are not.
    assert cell.coverage > 0.94 - 3.5 * cell.standard_error
    assert cell.coverage <= 1.0
    assert cell.answered > 0.98


def test_the_unsmoothed_profile_is_not_what_is_covered() -> None:
    # Where the curve bends, an interval about the smoothed profile misses p(z) more often than its own target.
    design, rng = repeated_pool("math500", 1, 200), np.random.default_rng(8)
    own, other = [], []
    for _ in range(60):
        state = rng.bit_generator.state
        hits, _ = replicate_hits(design, 200, rng, "population", "paper")
        own.append(hits.mean())
        rng.bit_generator.state = state
        bent = Design(**{**{k: getattr(design, k) for k in design.__slots__}, "smoothed_truth": design.truth})
        other.append(replicate_hits(bent, 200, rng, "population", "paper")[0].mean())
    assert np.mean(other) < np.mean(own) - 0.02


def test_cells_count_points_without_an_interval_apart() -> None:
    hits = np.array([[1.0, np.nan], [0.0, 1.0], [1.0, 1.0]])
    cell = CoverageCell.of(hits, np.ones_like(hits))
    assert cell.coverage == pytest.approx((1.0 + 0.5 + 1.0) / 3)
    assert cell.worst == pytest.approx(2 / 3)
    assert cell.answered == pytest.approx(5 / 6)
    joint = CoverageCell.of(hits, np.ones_like(hits), joint=True)
    assert joint.coverage == pytest.approx(2 / 3)


def test_the_study_is_registered() -> None:
    assert load_study("lace-coverage").default_reps == 500
