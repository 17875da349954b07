"""A target that ignores its prompt is noticed after twenty answers, not after all of them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer

import pipeline
from pipeline.errors import StoppedEarly

QUOTE = "I like trains, and this is all I say"


def config(url: str, tmp_path: Path, items: int = 60, **design: Any) -> dict[str, Any]:
    rows = [{"id": f"{k:02d}", "question": f"Say the number {k}?", "gold": str(k)} for k in range(items)]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    entry = {"api_base": url, "transport": "direct", "max_concurrency": 2}
    return {
        "schema": 1, "name": "r", "estimate": ["naive"], "design": {"labeled": items, **design},
        "benchmark": {"preset": "custom", "path": "b.jsonl", "grading": "numeric"},
        "models": {"bad": {"model": "openai/bad", **entry}, "good": {"model": "openai/good", **entry}},
        "roles": {"targets": ["bad", "good"]},
    }  # fmt: skip


def replies(body: dict[str, Any], _digest: str) -> tuple[str, str]:
    return (QUOTE if body["model"] == "bad" else "Answer: 4"), "stop"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUXEVAL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_the_run_stops_and_can_go_on(here: Path) -> None:
    with FaultServer(replies=replies) as server:
        with pytest.raises(StoppedEarly) as caught:
            pipeline.run(config(server.url, here), run_id="r")
        assert caught.value.exit_code == 3
        assert "bad: 20 of its first 20 answers cannot be used (20 unread)" in str(caught.value)
        assert QUOTE in str(caught.value)
        assert caught.value.resume_command
        assert server.seen.by_model["bad"] < 60
        asked = server.seen.requests
        result = pipeline.resume("r", settings={"design.form_limit": 1})
        assert server.seen.requests == 120
        assert asked < 120
    assert result.estimates.unread["bad"].count == 60
    assert result.estimates.unread["good"].count == 0


@pytest.mark.parametrize(("design", "yes"), [({"form_limit": 1}, False), ({}, True)])
def test_form_limit_1_and_yes_go_on(
    here: Path, caplog: pytest.LogCaptureFixture, design: dict[str, Any], yes: bool
) -> None:
    with FaultServer(replies=replies) as server, caplog.at_level(logging.WARNING):
        result = pipeline.run(config(server.url, here, **design), run_id="r", yes=yes)
    assert result.estimates.unread["bad"].share == 1.0
    assert ("20 of its first 20 answers cannot be used" in caplog.text) is yes


def test_half_is_not_more_than_half(here: Path) -> None:
    seen: list[str] = []

    def half(body: dict[str, Any], _digest: str) -> tuple[str, str]:
        number = int(body["messages"][0]["content"].split("number ")[1].split("?")[0])
        seen.append(body["model"])
        return (QUOTE if number % 2 else "Answer: 4"), "stop"

    with FaultServer(replies=half) as server:
        data = config(server.url, here, items=20)
        result = pipeline.run(data, run_id="r")
    assert result.estimates.unread["bad"].count == 10


def test_copies_of_a_question_are_said_in_the_document(here: Path) -> None:
    with FaultServer(replies=lambda body, digest: ("Answer: 4", "stop")) as server:
        data = config(server.url, here, items=12)
        rows = [{"id": f"{k:02d}", "question": f"Say the number {k % 6}?", "gold": str(k % 6)} for k in range(12)]
        (here / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = pipeline.run(data, run_id="r")
    messages = {warning.code: warning.message for warning in result.estimates.warnings}
    assert "12 items hold 6 different questions" in messages["duplicate_questions"]
    assert "contradictory_golds" not in messages
