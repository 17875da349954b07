"""auxeval gate: verdicts, exit codes, joins, slices and epochs over tables, runs and logs."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from pipeline.cli import main

FIXTURES = "tests/tables/fixtures"


def gate(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["gate", *words])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


def table(path, scores, **columns) -> str:
    ids = [f"q{k}" for k in range(len(scores))]
    frame = pl.DataFrame({"id": ids, "gold": scores, **columns})
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_csv(path)  # joined by id, not by place
    return str(path)


@pytest.fixture
def base(tmp_path):
    scores = np.r_[np.ones(700), np.zeros(300)]
    topic = ["a", "b"] * 500
    return scores, topic, table(tmp_path / "base.csv", scores, topic=topic)


@pytest.mark.parametrize(
    ("change", "words", "verdict", "code"),
    [
        (0, [], "SHIP", 0),
        (60, [], "BLOCK", 10),
        (15, [], "INCONCLUSIVE", 11),
        (15, ["--inconclusive", "pass"], "INCONCLUSIVE", 0),
        (60, ["--margin", "0.1"], "SHIP", 0),
    ],
)
def test_verdicts_and_exit_codes(base, tmp_path, capsys, change, words, verdict, code):
    scores, topic, first = base
    worse = scores.copy()
    worse[:change] = 0.0
    second = table(tmp_path / "candidate.csv", worse, topic=topic)
    got, out, _ = gate(capsys, first, second, *words)
    assert got == code
    assert f"{verdict}: " in out
    assert "candidate − base: candidate − base, 1000 shared items" in out


def test_slices_may_block_and_need_not_ship_unless_required(base, tmp_path, capsys):
    scores, _, first = base
    topic = ["rare" if k < 100 else "tiny" if k >= 990 else "common" for k in range(1000)]
    first = table(tmp_path / "base.csv", scores, topic=topic)
    worse = scores.copy()
    worse[:12] = 0.0
    second = table(tmp_path / "candidate.csv", worse, topic=topic)
    words = (first, second, "--margin", "0.03", "--json")
    plain = json.loads(gate(capsys, *words)[1])
    assert plain["verdict"] == "SHIP"
    code, out, _ = gate(capsys, *words, "--profile", "topic")
    document = json.loads(out)
    rows = {row["level"]: row for row in document["metrics"]}
    assert rows["rare"]["blocks"] is True
    assert (document["verdict"], code) == ("BLOCK", 10)
    assert rows["tiny"]["ships"] is None
    assert document["notes"] == ["1 slices have fewer than 30 items: listed, not judged"]
    mild = scores.copy()
    mild[:4] = 0.0
    third = table(tmp_path / "mild.csv", mild, topic=topic)
    words = (first, third, "--margin", "0.03", "--profile", "topic")
    assert gate(capsys, *words)[0] == 0
    assert gate(capsys, *words, "--slices", "require")[0] == 11


def test_several_metrics_with_their_margins(base, tmp_path, capsys):
    scores, _, _ = base
    rng = np.random.default_rng(0)
    rating = rng.normal(3, 1, 1000)
    first = table(tmp_path / "base.csv", scores, rating=rating)
    second = table(tmp_path / "candidate.csv", scores, rating=rating - 0.4 + rng.normal(0, 0.2, 1000))
    names = ("--metric", "gold:0.02", "--metric")
    code, out, _ = gate(capsys, first, second, *names, "rating:0.5", "--json")
    assert code == 0
    assert [row["margin"] for row in json.loads(out)["metrics"]] == [0.02, 0.5]
    assert gate(capsys, first, second, *names, "rating:0.3")[0] == 10


def test_epochs_are_averaged_and_one_file_can_hold_both_models(tmp_path, capsys):
    rng = np.random.default_rng(2)
    rate = {"old": rng.beta(2, 1, 300), "new": rng.beta(2, 1, 300)}
    rows = [
        {"id": f"q{k}", "model": model, "gold": float(rng.random() < rate[model][k])}
        for k in range(300) for model in ("old", "new") for _ in range(3)
    ]  # fmt: skip
    path = tmp_path / "both.csv"
    pl.DataFrame(rows).write_csv(path)
    both = (str(path), str(path))
    assert gate(capsys, *both)[0] == 2
    code, out, _ = gate(capsys, *both, "--model", "old=new", "--json")
    document = json.loads(out)
    assert (document["base"], document["candidate"], document["epochs"]) == ("old", "new", [3, 3])
    assert code == document["exit"]
    frame = pl.DataFrame(rows).group_by("id", "model").agg(pl.col("gold").mean())
    mean = dict(frame.group_by("model").agg(pl.col("gold").mean()).iter_rows())
    assert document["metrics"][0]["gap"] == pytest.approx(mean["new"] - mean["old"])
    code, out, _ = gate(capsys, *both, "--model", "old=new", "--target", "pool", "--json")
    pool = json.loads(out)
    assert (code, pool["verdict"]) == (11, None)
    assert pool["metrics"][0]["high"] < document["metrics"][0]["high"]  # the spread over items is no chance then


def test_one_epoch_has_no_interval_about_these_items(base, capsys):
    code, _, err = gate(capsys, base[2], base[2], "--target", "pool")
    assert code == 2
    assert "at least 2 epochs" in err


def test_signals_stand_in_for_items_without_a_score(tmp_path, capsys):
    rng = np.random.default_rng(3)
    skill = rng.normal(size=600)
    paths = []
    for name in ("base", "candidate"):
        truth = (rng.random(600) < 1 / (1 + np.exp(-3 * skill))).astype(float)
        judge = truth + rng.normal(0, 0.3, 600)
        gold = [str(int(value)) if k < 150 else "" for k, value in enumerate(truth)]
        paths.append(table(tmp_path / f"{name}.csv", gold, judge=judge))
    _, out, _ = gate(capsys, *paths, "--json")
    plain = json.loads(out)
    assert plain["metrics"][0]["n"] == 150
    assert "random part" in plain["notes"][0]
    _, out, _ = gate(capsys, *paths, "--signals", "judge", "--json")
    helped = json.loads(out)
    assert "signals stand in" in helped["notes"][0]
    width = [doc["metrics"][0]["high"] - doc["metrics"][0]["low"] for doc in (plain, helped)]
    assert width[1] < 0.9 * width[0]


def test_clusters_widen_the_interval(tmp_path, capsys):
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(40), 10)
    shift = rng.normal(0, 0.5, 40)[group]
    first = table(tmp_path / "base.csv", np.zeros(400), passage=group)
    second = table(tmp_path / "candidate.csv", shift + rng.normal(0, 0.1, 400), passage=group)
    widths = []
    for words in ((), ("--cluster", "passage")):
        row = json.loads(gate(capsys, first, second, *words, "--json")[1])["metrics"][0]
        widths.append(row["high"] - row["low"])
    assert widths[1] > 2.5 * widths[0]


def test_reruns_of_the_base_show_what_moves_whole_runs(tmp_path, capsys):
    rng = np.random.default_rng(5)
    rate = rng.beta(2, 1, 800)
    runs = [
        table(tmp_path / f"run{k}.csv", (rng.random(800) < np.clip(rate + shift, 0, 1)).astype(float))
        for k, shift in enumerate((0.0, -0.12, 0.12))
    ]
    code, out, _ = gate(capsys, "--aa", *runs)
    assert code == 0
    assert "of scores flip between two runs; F = " in out
    assert "whole runs move" in out
    alone = json.loads(gate(capsys, runs[0], runs[1], "--json")[1])
    assert alone["verdict"] == "BLOCK"
    words = (runs[0], runs[1], "--rerun", runs[1], "--rerun", runs[2])
    code, out, _ = gate(capsys, *words, "--json")
    assert code == 11
    assert "whole runs of the base move" in json.loads(out)["notes"][0]


def test_logs_of_other_tools(capsys, monkeypatch):
    source = f"{FIXTURES}/inspect"
    code, out, err = gate(capsys, source, source, "--margin", "0.9", "--json")
    if code == 2:
        assert "choose with --model" in err
        model = err.split("(")[1].split(")")[0].split(",")[0]
        code, out, err = gate(capsys, source, source, "--model", f"{model}={model}", "--margin", "0.9", "--json")
    assert code in (0, 11), err
    assert json.loads(out)["metrics"][0]["gap"] == 0.0


def test_refusals_are_one_line(base, tmp_path, capsys):
    other = table(tmp_path / "other.csv", np.ones(5))
    pl.read_csv(other).with_columns(pl.lit("x").alias("id")).write_csv(other)
    for words, part in (
        ((base[2],), "compares BASE and CANDIDATE"),
        ((base[2], other), "share 0 items"),
        ((base[2], base[2], "--metric", "nope"), "no column 'nope'"),
        ((base[2], base[2], "--margin", "-1"), "--margin must be at least 0"),
        ((base[2], "absent"), "no such run, table or log"),
    ):
        code, out, err = gate(capsys, *words)
        assert (code, out) == (2, "")
        assert part in err
        assert len(err.splitlines()) == 1
