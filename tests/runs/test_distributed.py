"""A run over several worker processes: same tables, nothing asked twice, a killed worker, a budget that holds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer

from pipeline.errors import StoppedEarly
from pipeline.models.cache import ReplyCache
from pipeline.runs.interface import run
from tests.runs.conftest import http_config

distributed = pytest.importorskip("distributed", reason="the dask extra is not installed")
from pipeline.runs.distributed import run_distributed  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def tables_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((path / "tables").glob("*.parquet"))}


def stored(cache: Path) -> int:
    with ReplyCache(cache) as opened:
        return len(opened)


def repeats(server: FaultServer) -> int:
    counts = server.seen.answered_by_body
    return sum(counts.values()) - len(counts)


def options(folder: Path) -> dict[str, Any]:
    return {"runs_dir": folder / "runs", "cache_dir": folder / "cache", "yes": True}


def test_tables_are_those_of_one_process_over_the_merged_cache(
    cluster: Any, server: FaultServer, tmp_path: Path
) -> None:
    config = http_config(server.url)
    result = run_distributed(config, client=cluster, run_id="d", gather_s=0.2, **options(tmp_path))
    asked = server.seen.answered
    assert result.state == "done"
    assert stored(tmp_path / "cache") == asked == result.manifest["calls"]["answered"]
    assert result.manifest["distributed"]["shards"] == 3
    alone = run(config, run_id="alone", **options(tmp_path))
    assert server.seen.answered == asked
    assert tables_of(result.path) == tables_of(alone.path)
    assert (result.path / "estimates.json").read_bytes() == (alone.path / "estimates.json").read_bytes()


def test_a_killed_worker_costs_its_calls_in_flight(cluster: Any, tmp_path: Path) -> None:
    with FaultServer(latency_s=0.05) as server:
        in_flight: list[int] = []

        def kill() -> None:
            while server.seen.answered < 150:
                time.sleep(0.005)
            in_flight.append(server.seen.in_flight)
            os.kill(next(iter(cluster.run(os.getpid).values())), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        config = http_config(server.url, concurrency=6)
        result = run_distributed(config, client=cluster, run_id="d", gather_s=0.2, **options(tmp_path))
        killer.join()
        lost = server.seen.answered - stored(tmp_path / "cache")
        assert result.manifest["distributed"]["workers_lost"] == 1
        # A third of the six slots of each of eight entries: what one worker can have in the air or unstored.
        assert 0 <= lost <= 16
        assert server.seen.requests - stored(tmp_path / "cache") <= 2 * 16
        asked = server.seen.requests
        alone = run(config, run_id="alone", **options(tmp_path))
        assert server.seen.requests == asked
        assert tables_of(result.path) == tables_of(alone.path)


def test_workers_together_stay_within_concurrency(cluster: Any, tmp_path: Path) -> None:
    with FaultServer(latency_s=0.02) as server:
        config = http_config(server.url, concurrency=3)
        run_distributed(config, client=cluster, run_id="d", **options(tmp_path))
        assert server.seen.peak_in_flight <= 3 * len(config["models"])


def test_the_budget_holds_over_all_workers(cluster: Any, server: FaultServer, tmp_path: Path) -> None:
    config = http_config(server.url, budget={"calls": 60})
    with pytest.raises(StoppedEarly, match=r"budget\.calls"):
        run_distributed(config, client=cluster, run_id="d", gather_s=0.2, **options(tmp_path))
    assert 50 <= server.seen.answered <= 60
    assert stored(tmp_path / "cache") == server.seen.answered


def test_simulated_models_and_in_context_examples(cluster: Any, tmp_path: Path) -> None:
    config = {
        "schema": 1,
        "name": "simulated",
        "seed": 3,
        "benchmark": {"preset": "embedded", "limit": 12},
        "roles": {"targets": ["sim/strong"], "auxiliary": ["sim/aux-a", "sim/aux-b"], "regressor": "sim/regressor"},
        "design": {"labeled": 8, "draws": 2, "tau": {"variant": "in_context"}},
        "estimate": ["naive", "one_step"],
    }
    result = run_distributed(config, client=cluster, run_id="d", gather_s=0.2, **options(tmp_path))
    folder = tmp_path / "one"
    alone = run(config, run_id="d", **options(folder))
    assert result.manifest["calls"]["answered"] == alone.manifest["calls"]["answered"] == stored(tmp_path / "cache")
    assert tables_of(result.path) == tables_of(alone.path)


CLIENT = """
import json, sys
from pathlib import Path
from pipeline.runs.distributed import run_distributed
address, config, folder = sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3])
run_distributed(config, client=address, run_id="d", runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True)
"""


def test_workers_stop_when_the_client_is_killed_and_the_next_session_pays_for_nothing_twice(
    cluster: Any, tmp_path: Path
) -> None:
    with FaultServer(latency_s=0.2) as server:
        config = http_config(server.url, concurrency=3)
        arguments = [cluster.scheduler.address, json.dumps(config), str(tmp_path)]
        client = subprocess.Popen([sys.executable, "-c", CLIENT, *arguments], cwd=Path(__file__).parents[2])
        while server.seen.answered < 30:
            assert client.poll() is None
            time.sleep(0.01)
        client.kill()
        client.wait()
        before, quiet_since = server.seen.requests, time.monotonic()
        deadline = quiet_since + 60
        while time.monotonic() - quiet_since < 3:
            assert time.monotonic() < deadline, "the workers go on without their client"
            if server.seen.requests != before:
                before, quiet_since = server.seen.requests, time.monotonic()
            time.sleep(0.05)
        result = run_distributed(config, client=cluster, run_id="d", gather_s=0.2, **options(tmp_path))
        assert stored(tmp_path / "cache") == server.seen.answered == result.manifest["calls"]["answered"]
