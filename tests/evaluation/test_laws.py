"""Laws of one evaluation, over every method: both doors, chances, clusters, weights, repeats, order, other targets.

A law that does not hold for a method stands in ``EXEMPT`` with its reason; one that should hold and is left out is
a gap that a reader can see.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.estimators import Estimate, Profile
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.options import Options
from pipeline.evaluation.table_pool import table_pool
from pipeline.tables.column_roles import ColumnRoles, ProfileRole
from pipeline.tables.user_table import frame_table

ITEMS, LABELS = 120, 50
ROLES = ColumnRoles(
    "y", ("s", "t"), id="id", model="model", profiles=(ProfileRole("level"),), taus=("t0", "t1", "t2"),
    weights="w", repeats=("a0", "a1"), truth="truth",
    rated=("r",),
)  # fmt: skip
EVERYTHING = Options(
    (
        "naive",
        "repeated_decoding",
        "one_step",
        "lace",
        "lace_deployment",
        "lace_cascade",
        "lace_profile",
        "gaps",
        "comparators",
    ),
    shrink=True,
)
EXEMPT: dict[str, dict[str, str]] = {
    "another target": {
        "one_step": "its power is pooled over the other targets where there are three",
        "one_step_pool": "the same",
    },
    "order of signals": {
        "plugin_judge": "the first signal is the primary one",
        "scalar_cv": "the same",
        "local_ppi": "the same",
        "per_signal_cv": "the same",
    },
}


def frame(models: str = "abc") -> pl.DataFrame:
    """A world in which every column that a method may want says something; labels on the same items for all."""
    rng = np.random.default_rng(5)
    level = rng.integers(1, 5, ITEMS)
    labeled = np.zeros(ITEMS, dtype=bool)
    labeled[rng.permutation(ITEMS)[:LABELS]] = True
    parts = []
    for position, model in enumerate("abcd"):
        skill = rng.normal(size=ITEMS) - 0.3 * level
        truth = (rng.random(ITEMS) < 1 / (1 + np.exp(-1.5 * skill - 1 + 0.3 * position))).astype(float)
        data: dict[str, Any] = {
            "id": [f"q{k:03d}" for k in range(ITEMS)], "model": [model] * ITEMS, "truth": truth,
            "y": np.where(labeled, truth, np.nan), "s": skill + rng.normal(size=ITEMS) * 0.5,
            "t": rng.normal(size=ITEMS),
            "level": level, "w": rng.uniform(0.5, 2.0, ITEMS), "doc": [f"d{k:03d}" for k in range(ITEMS)],
        }  # fmt: skip
        for k in range(3):
            data[f"t{k}"] = np.clip(0.5 + 0.2 * skill + 0.1 * rng.normal(size=ITEMS), 0, 1)
        data["r"] = np.where(labeled | (np.arange(ITEMS) % 3 > 0), truth + 0.3 * rng.normal(size=ITEMS), np.nan)
        data |= {"a0": data["y"], "a1": np.where(labeled, rng.integers(0, 2, ITEMS), np.nan)}
        parts.append(pl.DataFrame(data))
    return pl.concat(parts).filter(pl.col("model").is_in(list(models))).with_columns(pl.col(pl.Float64).fill_nan(None))


def evaluated(data: pl.DataFrame, roles: ColumnRoles = ROLES, options: Options = EVERYTHING) -> EstimateSet:
    return evaluate(table_pool(frame_table(data), roles), options)


def numbers(found: EstimateSet) -> dict[tuple[str, str], np.ndarray[Any, Any]]:
    """Every number of an evaluation by what it is about."""
    results: list[tuple[str, str, Estimate | Profile]] = [
        (target, method, result) for target, methods in found.items() for method, result in methods.items()
    ]
    results += [(f"{gap.a} − {gap.b}", gap.method, gap.estimate) for gap in found.gaps]
    listed = {
        (name, method): np.stack([np.atleast_1d(getattr(result, part)) for part in ("value", "se", "low", "high")])
        for name, method, result in results
    }
    if found.decisions is not None:
        for pair in found.decisions.pairs:
            listed[f"{pair.a} − {pair.b}", "decision"] = np.array([pair.value, pair.low, pair.high])
    return listed


def assert_equal(first: EstimateSet, second: EstimateSet, law: str = "", tolerance: float = 1e-9) -> None:
    left, right = numbers(first), numbers(second)
    assert set(left) == set(right)
    assert len(left) > 20
    for (name, method), expected in left.items():
        if method not in EXEMPT.get(law, {}):
            np.testing.assert_allclose(
                right[name, method], expected, rtol=tolerance, atol=1e-12, err_msg=f"{name} {method}"
            )


@pytest.fixture(scope="module")
def plain() -> EstimateSet:
    return evaluated(frame())


def test_every_method_is_in_the_battery(plain: EstimateSet) -> None:
    from pipeline.evaluation.methods import METHODS

    present = {method for _, method in numbers(plain)} | {entry.method for entry in plain.left_out}
    assert {method.name for method in METHODS} <= present


def test_equal_chances_are_none(plain: EstimateSet) -> None:
    equal = frame().with_columns(pl.lit(LABELS / ITEMS).alias("p"))
    found = evaluated(equal, replace(ROLES, inclusion="p"))
    left, right = numbers(plain), numbers(found)
    for key in left:
        # chances say that rows were drawn independently, which leaves the number of labels to chance: the point is
        # the same, and the variance of a simple draw
        np.testing.assert_allclose(right[key][0], left[key][0], rtol=1e-6, atol=1e-9, err_msg=str(key))
        if key[1] != "decision":
            np.testing.assert_allclose(right[key][1], left[key][1], rtol=0.02, atol=1e-9, err_msg=str(key))


def test_clusters_of_one_are_none(plain: EstimateSet) -> None:
    assert_equal(plain, evaluated(frame(), replace(ROLES, cluster="doc")))


def test_constant_weights_are_none() -> None:
    even = frame().with_columns(pl.lit(3.0).alias("w"))
    found = evaluated(even)
    for target in found:
        deployed, mean = found[target]["lace_deployment"], found[target]["naive"]
        assert isinstance(deployed, Estimate)
        assert isinstance(mean, Estimate)
        assert abs(deployed.value - mean.value) < 2 * mean.se
    heavier = evaluated(frame().with_columns(pl.col("w") * 7.0))
    assert_equal(evaluated(frame()), heavier)


def test_rows_repeated_under_one_id_are_one_row(plain: EstimateSet) -> None:
    assert_equal(plain, evaluated(pl.concat([frame()] * 3)))


def test_the_order_of_rows_does_not_matter(plain: EstimateSet) -> None:
    shuffled = frame().sample(fraction=1.0, shuffle=True, seed=3)
    named = replace(ROLES, targets=("a", "b", "c"))  # rows in any order name the targets in any order
    assert_equal(plain, evaluated(shuffled, named))


def test_the_order_of_signals_does_not_matter(plain: EstimateSet) -> None:
    assert_equal(plain, evaluated(frame(), replace(ROLES, signals=("t", "s"))), "order of signals")


def test_another_target_changes_nobody_else(plain: EstimateSet) -> None:
    more = evaluated(frame("abcd"))
    for target in plain:
        for method, result in plain[target].items():
            if method not in EXEMPT["another target"]:
                np.testing.assert_array_equal(
                    np.asarray(more[target][method].value), np.asarray(result.value), err_msg=method
                )


def test_the_smaller_standard_error_is_worth_more(plain: EstimateSet) -> None:
    for methods in plain.values():
        about = [e for e in methods.values() if isinstance(e, Estimate) and e.target == "population" and e.worth]
        ordered = sorted(about, key=lambda estimate: estimate.se)
        worths = [estimate.worth for estimate in ordered if estimate.worth is not None]
        assert worths == sorted(worths, reverse=True)
        naive = methods["naive"]
        assert isinstance(naive, Estimate)
        assert naive.worth == naive.n == LABELS


def test_what_stands_twice_is_one_number(plain: EstimateSet) -> None:
    assert plain.decisions is not None
    gaps = {(gap.a, gap.b): gap.estimate for gap in plain.gaps if gap.method == plain.decisions.method}
    for pair in plain.decisions.pairs:
        assert pair.value == gaps[pair.a, pair.b].value
        assert pair.se == gaps[pair.a, pair.b].se


def test_a_run_equals_its_own_exported_table(tmp_path: Path) -> None:
    config = {
        "name": "doors",
        "benchmark": {"preset": "embedded", "limit": 60},
        "models": {"strong": {"model": "sim/strong"}, "weak": {"model": "sim/weak"}, "j": {"model": "sim/judge"}},
        "roles": {
            "targets": ["strong", "weak"], "judge": "j", "auxiliary": ["sim/aux-a"], "regressor": "sim/regressor",
            "anchors": {"weak": "sim/anchor-weak"},
        },
        "design": {"labeled": 30, "draws": 2, "answers": 2},
        "estimate": ["naive", "repeated_decoding", "one_step", "lace", "lace_profile", "gaps", "comparators"],
    }  # fmt: skip
    run = pipeline.run(config, runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache", yes=True)
    table = pipeline.estimate(run.path / "tables" / "signals.parquet")
    assert_equal(run.estimates, table, tolerance=1e-12)
    assert table.headline == run.estimates.headline
    assert table.left_out == run.estimates.left_out
    assert [entry.to_dict() for entry in table.decisions.rank_sets] == [  # type: ignore[union-attr]
        entry.to_dict()
        for entry in run.estimates.decisions.rank_sets  # type: ignore[union-attr]
    ]
