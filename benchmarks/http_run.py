"""Wall time and peak memory of a run of 60 items over real HTTP, and of its replay."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
# Not as a package: some peers install one of their own named tests.
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "runs"), str(ROOT / "tests")]

from conftest import http_config  # noqa: E402
from fault_server import FaultServer  # noqa: E402

_MEASURE = "import resource,sys,pipeline.cli;code=pipeline.cli._run(sys.argv[1:]);" + (
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss//1024,file=sys.stderr);sys.exit(code)"
)


def measured(folder: Path, *arguments: str) -> dict[str, Any]:
    """One command in a process of its own: wall seconds, CPU seconds, peak MiB."""
    environment = {**os.environ, "AUXEVAL_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    before, began = os.times(), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    wall, after = time.monotonic() - began, os.times()
    if done.returncode:
        raise RuntimeError(done.stderr)
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall_s": round(wall, 1), "cpu_s": round(cpu, 1), "peak_mib": int(done.stderr.strip().splitlines()[-1])}


def main() -> None:
    """Print one JSON line per command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="GSM8K items, as the preset reads them")
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--transport", default="litellm", choices=["litellm", "direct"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, FaultServer() as server:
        folder = Path(name)
        config = http_config(
            server.url,
            transport=given.transport,
            benchmark={"preset": "gsm8k", "path": str(given.data.resolve()), "limit": given.items},
            design={"labeled": given.items // 2, "draws": given.draws},
        )
        (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        run = measured(folder, "run", "config.yaml", "--yes", "--quiet", "--run-id", "r", "--json")
        print(json.dumps({"command": f"run over {given.transport}", "calls": server.seen.answered, **run}), flush=True)
        again = measured(folder, "replay", "r", "--json")
        print(json.dumps({"command": "replay", **again}), flush=True)


if __name__ == "__main__":
    main()
