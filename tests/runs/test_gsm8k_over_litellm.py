"""Sixty real GSM8K items through LiteLLM to a server on loopback, and their replay with the server gone."""

from __future__ import annotations

from pathlib import Path

import pytest

import pipeline
from tests.fault_server import FaultServer
from tests.runs.conftest import http_config


@pytest.mark.shared
def test_sixty_items_through_litellm_and_their_replay(tmp_path: Path, shared_path: Path) -> None:
    data = {
        "preset": "gsm8k",
        "path": str(shared_path / "data" / "benchmarks" / "gsm8k_test.jsonl.gz"),
        "limit": 60,
    }
    with FaultServer(wrong_rate=0.3) as server:
        config = http_config(server.url, transport="litellm", benchmark=data, design={"labeled": 30, "draws": 1})
        result = pipeline.run(config, runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache", yes=True)
        assert result.tables.items.height == 60
        assert result.manifest["calls"]["answered"] == server.seen.answered == server.seen.requests
        assert result.manifest["calls"]["failed"] == 0
    answers = result.tables.responses.filter(result.tables.responses["stage"] == "answer")
    assert answers["answer"].null_count() < 0.1 * answers.height
    replayed = pipeline.replay(result.path, cache_dir=tmp_path / "cache")
    assert replayed.manifest["identical"] is True
