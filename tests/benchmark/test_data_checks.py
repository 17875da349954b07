"""What is said of the items before money is spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.benchmark import load_benchmark
from pipeline.benchmark.data_checks import check_data, language_of, question_key
from pipeline.benchmark.items import Benchmark, GivenResponse, Item
from pipeline.config import BenchmarkConfig
from pipeline.errors import DataError


def codes(items: list[Item], grading: str = "numeric", **more: object) -> dict[str, str]:
    findings = check_data(Benchmark("b", tuple(items), grading, **more))  # type: ignore[arg-type]
    return {finding.code: finding.message for finding in findings if finding.warns}


def test_clean_items_raise_no_warning() -> None:
    assert codes([Item(str(k), f"How many is {k}?", str(k)) for k in range(5)]) == {}


def test_duplicates_and_contradictions() -> None:
    items = [Item(f"{k}", f"How  many is {k % 3}?" if k < 3 else f"how many is {k % 3}?", str(k)) for k in range(6)]
    found = codes(items)
    assert "6 items hold 3 different questions: 6 items share a question" in found["duplicate_questions"]
    assert "3 questions have different gold answers" in found["contradictory_golds"]


def test_copies_with_choices_in_another_order_agree_by_text() -> None:
    items = [
        Item("a", "Which?", "A", ("x1", "y1")),
        Item("b", "Which?", "B", ("y1", "x1")),
        Item("c", "Q?", "A", ("u1", "v1")),
    ]
    found = codes(items, "choice")
    assert "duplicate_questions" in found
    assert "contradictory_golds" not in found


def test_same_question_over_other_choices_is_another_question() -> None:
    items = [Item("a", "Which?", "A", ("x1", "y1")), Item("b", "Which?", "B", ("u1", "v1"))]
    assert "duplicate_questions" not in codes(items, "choice")


@pytest.mark.parametrize(
    ("grading", "gold", "odd"),
    [("numeric", "12 km", True), ("numeric", "$5", True), ("numeric", "1,000", False),
     ("numeric", "-3.5", False),
     ("exact", '"x"', True), ("exact", "Paris.", True), ("exact", "Paris", False), ("choice", "A", False)],
)  # fmt: skip
def test_golds_that_read_oddly(grading: str, gold: str, odd: bool) -> None:
    choices = ("x1", "y1") if grading == "choice" else None
    items = [Item("a", "Q?", gold, choices), Item("b", "R?", "7" if grading != "choice" else "B", choices)]
    assert ("odd_golds" in codes(items, grading)) is odd


def test_letters_constant_golds_and_empty_axes() -> None:
    letters = [Item(str(k), f"Q{k}?", "A", ("B", "C")) for k in range(4)]
    found = codes(letters, "choice")
    assert "4 items (0, 1, 2 and 1 more) have single letters" in found["letter_choices"]
    assert found["constant_gold"] == "every gold answer is 'A'"
    axis = [Item(str(k), f"Q{k}?", str(k), profile=None) for k in range(4)]
    assert "empty_column" in codes(axis, profile_name="level", profile_kind="ordinal")


def test_every_column_that_says_nothing_is_named() -> None:
    """Not golds and axes alone: the file's own signals, given responses and people's ratings."""
    nan = float("nan")

    def item(k: int) -> Item:
        response = GivenResponse("Yes.", {"fluent": 1.0}, signals={"length": 3.0, "tokens": float(k)})
        own = {"own": nan, "same": 2.0, "fine": float(k)}
        return Item(str(k), f"Q{k}?", str(k), given={"m": response}, signals=own)

    made = Benchmark("b", tuple(map(item, range(4))), "exact", responders=("m",), criteria=("fluent", "useful"))
    told = [finding.message for finding in check_data(made) if "column" in finding.code]
    assert told == [
        "the signal 'own' is empty in every row", "the signal 'same' is the same in every row",
        "the response of 'm' is the same in every row", "the signal 'length' of 'm' is the same in every row",
        "the rating 'fluent' of 'm' is the same in every row", "the rating 'useful' of 'm' is empty in every row",
    ]  # fmt: skip


@pytest.mark.parametrize("gold", ["...", "…", ".", ":", "$$"])
@pytest.mark.parametrize("grading", ["exact", "math"])
def test_a_gold_that_no_reply_is_read_as_is_refused_with_its_row(tmp_path: Path, gold: str, grading: str) -> None:
    file = tmp_path / "b.jsonl"
    file.write_text(json.dumps({"question": "Q?", "gold": "x"}) + "\n" + json.dumps({"question": "R?", "gold": gold}))
    settings = BenchmarkConfig.model_validate({"preset": "custom", "path": file, "grading": grading})
    with pytest.raises(DataError, match=r"line 2 has .* read in no reply"):
        load_benchmark(settings, 0)


@pytest.mark.parametrize(
    ("question", "language"),
    [("How many of the apples are in the box?", "English"),
     ("Wie viele Äpfel sind in der Kiste und welche ist rot?", "German"),
     ("盒子里有多少个苹果？", "Chinese"), ("箱の中にりんごはいくつありますか？", "Japanese"),
     ("Сколько яблок в коробке?", "Russian"),
     ("كم تفاحة في الصندوق؟", "Arabic"), ("상자에 사과가 몇 개 있습니까?", "Korean"),
      ("¿Cuántas manzanas hay en la caja de los niños?", "Spanish"),
     ("12 + 7 = ?", "no language that can be told")],
)  # fmt: skip
def test_languages(question: str, language: str) -> None:
    assert language_of([Item("a", question)]) == language


def test_left_out_rows_are_said_but_are_no_warning() -> None:
    found = check_data(Benchmark("b", (Item("a", "Q?", "1"),), "numeric", skipped={"empty question": 2}))
    assert [(f.message, f.warns) for f in found if f.code == "left_out"] == [
        ("2 rows were left out: 2 empty question", False)
    ]


def test_questions_are_compared_without_case_and_spaces() -> None:
    assert question_key(" What  IS it?\n") == question_key("what is it?")
