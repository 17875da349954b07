"""A finished run with every section and hostile texts, and a headless browser that gives a page's final elements."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pipeline
from pipeline.runs.directory import RunDirectory
from pipeline.runs.finish import make_report
from pipeline.tables.schemas import TABLES, items_schema
from pipeline.tables.store import write_frame

HOSTILE = (
    "<script>document.title='owned'</script></script><img src=x onerror=\"document.title='owned'\">\u202eevil\x00\u2028"
    "\nCONFIDENTIAL-λ"
)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with every section, and hostile texts in its tables."""
    folder = tmp_path_factory.mktemp("report")
    config: dict[str, Any] = {
        "name": "page",
        "benchmark": {"preset": "embedded", "limit": 40},
        "models": {
            "strong": {"model": "sim/strong"},
            "weak": {"model": "sim/weak"},
            "j": {"model": "sim/judge", "simulate": {"malformed": 0.2}},
        },
        "roles": {
            "targets": ["strong", "weak"],
            "auxiliary": ["sim/aux-a"],
            "judge": "j",
            "anchors": {"weak": "sim/anchor-weak", "medium": "sim/anchor-medium", "strong": "sim/anchor-strong"},
            "regressor": "sim/regressor",
        },
        "design": {"labeled": 25, "draws": 2},
        "estimate": ["naive", "one_step", "lace", "lace_profile", "gaps", "best_of_n"],
        "best_of_n": {"candidates": 3, "scores": 3, "n": [2], "j": [1]},
    }
    run = pipeline.run(config, runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True).path
    responses = pl.read_parquet(run / "tables" / "responses.parquet")
    write_frame(run / "tables", TABLES["responses"], responses.with_columns(pl.col("text") + HOSTILE))
    items = pl.read_parquet(run / "tables" / "items.parquet")
    write_frame(run / "tables", items_schema("ordinal"), items.with_columns(pl.col("question") + HOSTILE))
    make_report(RunDirectory(run))
    return run


@pytest.fixture(scope="session")
def hostile() -> str:
    """What stands in every question and reply of ``finished``."""
    return HOSTILE


@pytest.fixture(scope="session")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """``browse(page, script)``: the page's elements in headless Chromium once ``script`` has run after its own."""
    names = ("chromium", "chromium-browser", "google-chrome")
    binary = next((found for found in map(shutil.which, names) if found), None)
    if binary is None:
        reason = f"none of {', '.join(names)} is installed"
        if os.environ.get("AUXEVAL_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)

    def elements(page: Path, script: str = "") -> str:
        folder = tmp_path_factory.mktemp("browser")
        probed = folder / "page.html"
        waiting = (
            "<script>(function wait(){if(!document.documentElement.dataset.ready)return setTimeout(wait,20);"
            f"(async()=>{{const pause=(ms)=>new Promise((go)=>setTimeout(go,ms));{script}}})()"
            ".catch((error)=>{document.body.dataset.failed=String(error)})})()</script></body>"
        )
        written = page.read_text(encoding="utf-8")
        probed.write_text(written.replace("</body>", waiting), encoding="utf-8")
        command = [
            binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=30000", "--dump-dom", probed.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=240, check=True)
        assert 'data-ready="yes"' in done.stdout, "the page's own script did not finish"
        assert "data-failed" not in done.stdout, done.stdout.partition("data-failed=")[2][:200]
        return done.stdout

    return elements
