"""Whole runs over real HTTP: every role, resume, replay, budgets, crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.errors import InputError, StoppedEarly
from pipeline.models.cache import ReplyCache
from tests.fault_server import FaultServer
from tests.runs.conftest import http_config, write_config

CALLS_PER_ITEM = 3 + 2 * 3 + 2 * (1 + 2 * 3 + 3 + 3 + 2 * 3)
"""Anchors, both chains of three draws, and per target: answer, preferences, predictions, scores, pairs."""


def _digests(run: Path) -> dict[str, bytes]:
    files = [*sorted((run / "tables").glob("*.parquet")), run / "estimates.json"]
    return {file.name: file.read_bytes() for file in files}


def _run(folder: Path, config: dict[str, Any], **options: Any) -> pipeline.RunResult:
    options = {"runs_dir": folder / "runs", "cache_dir": folder / "cache", "yes": True, **options}
    return pipeline.run(config, **options)


def test_every_role_is_asked_and_every_table_is_filled(tmp_path: Path, server: FaultServer) -> None:
    result = _run(tmp_path, http_config(server.url))
    assert result.state == "done"
    tables = result.tables
    assert tables.items.height == 12
    assert tables.responses.filter(tables.responses["stage"] == "answer").height == 2 * 12
    assert tables.responses.filter(tables.responses["stage"] == "auxiliary").height == 12 * 2 * 3
    assert tables.preferences.height == 2 * 12 * (2 * 3 + 2 * 3)
    assert tables.scores.height == 2 * 12 * 3
    assert tables.taus.height == 2 * 12 * 3
    assert tables.signals.height == 2 * 12
    for name in ("gpt", "llama"):
        assert {"naive", "one_step", "lace", "lace_profile"} <= set(result.estimates[name])
    assert result.manifest["calls"]["answered"] == server.seen.answered
    assert result.manifest["cost_usd"] == pytest.approx(
        (server.seen.prompt_tokens * 1.0 + server.seen.completion_tokens * 2.0) / 1e6
    )


def test_a_second_run_asks_nothing_and_says_the_same(tmp_path: Path, server: FaultServer) -> None:
    first = _run(tmp_path, http_config(server.url))
    asked = server.seen.requests
    second = _run(tmp_path, http_config(server.url), run_id="again")
    assert server.seen.requests == asked
    assert _digests(first.path) == _digests(second.path)
    assert second.manifest["cost_usd"] == 0.0
    assert second.manifest["calls"]["cached"] == first.manifest["calls"]["calls"]


def test_replay_is_byte_identical_with_the_network_closed(tmp_path: Path) -> None:
    with FaultServer() as server:
        result = _run(tmp_path, http_config(server.url))
    replayed = pipeline.replay(result.path, cache_dir=tmp_path / "cache")
    assert replayed.manifest["identical"] is True
    assert _digests(replayed.path) == _digests(result.path)


def test_replay_names_the_request_that_is_missing(tmp_path: Path, server: FaultServer) -> None:
    result = _run(tmp_path, http_config(server.url))
    row = result.tables.taus.row(0, named=True)
    with ReplyCache(tmp_path / "cache") as cache:
        assert cache.remove([row["request_key"]]) == 1
    asked = server.seen.requests
    with pytest.raises(
        InputError, match=rf"response.s. were not recorded.*stage tau, item {row['item_id']}, model regressor"
    ):
        pipeline.replay(result.path, cache_dir=tmp_path / "cache")
    assert server.seen.requests == asked
    again = pipeline.resume(result.path, cache_dir=tmp_path / "cache")
    assert server.seen.requests == asked + 1
    assert again.state == "done"


def test_a_budget_is_never_passed_and_the_run_can_be_carried_on(tmp_path: Path, server: FaultServer) -> None:
    server.latency_s = 0.005
    whole = _run(tmp_path / "whole", http_config(server.url, concurrency=64))
    total = whole.manifest["cost_usd"]
    server.reset()
    config = http_config(server.url, concurrency=64, budget={"usd": total / 2})
    with pytest.raises(StoppedEarly) as stopped:
        _run(tmp_path, config, run_id="small")
    spent = (server.seen.prompt_tokens + 2 * server.seen.completion_tokens) / 1e6
    assert 0.2 * total < spent <= total / 2
    assert stopped.value.resume_command is not None
    assert "auxeval resume" in stopped.value.resume_command
    result = pipeline.resume(tmp_path / "runs" / "small", budget_usd=2 * total, cache_dir=tmp_path / "cache")
    assert result.manifest["cost_usd"] == pytest.approx(
        (server.seen.prompt_tokens + 2 * server.seen.completion_tokens) / 1e6
    )
    with ReplyCache(tmp_path / "cache") as cache:
        assert server.seen.answered == len(cache)  # every answer was stored, none was asked for twice


def _start(folder: Path, config: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "AUXEVAL_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-m", "pipeline", "run", str(config), "--yes", "--run-id", "r", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _wait_for(server: FaultServer, answered: int) -> None:
    deadline = time.monotonic() + 60
    while server.seen.answered < answered:
        assert time.monotonic() < deadline, f"only {server.seen.answered} answers in 60 s"
        time.sleep(0.005)


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_a_killed_run_is_carried_on_and_nothing_stored_is_asked_again(
    tmp_path: Path, server: FaultServer, share: float
) -> None:
    server.latency_s = 0.01
    data = http_config(server.url)
    process = _start(tmp_path, write_config(tmp_path, data))
    _wait_for(server, int(share * 12 * CALLS_PER_ITEM))
    process.kill()
    process.communicate()
    time.sleep(0.2)
    with ReplyCache(tmp_path / "cache") as cache:
        stored = len(cache)
    before = server.seen.answered
    assert 0 <= stored <= before
    assert before - stored <= 8 * 32  # what was in flight: at most every entry's concurrency
    result = pipeline.resume(tmp_path / "runs" / "r", cache_dir=tmp_path / "cache")
    with ReplyCache(tmp_path / "cache") as cache:
        whole = len(cache)
    assert server.seen.answered - before == whole - stored
    lines = [json.loads(line) for line in (result.path / "calls.jsonl").read_text().splitlines()]
    answered = [line["key"] for line in lines if line["state"] == "answered"]
    assert len(answered) == len(set(answered)) == whole
    undisturbed = _run(tmp_path, data, run_id="undisturbed")
    assert undisturbed.manifest["calls"]["answered"] == 0
    assert _digests(result.path) == _digests(undisturbed.path)


def test_ctrl_c_stops_with_exit_3_and_the_resume_command(tmp_path: Path, server: FaultServer) -> None:
    server.latency_s = 0.02
    config = write_config(tmp_path, http_config(server.url))
    process = _start(tmp_path, config)
    _wait_for(server, 100)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 3, stderr
    assert time.monotonic() - began < 5
    assert stderr.strip().splitlines()[-1].startswith("auxeval resume ")
    with ReplyCache(tmp_path / "cache") as cache:
        assert len(cache) == server.seen.answered  # what was in flight has landed and is stored


def test_the_same_run_cannot_be_opened_twice(tmp_path: Path, server: FaultServer) -> None:
    server.latency_s = 2.0
    config = write_config(tmp_path, http_config(server.url))
    process = _start(tmp_path, config)
    _wait_for(server, 1)
    second = _start(tmp_path, config)
    _, stderr = second.communicate(timeout=30)
    assert second.returncode == 2
    assert f"pid {process.pid}" in stderr
    process.kill()
    process.communicate()


def test_a_refused_key_stops_the_run_at_once(tmp_path: Path, server: FaultServer) -> None:
    server.fail("status", status=401)
    with pytest.raises(StoppedEarly, match="401"):
        _run(tmp_path, http_config(server.url))
    assert server.seen.requests <= 8 * 32


async def test_a_run_inside_a_running_loop(tmp_path: Path, server: FaultServer) -> None:
    assert _run(tmp_path, http_config(server.url)).state == "done"
