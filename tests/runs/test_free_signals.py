"""Free signals of a run: in its table with their families, untouched by gold, and families that are not asked for."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from fault_server import FaultServer

import pipeline
from pipeline.collection.stages import calls_per_item, stage_plan
from pipeline.config import RunConfig, parse_config
from pipeline.errors import ConfigError
from pipeline.runs.directory import RunDirectory
from pipeline.runs.exported import exported
from pipeline.runs.frames import RunTables

DEFAULT = Path(pipeline.__file__).parent / "default.yaml"


def config(**changes: object) -> RunConfig:
    data = yaml.safe_load(DEFAULT.read_text(encoding="utf-8"))
    return parse_config({**data, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("free")
    data = yaml.safe_load(DEFAULT.read_text(encoding="utf-8"))
    data["benchmark"]["limit"] = 40
    data["design"].update(labeled=20, draws=1)
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    result = pipeline.run(path, runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True)
    return RunDirectory(result.path)


def test_the_table_says_what_each_column_is(finished: RunDirectory) -> None:
    path = finished.tables / "signals.parquet"
    said = pl.read_parquet_metadata(path)
    families = json.loads(said["auxeval.families"])
    assert said["auxeval.schema"] == "2"
    assert {"vote", "anchor", "target", "peer", "length", "judge", "pairwise"} <= set(families)
    assert families["target"] == ["agrees_strong", "agrees_medium", "agrees_weak"]
    assert {"agrees_anchor-weak", "agrees_aux-a"} <= set(families["anchor"])
    frame = pl.read_parquet(path)
    assert {name for columns in families.values() for name in columns} <= set(frame.columns)
    own = frame.filter(pl.col("target") == "weak")
    assert own["agrees_weak"].unique().to_list() == [0.0]
    assert frame["share"].is_between(0.0, 1.0).all()


def test_gold_and_labels_do_not_touch_the_columns(finished: RunDirectory) -> None:
    tables = RunTables(finished.tables)
    before = exported(finished.config(), tables)
    names = [name for word in ("vote", "anchor", "target", "peer") for name in before.roles.families[word]]
    changed = RunTables(finished.tables)
    changed.__dict__["items"] = tables.items.with_columns(pl.lit("7").alias("gold"), pl.lit(True).alias("labeled"))
    changed.__dict__["responses"] = tables.responses.with_columns(pl.lit(0.0).alias("phi"))
    signals = tables.signals.with_columns(pl.lit(1.0).alias("y"), pl.lit(True).alias("labeled"))
    changed.__dict__["signals"] = signals
    after = exported(finished.config(), changed)
    assert before.frame.select(names).equals(after.frame.select(names))
    assert names


def test_an_export_made_again_is_the_same(finished: RunDirectory) -> None:
    again = exported(finished.config(), RunTables(finished.tables))
    stored = pl.read_parquet(finished.tables / "signals.parquet")
    assert again.frame.select(stored.columns).equals(stored)


def test_families_that_are_left_out_are_not_in_the_pool(finished: RunDirectory) -> None:
    chosen = finished.config().model_copy(update={"signals": ("agreement", "judge")})
    made = exported(chosen, RunTables(finished.tables))
    assert set(made.roles.families) == {"judge", "vote", "anchor", "target"}
    assert not [name for name in made.roles.signals if name.startswith(("pair_", "confidence", "log_length"))]


def test_a_word_left_out_is_not_asked_for() -> None:
    stages = {call.stage for call in calls_per_item(config())}
    assert {"pointwise", "pairwise", "anchor"} <= stages
    without = config(signals=["agreement", "judge"])
    assert {call.stage for call in calls_per_item(without)} & {"pointwise", "pairwise", "anchor"} == {
        "pointwise", "anchor",
    }  # fmt: skip
    compared = config(signals=["pairwise"])
    assert {call.stage for call in calls_per_item(compared)} & {"pointwise", "pairwise", "anchor"} == {
        "pairwise", "anchor",
    }  # fmt: skip
    free = stage_plan(config(signals=["vote", "target", "peer"]))
    assert (free.judges, free.anchors, free.pointwise) == ((), (), 0)


def test_confidence_is_not_asked_for_where_its_family_is_left_out() -> None:
    """No line for it in the prompt, none read, none asked for again."""
    asked: list[dict[str, Any]] = []

    def replies(body: dict[str, Any], _digest: str) -> tuple[str, str]:
        asked.append(body)
        return "Answer: 4\nConfidence: 90", "stop"

    for signals, wanted in ((["vote"], False), (["vote", "confidence"], True)):
        asked.clear()
        with FaultServer(replies=replies) as server, tempfile.TemporaryDirectory() as folder:
            entry = {"model": "openai/m", "api_base": server.url, "transport": "direct"}
            data = {
                "schema": 1, "name": "r", "estimate": ["lace"], "design": {"labeled": 20}, "signals": signals,
                "benchmark": {"preset": "embedded", "limit": 30}, "models": {"m": entry, "n": entry},
                "roles": {"targets": ["m", "n"]},
            }  # fmt: skip
            result = pipeline.run(data, runs_dir=Path(folder) / "runs", cache_dir=Path(folder) / "cache", yes=True)
            rows = result.tables.responses
        assert rows["confidence"].is_not_null().all() is wanted
        assert set(rows["confidence_reason"]) == ({None} if wanted else {"not_asked"})
        assert all(("Confidence:" in str(body["messages"])) is wanted for body in asked)


def test_an_unknown_word_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="signals"):
        config(signals=["votes"])
