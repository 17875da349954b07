"""The report page: complete, escaped, deterministic, and alive in a real browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pipeline
from pipeline.report.markup import clean, data_block, text
from pipeline.report.page import write_report
from pipeline.tables.schemas import TABLES, items_schema
from pipeline.tables.store import write_frame

HOSTILE = "<script>document.title='owned'</script></script><img src=x onerror=alert(1)>\u202eevil\x00\u2028"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with every section, and hostile texts in its tables."""
    folder = tmp_path_factory.mktemp("report")
    config: dict[str, Any] = {
        "name": "page",
        "benchmark": {"preset": "embedded", "limit": 40},
        "models": {name: {"model": f"sim/{name}"} for name in ("strong", "weak")},
        "roles": {
            "targets": ["strong", "weak"],
            "auxiliary": ["sim/aux-a"],
            "judge": "sim/judge",
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
    write_report(run)
    return run


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_every_section_is_there_and_nothing_comes_from_elsewhere(finished: Path) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    for identity in ("leaderboard", "profiles", "gaps", "best-of-n", "one-step", "signals", "judges", "cost", "items"):
        assert f'<section id="{identity}"' in page
        assert f'href="#{identity}"' in page
    assert "simulated models" in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "http://www.w3.org/2000/svg" in page
    assert len(re.findall(r"https?://", page)) == page.count('xmlns="http://www.w3.org/2000/svg"')


def test_hostile_text_makes_no_element_and_no_handler(finished: Path) -> None:
    parser = _Elements()
    parser.feed((finished / "report.html").read_text(encoding="utf-8"))
    assert "img" not in parser.tags
    assert not [name for name, _ in parser.attributes if name.startswith("on")]
    data = [value for name, value in parser.attributes if name == "type" and value == "application/octet-stream"]
    assert parser.tags.count("script") == 1 + len(data)


def test_text_shows_what_could_hide() -> None:
    shown = clean(HOSTILE + "\ud835")
    assert "\u202e" not in shown
    assert "\x00" not in shown
    assert "\\u202e" in shown
    assert "&lt;script&gt;" in text(HOSTILE)
    assert "<" not in data_block("x", {"a": HOSTILE})[len('<script type="application/octet-stream" id="x">') : -9]


def test_the_same_run_gives_the_same_bytes(finished: Path) -> None:
    before = {path.name: path.read_bytes() for path in (finished / "report.html", *(finished / "figures").iterdir())}
    write_report(finished)
    after = {path.name: path.read_bytes() for path in (finished / "report.html", *(finished / "figures").iterdir())}
    assert before == after


def test_figures_and_paper_texts_lie_beside_the_page(finished: Path) -> None:
    names = {path.name for path in (finished / "figures").iterdir()}
    assert {"forest.svg", "profile-0.svg", "best-of-n-0.svg", "tables.md", "tables.tex", "methods.txt"} <= names
    methods = (finished / "figures" / "methods.txt").read_text(encoding="utf-8")
    assert "SIMULATED" in methods
    assert "25 of them with gold labels" in methods


@pytest.fixture(scope="module")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, str], str]:
    """The page's DOM after its scripts have run, in headless Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome")
    binary = next((found for found in map(shutil.which, names) if found), None)
    if binary is None:
        reason = f"none of {', '.join(names)} is installed"
        if os.environ.get("AUXEVAL_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)

    def dom(page: Path, fragment: str = "") -> str:
        command = [
            binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={tmp_path_factory.mktemp('profile')}", "--virtual-time-budget=10000",
            "--dump-dom", page.as_uri() + fragment,
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    return dom


def test_a_browser_lists_the_items_and_runs_nothing_hostile(
    finished: Path, browse: Callable[..., str], tmp_path: Path
) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    probe = (
        "<script>addEventListener('load',()=>setTimeout(()=>{"
        "document.querySelector('#item-list details').open=true},1500))"
        "</script></body>"
    )
    opened = tmp_path / "opened.html"
    opened.write_text(page.replace("</body>", probe), encoding="utf-8")
    dom = browse(opened)
    assert 'data-ready="yes"' in dom
    assert dom.count("<li><details") == 30
    assert "40 of 40 items" in dom
    assert "<title>owned" not in dom
    assert "Against anchors" in dom  # the opened item shows its details
    assert "&lt;script&gt;" in dom


def _large(folder: Path, items: int) -> Path:
    """A run of many items, as far as the report looks."""
    from benchmarks.report import synthesise

    return synthesise(folder, items)


@pytest.mark.slow
def test_two_thousand_items_open_fast_and_stay_small(tmp_path: Path, browse: Callable[..., str]) -> None:
    run = _large(tmp_path, 2_000)
    write_report(run)
    page = run / "report.html"
    assert page.stat().st_size < 15 * 2**20
    began = time.monotonic()
    dom = browse(page)
    assert "2000 of 2000 items" in dom
    assert time.monotonic() - began < 60
