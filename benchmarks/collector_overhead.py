"""What the collector itself costs: CPU per call and memory over the size of the benchmark, models answered in memory.

    python benchmarks/collector_overhead.py [--items 1000 100000] [--estimate naive lace]

Every size runs in a process of its own, so that peaks do not add up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.benchmark import draw_labeled, load_benchmark
from pipeline.collection.collector import Collector
from pipeline.collection.prompts import load_prompts
from pipeline.collection.rows import Row
from pipeline.config import RunConfig, parse_config
from pipeline.models.types import Answered, CallLabel, Message, Outcome, Reply, ReplySchema, Request, Usage

REPLIES = {
    "preference": '{"reason": "one step is wrong", "verdict": "A"}',
    "score": '{"reason": "it holds", "score": 0.5}',
    "chain": "One and one more.\nAnswer: 42\nConfidence: 80",
}


class InMemory:
    """Answers at once."""

    calls = 0

    async def ask(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        label: CallLabel,
        draw: int = 0,
        params: Mapping[str, Any] | None = None,
        schema: ReplySchema | None = None,
    ) -> Outcome:
        self.calls += 1
        await asyncio.sleep(0)
        text = REPLIES[schema.name if schema else "chain"]
        request = Request(model, None, tuple(messages), params or {}, draw)
        return Answered(request, "0" * 64, Reply(text, "stop", "ok", Usage()), cached=False)


def overhead_config(path: Path, estimate: str) -> RunConfig:
    """One target on the items of a file, the anchors of a LACE run."""
    anchors = {level: f"sim/{level}" for level in ("weak", "medium", "strong")}
    return parse_config(
        {
            "roles": {"targets": ["sim/target"], "judge": "sim/judge", "anchors": anchors},
            "estimate": [estimate],
            "benchmark": {"preset": "custom", "path": str(path), "grading": "numeric"},
        }
    )


def write_items(path: Path, items: int) -> None:
    """So many questions, each with its answer."""
    with path.open("w") as file:
        for k in range(items):
            question = f"What is one more than {k}? " + "Think about it. " * 10
            file.write(json.dumps({"id": f"item-{k}", "question": question, "gold": str(k + 1)}) + "\n")


def one_size(items: int, estimate: str) -> dict[str, float]:
    """Collect once; CPU seconds and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.jsonl"
        write_items(path, items)
        config = overhead_config(path, estimate)
        started = time.process_time()
        benchmark = load_benchmark(config.benchmark, 0)
        loaded = time.process_time()
        asker, rows = InMemory(), 0

        def sink(row: Row) -> None:
            nonlocal rows
            rows += 1

        labeled = draw_labeled(benchmark, min(50, items), 0)
        asyncio.run(Collector(config, benchmark, labeled, asker, load_prompts(), sink).run())
        ended = time.process_time()
    return {
        "items": items,
        "calls": asker.calls,
        "rows": rows,
        "load_s": loaded - started,
        "ms_per_call": 1e3 * (ended - loaded) / asker.calls,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Print one line per size and estimate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--estimate", nargs="+", default=["naive", "lace"])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_size(options.items[0], options.estimate[0])))
        return
    print(f"{'estimate':10}{'items':>9}{'calls':>10}{'load s':>9}{'ms CPU per call':>17}{'peak MB':>9}")
    for estimate in options.estimate:
        for items in options.items:
            command = [sys.executable, __file__, "--one", "--items", str(items), "--estimate", estimate]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)
            print(
                f"{estimate:10}{items:9}{found['calls']:10}{found['load_s']:9.2f}{found['ms_per_call']:17.3f}"
                f"{found['peak_mb']:9.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
