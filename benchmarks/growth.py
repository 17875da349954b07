"""How each hot path of a run grows: time and memory against size, with fitted exponents.

    python benchmarks/growth.py [--scale reduced] [--only live cached tables open report replay] [--plot FILE.svg]

Collection over HTTP (direct transport, a loopback server in another process, one answer an item), the same again from
the cache, tables and signals from a run's rows (LACE, 13 an item), opening a cache, building the report, replaying a
run (LACE, 13 calls an item). What a size needs is prepared in one process and measured in another, imports done first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from benchmarks.growth_plot import HEAD, Point, draw, exponents, line  # noqa: E402

Step = Callable[[int, Path], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One path: its title, what is prepared, what is measured, the modules loaded before the clock starts, sizes."""

    title: str
    prepare: Step
    run: Step
    modules: tuple[str, ...]
    quick: tuple[int, ...]
    reduced: tuple[int, ...]
    full: tuple[int, ...]
    server: bool = False


def nothing(size: int, folder: Path) -> None:
    """No preparation."""


def collect(items: int, folder: Path) -> None:
    """The collecting part of a run; what the cache in ``folder`` holds is not asked."""
    collector = import_module("collector").collector
    asyncio.run(collector((folder / "url").read_text(), items, str(folder)))


def spool_rows(items: int, folder: Path) -> None:
    """The rows that a LACE run of so many items makes, models answered in memory, one JSON line each."""
    from dataclasses import asdict

    from collector_overhead import InMemory, overhead_config, write_items

    from pipeline.benchmark import draw_labeled, load_benchmark
    from pipeline.collection.collector import Collector
    from pipeline.collection.prompts import load_prompts

    write_items(folder / "items.jsonl", items)
    config = overhead_config(folder / "items.jsonl", "lace")
    benchmark = load_benchmark(config.benchmark, 0)
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:

        def take(row: Any) -> None:
            file.write(json.dumps([row.table, asdict(row)]) + "\n")

        labeled = draw_labeled(benchmark, min(50, items), 0)
        asyncio.run(Collector(config, benchmark, labeled, InMemory(), load_prompts(), take).run())


def make_tables(items: int, folder: Path) -> None:
    """Rows into the spool, sorted Parquet from it, signals from the tables."""
    from collector_overhead import overhead_config

    from pipeline.benchmark import draw_labeled, load_benchmark
    from pipeline.runs import drive
    from pipeline.runs.frames import RunTables
    from pipeline.tables.signals import assemble_signals
    from pipeline.tables.store import RowSpool

    config = overhead_config(folder / "items.jsonl", "lace")
    benchmark = load_benchmark(config.benchmark, 0)
    prepared: Any = SimpleNamespace(benchmark=benchmark, labeled=draw_labeled(benchmark, min(50, items), 0))
    with RowSpool(folder / "spool") as spool, (folder / "rows.jsonl").open(encoding="utf-8") as rows:
        for row in rows:
            spool.add(*json.loads(row))
        drive._write_tables(SimpleNamespace(tables=folder / "tables"), prepared, spool)  # type: ignore[arg-type]
    tables = RunTables(folder / "tables")
    frames = tables.items, tables.responses, tables.preferences, tables.scores
    signals, _ = assemble_signals(*frames, targets=("sim/target",))
    assert signals.height == items


def fill_cache(entries: int, folder: Path) -> None:
    """A cache of so many replies of a worked chain's length."""
    from pipeline.models import ReplyCache
    from pipeline.models.entries import Entry
    from pipeline.models.identity import request_key
    from pipeline.models.types import Reply, Request, Usage

    text = "One and one more makes two. " * 20 + "Answer: 2"
    with ReplyCache(folder / "cache") as cache:
        for start in range(0, entries, 1_000):
            requests = [
                Request("openai/x", None, ({"role": "user", "content": f"Question {k}?"},), {})
                for k in range(start, min(start + 1_000, entries))
            ]
            cache.add_many([Entry(request_key(one), one, Reply(text, "stop", "ok", Usage())) for one in requests])
    (folder / "key").write_text(request_key(requests[0]), encoding="utf-8")


def open_cache(entries: int, folder: Path) -> None:
    """Open the cache, count it and read one reply, 20 times."""
    from pipeline.models import ReplyCache

    key = (folder / "key").read_text(encoding="utf-8")
    for _ in range(20):
        with ReplyCache(folder / "cache") as cache:
            assert cache.get(key) is not None
            assert len(cache) == entries


def grow_run(items: int, folder: Path) -> None:
    """A run of so many items, as far as the report looks."""
    from report import BASE, synthesise

    import pipeline

    made = pipeline.run(None, limit=BASE, runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True)
    synthesise(made.path, folder / "large", items)


def build_report(items: int, folder: Path) -> None:
    """The HTML page."""
    import_module("pipeline.report.page").write_report(folder / "large")


