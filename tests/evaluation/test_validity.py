"""A judge held against people: planted faults are found, honest judges pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.evaluation.pool import Axis, Pool, TargetPool
from pipeline.evaluation.validity import judge_validity


def _target(
    name: str, rng: np.random.Generator, kinder: float = 0.0, blind_on: str = "", size: int = 200
) -> TargetPool:
    topics = np.array(["refunds", "other"])[np.arange(size) % 2]
    quality = rng.normal(3.0, 1.0, size)
    score = quality + kinder + 0.4 * rng.standard_normal(size)
    score = np.where(topics == blind_on, rng.normal(3.0, 1.0, size), score)
    labeled = np.arange(size) < 80
    return TargetPool(
        name, np.where(labeled, quality, np.nan), labeled, score[:, None], ("judge",),
        profiles=(Axis("topic", "categorical", topics),), ids=np.array([f"i{k}" for k in range(size)]),
    )  # fmt: skip


def test_a_judge_that_is_kinder_to_one_model_is_found() -> None:
    rng = np.random.default_rng(0)
    pool = Pool((_target("old", rng), _target("new", rng, kinder=0.5)))
    (found,) = judge_validity(pool, ["judge", "absent"])
    (pair,) = found.kindness
    assert (pair.a, pair.b, pair.biased) == ("old", "new", True)
    assert pair.difference.low <= -0.5 <= pair.difference.high
    biases = {part.value: part.bias.value for part in found.slices if part.by == "model"}
    assert biases["new"] - biases["old"] == pytest.approx(-pair.difference.value, abs=0.1)


def test_a_judge_whose_scores_lie_close_together_does_not_favour_the_poorer_model() -> None:
    rng = np.random.default_rng(9)
    good, poor = _target("good", rng), _target("poor", rng)
    worse = np.where(poor.labeled, poor.y - 1.5, np.nan)
    flat = [0.3 * (part.signals - 3.0) + 3.0 for part in (good, poor)]
    shifted = flat[1] - 0.3 * 1.5
    pool = Pool((replace(good, signals=flat[0]), replace(poor, y=worse, signals=shifted)))
    (found,) = judge_validity(pool, ["judge"])
    assert not found.kindness[0].biased


def test_an_honest_judge_is_called_biased_as_seldom_as_its_level_says() -> None:
    reps = 200
    called = 0
    for seed in range(reps):
        rng = np.random.default_rng([7, seed])
        (found,) = judge_validity(Pool((_target("a", rng, size=60), _target("b", rng, size=60))), ["judge"])
        called += found.kindness[0].biased
    assert called / reps <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / reps)


def test_a_slice_that_the_judge_does_not_understand_is_found() -> None:
    (found,) = judge_validity(Pool((_target("a", np.random.default_rng(1), blind_on="refunds"),)), ["judge"])
    told = {part.value: part.correlation for part in found.slices if part.by == "topic"}
    assert told["refunds"] is not None
    assert told["other"] is not None
    assert told["refunds"] < 0.4 < 0.8 < told["other"]


def test_calibration_runs_from_the_lowest_score_and_counts_every_rating_once() -> None:
    (found,) = judge_validity(Pool((_target("a", np.random.default_rng(2)),)), ["judge"])
    assert sum(part.gold.n for part in found.calibration) == 80
    means = [part.score for part in found.calibration]
    assert means == sorted(means)
    assert found.calibration[-1].gold.value > found.calibration[0].gold.value + 1.5


def test_two_versions_rated_on_different_items_are_compared_too() -> None:
    rng = np.random.default_rng(3)
    one, two = _target("a", rng), _target("b", rng, kinder=0.6)
    apart = TargetPool(two.name, two.y, two.labeled, two.signals, two.signal_names, ids=np.char.add("z", two.ids))  # type: ignore[arg-type]
    (found,) = judge_validity(Pool((one, apart)), ["judge"])
    assert found.kindness[0].difference.method == "unpaired_difference"
    assert found.kindness[0].biased


def test_too_few_ratings_say_nothing() -> None:
    target = _target("a", np.random.default_rng(4), size=3)
    assert judge_validity(Pool((target,)), ["judge"]) == ()
