"""A run over several worker processes: same tables, shared bounds, and whatever is killed costs its calls in flight."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fault_server import FaultServer

from pipeline import dask_client
from pipeline.errors import InputError, StoppedEarly
from pipeline.models.cache import ReplyCache
from pipeline.runs.call_log import read_calls
from pipeline.runs.interface import resume, run
from pipeline.runs.progress import planned_stages
from pipeline.runs.setup import prepare, resolve_config
from pipeline.studies.runner import map_replicates
from tests.runs.conftest import http_config, write_config

distributed = pytest.importorskip("distributed", reason="the dask extra is not installed")
from pipeline.runs.distributed import run_distributed  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]
WORKERS = 3
ENTRIES = 8
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Cluster:
    """What a user starts by hand: a scheduler and worker processes, with a nanny that starts killed ones again."""

    client: Any
    scheduler: subprocess.Popen[bytes]
    file: Path


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    command, where = [sys.executable, "-m", "dask"], ["--scheduler-file", str(file), "--no-dashboard"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT}
    quiet["env"] = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    options = ["--nworkers", str(WORKERS), "--nthreads", "1", "--local-directory", str(folder)]
    started = [
        subprocess.Popen([*command, "scheduler", "--host", "127.0.0.1", "--port", "0", *where], **quiet),
        subprocess.Popen([*command, "worker", "--host", "127.0.0.1", *options, *where], **quiet),
    ]
    try:
        with distributed.Client(scheduler_file=str(file), timeout="60s") as client:
            client.wait_for_workers(WORKERS, timeout=60)
            yield Cluster(client, started[0], file)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


@pytest.fixture
def cluster(dask: Cluster) -> Any:
    return dask.client


def small(url: str, **overrides: Any) -> dict[str, Any]:
    """Four items, some eighty calls."""
    return http_config(
        url,
        **{
            "benchmark": {"preset": "embedded", "limit": 6},
            "design": {"labeled": 4, "draws": 1},
            "estimate": ["naive", "one_step"],
            "drain_s": 5,
            **overrides,
        },
    )


def tables_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((path / "tables").glob("*.parquet"))}


def verified(cache: Path) -> int:
    """Entries of the cache, every one of them whole."""
    with ReplyCache(cache) as opened:
        report = opened.verify()
        assert report.ok
        return report.entries


def options(folder: Path) -> dict[str, Any]:
    return {"runs_dir": folder / "runs", "cache_dir": folder / "cache", "yes": True}


@contextmanager
def when(condition: Callable[[], bool], act: Callable[[], None]) -> Iterator[None]:
    """Act once the condition holds, meanwhile."""
    ended = threading.Event()

    def watch() -> None:
        while not condition():
            if ended.wait(0.005):
                return
        act()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def test_tables_are_those_of_one_process_over_one_cache(cluster: Any, server: FaultServer, tmp_path: Path) -> None:
    config = small(server.url)
    result = run_distributed(config, client=cluster, run_id="d", **options(tmp_path))
    asked = server.seen.requests
    assert result.state == "done"
    assert verified(tmp_path / "cache") == asked == result.manifest["calls"]["answered"]
    assert result.manifest["distributed"]["workers"] == WORKERS
    alone = run(config, run_id="alone", **options(tmp_path))
    again = run_distributed(config, client=cluster, run_id="d", **options(tmp_path))
    assert server.seen.requests == asked
    assert verified(tmp_path / "cache") == asked
    assert tables_of(result.path) == tables_of(alone.path) == tables_of(again.path)
    assert (result.path / "estimates.json").read_bytes() == (alone.path / "estimates.json").read_bytes()


def test_simulated_models_with_examples_answer_as_in_one_process(cluster: Any, tmp_path: Path) -> None:
    """The caches have nothing in common: what is the same is what was asked."""
    config = {
        "schema": 1,
        "name": "simulated",
        "seed": 3,
        "benchmark": {"preset": "embedded", "limit": 12},
        "roles": {"targets": ["sim/strong"], "auxiliary": ["sim/aux-a", "sim/aux-b"], "regressor": "sim/regressor"},
        "design": {"labeled": 8, "draws": 2, "tau": {"variant": "in_context"}},
        "estimate": ["naive", "one_step"],
    }
    result = run_distributed(config, client=cluster, run_id="d", **options(tmp_path))
    alone = run(config, run_id="d", **options(tmp_path / "one"))
    answered = verified(tmp_path / "cache")
    assert result.manifest["calls"]["answered"] == alone.manifest["calls"]["answered"] == answered
    assert tables_of(result.path) == tables_of(alone.path)
    assert (result.path / "estimates.json").read_bytes() == (alone.path / "estimates.json").read_bytes()


def test_a_killed_worker_costs_its_calls_in_flight(cluster: Any, tmp_path: Path) -> None:
    with FaultServer(latency_s=0.02) as server:
        config = small(server.url, concurrency=WORKERS, benchmark={"preset": "embedded", "limit": 12})
        needed = sum(stage.calls for stage in planned_stages(prepare(resolve_config(config))))
        most = ENTRIES * WORKERS  # what can be in the air
        config["budget"] = {"calls": needed + most + 8}  # a few replies need a repair
        victim = next(iter(cluster.run(os.getpid).values()))
        with when(lambda: server.seen.answered >= needed // 3, lambda: os.kill(victim, signal.SIGKILL)):
            result = run_distributed(config, client=cluster, run_id="d", **options(tmp_path))
        stored = verified(tmp_path / "cache")
        assert stored == result.manifest["calls"]["answered"]
        assert stored <= server.seen.requests <= stored + most
        possible = result.manifest["cost_upper_bound"].get("calls", 0)
        assert server.seen.requests - stored <= possible <= most
        asked = server.seen.requests
        alone = run({**config, "budget": {}}, run_id="alone", **options(tmp_path))
        assert server.seen.requests == asked
        assert tables_of(result.path) == tables_of(alone.path)


@pytest.mark.parametrize("bound", [{"calls": 40}, {"tokens": 15_000}, {"usd": 0.015}])
def test_no_budget_is_passed_in_sum(bound: dict[str, float], cluster: Any, server: FaultServer, tmp_path: Path) -> None:
    config = small(server.url, budget=bound)
    with pytest.raises(StoppedEarly, match=f"budget\\.{next(iter(bound))}"):
        run_distributed(config, client=cluster, run_id="d", **options(tmp_path))
    seen = server.seen
    spent = {
        "calls": seen.requests,
        "tokens": seen.prompt_tokens + seen.completion_tokens,
        "usd": (seen.prompt_tokens + 2 * seen.completion_tokens) / 1e6,
    }
    (name, most), *_ = bound.items()
    assert 0.5 * most < spent[name] <= most
    assert verified(tmp_path / "cache") == seen.answered


def test_slots_and_rates_are_never_passed_in_sum(cluster: Any, tmp_path: Path) -> None:
    """The server's own log of arrivals is the judge."""
    with FaultServer(latency_s=0.02, keep_bodies=True) as server:
        config = small(server.url, concurrency=4)
        for name in ("aux", "gpt"):
            config["models"][name]["rpm"] = 300
        run_distributed(config, client=cluster, run_id="d", **options(tmp_path))
        assert server.seen.peak_in_flight <= 4 * ENTRIES
        models = [body["model"] for body in server.bodies]
    for name in ("aux", "gpt"):
        arrivals = sorted(at for at, model in zip(server.seen.times, models, strict=True) if model == name)
        assert len(arrivals) > 10
        for first in range(len(arrivals)):
            for seconds in (0.5, 1.0, 2.0):
                held = bisect_left(arrivals, arrivals[first] + seconds) - first
                # Paced in one process; what is hasty on its way through a worker is worth a few more.
                assert held <= 300 * seconds / 60 + 2 * WORKERS


