"""Draws that are copies of one reply are pointed out: a fixed seed or temperature 0 at the provider."""

from __future__ import annotations

from pathlib import Path

import pytest

import pipeline
from tests.fault_server import FaultServer
from tests.runs.conftest import http_config


@pytest.mark.parametrize("fixed", [False, True])
def test_a_provider_whose_draws_are_copies_is_named(tmp_path: Path, fixed: bool) -> None:
    def reply(body: dict[str, object], digest: str) -> tuple[str, str]:
        number = 0 if fixed else next(counter)
        return f"It is {number}.\nAnswer: {number}\nConfidence: 50", "stop"

    counter = iter(range(10**6))
    with FaultServer(replies=reply) as server:
        config = http_config(server.url, design={"labeled": 4, "draws": 1}, estimate=["naive", "one_step"])
        config |= {"benchmark": {"preset": "embedded", "limit": 6}, "stage_failure_limit": 1.0}
        result = pipeline.run(config, runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache", yes=True)
    said = [warning.message for warning in result.estimates.warnings if warning.code == "same_draws"]
    assert len(said) == fixed
    assert all("aux: on 6 of 6 items all draws of stage auxiliary are one text" in message for message in said)
