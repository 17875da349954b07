"""The report page: complete, escaped, accessible, deterministic."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.errors import InputError
from pipeline.report import item_browser, run_folder
from pipeline.report.page import write_report
from pipeline.runs.directory import RunDirectory
from pipeline.runs.finish import make_report


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
    for identity in (
        "leaderboard", "profiles", "gaps", "best-of-n", "one-step", "signals", "judges", "self-check", "cost", "items",
        "methods",
    ):  # fmt: skip
        assert f'<section id="{identity}"' in page
        assert f'href="#{identity}"' in page
    assert "simulated models" in page
    assert "Before you use these numbers" in page
    assert "Command</dt><dd>" in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "<svg" in page
    assert not re.search(r"https?://", page)
    drawn = (finished / "figures" / "forest.svg").read_text(encoding="utf-8")
    assert re.findall(r"https?://[^\"]*", drawn) == ["http://www.w3.org/2000/svg"]


def test_hostile_text_makes_no_element_and_no_handler(finished: Path) -> None:
    parser = _Elements()
    parser.feed((finished / "report.html").read_text(encoding="utf-8"))
    assert "img" not in parser.tags
    assert not [name for name, _ in parser.attributes if name.startswith("on")]
    data = [value for name, value in parser.attributes if name == "type" and value == "application/octet-stream"]
    assert parser.tags.count("script") == 1 + len(data)


def test_the_same_run_gives_the_same_bytes(finished: Path) -> None:
    before = {path.name: path.read_bytes() for path in (finished / "report.html", *(finished / "figures").iterdir())}
    make_report(RunDirectory(finished))
    after = {path.name: path.read_bytes() for path in (finished / "report.html", *(finished / "figures").iterdir())}
    assert before == after


def test_texts_are_read_a_window_of_items_at_a_time(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of 20,000 items took 840 MB, since all texts and verdicts were in memory while the page was written."""
    run, windows = tmp_path / "run", list[int]()
    shutil.copytree(finished, run)
    write_report(run)
    whole = (run / "report.html").read_text(encoding="utf-8")
    read = run_folder.read_table

    def counted(folder: Path, name: str, **given: Any) -> pl.DataFrame:
        if name == "responses":
            assert given["items"] is not None if "items" in given else "text" in given["without"]
        windows.append(len(given.get("items") or ()))
        return read(folder, name, **given)

    monkeypatch.setattr(run_folder, "read_table", counted)
    monkeypatch.setattr(item_browser, "_HELD", 7)
    monkeypatch.setattr(item_browser, "BLOCK", 3)
    monkeypatch.setattr(item_browser, "_SAMPLED", 6)
    write_report(run)
    assert max(windows) == 7
    parted = (run / "report.html").read_text(encoding="utf-8")
    assert items_of(parted) == items_of(whole)


def items_of(page: str) -> list[dict[str, Any]]:
    """The details of all items of a page, in its order."""
    blocks = re.findall(r'id="block-\d+">([^<]*)<', page)
    return [item for block in blocks for item in json.loads(gzip.decompress(base64.b64decode(block)))]


def test_figures_and_paper_texts_lie_beside_the_page(finished: Path) -> None:
    names = {path.name for path in (finished / "figures").iterdir()}
    assert {"tables.md", "tables.tex", "methods.txt"} <= names
    for figure in ("forest", "gaps", "profiles-0", "profile-0", "profile-1", "best-of-n", "worth"):
        assert f"{figure}.svg" in names
    methods = (finished / "figures" / "methods.txt").read_text(encoding="utf-8")
    assert "SIMULATED" in methods
    assert "25 of them with gold labels" in methods


def test_every_table_says_where_its_numbers_come_from(finished: Path) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    tables = page.split('<div class="table">')[1:]
    assert len(tables) > 10
    assert all("Source: " in part.split("<section")[0] for part in tables)
    assert all(part.startswith('<button type="button" class="csv"') for part in tables)


def test_headings_landmarks_and_labels(finished: Path) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert page.count("<h1>") == 1
    assert '<html lang="en">' in page
    levels = [int(found) for found in re.findall(r"<h([1-6])\b", page)]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    for control in re.findall(r"<(?:input|select) [^>]*>", page):
        before = page[: page.index(control)]
        assert before.rindex("<label") > before.rindex("</label>") if "</label>" in before else "<label" in before
    assert page.count("<svg ") == page.count(' role="img" aria-label="')
    identities = re.findall(r'\bid="([^"]+)"', page)
    assert len(identities) == len(set(identities))


def test_a_missing_or_damaged_run_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run directory|estimates"):
        write_report(tmp_path)
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    (tmp_path / "config.yaml").write_text("name: x", encoding="utf-8")
    (tmp_path / "estimates.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError):
        write_report(tmp_path)


def test_the_report_loads_no_plotting_library_and_nothing_that_takes_long(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    code = (
        "import sys; from pathlib import Path; from pipeline.report.page import write_report;"
        "write_report(Path(sys.argv[1]));"
        "print([m for m in ('matplotlib', 'litellm', 'sklearn', 'scipy.stats') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_figures_that_are_no_longer_drawn_are_removed_and_others_kept(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "figures" / "profile-9.svg").write_text("old", encoding="utf-8")
    (run / "figures" / "mine.svg").write_text("mine", encoding="utf-8")
    write_report(run)
    names = {path.name for path in (run / "figures").iterdir()}
    assert "profile-9.svg" not in names
    assert {"mine.svg", "forest.svg"} <= names


def test_a_run_without_means_has_no_leaderboard(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    document = json.loads((run / "estimates.json").read_text(encoding="utf-8"))
    document |= {"targets": {name: {} for name in document["targets"]}, "gaps": []}
    document.pop("decisions")
    (run / "estimates.json").write_text(json.dumps(document), encoding="utf-8")
    write_report(run)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert 'id="leaderboard"' not in page
    assert 'href="#leaderboard"' not in page
    assert 'id="best-of-n"' in page
    assert "Scores of candidates by rater" in page
    assert "forest.svg" not in {path.name for path in (run / "figures").iterdir()}


def test_accuracy_of_the_simulated_world_is_no_truth_about_other_outcomes(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    manifest["benchmark"]["grading"] = "squared_error"
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    write_report(run)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert 'id="self-check"' not in page


def test_a_stopped_run_says_so_first(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {"state": "stopped", "reason": "budget of $1 is spent"}
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    write_report(run)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert page.index("The run stopped early (budget of $1 is spent)") < page.index('id="leaderboard"')
