"""Size, building and opening time of the report at 200, 2,000 and 20,000 items: python benchmarks/report.py"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pipeline
from pipeline.report.page import write_report
from pipeline.tables.schemas import TABLES, items_schema
from pipeline.tables.store import write_frame

TABLE_NAMES = ("responses", "preferences", "scores", "taus")


def synthesise(folder: Path, items: int) -> Path:
    """A run of ``items`` items: a real one of 100 simulated items, its tables repeated under new ids."""
    run = pipeline.run(None, limit=100, runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True).path
    copies = -(-items // 100)

    def repeated(name: str) -> pl.DataFrame:
        frame = pl.read_parquet(run / "tables" / f"{name}.parquet")
        parts = [frame.with_columns(pl.col("item_id") + f"-{copy:05d}") for copy in range(copies)]
        return pl.concat(parts)

    everything = repeated("items").sort("item_id").head(items)
    write_frame(run / "tables", items_schema("ordinal"), everything)
    kept = everything.select("item_id")
    for name in TABLE_NAMES:
        write_frame(run / "tables", TABLES[name], repeated(name).join(kept, on="item_id", how="semi"))
    return run


def opening_seconds(page: Path) -> float | None:
    """Seconds a headless Chromium takes from its start to the listed items, its own start subtracted."""
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    if binary is None:
        return None

    def seconds(target: str) -> float:
        with tempfile.TemporaryDirectory() as profile:
            command = [
                binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                f"--user-data-dir={profile}", "--virtual-time-budget=5000", "--dump-dom", target,
            ]  # fmt: skip
            began = time.monotonic()
            subprocess.run(command, capture_output=True, check=True, timeout=300)
            return time.monotonic() - began

    return min(seconds(page.as_uri()) for _ in range(3)) - min(seconds("about:blank") for _ in range(3))


def main() -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[200, 2_000, 20_000])
    rows: list[dict[str, Any]] = []
    for items in parser.parse_args().items:
        with tempfile.TemporaryDirectory() as folder:
            run = synthesise(Path(folder), items)
            began = time.process_time()
            write_report(run)
            built = time.process_time() - began
            size = (run / "report.html").stat().st_size / 2**20
            opened = opening_seconds(run / "report.html")
            rows.append(
                {
                    "items": items,
                    "MiB": round(size, 2),
                    "build_cpu_s": round(built, 2),
                    "open_s": opened,
                }
            )
            print(json.dumps(rows[-1]), flush=True)


if __name__ == "__main__":
    main()
