"""A profile over overlapping tags: every tag the mean of the items that hold it, the same through every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeline
from pipeline.benchmark.axes import semantic_groups, tags_of, tags_text
from pipeline.cli import main
from pipeline.estimators import Profile
from pipeline.runs.frames import RunTables

ROLES: dict[str, Any] = {"gold": "gold", "signals": ["judge"], "id": "id", "model": "model"}


def frame(seed: int, topics: Any, items: int = 300, labeled: int = 120) -> pl.DataFrame:
    """Two models; a judge that sees the outcome through noise."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(items):
        held = topics(rng)
        for model in ("a", "b"):
            right = float(rng.random() < 0.5 + 0.2 * ("math" in held))
            judge = 0.5 * right + 0.5 * rng.random()
            row = {"id": f"q{k}", "model": model, "gold": right if k < labeled else None, "judge": judge}
            rows.append({**row, "topics": held, "truth": right})
    return pl.DataFrame(rows, infer_schema_length=None)


def some(rng: np.random.Generator) -> list[str]:
    return [tag for tag in ("chat", "code", "law", "math") if rng.random() < 0.4]


def one(rng: np.random.Generator) -> list[str]:
    return [str(rng.choice(["chat", "code", "math"]))]


def profiles_of(table: pl.DataFrame, kind: str, methods: Any = ("lace_profile",)) -> dict[str, Profile]:
    made = pipeline.estimate(table, profile=f"topics:{kind}", methods=methods, **ROLES)
    return {name: value for name, value in made["a"].items() if isinstance(value, Profile)}


def test_a_tags_number_is_that_of_the_items_that_hold_it() -> None:
    table = frame(1, some)
    naive = profiles_of(table, "tags")["naive_profile"]
    own = table.filter((pl.col("model") == "a") & pl.col("gold").is_not_null())
    for tag, value, n in zip(naive.at.tolist(), naive.value, naive.n_effective, strict=True):
        held = own.filter(pl.col("topics").list.contains(tag))
        assert value == pytest.approx(held["gold"].mean())
        assert n == pytest.approx(held.height)


def test_tags_of_which_each_item_has_one_are_levels() -> None:
    table = frame(2, one)
    tags, levels = (
        profiles_of(table.with_columns(pl.col("topics").list.join(";")), kind) for kind in ("tags", "categorical")
    )
    assert tags["naive_profile"].at.tolist() == levels["naive_profile"].at.tolist()
    for name in ("value", "se", "low", "high", "n_effective"):
        assert np.allclose(getattr(tags["naive_profile"], name), getattr(levels["naive_profile"], name))
    # The averaging rule takes its weights from the levels beside one another, so LACE may differ by little.
    assert np.allclose(tags["lace_profile"].value, levels["lace_profile"].value, atol=0.02)


def test_joint_intervals_are_wider_and_hold_over_all_tags() -> None:
    whole, points = 0, 0
    for seed in range(60):
        table = frame(seed, some, items=250, labeled=100).filter(pl.col("model") == "a")
        made = pipeline.estimate(
            table, profile="topics:tags", methods=["lace_profile"], gold="gold", signals=["judge"], id="id"
        )["all"]
        band, plain = made["lace_profile_band"], made["lace_profile"]
        assert isinstance(band, Profile)
        assert isinstance(plain, Profile)
        assert np.all(band.high - band.low > plain.high - plain.low)
        truth = np.array([_truth(tag) for tag in band.at.tolist()])
        whole += bool(np.all((band.low <= truth) & (truth <= band.high)))
        points += int(np.sum((plain.low <= truth) & (truth <= plain.high)))
    assert whole >= 52  # .95 of 60 is 57, its Monte Carlo error 1.7
    assert points >= 216  # of 240, .95 is 228, its error 3.4


def _truth(tag: str) -> float:
    """Every second item with other tags holds math as well."""
    return 0.7 if tag == "math" else 0.5 + 0.2 * 0.4


