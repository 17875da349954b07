"""calls.jsonl: torn, damaged, or with calls that had to be paid for twice, what was spent stays right."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli import _run
from pipeline.runs.call_log import CallLog, read_calls
from pipeline.testing import ScriptedRun, run_scripted

CONFIG = {
    "benchmark": {"preset": "embedded", "limit": 4},
    "models": {"gpt": {"model": "openai/gpt", "price": {"input_per_million": 1.0, "output_per_million": 1.0}}},
    "roles": {"targets": ["gpt"]},
    "estimate": ["naive"],
    "design": {"labeled": 4},
}


def finish(folder: Path) -> ScriptedRun:
    return run_scripted(CONFIG, {"gpt": "Answer: 1\nConfidence: 50"}, folder=folder)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_reply_paid_for_again_is_a_line_and_money_of_its_own(tmp_path: Path) -> None:
    first = finish(tmp_path)
    with sqlite3.connect(tmp_path / "cache" / "cache.db") as database:
        key = database.execute("SELECT key FROM Cache WHERE key NOT LIKE 'note:%'").fetchone()[0]
        database.execute("UPDATE Cache SET value = substr(value, 1, 30) WHERE key = ?", (key,))
    again = finish(tmp_path)
    assert len(again.calls["gpt"]) == 1
    spent = sum(line["cost_usd"] for line in lines_of(again.path / "calls.jsonl") if line["state"] == "answered")
    assert again.run.manifest["calls"]["answered"] == 5
    assert again.run.manifest["cost_usd"] == pytest.approx(spent)
    assert spent > first.run.manifest["cost_usd"] > 0
    assert finish(tmp_path).run.manifest["cost_usd"] == again.run.manifest["cost_usd"]


def test_reading_a_log_leaves_it_as_it_is(tmp_path: Path) -> None:
    path = finish(tmp_path).path / "calls.jsonl"
    torn = path.read_bytes() + b'{"key": "half'
    path.write_bytes(torn)
    assert len(list(read_calls(path))) == 4
    assert path.read_bytes() == torn  # another process may be about to write the other half


@pytest.mark.parametrize("cut", [1, 20, 10_000])
def test_a_torn_last_line_costs_no_money(tmp_path: Path, cut: int) -> None:
    first = finish(tmp_path)
    path = first.path / "calls.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] if cut == 1 else whole[: max(10, len(whole) - cut)])
    again = finish(tmp_path)
    assert again.calls["gpt"] == []
    assert again.run.manifest["calls"] == first.run.manifest["calls"]
    assert again.run.manifest["cost_usd"] == first.run.manifest["cost_usd"]


def test_lines_that_are_no_calls_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b'null\n[1]\n{"a": 1}\n\x00\x00\nno json\n')
    with CallLog(path) as log:
        assert log.totals.to_dict()["calls"] == 0


def test_a_damaged_manifest_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finish(tmp_path).path
    (run / "manifest.json").write_text('{"schema": 1, "sta')
    for command in (["report", str(run)], ["resume", str(run)], ["replay", str(run), "--out", str(tmp_path / "r")]):
        assert _run(command) == 2
        assert "manifest.json: damaged" in capsys.readouterr().err
