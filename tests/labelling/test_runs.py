"""Runs in the page: right answers of questions, ratings of responses by several criteria; both doors, one estimate."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from labelling.by_hand import auxeval

from pipeline.errors import InputError
from pipeline.labelling.opening import open_to_label
from pipeline.labelling.session import Session
from pipeline.testing import ScriptedCall, run_scripted


def _session(run: Path, rater: str = "ann") -> Session:
    opened = open_to_label(str(run), "runs")
    return Session(opened.source, rater, opened.desk, opened.plan)


@pytest.fixture
def sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run of 60 sums and two targets, the right answers of 16 known."""
    monkeypatch.chdir(tmp_path)
    return _sums(tmp_path)


def _sums(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [
        {"id": f"{k:03d}", "question": f"What is {k} + {k % 7}?", "gold": str(k + k % 7) if k < 16 else None}
        for k in range(60)
    ]
    (folder / "sums.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = {
        "name": "sums", "seed": 1, "benchmark": {"path": str(folder / "sums.jsonl"), "grading": "numeric"},
        "models": {name: {"model": f"x/{name}"} for name in ("a", "b")}, "roles": {"targets": ["a", "b"]},
        "estimate": ["naive", "lace"], "signals": ["agreement"],
    }  # fmt: skip

    def answers(by: int) -> Callable[[ScriptedCall], str]:
        def answer(call: ScriptedCall) -> str:
            left, right = (int(word.strip("?")) for word in call.texts["QUESTION"].split() if word.strip("?").isdigit())
            return f"Answer: {left + right + (1 if left % by == 0 else 0)}"

        return answer

    return run_scripted(config, {"a": answers(4), "b": answers(3)}, folder=folder).path


@pytest.fixture
def rated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run of 24 given responses of two versions, rated by two criteria."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"i": f"t{k}", "v": v, "q": f"Q{k}?", "o": f"answer {k} of {style}", "doc": f"Doc {k}"}
        for k in range(24)
        for v, style in (("model-x", "one"), ("model-y", "one" if k % 3 == 0 else "two"))
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    fields = {"id": "i", "question": "q", "response": "o", "model": "v", "context": "doc"}
    config = {
        "name": "rated", "benchmark": {"path": str(path), "fields": fields, "grading": "rating"},
        "judge": {"criteria": {"right": "Is it right?", "tone": {"question": "Is it kind?", "scale": [1, 5]}}},
        "models": {"j": {"model": "x/j"}}, "roles": {"judge": "j"}, "estimate": ["naive", "lace"], "signals": ["judge"],
    }  # fmt: skip

    def judge(call: ScriptedCall) -> str:
        score = 3 if "kind" in call.prompt else 0.8125 if len(call.texts["QUESTION"]) % 2 else 0.3125
        return json.dumps({"reason": "-", "score": score})

    return run_scripted(config, {"j": judge}, folder=tmp_path).path


def _estimates(run: Path) -> Any:
    document = json.loads((run / "estimates.json").read_text(encoding="utf-8"))
    return document["targets"]


def _copy(run: Path) -> Path:
    return Path(shutil.copytree(run, run.with_name(run.name + "-sheets")))


def _right(question: str) -> str:
    left, right = (int(word.strip("?")) for word in question.split() if word.strip("?").isdigit())
    return str(left + right)


def test_right_answers_by_both_doors_give_one_estimate(sums: Path, tmp_path: Path) -> None:
    other = _sums(tmp_path / "other")
    session = _session(sums)
    item = session.view().item
    assert item is not None
    assert item.asked[0].kind == "text"
    assert not any(name in repr(item.responses) for name in ("'a'", "'b'", "a: "))
    with pytest.raises(InputError):
        session.say(item.asked[0].unit, "answer", "no number at all")
    for _ in range(20):
        item = session.view().item
        assert item is not None
        session.say(item.asked[0].unit, "answer", _right(item.question))
    session.source.close()
    assert auxeval("labels", "import", str(sums)) == 0
    assert auxeval("labels", "export", str(other), "sheet.csv", "-n", "20") == 0
    frame = pl.read_csv("sheet.csv", infer_schema=False)
    golds = [_right(question) for question in frame["question"]]
    frame.with_columns(pl.Series("gold", golds)).write_csv("sheet.csv")
    assert auxeval("labels", "import", str(other), "sheet.csv") == 0
    assert _estimates(sums) == _estimates(other)
    assert _session(sums).view().done == 20, "what the page said stays said"
    assert _session(other).view().total == 24, "and a sheet's items are not asked again"


def test_a_plan_of_a_run_is_followed_in_the_page(sums: Path) -> None:
    assert auxeval("labels", "plan", str(sums), "--half-width", "0.1", "--max", "60", "--sheet", "20") == 0
    session = _session(sums)
    while (view := session.view()).phase != "end":
        if view.item is not None:
            session.say(view.item.asked[0].unit, "answer", _right(view.item.question))
        elif view.phase == "look":
            session.look()
        else:
            session.go_on()
    assert session.view().says
    assert (sums / "estimates.json").is_file()


def test_ratings_by_both_doors_give_one_estimate(rated: Path) -> None:
    other = _copy(rated)
    session = _session(rated, "1")

    def rating(response: str, criterion: str) -> str:
        return "4" if criterion == "tone" else "yes" if "one" in response else "no"

    items = 0
    while items < 12:
        item = session.view().item
        assert item is not None
        assert item.context.startswith("Doc")
        assert len(item.asked) == 2 * len(item.responses)
        for asked in item.asked:
            text = next(response.text for response in item.responses if response.unit == asked.unit)
            session.say(asked.unit, asked.criterion, rating(text, asked.criterion))
        items += 1
    assert auxeval("labels", "import", str(rated)) == 0
    assert auxeval("labels", "export", str(other), "sheet.csv", "-n", "12") == 0
    with Path("sheet.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {name: rating(row["response"], name) for name in ("right", "tone")}
    with Path("sheet.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert auxeval("labels", "import", str(other), "sheet.csv") == 0
    assert _estimates(rated) == _estimates(other)
    assert _session(rated, "1").view().done == 12