CLIENT = """
import json, sys
from pathlib import Path
from pipeline.runs.distributed import run_distributed
address, config, folder = sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3])
run_distributed(config, client=address, run_id="d", runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True)
"""


def assert_all_is_counted(result: Any, server: FaultServer, stored: int) -> None:
    """Every reply asked for once, but for those in flight when something died, which the ledger still counts."""
    assert stored == result.manifest["calls"]["answered"]
    assert stored <= server.seen.requests <= stored + ENTRIES * WORKERS
    assert result.manifest["cost_upper_bound"].get("calls", 0) >= server.seen.requests - stored


def test_a_killed_client_costs_its_calls_in_flight(dask: Cluster, tmp_path: Path) -> None:
    """They count as possibly charged from then on; all else is stored and asked once."""
    with FaultServer(latency_s=0.05) as server:
        config = small(server.url, concurrency=WORKERS, benchmark={"preset": "embedded", "limit": 12})
        arguments = [str(dask.file), json.dumps(config), str(tmp_path)]
        client = subprocess.Popen([sys.executable, "-c", CLIENT, *arguments], cwd=ROOT)
        try:
            while server.seen.answered < 20:
                assert client.poll() is None
                time.sleep(0.01)
        finally:
            client.kill()
            client.wait()
        result = resume(tmp_path / "runs" / "d", cache_dir=tmp_path / "cache")
        assert_all_is_counted(result, server, verified(tmp_path / "cache"))


