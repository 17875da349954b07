"""Columns that are made of answers: whose they are, that labels do not touch them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.benchmark.agreement import answer_equality
from pipeline.errors import InputError
from pipeline.evaluation.answer_columns import with_answers
from pipeline.evaluation.free_columns import Voice, free_columns
from pipeline.evaluation.pool import TargetPool
from pipeline.evaluation.uneven_signals import fisher_p, without_uneven
from pipeline.tables.column_roles import ColumnRoles
from pipeline.tables.signal_checks import Notice
from pipeline.tables.user_table import frame_table

WORDS = ("vote", "anchor", "target", "peer")


def answers(seed: int = 0, items: int = 300, labeled: int = 50) -> pl.DataFrame:
    """Three models of accuracy .9, .7 and .5 that answer with numbers; wrong answers are spread over ten."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(100, 200, items)
    rows = []
    for model, accuracy in (("a", 0.9), ("b", 0.7), ("c", 0.5)):
        right = rng.random(items) < accuracy
        said = np.where(right, gold, gold + rng.integers(1, 11, items))
        rows.append(
            pl.DataFrame(
                {
                    "item": [f"i{k:03d}" for k in range(items)], "model": model, "said": said.astype(str),
                    "full": gold.astype(str), "right": right.astype(float),
                }
            )
        )  # fmt: skip
    seen = {f"i{k:03d}" for k in rng.permutation(items)[:labeled]}
    shown = pl.col("item").is_in(list(seen))
    return pl.concat(rows).with_columns(
        pl.when(shown).then("full").alias("gold"), pl.when(shown).then("right").alias("y"), shown.alias("labeled")
    )


def test_order_of_voters_decides_the_head_and_names_are_those_of_the_voices() -> None:
    made = free_columns(
        [Voice("t", (["1.05"], ["9"])), Voice("u", (["1.0"], ["1.1"]))],
        [Voice("weak", (["1.1"],))],
        [Voice("aux", (["1.1"], [None]))],
        answer_equality("numeric", tolerance=0.051),
        own={"judge": np.array([[0.5, np.nan]])},
        words=WORDS,
    )
    assert made.names[:5] == ("share", "top_share", "entropy", "plural", "consensus")
    assert {"agrees_weak", "agrees_aux", "agrees_other", "self_consistency"} <= set(made.names)
    assert "judge_others" not in made.names  # a signal that a target lacks altogether is not joint
    values = dict(zip(made.names, made.values[0].T.tolist(), strict=True))
    assert values["agrees_weak"] == [1.0, 1.0]  # 1.05 is the head; both neighbours join it
    assert values["agrees_aux"] == [0.5, 0.5]
    assert made.families["anchor"] == ("agrees_weak", "agrees_aux")
    assert set(made.reliability) == {"t", "u", "weak", "aux"}


def test_families_that_are_not_wanted_are_not_made() -> None:
    voices = [Voice(name, (["1", "2"],)) for name in "abc"]
    own = {"judge": np.arange(6.0).reshape(2, 3)}
    made = free_columns(voices, (), (), None, own=own, words=("target",))
    assert made.names == ("agrees_a", "agrees_b", "agrees_c")
    assert set(free_columns(voices, (), (), None, own=own, words=("peer",)).names) == {"judge_others"}


def test_of_many_targets_the_twelve_most_reliable_others_have_a_column() -> None:
    items = 40
    voices = [Voice(f"m{k:02d}", ([str(i) if i >= k else f"{k}-{i}" for i in range(items)],)) for k in range(20)]
    made = free_columns(voices, (), (), None, own={}, words=("target",))
    assert made.names == tuple(f"agrees_m{k:02d}" for k in range(13))


@pytest.mark.parametrize(
    ("grading", "answer", "head", "same"),
    [
        ("numeric", "1,000", "1000", True),
        ("numeric", "12", "13", False),
        ("numeric", "none", "13", False),
        ("exact", "Paris.", "Paris", True),
        ("exact", "Paris", "Rome", False),
        ("squared_error", "2.50", "2.5", True),
    ],
)
def test_answers_are_compared_as_the_benchmark_grades(grading: str, answer: str, head: str, same: bool) -> None:
    equal = answer_equality(grading)
    assert equal is not None
    assert equal(0, answer, head) is same
    assert answer_equality("choice") is None


def test_columns_do_not_change_with_labels_gold_or_outcomes() -> None:
    frame = answers()
    roles = ColumnRoles("y", id="item", model="model", answer="said", grading="numeric", gold_answer="gold")
    table, said = with_answers(frame_table(frame), roles)
    other = frame.with_columns(pl.col("full").alias("gold"), (1.0 - pl.col("right")).alias("y"))
    changed, _ = with_answers(frame_table(other), roles)
    names = [name for columns in said.families.values() for name in columns]
    assert table.frame.select(names).equals(changed.frame.select(names))
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
    again, _ = with_answers(frame_table(shuffled), roles)
    key = ["item", "model"]
    assert again.frame.sort(key)["share"].to_list() == table.frame.sort(key)["share"].to_list()


