"""What became of replies: every end that a reply can have, by target and stage, in the document and on every output."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer

import pipeline
from pipeline.collection.form_watch import FormWatch
from pipeline.errors import StoppedEarly
from pipeline.evaluation.document import read_estimates
from pipeline.evaluation.reading import StageReplies
from pipeline.report import document_tables as tables
from pipeline.runs.setup import default_config
from tests.runs.conftest import http_config
from tests.runs.test_run_over_http import _run


def _by_stage(result: pipeline.RunResult) -> dict[tuple[str, str], StageReplies]:
    return {(entry.target, entry.stage): entry for entry in result.estimates.replies}


def _config(url: str) -> dict[str, Any]:
    config = http_config(url)
    config["design"]["form_limit"] = 1
    return {**config, "stage_failure_limit": 1.0}


def test_every_reply_has_one_end(tmp_path: Path, server: FaultServer) -> None:
    result = _run(tmp_path, http_config(server.url))
    counts = _by_stage(result)
    for name in ("gpt", "llama"):
        assert counts[name, "answer"].asked == 12
        assert counts[name, "score"].asked == 12 * 3
        assert counts[name, "pairwise"].asked == 12 * 2 * 3
        assert counts[name, "preference"].asked == 12 * 2 * 3
        assert counts[name, "tau"].asked == 12 * 3
    assert counts["aux", "auxiliary"].asked == 12 * 2 * 3
    document = json.loads((result.path / "estimates.json").read_text())
    assert read_estimates(result.path / "estimates.json").replies == result.estimates.replies
    assert len(document["replies"]) == len(counts)


@pytest.mark.parametrize(
    ("fault", "options", "end"),
    [
        ("length", {}, "cut"),
        ("text", {"content": "I would rather not say."}, "unread"),
        ("refusal", {}, "refused"),
        ("content_filter", {}, "refused"),
        ("empty", {}, "invalid"),
        ("policy", {}, "refused"),
        ("context", {"times": 3}, "failed"),
    ],
)
def test_what_went_wrong_with_a_target_is_told_by_its_name(
    tmp_path: Path, server: FaultServer, fault: str, options: dict[str, Any], end: str
) -> None:
    server.fail(fault, model="gpt", **options)
    result = _run(tmp_path, _config(server.url))
    counts = _by_stage(result)
    assert getattr(counts["gpt", "answer"], end) == options.get("times", 12)
    assert counts["gpt", "answer"].ok == 12 - options.get("times", 12)
    assert counts["llama", "answer"].lost == 0.0
    # A judge is not asked about what is not there.
    assert ("gpt", "score") not in counts or end in ("unread", "failed")
    table = tables.replies(result.estimates, 0.05)
    assert table is not None
    assert table.title == "What became of replies"


def test_a_judge_that_keeps_no_form_is_told(tmp_path: Path, server: FaultServer) -> None:
    server.fail("text", model="judge", content="A fine answer indeed.")
    result = _run(tmp_path, _config(server.url))
    counts = _by_stage(result)
    for name in ("gpt", "llama"):
        assert counts[name, "score"].invalid == 36
        assert counts[name, "pairwise"].invalid == 72


def test_nothing_is_said_where_nothing_was_lost() -> None:
    fine = pipeline.evaluation.document.EstimateSet({}, replies=(StageReplies("a", "answer", ok=5),))
    assert tables.replies(fine) is None


def test_the_watch_the_terminal_and_the_page_tell_the_same(
    tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One decision, three places: the watch once counted answers alone, by words of its own."""
    watches: list[FormWatch] = []

    class Kept(FormWatch):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            watches.append(self)

    monkeypatch.setattr("pipeline.runs.drive.FormWatch", Kept)
    server.fail("length", model="gpt", times=5)
    server.fail("text", model="llama", content="I would rather not say.", times=4)
    server.fail("text", model="judge", content="A fine answer indeed.")
    result = _run(tmp_path, _config(server.url))
    (watch,) = watches
    after = {
        key: {name: getattr(entry, name) for name in ("ok", "cut", "unread", "invalid", "refused", "failed")}
        for key, entry in _by_stage(result).items()
    }
    assert {key: {name: counts[name] for name in after[key]} for key, counts in watch.counts.items()} == after
    table = tables.replies(result.estimates)
    assert table is not None
    numbers = [[str(cell) for cell in row] for row in table.rows]
    page = (result.path / "report.html").read_text()
    first = page[page.index("What became of replies") :]
    assert len(page) - len(first) < page.index("<caption>Models")  # before the numbers that rest on what is left
    for row in numbers:
        cells = [html.escape(cell) for cell in row[:-1]]
        assert re.search(r"\s*".join(f"<t[dh][^>]*>{re.escape(cell)}</t[dh]>" for cell in cells), first), cells
    assert any(entry.quotes == ("A fine answer indeed.",) for entry in result.estimates.replies)
    assert "A fine answer indeed" in watch.line(9)


def test_a_judge_that_keeps_no_form_stops_the_run(tmp_path: Path, server: FaultServer) -> None:
    server.fail("text", model="judge", content="A fine answer indeed.")
    config = http_config(server.url)
    with pytest.raises(StoppedEarly, match=r"judge: 20 of its first 20 replies of stage \w+ .*'A fine answer indeed.'"):
        _run(tmp_path, config, yes=False)


def test_a_few_replies_that_were_lost_are_not_called_out_while_the_run_goes_on() -> None:
    """The count is kept; the line is for what a person would stop for."""
    for lost, of, said in ((2, 4, False), (4, 200, False), (3, 4, True), (40, 200, True)):
        watch = FormWatch(default_config(), stops=False)
        watch.counts["m", "answer"] = Counter({"ok": of - lost, "unread": lost})
        assert bool(watch.line()) is said, (lost, of)
