"""One page for every door: what estimate, compare and gate write has the same head, and leads with the answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pipeline
from pipeline.cli import main

ROOT = Path(__file__).resolve().parents[2]
OWN = ROOT / "examples" / "own-data" / "answers.csv"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Door → its page."""
    folder = tmp_path_factory.mktemp("doors")
    config = {
        "benchmark": {"preset": "embedded", "limit": 30},
        "models": {"a": {"model": "sim/strong"}, "j": {"model": "sim/judge"}},
        "roles": {"targets": ["a"], "judge": "j"},
        "design": {"labeled": 20},
        "estimate": ["naive", "lace"],
    }
    runs = [
        pipeline.run(
            {**config, "name": name, "seed": 0}, runs_dir=folder / "runs", cache_dir=folder / "c", yes=True
        ).path
        for name in ("one", "two")
    ]
    gate = ROOT / "examples" / "gate"
    columns = ["--id", "trace", "--gold", "correct", "--margin", "0.02"]
    commands = {
        "estimate": ["estimate", OWN, "--gold", "gold", "--signals", "judge", "--model", "model", "--id", "id"],
        "compare": ["compare", *runs],
        "gate": ["gate", gate / "v1.jsonl", gate / "v3.jsonl", *columns],
    }
    made = {"run": (runs[0] / "report.html").read_text("utf-8")}
    for door, command in commands.items():
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in [*command, "--out", folder / door]])
        assert not caught.value.code
        made[door] = (folder / door / "report.html").read_text("utf-8")
    return made


@pytest.mark.parametrize("door", ["run", "estimate", "compare", "gate"])
def test_a_door_leads_with_its_sentence_and_says_where_numbers_come_from(pages: dict[str, str], door: str) -> None:
    page = pages[door]
    headline = re.search(r'<p class="headline">(.+?)</p>', page, re.S)
    assert headline is not None
    assert len(headline.group(1)) > 10
    assert page.index('class="headline"') < page.index("<nav") < page.index("<section")
    assert "default-src 'none'" in page
    assert '<section id="methods"' in page
    assert "Command</dt><dd>auxeval" in page or door == "run"
    assert '<section id="terms"' in page


def test_what_a_reader_finds_on_each(pages: dict[str, str]) -> None:
    for door in ("run", "estimate", "compare"):
        assert '<section id="leaderboard"' in pages[door]
        assert '<section id="compared"' in pages[door]
    assert "SHA-256 of answers.csv" in pages["estimate"]
    assert '<section id="items"' in pages["estimate"]
    assert "<em>SHIP</em>" in pages["gate"]
