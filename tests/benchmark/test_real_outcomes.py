"""Our grading against the verdicts that came with real model outputs."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item

pytestmark = pytest.mark.shared
needs_math = pytest.mark.skipif(importlib.util.find_spec("math_verify") is None, reason="extra math not installed")


def lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_numeric_grading_of_21104_real_answers(shared_path: Path) -> None:
    """The 41 disagreements are rows where the source calls an answer wrong that is the gold answer, digit for digit."""
    golds = {row["item_id"]: row["gold"] for row in lines(shared_path / "data/benchmarks/gsm8k_test.jsonl.gz")}
    grader = Grader("numeric")
    total, differ = 0, []
    with gzip.open(shared_path / "data/tables/gsm8k_outcomes.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            total += 1
            gold = golds[row["item_id"]]
            phi = grader.grade(f"Answer: {row['pred']}", Item("i", "q", gold)).phi
            if phi != float(row["y"]):
                differ.append((row["pred"], gold, phi))
    assert total == 21104
    assert len(differ) <= 41
    assert all(phi == 1.0 and float(pred) == float(gold) for pred, gold, phi in differ)


@needs_math
def test_math_grading_of_800_real_answers(shared_path: Path) -> None:
    """The one disagreement is 10000 against 10{,}000, which the source calls wrong."""
    grader = Grader("math")
    try:
        differ = [
            (answer, row["gold"])
            for row in lines(shared_path / "data/bon/qwen_math_bon8.jsonl.gz")
            for answer, correct in zip(row["cand_pred"], row["cand_correct"], strict=True)
            if grader.grade(f"So.\nAnswer: {answer}", Item("i", "q", row["gold"])).phi != correct
        ]
    finally:
        grader.close()
    assert differ == [("10000", "10{,}000")]


@needs_math
@pytest.mark.parametrize("form", ["\\boxed{{{0}}}", "Answer: ${0}$.", "**Answer:** \\({0}\\)"])
def test_every_gold_of_math500_is_right_in_any_wrapping(shared_path: Path, form: str) -> None:
    grader = Grader("math")
    for row in lines(shared_path / "data/benchmarks/math500.jsonl.gz"):
        gold = row["gold"]
        other = gold.replace("\\frac", "\\dfrac").replace("\\left", "").replace("\\right", "")
        text = f"Work.\n{form.format(other)}\nConfidence: 80"
        assert grader.grade(text, Item("i", "q", gold)).phi == 1.0, gold
    grader.close()