def test_agreement_makes_labels_go_further_and_grades_them() -> None:
    errors = []
    for seed in range(6):
        frame = answers(seed)
        result = pipeline.estimate(
            frame, id="item", model="model", answer="said", grading="numeric", gold_answer="gold"
        ).to_dict()
        plain = pipeline.estimate(frame, id="item", model="model", gold="y").to_dict()
        for name in "abc":
            lace, naive = result["targets"][name]["lace"], result["targets"][name]["naive"]
            assert naive["value"] == plain["targets"][name]["naive"]["value"]
            truth = frame.filter(pl.col("model") == name)["right"].mean()
            errors.append([(lace["value"] - truth) ** 2, (naive["value"] - truth) ** 2])
        assert not [entry for entry in result["warnings"] if "agrees_" in entry["message"]]
    lace, naive = np.mean(errors, axis=0)
    assert lace < 0.6 * naive


def test_a_coin_flip_among_strong_models_is_not_harmed() -> None:
    errors = []
    for seed in range(60):
        frame = answers(seed, items=200, labeled=40)
        rng = np.random.default_rng([seed, 1])
        flip = pl.col("model") == "c"
        right = pl.Series(rng.random(frame.height) < 0.5)
        frame = frame.with_columns(
            pl.when(flip).then(pl.Series([f"x{k}" for k in range(frame.height)])).otherwise("said").alias("said"),
            pl.when(flip).then(right.cast(pl.Float64)).otherwise("right").alias("right"),
        ).with_columns(pl.when("labeled").then("right").alias("y"))
        result = pipeline.estimate(
            frame, id="item", model="model", gold="y", answer="said", methods=["naive", "lace"]
        ).targets
        truth = frame.filter(flip)["right"].mean()
        errors.append([(result["c"][method].value - truth) ** 2 for method in ("lace", "naive")])
    lace, naive = np.mean(errors, axis=0)
    assert lace < 1.08 * naive


def test_what_cannot_be_done_is_refused() -> None:
    frame = answers(items=40, labeled=20)
    with pytest.raises(InputError, match="--id and --model"):
        pipeline.estimate(frame.drop("model"), gold="y", answer="said")
    with pytest.raises(InputError, match="agrees with nobody"):
        pipeline.estimate(frame.filter(pl.col("model") == "a"), gold="y", id="item", model="model", answer="said")
    with pytest.raises(InputError, match="'share'"):
        with_answers(
            frame_table(frame.with_columns(share=1.0)), ColumnRoles("y", ("share",), "item", "model", answer="said")
        )  # fmt: skip


def test_the_command_takes_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pipeline.cli import main

    path = tmp_path / "t.csv"
    answers().drop("full", "right", "y", "labeled").write_csv(path)
    command = ["estimate", str(path), "--id", "item", "--model", "model", "--answer", "said"]
    with pytest.raises(SystemExit) as done:
        main([*command, "--grading", "numeric", "--gold-answer", "gold", "--json"])
    assert done.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert document["targets"]["a"]["naive"]["n"] == 50
    with pytest.raises(SystemExit) as done:
        main(["estimate", str(path), "--gold", "gold", "--gold-answer", "gold", "--json"])
    assert done.value.code == 2


def test_fisher_is_that_of_scipy() -> None:
    from scipy.stats import fisher_exact

    for first, of_first, second, of_second in ((0, 50, 60, 450), (7, 20, 3, 90), (5, 5, 0, 40), (0, 3, 0, 4)):
        table = [[first, of_first - first], [second, of_second - second]]
        assert fisher_p(first, of_first, second, of_second) == pytest.approx(fisher_exact(table)[1], rel=1e-9)


def test_a_signal_that_treated_labeled_items_differently_is_left_out() -> None:
    rng = np.random.default_rng(0)
    labeled = np.arange(400) < 50
    chance, uneven = rng.random(400) < 0.1, ~labeled & (rng.random(400) < 0.5)
    signals = np.column_stack([np.where(mask, np.nan, rng.normal(size=400)) for mask in (chance, uneven)])
    target = TargetPool("t", np.where(labeled, 1.0, np.nan), labeled, signals, ("even", "uneven"))
    notices: list[Notice] = []
    assert without_uneven(target, notices).signal_names == ("even",)
    assert "'uneven'" in notices[0].message
    assert notices[0].code == "uneven_signal"
