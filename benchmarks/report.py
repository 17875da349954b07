"""Size, building and opening time of the report at 200, 2,000 and 20,000 items: python benchmarks/report.py

A real run of 100 simulated items is repeated under new ids, questions and replies replaced by made-up prose of a real
run's length (``--words``), and its log of calls repeated too.
"""

from __future__ import annotations

import argparse
import json
import queue
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pipeline
from pipeline.report.page import write_report
from pipeline.tables.schemas import TABLES, items_schema, signals_schema
from pipeline.tables.store import write_frame

BASE = 100
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_REPORT_ALONE = (
    "import sys; from pathlib import Path; from pipeline.report.page import write_report as w; w(Path(sys.argv[1]))"
)


def prose(words: int, seed: int) -> Iterator[str]:
    """Texts of about ``words`` words, drawn from 4,000 made-up ones by Zipf's law: packs about as prose does."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    vocabulary = np.array(["".join(rng.choice(letters, size)) for size in rng.integers(2, 10, 4_000)])
    weights = 1.0 / np.arange(1, 4_001)
    weights /= weights.sum()
    while True:
        yield " ".join(rng.choice(vocabulary, max(5, int(rng.normal(words, words / 4))), p=weights))


def synthesise(source: Path, run: Path, items: int, words: int = 150) -> Path:
    """The run ``source`` grown to ``items`` items in a new folder ``run``, as far as the report looks."""
    shutil.copytree(source, run)
    base = pl.read_parquet(source / "tables" / "items.parquet").height
    copies = -(-items // base)

    def repeated(name: str) -> pl.DataFrame:
        frame = pl.read_parquet(run / "tables" / f"{name}.parquet")
        return pl.concat([frame.with_columns(pl.col("item_id") + f"-{copy:05d}") for copy in range(copies)])

    everything = repeated("items").sort("item_id").head(items)
    questions, replies = prose(max(words // 3, 5), 0), prose(words, 1)
    everything = everything.with_columns(pl.Series("question", [next(questions) for _ in range(items)]))
    write_frame(run / "tables", items_schema("ordinal"), everything)
    kept = everything.select("item_id")
    for name in ("responses", "preferences", "scores", "taus", "signals", "candidates"):
        frame = repeated(name).join(kept, on="item_id", how="semi", maintain_order="left")
        if name == "responses":
            frame = frame.filter(pl.col("stage") != "auxiliary")
            frame = frame.with_columns(pl.Series("text", [next(replies) for _ in range(frame.height)]))
        write_frame(run / "tables", signals_schema(kind="ordinal") if name == "signals" else TABLES[name], frame)
    log = run / "calls.jsonl"
    lines = log.read_bytes()
    with log.open("wb") as file:
        for _ in range(max(1, items // base)):
            file.write(lines)
    return run


class _Told(BaseHTTPRequestHandler):
    """Keeps the number that a page sends."""

    def do_GET(self) -> None:
        if self.path.startswith("/?"):
            self.server.told.put(float(self.path[2:]))  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def opening_seconds(page: Path, tries: int = 3) -> float | None:
    """Seconds by the page's own clock from the start of its loading to the listed items; the least of some tries.

    A copy of the page without its policy tells the time to a server on the loopback, since a headless browser that
    writes out a page runs on a virtual clock.
    """
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    if binary is None:
        return None
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Told)
    told: queue.Queue[float] = queue.Queue()
    server.told = told  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    probe = (
        "<script>(function wait(){if(!document.documentElement.dataset.ready)return setTimeout(wait,2);"
        f"fetch('http://127.0.0.1:{server.server_port}/?'+performance.now(),{{mode:'no-cors'}})}})()</script></body>"
    )
    written = page.read_text(encoding="utf-8").replace("</body>", probe)
    probed = page.with_name("probed.html")
    probed.write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", written), encoding="utf-8")
    times = []
    for _ in range(tries):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            command = [binary, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0", probed.as_uri()]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                times.append(told.get(timeout=120) / 1000)
            finally:
                process.terminate()
                process.wait(timeout=30)
    server.shutdown()
    return min(times)


def main() -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[200, 2_000, 20_000])
    parser.add_argument("--words", type=int, default=150, help="mean words of a reply")
    options = parser.parse_args()
    for items in options.items:
        with tempfile.TemporaryDirectory() as folder:
            made = pipeline.run(None, limit=BASE, runs_dir=f"{folder}/runs", cache_dir=f"{folder}/cache", yes=True)
            run = synthesise(made.path, Path(folder) / "large", items, options.words)
            write_report(run)  # warm, so that what follows counts the report alone
            began = time.process_time()
            write_report(run)
            built = time.process_time() - began
            subprocess.run([sys.executable, "-c", _REPORT_ALONE, str(run)], check=True)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            size = (run / "report.html").stat().st_size / 2**20
            opened = opening_seconds(run / "report.html")
            row = {"items": items, "MiB": round(size, 2), "build_cpu_s": round(built, 2), "build_peak_MiB": round(peak)}
            print(json.dumps({**row, "open_s": opened and round(opened, 2)}), flush=True)


if __name__ == "__main__":
    main()
