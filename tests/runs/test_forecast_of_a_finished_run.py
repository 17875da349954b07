"""What a finished run says of itself is read from its log: the same as a walk over the cache, without one."""

from __future__ import annotations

from pathlib import Path

import pytest

import pipeline
from pipeline.collection.collector import Collector
from pipeline.models.cache import ReplyCache
from pipeline.runs.directory import RunDirectory
from pipeline.runs.forecast import forecast_run
from pipeline.runs.setup import prepare
from tests.runs.conftest import FaultServer, http_config, write_config


def test_the_log_says_what_a_walk_says(server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_config(tmp_path, http_config(server.url))
    run = pipeline.run(config, run_id="r", runs_dir=tmp_path, cache_dir=tmp_path / "cache", yes=True)
    directory = RunDirectory(run.path)
    prepared = prepare(directory.config(), directory, need_keys=False)
    walked = forecast_run(prepared, tmp_path / "cache")
    monkeypatch.setattr(Collector, "run", None)  # a walk would call it
    told = forecast_run(prepared, tmp_path / "cache", finished=directory)
    assert told == walked
    assert told.cached == told.calls > 100
    with ReplyCache(tmp_path / "cache") as cache:
        cache.remove([next(iter(cache.entries())).key])
    assert forecast_run(prepared, tmp_path / "cache", finished=directory).cached == told.cached - 1
