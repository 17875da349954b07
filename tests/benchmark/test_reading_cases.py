"""Replies that were once read wrong or not at all: each is read as a careful person reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item

pytestmark = pytest.mark.shared


def cases(path: Path, *kinds: str) -> list[dict[str, Any]]:
    lines = (path / "cases/reading.jsonl").read_text("utf-8").splitlines()
    return [case for case in map(json.loads, lines) if case["what"] in kinds]


@pytest.mark.parametrize("kind", ["choice", "numeric", "exact"])
def test_answers(shared_path: Path, kind: str) -> None:
    grader = Grader(kind)
    wrong = []
    for case in cases(shared_path, kind):
        choices = tuple(case["choices"]) if case["choices"] else None
        grade = grader.grade(case["reply"], Item("i", case["question"], case["gold"], choices))
        if grade.phi != float(case["expected"]):
            wrong.append((case["id"], case["reply"], grade))
    assert not wrong
