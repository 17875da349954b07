"""``resume --set``: what is in no request key and no table may change while a run is under way, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from fault_server import FaultServer

import pipeline
from pipeline.cli import main
from pipeline.errors import StoppedEarly
from tests.attacks.conftest import one_target


def resumed(*settings: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["resume", "r", *(word for setting in settings for word in ("--set", setting))])
    return int(end.value.code or 0)


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that its budget stopped in the middle."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_concurrency_and_times_change_and_nothing_is_asked_twice(stopped: Path) -> None:
    with FaultServer(latency_s=0.02) as server:
        config = one_target(server.url, items=24, budget={"calls": 10})
        with pytest.raises(StoppedEarly):
            pipeline.run(config, run_id="r", yes=True)
        before, peak = server.seen.requests, server.seen.peak_in_flight
        server.seen.peak_in_flight = 0
        assert peak > 1
        changes = ("models.gpt.max_concurrency=1", "attempt_timeout_s=7", "call_deadline_s=70", "drain_s=3")
        with pytest.raises(SystemExit) as end:
            main(["resume", "r", "--budget-usd", "5", *(word for each in changes for word in ("--set", each))])
        assert end.value.code == 3  # ten calls are still all there may be
        ran = yaml.safe_load((stopped / "runs" / "r" / "config.yaml").read_text())
        assert ran["models"]["gpt"]["max_concurrency"] == 1
        assert (ran["attempt_timeout_s"], ran["call_deadline_s"], ran["drain_s"]) == (7, 70, 3)
        assert server.seen.requests == before
    lines = (stopped / "runs" / "r" / "calls.jsonl").read_text().splitlines()
    assert len({json.loads(line)["key"] for line in lines}) == before


@pytest.mark.parametrize(
    "setting",
    ["models.gpt.model=openai/other", "seed=3", "design.draws=2", "models.nobody.rpm=5", "attempt_timeout_s=soon",
     "models.gpt.params={}", "attempt_timeout_s"],
)  # fmt: skip
def test_what_would_change_a_request_or_a_table_is_refused(
    setting: str, stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FaultServer() as server:
        with pytest.raises(StoppedEarly):
            pipeline.run(one_target(server.url, items=24, budget={"calls": 10}), run_id="r", yes=True)
        before = server.seen.requests
        config = (stopped / "runs" / "r" / "config.yaml").read_bytes()
        assert resumed(setting) == 2
        assert server.seen.requests == before
    assert (stopped / "runs" / "r" / "config.yaml").read_bytes() == config
    assert "internal error" not in capsys.readouterr().err
