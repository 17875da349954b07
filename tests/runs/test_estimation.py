"""Run estimation on synthetic tables: what is estimated, by which rule, reproducibly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.config import RunConfig, parse_config
from pipeline.errors import InputError
from pipeline.estimators import Estimate, Profile
from pipeline.runs.estimation import estimate_run
from pipeline.runs.frames import RunTables
from pipeline.tables.schemas import TABLES, items_schema, signals_schema
from pipeline.tables.store import write_rows

TARGETS = ("good", "fair", "poor")


def _config(**overrides: Any) -> RunConfig:
    data: dict[str, Any] = {
        "roles": {
            "targets": list(TARGETS),
            "auxiliary": ["sim/aux-a"],
            "judge": "sim/judge",
            "anchors": {"weak": "sim/w", "medium": "sim/m", "strong": "sim/s"},
            "regressor": "sim/r",
        },
        "models": {name: {"model": f"sim/{name}"} for name in TARGETS},
        "benchmark": {"preset": "embedded"},
        **overrides,
    }
    return parse_config(data)


def _write_tables(folder: Path, *, items: int = 200, labeled: int = 60, draws: int = 4, seed: int = 0) -> RunTables:
    """A world in which every signal tells something of correctness."""
    rng = np.random.default_rng(seed)
    names = [f"i{k:03d}" for k in range(items)]
    level = rng.integers(1, 6, items)
    is_labeled = np.zeros(items, dtype=bool)
    is_labeled[rng.permutation(items)[:labeled]] = True
    responses, taus, signals = [], [], []
    for position, target in enumerate(TARGETS):
        chance = 1 / (1 + np.exp(0.7 * (level - 3) + 0.8 * position - 1))
        y = (rng.random(items) < chance).astype(float)
        values = 0.7 * (y - 0.5)[:, None] + rng.normal(0, 0.4, (items, 6))
        for k, item in enumerate(names):
            responses.append(
                {"item_id": item, "model": target, "stage": "answer", "draw": 0, "phi": y[k], "outcome": "ok"}
            )
            signals.append(
                {
                    "item_id": item,
                    "target": target,
                    "y": y[k] if is_labeled[k] else None,
                    "labeled": bool(is_labeled[k]),
                    "profile": float(level[k]),
                    **dict(
                        zip(
                            ("judge", "pair_weak", "pair_medium", "pair_strong", "confidence", "disagreement"),
                            values[k],
                            strict=True,
                        )
                    ),
                }
            )
            taus += [
                {"item_id": item, "target": target, "variant": "zero_shot", "draw": j, "tau": chance[k]}
                for j in range(draws + 1)
            ]
    items_rows = [
        {"item_id": item, "question": item, "gold": "1", "profile": float(level[k]), "labeled": bool(is_labeled[k])}
        for k, item in enumerate(names)
    ]
    write_rows(folder, items_schema("ordinal"), items_rows)
    write_rows(folder, TABLES["responses"], responses)
    write_rows(folder, TABLES["taus"], taus)
    write_rows(folder, signals_schema(), signals)
    for name in ("preferences", "scores", "candidates"):
        write_rows(folder, TABLES[name], [])
    return RunTables(folder)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> RunTables:
    return _write_tables(tmp_path_factory.mktemp("tables"))


ALL = ["naive", "one_step", "lace", "lace_profile", "gaps"]


def test_every_target_gets_every_estimate_asked_for(tables: RunTables) -> None:
    estimates = estimate_run(_config(estimate=ALL), tables)
    assert tuple(estimates) == TARGETS
    for target in TARGETS:
        for method in ("naive", "one_step", "one_step_pool", "lace"):
            estimate = estimates[target][method]
            assert isinstance(estimate, Estimate)
            assert estimate.n == 60
            assert estimate.low <= estimate.value <= estimate.high
        profile = estimates[target]["lace_profile"]
        assert isinstance(profile, Profile)
        assert profile.at.tolist() == [1, 2, 3, 4, 5]
    assert {(gap.a, gap.b) for gap in estimates.gaps} == {("good", "fair"), ("good", "poor"), ("fair", "poor")}


def test_signals_that_tell_something_shorten_the_interval_of_the_mean(tables: RunTables) -> None:
    estimates = estimate_run(_config(estimate=["naive", "lace"]), tables)
    for target in TARGETS:
        assert estimates[target]["lace"].se < 0.9 * estimates[target]["naive"].se  # type: ignore[union-attr]


def test_the_same_tables_and_seed_give_the_same_bytes(tables: RunTables) -> None:
    config = _config(estimate=ALL)
    assert estimate_run(config, tables).to_json() == estimate_run(config, tables).to_json()


def test_power_is_pooled_with_three_targets_and_left_out_with_few_labels(tmp_path: Path) -> None:
    tables = _write_tables(tmp_path, labeled=30)
    estimate = estimate_run(_config(estimate=["one_step"]), tables)["good"]["one_step"]
    assert estimate.diagnostics["power_rule"] == "pooled"
    config = _config(estimate=["one_step"])
    alone = config.model_copy(update={"roles": config.roles.model_copy(update={"targets": ("good",)})})
    assert estimate_run(alone, tables)["good"]["one_step"].diagnostics["power_rule"] == "loo"


def test_constant_tau_leaves_the_naive_value(tables: RunTables) -> None:
    estimates = estimate_run(_config(estimate=["naive", "one_step"]), tables)
    for target in TARGETS:
        # the predictions of one item are equal over draws, so that no item is corrected
        assert estimates[target]["one_step_paper"].value == pytest.approx(estimates[target]["naive"].value)


def test_no_label_at_all_is_one_clear_line(tmp_path: Path) -> None:
    tables = _write_tables(tmp_path, labeled=0)
    with pytest.raises(InputError, match="target good: no labeled item"):
        estimate_run(_config(estimate=["naive"]), tables)


def test_missing_predictions_are_filled_without_correcting_the_item_and_are_counted(tmp_path: Path) -> None:
    tables = _write_tables(tmp_path)
    holes = tables.taus.with_columns(
        pl.when(pl.col("item_id") < "i005").then(None).otherwise(pl.col("tau")).alias("tau")
    )
    holes.write_parquet(tmp_path / "taus.parquet")
    estimates = estimate_run(_config(estimate=["one_step"]), RunTables(tmp_path))
    assert [warning.code for warning in estimates.warnings].count("tau_missing") == 3


def test_joint_decisions_are_wider_than_single_ones_and_ranks_follow_them(tables: RunTables) -> None:
    estimates = estimate_run(_config(estimate=["naive", "lace", "gaps"]), tables)
    decided = estimates.to_dict()["decisions"]
    for pair in decided["pairs"]:
        assert pair["low"] < pair["low_single"] < pair["value"] < pair["high_single"] < pair["high"]
        assert pair["p"] <= pair["p_adjusted"]
        (gap,) = [g for g in estimates.gaps if (g.a, g.b, g.method) == (pair["a"], pair["b"], "lace_gap")]
        assert gap.estimate.value == pair["value"]
    ranks = {entry["name"]: entry for entry in decided["rank_sets"]}
    assert set(ranks) == set(TARGETS)
    shown_better = sum(pair["low"] > 0 for pair in decided["pairs"] if pair["a"] == "good")
    assert ranks["good"]["worst"] == 3 - shown_better
    assert all(1 <= entry["best"] <= entry["rank"] <= entry["worst"] <= 3 for entry in ranks.values())


def test_a_comparator_that_cannot_work_on_the_axis_is_a_warning_not_the_end(tmp_path: Path) -> None:
    tables = _write_tables(tmp_path)
    named = tables.signals.with_columns(
        pl.when(pl.col("profile") > 2).then(pl.lit("hard")).otherwise(pl.lit("easy")).alias("profile")
    )
    named.write_parquet(tmp_path / "signals.parquet")
    estimates = estimate_run(_config(estimate=["naive", "comparators"]), RunTables(tmp_path))
    assert "plugin_judge" in estimates["good"]
    refused = [entry for entry in estimates.left_out if entry.method == "strat_ppi"]
    assert {entry.target for entry in refused} == set(TARGETS)
    assert "needs a numeric one" in refused[0].reason


@pytest.mark.parametrize(("policy", "value"), [("wrong", 0.5), ("exclude", 0.75)])
def test_a_missing_repeat_follows_the_stated_policy(tmp_path: Path, policy: str, value: float) -> None:
    """Of two labeled items one was answered right, then not at all; the other right, then wrong."""
    _write_tables(tmp_path, items=20, labeled=20)
    replies = [("i000", 0, 1.0), ("i000", 1, None), ("i001", 0, 1.0), ("i001", 1, 0.0)]
    rows = [{"item_id": i, "model": "good", "stage": "answer", "draw": d, "phi": phi} for i, d, phi in replies]
    write_rows(tmp_path, TABLES["responses"], rows)
    signals = RunTables(tmp_path).signals
    kept = signals.filter((pl.col("target") == "good") & (pl.col("item_id") < "i002"))
    kept.with_columns(pl.lit(True).alias("labeled"), pl.lit(1.0).alias("y")).write_parquet(tmp_path / "signals.parquet")
    config = _config(estimate=["repeated_decoding"], missing_reply=policy, design={"answers": 2})
    alone = config.model_copy(update={"roles": config.roles.model_copy(update={"targets": ("good",)})})
    estimate = estimate_run(alone, RunTables(tmp_path))["good"]["repeated_decoding"]
    assert isinstance(estimate, Estimate)
    assert estimate.value == value
    assert estimate.interval == "wilson"
