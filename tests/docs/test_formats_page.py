"""docs/formats.md names the columns, reasons and keys that the code has."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

from pipeline.collection.rows import ResponseOutcome
from pipeline.estimators.results import Estimate, Profile
from pipeline.models.types import CallLabel, CallRecord, Usage
from pipeline.runs.call_log import CallLog, read_calls
from pipeline.tables.schemas import REASONS, TABLES, signals_schema

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def _row(name: str) -> str:
    return re.search(rf"^\| `?{name}`? \| (.*) \|$", PAGE, re.M)[1]


def test_every_table_has_its_columns_and_its_key() -> None:
    for name, schema in {**TABLES, "signals": signals_schema()}.items():
        columns = _row(name).split(", ")
        assert [column.strip("*") for column in columns] == list(schema.columns), name
        assert tuple(column.strip("*") for column in columns if column.startswith("**")) == schema.key, name


def test_the_closed_lists_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    assert f"beside it: {', '.join(REASONS)}." in text
    assert f"`outcome`: {', '.join(get_args(ResponseOutcome))}." in text


def test_estimates_have_the_fields_named() -> None:
    row = _row("targets")
    for kind in (Estimate, Profile):
        assert f"{kind.__name__} ({', '.join(field.name for field in fields(kind))})" in row


def test_a_call_has_the_keys_named(tmp_path: Path) -> None:
    label = CallLabel(stage="answer", item="q1", role="target")
    record = CallRecord(
        key="k", model="m", label=label, state="answered", outcome="ok", attempts=1, waits_s=0.0, latency_s=0.1,
        usage=Usage(1, 1), cost_usd=None, error=None, at="2026-01-01T00:00:00Z", sent={"temperature": 1},
        served="other",
    )  # fmt: skip
    with CallLog(tmp_path / "calls.jsonl") as log:
        log.append(record)
    line = next(iter(read_calls(tmp_path / "calls.jsonl")))
    section = PAGE[PAGE.index("## calls.jsonl") : PAGE.index("## Cassette")]
    named = [name for row in re.findall(r"^\| (.+?) \|", section, re.M) for name in row.split(", ")]
    assert set(named) - {"key", "---"} | {"key"} == set(line)
