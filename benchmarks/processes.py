"""Collection over one, two and more Dask processes against the test server: wall time, repeats, and what merging costs.

    python benchmarks/processes.py [--items 30] [--processes 1 2 3] [--latency 0.1]

Every model entry has six slots in all, however many processes share them, so the calls in flight stay the same and
the wall time shows what splitting costs or saves. ``start s`` is the time of starting the processes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def config(url: str, items: int) -> dict[str, Any]:
    """Every role on the server, six slots a model."""
    names = ("gpt", "aux", "judge", "weak", "medium", "strong", "regressor")
    entry = {"api_base": url, "transport": "direct", "max_concurrency": 6, "params": {"max_tokens": 512}}
    return {
        "schema": 1,
        "name": "distributed",
        "benchmark": {"preset": "embedded", "limit": items},
        "models": {name: {"model": f"openai/{name}", **entry} for name in names},
        "roles": {
            "targets": ["gpt"],
            "auxiliary": "aux",
            "judge": "judge",
            "anchors": {"weak": "weak", "medium": "medium", "strong": "strong"},
            "regressor": "regressor",
        },
        "design": {"labeled": max(5, items // 2), "draws": 2},
    }


def merge_cost(cache: Path, folder: Path) -> tuple[float, float]:
    """CPU milliseconds per entry of a first merge, and of a second that adds nothing."""
    from pipeline.models.cache import ReplyCache
    from pipeline.models.merging import merge_cache

    with ReplyCache(folder) as into:
        took = []
        for _ in range(2):
            began = time.process_time()
            report = merge_cache(cache, into)
            took.append((time.process_time() - began) / max(1, report.read) * 1e3)
    return took[0], took[1]


def main() -> None:
    """Print one line per number of processes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--latency", type=float, default=0.1)
    given = parser.parse_args()
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("dask: not installed (extra dask)")
        return
    from fault_server import FaultServer

    from pipeline.models.cache import ReplyCache
    from pipeline.runs.distributed import run_distributed

    print(
        f"{'processes':>9} {'start s':>8} {'run s':>7} {'calls':>6} {'repeats':>8} {'peak in flight':>15} {'slots':>6}"
    )
    with tempfile.TemporaryDirectory() as name:
        for count in given.processes:
            folder = Path(name) / str(count)
            began = time.monotonic()
            with (
                FaultServer(latency_s=given.latency) as server,
                LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
                Client(cluster) as client,
            ):
                started = time.monotonic()
                settings = config(server.url, given.items)
                run_distributed(
                    settings, client=client, runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True, gather_s=1
                )
                took, seen = time.monotonic() - started, server.seen
                with ReplyCache(folder / "cache") as cache:
                    repeats = seen.answered - len(cache)
                slots = 6 * len(settings["models"])
                print(
                    f"{count:>9} {started - began:8.1f} {took:7.1f} {seen.answered:>6} {repeats:>8}"
                    f" {seen.peak_in_flight:>15} {slots:>6}",
                    flush=True,
                )
        first, again = merge_cost(folder / "cache", Path(name) / "merged")
        print(f"merging: {first:.2f} ms of CPU per new reply, {again:.2f} ms per reply that is there already")


if __name__ == "__main__":
    main()
