"""The runs of the shared cases: a target that nobody knows, a server with one slot, targets that are anchors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from fault_server import FaultServer

import pipeline
from pipeline.errors import StoppedEarly


@pytest.fixture
def server() -> Any:
    with FaultServer() as running:
        yield running


def case(shared_path: Path, name: str, url: str = "") -> dict[str, Any]:
    folder = shared_path / "cases" / "runs"
    config: dict[str, Any] = yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))
    for entry in config["models"].values():
        if "api_base" in entry:
            entry["api_base"] = url
    if "path" in config["benchmark"]:
        config["benchmark"]["path"] = str(folder / config["benchmark"]["path"])
    return config


def run(config: dict[str, Any], folder: Path) -> pipeline.RunResult:
    return pipeline.run(config, runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True)


def test_a_target_that_the_server_does_not_know_is_never_scored(
    shared_path: Path, tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXY_KEY", "sk-of-the-proxy")
    server.fail("status", status=404, model="no-such-model")
    with pytest.raises(StoppedEarly, match=r"no-such-model|misspelt") as stopped:
        run(case(shared_path, "dead-target", server.url), tmp_path)
    assert stopped.value.resume_command is not None
    assert not list(tmp_path.glob("runs/*/estimates.json"))


@pytest.mark.parametrize("name", ["slot", "slot1"])
def test_one_slot_or_sixteen_in_flight_all_are_answered(
    shared_path: Path, tmp_path: Path, server: FaultServer, name: str
) -> None:
    config = case(shared_path, name, server.url)
    config["design"]["form_limit"] = 1
    result = run(config, tmp_path)
    assert result.state == "done"
    assert result.manifest["calls"]["failed"] == 0
    assert server.seen.peak_in_flight <= (1 if name == "slot1" else 16)


def test_a_target_that_is_an_anchor_is_not_compared_with_itself(shared_path: Path, tmp_path: Path) -> None:
    itself = run(case(shared_path, "selfpair"), tmp_path / "self").tables.preferences
    pairs = itself.group_by("target", "pair").len().rows()
    assert {(target, pair) for target, pair, _ in pairs} == {("qwen", "weak"), ("qwen", "medium"), ("llama", "strong")}
    others = run(case(shared_path, "otherpair"), tmp_path / "other").tables.preferences
    assert others.group_by("target", "pair").len().height == 6
    assert itself.filter(pl.col("target") == "llama")["verdict"].null_count() == 0
