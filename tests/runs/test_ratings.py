"""People rate responses, blind: sheets out and back, for given responses and for targets that are asked."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.cli import main
from pipeline.errors import DataError, InputError
from pipeline.estimators import naive_mean
from pipeline.evaluation.rater_errors import RaterErrors, measured_errors, without_errors
from pipeline.evaluation.rating_sheets import RatedUnit, deal
from pipeline.runs.directory import RunDirectory
from pipeline.runs.ratings import export_ratings, import_ratings, run_labels_store
from pipeline.tables.label_store import ADJUDICATOR, Label, LabelStore, label_unit
from pipeline.testing import ScriptedCall, run_scripted

HOSTILE = '=HYPERLINK("http://x","y"), "quoted"\nsecond line; \'apostrophe'
CRITERIA = {"right": "Is it right?", "tone": {"question": "Is it kind?", "scale": [1, 5]}}


def _judge(call: ScriptedCall) -> str:
    if "RESPONSE A" in call.texts:
        return '{"reason": "-", "verdict": "tie"}'
    if "kind" in call.prompt:
        return '{"reason": "-", "score": 3}'
    return '{"reason": "-", "score": %s}' % (0.8125 if len(call.texts["QUESTION"]) % 2 else 0.3125)


def _given(folder: Path, rated: int) -> RunDirectory:
    """Two versions, 24 items; the first ``rated`` items carry ratings of the file."""
    rows = [
        {
            "i": f"t{k}", "v": v, "q": f"Q{k}? {HOSTILE}", "o": f"answer {k} of {style}", "doc": f"Doc {k}",
            "good": (k % 2 if k < rated else None),
        }
        for k in range(24)
        for v, style in (("model-x", "one"), ("model-y", "one" if k % 3 == 0 else "two"))
    ]  # fmt: skip
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    fields = {"id": "i", "question": "q", "response": "o", "model": "v", "context": "doc", "gold": {"right": "good"}}
    if not rated:
        del fields["gold"]
    return _run(folder, {"path": str(path), "fields": fields, "grading": "rating"}, {}, {"j": _judge})


def _asked(folder: Path, rated: int) -> RunDirectory:
    """Two models are asked 24 questions, and nobody knows a right answer."""
    assert not rated
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps({"id": f"t{k}", "question": f"Q{k}?"}) + "\n" for k in range(24)))
    scripts = {
        "model-x": lambda call: f"one says {call.texts['QUESTION']}", "model-y": lambda _: "two says so", "j": _judge,
    }  # fmt: skip
    roles = {"targets": ["model-x", "model-y"]}
    return _run(folder, {"path": str(path), "grading": "rating"}, roles, scripts)


def _run(folder: Path, benchmark: dict[str, Any], roles: dict[str, Any], scripts: dict[str, Any]) -> RunDirectory:
    config = {
        "name": "rated", "benchmark": benchmark, "judge": {"criteria": CRITERIA},
        "models": {name: {"model": f"x/{name}"} for name in scripts},
        "roles": {**roles, "judge": "j"}, "estimate": ["naive", "lace"], "signals": ["judge"],
    }  # fmt: skip
    return RunDirectory(run_scripted(config, scripts, folder=folder).path)


def _read(sheet: Path) -> list[dict[str, str]]:
    with sheet.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _fill(sheet: Path, value: Callable[[dict[str, str]], dict[str, str]]) -> None:
    rows = [{**row, **value(row)} for row in _read(sheet)]
    random.Random(3).shuffle(rows)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _right(row: dict[str, str]) -> dict[str, str]:
    return {"right": "yes" if "one" in row["response"] else "no", "tone": "4"}


@pytest.fixture(params=["given, nobody rated", "given, some rated", "asked"])
def judged(request: pytest.FixtureRequest, tmp_path: Path) -> RunDirectory:
    kind = request.param
    return _asked(tmp_path, 0) if kind == "asked" else _given(tmp_path, 6 if "some" in kind else 0)


def test_a_sheet_is_blind_and_its_ratings_reach_the_estimates(judged: RunDirectory, tmp_path: Path) -> None:
    before = int(pl.read_parquet(judged.tables / "responses.parquet")["phi"].count())
    sheet = tmp_path / "sheet.csv"
    made = export_ratings(judged, sheet, 12)
    rows = _read(sheet)
    assert made.items == 12
    assert len(rows) == made.responses == len({row["row"] for row in rows})
    assert {*rows[0]} - {"context", "reference"} == {"row", "question", "response", "right", "tone", "instructions"}
    assert "right: Is it right? (yes or no); tone: Is it kind? (1 to 5)" in rows[0]["instructions"]
    for text in (sheet.read_text(encoding="utf-8"), Path(f"{sheet}.design.json").read_text()):
        assert "model-" not in text
        assert "0.8125" not in text
    _fill(sheet, _right)
    calls = judged.calls_file.read_bytes()
    taken = import_ratings(judged, [sheet])
    assert judged.calls_file.read_bytes() == calls, "nobody is asked"
    signals = pl.read_parquet(judged.tables / "signals.parquet")
    labeled = signals.filter(pl.col("labeled"))
    assert labeled.height == before + 24, "one label serves both versions where they answered alike"
    assert taken.estimates["model-x"]["naive"].n == labeled.filter(pl.col("target") == "model-x").height
    assert taken.estimates.criteria["tone"]["model-x"]["naive"].value == pytest.approx(4.0)
    assert taken.estimates.judges, "the judge is held against the people"
    again = pipeline.resume(judged.path, cache_dir=tmp_path / "cache")
    assert again.estimates.to_dict() == taken.estimates.to_dict()
    with pytest.raises(InputError, match="exists and may hold"):
        export_ratings(judged, sheet, 3)
    left = export_ratings(judged, tmp_path / "more.csv")
    assert left.items == 24 - labeled["item_id"].n_unique(), "nobody is asked what is rated already"


def test_two_raters_agree_disagree_and_are_settled(judged: RunDirectory, tmp_path: Path) -> None:
    made = export_ratings(judged, tmp_path / "s.csv", 16, raters="ana,ben", overlap=0.5, seed=2)
    first, second = made.files
    assert [file.name for file in made.files] == ["s-ana.csv", "s-ben.csv"]
    ana, ben = ({row["row"] for row in _read(file)} for file in made.files)
    assert len(ana & ben) == made.twice == -(-made.responses // 2)
    assert len(ana | ben) == made.responses
    torn = sorted(ana & ben)[0]
    _fill(first, _right)
    _fill(second, lambda row: _right(row) if row["row"] != torn else {"right": "no", "tone": "1"})
    _fill(first, lambda row: {"right": "yes"} if row["row"] == torn else {})
    taken = import_ratings(judged, [second, first])
    assert {(entry.criterion, entry.n) for entry in taken.agreements} == {("right", made.twice), ("tone", made.twice)}
    right = next(entry.agreement for entry in taken.agreements if entry.criterion == "right")
    assert right is not None
    assert right.raw.value == pytest.approx(1 - 1 / made.twice)
    assert right.alpha.low <= right.alpha.value <= right.alpha.high
    assert any(f"{torn} right: 1 / 0" in note or f"{torn} right: 0 / 1" in note for note in taken.notes)
    assert import_ratings(judged, [first, second]).estimates.to_dict() == taken.estimates.to_dict(), "any order"
    third = tmp_path / "s-ben-adjudicate.csv"
    (row,) = _read(third)
    assert (row["row"], row["right"]) == (torn, "")
    for value, phi in (("yes", 1.0), ("no", 0.0)):
        _fill(third, lambda row, value=value: {"right": value, "tone": "3"})  # type: ignore[misc]
        settled = import_ratings(judged, [third])
        assert not any("disagree" in note for note in settled.notes)
        labels = run_labels_store(judged).read()
        about = next(about for about in labels.by_rater if about[0].startswith(torn[1:]) and about[1] == "right")
        assert labels.settled()[about] == phi
    assert [entry.n for entry in settled.agreements] == [made.twice, made.twice], "an adjudicator is no rater"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0].update(tone="9"), r"row 2: 'tone' holds 9, outside the range \[1, 5\]"),
        (lambda rows: rows[1].update(right="2"), r"row 3: 'right' holds 2, outside the range \[0, 1\]"),
        (lambda rows: rows[0].update(right="perhaps"), "row 2: 'right' holds 'perhaps', which is no rating"),
        (lambda rows: rows[0].update(row="r000", right="1"), "row 2: 'r000' is not in this sheet"),
        (lambda rows: rows.append(dict(rows[0], right="1")), "stands in row 2 already; keep one"),
        (lambda rows: [row.pop("tone") for row in rows], "has no column 'tone'"),
        (lambda rows: None, "no rating is filled in yet"),
    ],
)
def test_bad_cells_are_named_by_row_and_nothing_is_kept(
    tmp_path: Path, change: Callable[[list[dict[str, str]]], Any], message: str
) -> None:
    run = _given(tmp_path, 0)
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    for sheet in (good, bad):
        export_ratings(run, sheet, 5)
    _fill(good, _right)
    rows = _read(bad)
    change(rows)
    with bad.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(DataError, match=message):
        import_ratings(run, [good, bad])
    assert not run_labels_store(run).read().by_rater


def test_the_command_writes_and_reads_the_sheets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = _given(tmp_path, 0)
    sheet = tmp_path / "s.csv"
    with pytest.raises(SystemExit) as ended:
        main(["labels", "export", str(run.path), str(sheet), "-n", "10", "--raters", "2", "--overlap", "0.2", "--json"])
    assert ended.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert document["gold"] == "rating"
    for file in document["files"]:
        _fill(Path(file), _right)
    with pytest.raises(SystemExit) as ended:
        main(["labels", "import", str(run.path), *document["files"]])
    assert ended.value.code == 0
    told = capsys.readouterr()
    assert "raters 1 and 2 agree on 100%" in " ".join(told.err.split())
    assert "model-x" in told.out


def test_a_replay_keeps_what_people_said(tmp_path: Path) -> None:
    run = _given(tmp_path, 6)
    export_ratings(run, tmp_path / "s.csv", 8)
    _fill(tmp_path / "s.csv", _right)
    import_ratings(run, [tmp_path / "s.csv"])
    replayed = pipeline.replay(run.path, cache_dir=tmp_path / "cache", out=tmp_path / "again")
    assert replayed.manifest["identical"] is True


@pytest.mark.parametrize("raters", [2, 3])
@pytest.mark.parametrize("overlap", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("size", [1, 7, 20])
def test_every_unit_is_dealt_once_and_the_overlap_twice(size: int, overlap: float, raters: int) -> None:
    units = [RatedUnit(label_unit("q", str(k)), "q", str(k)) for k in range(size)]
    names = [str(k) for k in range(raters)]
    sheets = deal(units, names, overlap, seed=1)
    times = [sum(unit in sheet for sheet in sheets.values()) for unit in units]
    assert sorted(set(times)) in ([1], [2], [1, 2])
    assert times.count(2) == -(-size * round(overlap * 10) // 10)
    assert all(len(set(sheet)) == len(sheet) for sheet in sheets.values())
    assert sheets == deal(units, names, overlap, seed=1)


def test_the_store_is_appended_to_and_a_torn_line_is_no_label(tmp_path: Path) -> None:
    store = LabelStore(tmp_path / "labels.jsonl")
    labels = [Label(label_unit("q", str(k)), "right", float(k % 2), rater, "now") for k in range(4) for rater in "ab"]
    assert store.add(labels) == 8
    assert store.add(labels) == 0, "nothing is said twice"
    whole = store.path.read_bytes()
    for cut in range(len(whole) - 60, len(whole)):
        store.path.write_bytes(whole[:cut])
        assert len(store.read().settled()) >= 3
        store.add(labels)
        assert store.read().by_rater == LabelStore(store.path).read().by_rater
        assert len(store.read().by_rater[labels[-1].about]) == 2
    about = labels[0].about
    store.add([Label(*about, 1.0, "b", "later")])
    assert store.read().contradictions() == (about,)
    assert store.read().settled()[about] in (0.0, 1.0)
    store.add([Label(*about, 1.0, ADJUDICATOR, "last")])
    assert store.read().contradictions() == ()
    assert store.read().settled()[about] == 1.0
    store.path.write_text('{"schema": 1}\n')
    with pytest.raises(InputError, match="line 1 is damaged"):
        store.read()


def test_errors_of_a_rater_are_measured_and_taken_out_beside_the_estimates(tmp_path: Path) -> None:
    run = _given(tmp_path, 0)
    made = export_ratings(run, tmp_path / "s.csv", 20, raters="2", overlap=0.6)
    for file in made.files:
        _fill(file, _right)
    with pytest.raises(InputError, match="measured, or SENSITIVITY,SPECIFICITY"):
        import_ratings(run, list(made.files), errors="often")
    assert not run_labels_store(run).read().by_rater, "nothing is kept of bad input"
    plain = import_ratings(run, list(made.files)).estimates
    assert not any(warned.code == "rater_errors" for warned in plain.warnings)
    estimates = import_ratings(run, list(made.files), errors="0.9,0.8").estimates
    (told,) = [warned.message for warned in estimates.warnings if warned.code == "rater_errors"]
    assert "calls 90% of right responses right and 80% of wrong ones wrong, known" in told
    assert "model-x" in told
    assert "instead of" in told
    assert estimates["model-x"] == plain["model-x"], "the estimates themselves are about the ratings as given"
    assert told[:60] in (run.path / "report.html").read_text(encoding="utf-8")
    measured = import_ratings(run, list(made.files), errors="measured").estimates
    (told,) = [warned.message for warned in measured.warnings if warned.code == "rater_errors"]
    assert "calls 100% of right responses right" in told


def test_the_correction_is_right_on_average_and_covers() -> None:
    rng = np.random.default_rng(5)
    truth, errors, values, covered, plain = 0.8, (0.9, 0.75), [], 0, 0
    for _ in range(400):
        right = rng.random(200) < truth
        rated = [np.where(right, rng.random(200) < errors[0], rng.random(200) >= errors[1]) for _ in range(2)]
        labels = LabelStore(Path("none"))
        twice = np.arange(200) < 80
        settled = np.where(twice, right, rated[0])
        by_rater: dict[tuple[str, str], dict[str, float]] = {}
        for k in range(200):
            by_rater[str(k), "c"] = {"a": float(rated[0][k])}
            if twice[k]:
                by_rater[str(k), "c"] |= {"b": float(rated[1][k]), ADJUDICATOR: float(right[k])}
        held = measured_errors(type(labels.read())(by_rater), "c")
        assert isinstance(held, RaterErrors)
        rate = naive_mean(settled.astype(float))
        after = without_errors(rate, held, 0.4)
        values.append(after.value)
        covered += after.low <= truth <= after.high
        plain += rate.low <= truth <= rate.high
    assert abs(float(np.mean(values)) - truth) < 0.01
    assert 0.93 <= covered / 400 <= 0.985
    assert plain / 400 < 0.93