def record_run(items: int, folder: Path) -> None:
    """A LACE run over HTTP, every reply in its cache."""
    from collector_overhead import write_items

    import pipeline

    sys.path[:0] = [str(ROOT / "tests" / "runs"), str(ROOT / "tests")]  # no package: some peers install a "tests"
    http_config = import_module("conftest").http_config
    write_items(folder / "items.jsonl", items)
    config = http_config(
        (folder / "url").read_text(),
        benchmark={"preset": "custom", "path": str(folder / "items.jsonl"), "grading": "numeric"},
        estimate=["naive", "lace"],
        design={"labeled": max(items // 2, 4)},
    )
    config["roles"]["targets"] = ["gpt"]
    pipeline.run(config, run_id="r", runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True)


def replay_run(items: int, folder: Path) -> None:
    """The same run from its recorded replies, tables, estimates and report included."""
    import pipeline

    done = pipeline.replay(folder / "runs" / "r", cache_dir=folder / "cache")
    assert done.state == "done"


_COLLECTING = (
    "collector", "collector_overhead", "pipeline.collection.collector", "pipeline.models.gateway", "aiohttp", "jinja2",
    "pipeline.models.direct_transport", "pipeline.runs.call_log", "pipeline.benchmark.loading", "numpy", "diskcache",
    "pipeline.benchmark.readers",
)  # fmt: skip
_TABLES = ("polars", "pipeline.runs.drive", "pipeline.tables.signals", "collector_overhead", "pipeline.runs.frames")
_REPLAYING = (
    *_TABLES, "jinja2", "diskcache", "pipeline.benchmark.loading", "pipeline.runs.prompt_texts",
    "pipeline.runs.replay", "pipeline.report.page", "pipeline.estimators.lace.profile",
)  # fmt: skip
CASES = {
    "live": Case("collection over HTTP, direct, items", nothing, collect, _COLLECTING,
                 (20, 60), (100, 1_000, 5_000), (100, 1_000, 10_000), server=True),
    "cached": Case("the same, fully cached, items", collect, collect, _COLLECTING,
                   (20, 60), (100, 1_000, 5_000), (100, 1_000, 10_000), server=True),
    "tables": Case("tables and signals, 13 rows an item, items", spool_rows, make_tables, _TABLES,
                   (20, 60), (100, 1_000, 5_000), (100, 1_000, 10_000)),
    "open": Case("opening a cache 20 times, entries", fill_cache, open_cache, ("pipeline.models.cache", "diskcache"),
                 (20, 60), (1_000, 10_000, 50_000), (1_000, 10_000, 100_000, 1_000_000)),
    "report": Case("building the report, items", grow_run, build_report, ("pipeline.report.page", "polars"),
                   (100, 200), (200, 2_000), (200, 2_000, 20_000)),
    "replay": Case("replaying a LACE run, items", record_run, replay_run,
                   _REPLAYING,
                   (8, 16), (20, 100, 400), (20, 100, 500, 2_000), server=True),
}  # fmt: skip


def peak_mb() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def here(step: str, name: str, size: int, folder: Path) -> None:
    """One step in this process; a measured one prints what it took."""
    case = CASES[name]
    if step == "prepare":
        case.prepare(size, folder)
        return
    for module in case.modules:
        import_module(module)
    before, cpu, wall = peak_mb(), time.process_time(), time.perf_counter()
    case.run(size, folder)
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    print(json.dumps({**took, "peak": peak_mb(), "extra": peak_mb() - before}))


def measure(name: str, size: int) -> Point:
    """Prepare and measure one size, each in a process of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        server = start_server(folder) if CASES[name].server else None
        try:
            for step in ("prepare", "run"):
                program = [sys.executable, __file__, "--step", step, name, str(size), scratch]
                done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT)
                if done.returncode:
                    raise SystemExit(f"{name}, {size}, {step}: {done.stderr.strip()[-1_000:]}")
        finally:
            if server is not None and server.stdin is not None:
                server.stdin.close()
                server.wait(60)
    return Point(size, **json.loads(done.stdout.strip().splitlines()[-1]))


def start_server(folder: Path) -> subprocess.Popen[str]:
    """A server in a process of its own, its address in ``folder/url``."""
    program = [sys.executable, str(ROOT / "tests" / "fault_server.py")]
    server = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    (folder / "url").write_text(server.stdout.readline().strip(), encoding="utf-8")
    return server


def main(argv: list[str] | None = None) -> None:
    """Print one line per path and size, the exponents, and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=("quick", "reduced", "full"), default="reduced")
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), default=tuple(CASES))
    parser.add_argument("--plot", type=Path, help="SVG of time and memory against size")
    parser.add_argument("--step", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.step:
        step, name, size, folder = given.step
        here(step, name, int(size), Path(folder))
        return
    found: dict[str, list[Point]] = {}
    print(HEAD)
    for name in given.only:
        case = CASES[name]
        found[case.title] = []
        for size in getattr(case, given.scale):
            found[case.title].append(measure(name, size))
            print(line(case.title, found[case.title][-1]), flush=True)
        print(exponents(found[case.title]), flush=True)
    if given.plot is not None:
        draw(given.plot, found)


if __name__ == "__main__":
    main()
