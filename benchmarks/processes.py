"""Collection over one, two and more Dask processes: wall time, CPU time, repeats, and what coordination costs.

    python benchmarks/processes.py [--kind direct litellm] [--items 30] [--processes 1 2] [--repeats 3]

``direct`` and ``litellm``: over HTTP to one test server per worker process, each in a process of its own. Models have
the same slots in all, however many processes carry their calls. ``busiest worker s`` is CPU time, as is ``client s``:
everything but the attempts themselves, then tables, estimates and report.
Their sum is the wall time that cores to spare would give; ``wall s`` is what this machine gave.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
NAMES = ("gpt", "aux", "judge", "weak", "medium", "strong", "regressor")
SIMULATED = {"gpt": "sim/strong", "aux": "sim/aux-a", "judge": "sim/judge", "regressor": "sim/regressor"}


def config(kind: str, urls: list[str], items: int) -> dict[str, Any]:
    """Every role, eight slots a model; the servers take turns."""
    models: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(NAMES):
        models[name] = {"max_concurrency": 8, "params": {"max_tokens": 512}}
        if kind == "sim":
            models[name]["model"] = SIMULATED.get(name, f"sim/{name}")
        else:
            models[name] |= {"model": f"openai/{name}", "api_base": urls[place % len(urls)], "transport": kind}
            models[name] |= {"api_key_env": "AUXEVAL_BENCH_KEY"}
    return {
        "schema": 1,
        "name": "distributed",
        "benchmark": {"preset": "embedded", "limit": items},
        "models": models,
        "roles": {
            "targets": ["gpt"],
            "auxiliary": "aux",
            "judge": "judge",
            "anchors": {"weak": "weak", "medium": "medium", "strong": "strong"},
            "regressor": "regressor",
        },
        "design": {"labeled": max(5, items // 2), "draws": 2},
    }


@contextmanager
def server(latency_s: float) -> Iterator[str]:
    """A test server in a process of its own; its URL."""
    command = [sys.executable, str(ROOT / "tests" / "fault_server.py"), "--latency", str(latency_s)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def cpu_s(client: Any) -> list[float]:
    """CPU seconds of each worker so far."""
    return list(client.run(time.process_time).values())


def once(kind: str, count: int, items: int, latency_s: float, folder: Path) -> dict[str, float]:
    """One run over ``count`` worker processes that have imported everything before."""
    from distributed import Client, LocalCluster

    from pipeline.models.cache import ReplyCache
    from pipeline.runs.distributed import run_distributed

    with ExitStack() as stack:
        urls = [] if kind == "sim" else [stack.enter_context(server(latency_s)) for _ in range(count)]
        cluster = stack.enter_context(LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None))
        client = stack.enter_context(Client(cluster))

        def collect(name: str, size: int) -> dict[str, float]:
            before, mine, began = cpu_s(client), time.process_time(), time.monotonic()
            run_distributed(
                config(kind, urls, size),
                client=client,
                run_id=name,
                runs_dir=folder / "runs",
                cache_dir=folder / name / "cache",
                yes=True,
            )
            wall, own = time.monotonic() - began, time.process_time() - mine
            spent = [after - earlier for after, earlier in zip(cpu_s(client), before, strict=True)]
            with ReplyCache(folder / name / "cache") as cache:
                calls = len(cache)
            return {"wall": wall, "client": own, "busiest": max(spent), "all": sum(spent), "calls": calls}

        collect("warm", 2 * count)
        return collect("measured", items)


def main() -> None:
    """Print one line per kind and number of processes: medians over repeats."""
    import os

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kind", nargs="+", default=["direct", "litellm"])
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--latency", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    os.environ["AUXEVAL_BENCH_KEY"] = "none"
    try:
        import distributed  # noqa: F401
    except ImportError:
        print("dask: not installed (extra dask)")
        return
    print(
        f"{'kind':<8} {'processes':>9} {'calls':>6} {'wall s':>7} {'busiest worker s':>17} {'all workers s':>14}"
        f" {'client s':>9} {'sum s':>6} {'ms a call, worker':>18} {'client':>7}"
    )
    with tempfile.TemporaryDirectory() as name:
        for kind in given.kind:
            for count in given.processes:
                folders = [Path(name) / f"{kind}-{count}-{k}" for k in range(given.repeats)]
                found = [once(kind, count, given.items, given.latency, folder) for folder in folders]
                mid = {key: statistics.median(one[key] for one in found) for key in found[0]}
                print(
                    f"{kind:<8} {count:>9} {mid['calls']:>6.0f} {mid['wall']:7.1f} {mid['busiest']:17.2f}"
                    f" {mid['all']:14.2f} {mid['client']:9.2f} {mid['busiest'] + mid['client']:6.2f}"
                    f" {mid['all'] / mid['calls'] * 1e3:18.2f} {mid['client'] / mid['calls'] * 1e3:7.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
