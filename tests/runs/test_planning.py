"""What a plan promises, held against what the run then does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.runs.directory import RunDirectory
from pipeline.runs.forecast import Forecast, forecast_run
from pipeline.runs.planning import plan_labels
from pipeline.runs.setup import prepare, resolve_config
from tests.fault_server import FaultServer
from tests.runs.conftest import http_config


def _forecast(data: dict[str, Any], cache: Path) -> Forecast:
    return forecast_run(prepare(resolve_config(data), need_keys=False), cache)


def test_a_pilot_of_20_items_forecasts_the_bill_within_a_tenth(tmp_path: Path, server: FaultServer) -> None:
    data = http_config(server.url, benchmark={"preset": "embedded", "limit": 70})
    options: dict[str, Any] = {"runs_dir": tmp_path / "runs", "cache_dir": tmp_path / "cache", "yes": True}
    before = _forecast(data, tmp_path / "cache")
    assert before.cached == 0
    assert not any(stage.measured for stage in before.stages)
    pipeline.run(data, limit=20, **options)
    forecast = _forecast(data, tmp_path / "cache")
    assert all(stage.measured for stage in forecast.stages)
    result = pipeline.run(data, **options)
    assert forecast.cost_usd == pytest.approx(result.manifest["cost_usd"], rel=0.1)
    assert forecast.calls - forecast.cached == pytest.approx(result.manifest["calls"]["answered"], rel=0.1)
    after = _forecast(data, tmp_path / "cache")
    assert after.cached == after.calls
    assert after.cost_usd == 0.0


def test_labels_and_worth_of_a_finished_run(tmp_path: Path, server: FaultServer) -> None:
    data = http_config(server.url, benchmark={"preset": "embedded", "limit": 40}, design={"labeled": 25, "draws": 1})
    result = pipeline.run(data, runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache", yes=True)
    plan = plan_labels(RunDirectory(result.path), 0.1)
    targets = {entry["target"] for entry in plan["plans"]}
    assert targets == {"gpt", "llama"}
    assert all(entry["labels"] is None or 0 < entry["labels"] <= 40 for entry in plan["plans"] if entry["pool"] == 40)
    families = {entry["family"] for entry in plan["worth"]}
    assert families - {"anchor"} == {"judge", "pairwise", "confidence"}  # anchors of one answer tell nothing
    shares = [entry["cost_share"] for entry in plan["worth"] if entry["target"] == "gpt"]
    assert sum(shares) == pytest.approx(1.0)