def test_ctrl_c_stops_local_workers_in_order(server: FaultServer, tmp_path: Path) -> None:
    """A terminal sends it to every process of the group: to the workers as well."""
    server.latency_s = 0.05
    config = small(server.url, concurrency=2, benchmark={"preset": "embedded", "limit": 12})
    auxeval = [sys.executable, "-c", "from pipeline.cli import main; main()"]
    command = [*auxeval, "run", str(write_config(tmp_path, config)), "--dask", "local:2"]
    command += ["--run-id", "d", "--runs-dir", str(tmp_path / "runs"), "--yes"]
    environment = {**os.environ, "AUXEVAL_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    client = subprocess.Popen(
        command, cwd=tmp_path, env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    with when(lambda: server.seen.answered >= 20, lambda: os.killpg(client.pid, signal.SIGINT)):
        _, errors = client.communicate(timeout=150)
    assert client.returncode == 3, errors
    assert "auxeval resume" in errors
    assert "Traceback" not in errors
    stored = verified(tmp_path / "cache")
    assert 20 <= stored == server.seen.requests
    lines = [line for line in read_calls(tmp_path / "runs" / "d" / "calls.jsonl") if line["state"] == "answered"]
    assert len(lines) == stored


def draw(payload: int, rng: np.random.Generator) -> dict[str, object]:
    return {"payload": payload, "numbers": rng.standard_normal(3)}


def test_studies_on_dask_give_the_serial_numbers(dask: Cluster) -> None:
    tasks = {f"task-{index}": index for index in range(20)}
    found = map_replicates(draw, tasks, seed=3, dask=str(dask.file))
    assert found == map_replicates(draw, tasks, seed=3)


def test_a_study_that_workers_cannot_import_is_refused(
    dask: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def draw(payload, rng):\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="cannot run the study"):
        map_replicates(import_module("only_here").draw, {"a": 1}, seed=3, dask=str(dask.file))


def test_a_lost_scheduler_stops_everything_and_the_run_carries_on(
    dask: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last test of this module: it takes the scheduler away."""
    monkeypatch.setattr(dask_client, "_CONNECT_S", "1s")
    with FaultServer(latency_s=0.05) as server:
        config = small(server.url, concurrency=WORKERS, benchmark={"preset": "embedded", "limit": 12})
        with (
            when(lambda: server.seen.answered >= 20, dask.scheduler.kill),
            pytest.raises(StoppedEarly, match="scheduler was lost"),
        ):
            run_distributed(config, client=str(dask.file), run_id="d", **options(tmp_path))
        result = resume(tmp_path / "runs" / "d", cache_dir=tmp_path / "cache")
        assert_all_is_counted(result, server, verified(tmp_path / "cache"))
