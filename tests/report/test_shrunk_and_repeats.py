"""Shrunk groups beside the unshrunk ones, and where the variance of repeated answers comes from."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pipeline.estimators import Categorical, lace_profile, repeated_decoding_mean
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.shrunk_groups import SHRUNK, shrunk_beside
from pipeline.report.run_folder import RunFolder
from pipeline.report.sections.profiles import profiles
from pipeline.report.sections.repeats import repeats


def _profile(groups: int) -> Any:
    rng = np.random.default_rng(0)
    z = np.array([f"g{k % groups}" for k in range(400)])
    y = np.where(np.arange(400) < 60, (rng.random(400) < 0.6).astype(float), np.nan)
    return lace_profile(z, y, rng.standard_normal((400, 2)), locality=Categorical(), adapt="average")


def _run(**methods: Any) -> RunFolder:
    estimates = EstimateSet({"m<b>": methods})
    return cast(RunFolder, SimpleNamespace(estimates=estimates, axis="kind", benchmark={}, path=Path()))


def test_groups_are_shrunk_where_there_are_enough_of_them() -> None:
    assert shrunk_beside(_profile(3)) is None
    labels = np.where(np.arange(100) % 3 == 0, np.arange(100) % 2, np.nan)
    ordered = lace_profile(np.arange(100.0), labels, np.random.default_rng(2).standard_normal((100, 1)))
    assert shrunk_beside(ordered) is None
    plain = _profile(8)
    shrunk = shrunk_beside(plain)
    assert shrunk is not None
    assert np.ptp(shrunk.value) < np.ptp(plain.value)


def test_the_report_shows_the_shrunk_interval_beside_the_unshrunk_one() -> None:
    plain = _profile(8)
    shrunk = shrunk_beside(plain)
    assert shrunk is not None
    page = profiles(_run(lace_profile=plain, **{SHRUNK: replace(shrunk, method=SHRUNK)}))
    assert "shrunk, interval" in page
    assert "no replacement" in page
    assert f"lace_profile, {SHRUNK}" in page
    assert "shrunk" not in profiles(_run(lace_profile=plain))


def test_components_say_what_more_answers_or_items_would_buy() -> None:
    rng = np.random.default_rng(1)
    chance = rng.random((50, 1))
    estimate = repeated_decoding_mean((rng.random((50, 4)) < chance).astype(float))
    parts = estimate.diagnostics["components"]
    page = repeats(_run(repeated_decoding=estimate))
    expected = 100.0 * math.sqrt((parts["item"] + parts["sampling"] / 8) / 50)
    assert f'data-v="{expected:.10g}"' in page
    assert "m&lt;b&gt;" in page
    assert repeats(_run(repeated_decoding=repeated_decoding_mean(np.ones((5, 1))))) == ""