def test_a_run_with_tags_equals_its_own_table(tmp_path: Path) -> None:
    lines = [
        {
            "id": f"{k}",
            "question": f"What is {k} + 1?",
            "gold": str(k + 1),
            "topics": ["odd"] * (k % 2) + ["big"] * (k > 20),
        }
        for k in range(40)
    ]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = {
        "schema": 1, "name": "sums", "seed": 3,
        "benchmark": {"preset": "custom", "path": str(tmp_path / "sums.jsonl"), "grading": "numeric",
                      "profile": {"field": "topics", "kind": "tags"}},
        "models": {"a": {"model": "sim/strong"}, "b": {"model": "sim/weak"}, "j": {"model": "sim/judge"}},
        "roles": {"targets": ["a", "b"], "judge": "j"}, "design": {"labeled": 24},
        "estimate": ["naive", "lace", "lace_profile", "gaps"],
    }  # fmt: skip
    run = pipeline.run(config, runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache", yes=True)
    profile = run.estimates["a"]["lace_profile"]
    assert isinstance(profile, Profile)
    assert profile.at.tolist() == ["big", "odd"]
    table = pipeline.estimate(str(run.path / "tables" / "signals.parquet"))
    again = table["a"]["lace_profile"]
    assert isinstance(again, Profile)
    assert np.array_equal(profile.value, again.value)
    assert np.array_equal(profile.low, again.low)
    assert RunTables(run.path / "tables").profile_kind == "tags"
    assert "along topics" in (run.path / "report.html").read_text()


@pytest.mark.parametrize("cell", ["", " ; ", "[]"])
def test_a_column_without_tags_is_one_line(cell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = frame(1, some).with_columns(pl.lit(cell).alias("topics"))
    table.write_csv(tmp_path / "t.csv")
    words = ["--gold", "gold", "--id", "id", "--model", "model", "--profile", "topics:tags"]
    with pytest.raises(SystemExit) as ended:
        main(["estimate", str(tmp_path / "t.csv"), *words])
    assert ended.value.code == 2
    assert "topics" in capsys.readouterr().err


@given(st.lists(st.text(st.characters(exclude_characters=";|,\n", exclude_categories=["Cs", "Cc", "Z"]), min_size=1)))
def test_tags_are_a_set_however_they_are_written(tags: list[str]) -> None:
    canonical = tags_text(tags)
    assert tags_of([canonical]) == sorted(set(tags))
    assert tags_text(canonical) == canonical or any(tag.startswith("[") for tag in tags)
    if len(tags) > 1 and not tags[0].startswith("["):
        assert tags_text(" ; ".join(tags)) == tags_text("|".join(reversed(tags))) == canonical
    assert tags_text(json.dumps(tags)) == canonical


TOPICS = {
    "sums": "What is {0} + {1}?", "capitals": "What is the capital of country number {0} on the map of Europe {1}?",
    "cooking": "How long should I bake a chocolate cake with {0} eggs and {1} spoons of flour in the oven?",
}  # fmt: skip


def questions() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    rows = []
    for k in range(120):
        topic = list(TOPICS)[k % 3]
        right = float(rng.random() < {"sums": 0.9, "capitals": 0.5, "cooking": 0.2}[topic])
        text = TOPICS[topic].format(k, k + 7)
        rows.append(
            {"id": f"q{k}", "topic": topic, "question": text, "gold": right if k < 90 else None, "judge": right}
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def test_questions_that_mean_alike_are_one_level_named_by_one_of_them() -> None:
    pytest.importorskip("wordllama", reason="the extra embed is not installed")
    table = questions()
    roles: dict[str, Any] = {"gold": "gold", "signals": ["judge"], "id": "id", "methods": ["lace_profile"]}
    made = pipeline.estimate(table, profile="question:semantic", **roles)["all"]["lace_profile"]
    assert isinstance(made, Profile)
    groups = np.array(semantic_groups(table["question"].to_list(), "question"))
    assert sorted(set(groups.tolist())) == made.at.tolist()
    for group in set(groups.tolist()):
        held = table.filter(pl.Series(groups == group))
        assert held["topic"].n_unique() == 1
        assert any(text.startswith(group.rstrip("…")) for text in held["question"])
    again = pipeline.estimate(table.with_columns(1 - pl.col("gold")), profile="question:semantic", **roles)
    assert again["all"]["lace_profile"].at.tolist() == made.at.tolist()  # type: ignore[union-attr]


def test_a_run_groups_its_questions(tmp_path: Path) -> None:
    pytest.importorskip("wordllama", reason="the extra embed is not installed")
    lines = [
        {"id": row["id"], "question": row["question"], "gold": "1"}
        for row in questions().head(60).iter_rows(named=True)
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = {
        "schema": 1, "name": "q", "seed": 3,
        "benchmark": {"preset": "custom", "path": str(tmp_path / "q.jsonl"), "grading": "exact",
                      "profile": {"field": "question", "kind": "semantic"}},
        "models": {"a": {"model": "sim/strong"}}, "roles": {"targets": ["a"]}, "estimate": ["naive", "lace_profile"],
    }  # fmt: skip
    run = pipeline.run(config, runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache", yes=True)
    profile = next(value for value in run.estimates["a"].values() if isinstance(value, Profile))
    assert len(profile.at) == 2
    table = pipeline.estimate(str(run.path / "tables" / "signals.parquet"))["a"]
    again = next(value for value in table.values() if isinstance(value, Profile))
    assert again.at.tolist() == profile.at.tolist()


def test_texts_that_are_too_few_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("wordllama", reason="the extra embed is not installed")
    questions().with_columns(pl.lit("the same").alias("question")).write_csv(tmp_path / "t.csv")
    words = ["--gold", "gold", "--id", "id", "--profile", "question:semantic"]
    with pytest.raises(SystemExit) as ended:
        main(["estimate", str(tmp_path / "t.csv"), *words])
    assert ended.value.code == 2
    assert "groups by meaning need 4 or more" in capsys.readouterr().err
