"""φ(y, g) by every metric, case by case."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import pytest

from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item
from pipeline.benchmark.numbers import parse_number
from pipeline.errors import DataError

NUMERIC = [
    # answer, gold, φ
    ("72, in total", "72", 1), ("1,234.50", "1234.5", 1), ("3 4", "3", 0), ("3 4", "34", 0), ("-,72", "72", 1),
    ("$29.00", "29", 1), ("5.", "5", 1), ("72, which is 6 * 12", "72", 1), ("1,000", "1000", 1), ("1000", "1,000", 1),
    ("$12", "12", 1), ("\\$20", "20", 1), ("1\\,000", "1000", 1), ("1{,}000", "1000", 1), ("12 000", "12000", 1),
    ("1'000", "1000", 1), ("1,23", "123", 0), ("1,000,00", "100000", 0), ("50%", "50%", 1), ("50", "50%", 1),
    ("0.5", "50%", 0), ("0.5", "50", 0), ("50%", "50", 0), ("50%", "0.5", 1), ("28 percent", "28%", 1),
    ("1/2", "0.5", 1), ("\\frac{1}{2}", "0.5", 1), ("\\frac12", "1/2", 1), ("-\\dfrac{3}{4}", "-0.75", 1),
    ("½", "0.5", 1), ("3½", "3.5", 1), ("3 1/2", "7/2", 1), ("1/3", "0.333", 0), ("0.50", ".5", 1),
    ("−5", "-5", 1), ("- 5", "-5", 1), ("-$5", "-5", 1), ("５６", "56", 1), ("1e3", "1000", 1),
    ("1.2 \\times 10^{3}", "1200", 1), ("1.5 million", "1500000", 1), ("x = 5", "5", 1), ("$x = 5$", "5", 1),
    ("2 + 3 = 5", "5", 1), ("\\(42\\)", "42", 1), ("**42**", "42", 1), ("42 apples", "42", 1),
    ("42\\text{ cm}", "42", 1),
    ("about 72 dollars", "72", 1), ("72 (seventy-two)", "72", 1), ("12 apples and 3 pears", "12", 0),
    ("5 or 6", "5", 0), ("5-6", "5", 0), ("5 to 6", "5", 0), ("5, 6", "5", 0), ("16:30", "16", 0), ("2^{10}", "2", 0),
    ("2\\sqrt{3}", "2", 0), ("\\sqrt{2}", "2", 0), ("3x", "3", 0), ("52_8", "52", 0), ("not 5", "5", 0),
    ("12k", "12", 0),
    ("eighteen", "18", 1), ("1/0", "0", 0), ("NaN", "0", 0), ("inf", "0", 0), ("7.0000001", "7", 0),
    ("0.1", "0.10", 1), ("100000000000000000001", "100000000000000000000", 0),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "gold", "phi"), NUMERIC)
def test_numeric(answer: str, gold: str, phi: int) -> None:
    grade = Grader("numeric").grade(f"Reasoning with 99.\nAnswer: {answer}\nConfidence: 50", Item("i", "q", gold))
    assert grade.phi == phi


def test_percent_asked_for_in_the_question() -> None:
    asked = Item("i", "She ate 3 of 5 pies. What percentage is left?", "40")
    assert Grader("numeric").grade("Answer: 40%", asked).phi == 1.0
    assert Grader("numeric").grade("Answer: 0.4", asked).phi == 0.0
    other = Item("i", "Prices rose by 10%. What is the price now?", "40")
    assert Grader("numeric").grade("Answer: 40%", other).phi == 0.0


def test_tolerance_only_if_configured() -> None:
    item = Item("i", "q", "3.14")
    assert Grader("numeric").grade("Answer: 3.1416", item).phi == 0.0
    assert Grader("numeric", tolerance=0.01).grade("Answer: 3.1416", item).phi == 1.0
    assert Grader("numeric", tolerance=0.01).grade("Answer: 3.16", item).phi == 0.0


@pytest.mark.parametrize("gold", ["1e300", "0.1", "2/3", "-17", "1,000,000.25"])
def test_numbers_are_exact(gold: str) -> None:
    number = parse_number(gold)
    assert number is not None
    expected = {"1e300": Fraction(10) ** 300, "0.1": Fraction(1, 10), "2/3": Fraction(2, 3), "-17": Fraction(-17)}
    assert number.value == expected.get(gold, Fraction(4000001, 4))


@pytest.mark.parametrize("text", ["1e999999", "9" * 100_000, "1/" * 5000, "-" * 100_000, "1," * 50_000, "{" * 50_000])
def test_hostile_numbers_are_no_numbers_and_take_no_time(text: str) -> None:
    assert parse_number(text) is None


EXACT = [
    ("Paris", "Paris", 1), ("  Paris ", "Paris", 1), ("Paris.", "Paris", 1), ("**Paris**", "Paris", 1),
    ("New\u00a0York", "New York", 1), ("New  York", "New York", 1), ("ﬁne", "fine", 1), ("Par\u200bis", "Paris", 1),
    ("caf\u0065\u0301", "café", 1), ("Ｐａｒｉｓ", "Paris", 1), ("U.S.", "U.S.", 1),
    ("paris", "Paris", 0), ("Paris, France", "Paris", 0), ("Pari", "Paris", 0), ("INCORRECT", "CORRECT", 0),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "gold", "phi"), EXACT)
def test_exact(answer: str, gold: str, phi: int) -> None:
    assert Grader("exact").grade(f"So.\nAnswer: {answer}", Item("i", "q", gold)).phi == phi


def test_choice() -> None:
    item = Item("i", "q", "B", ("Rome", "Paris", "None of the above"))
    grader = Grader("choice")
    for text, answer, phi in [
        ("Answer: B", "B", 1.0), ("Answer: Paris", "B", 1.0), ("Answer: A\nAnswer: (B)", "B", 1.0),
        ("Answer: B\nAnswer: (A)", "A", 0.0), ("Answer: A or B", None, 0.0), ("Answer: D", None, 0.0),
        ("Answer: None of the above", "C", 0.0), ("I cannot say.\nSorry.", None, 0.0),
    ]:  # fmt: skip
        grade = grader.grade(text, item)
        assert (grade.answer, grade.phi) == (answer, phi)


def test_squared_error_has_no_value_without_an_answer() -> None:
    grader = Grader("squared_error")
    assert grader.grade("Answer: 3", Item("i", "q", "5")).phi == 4.0
    missing = grader.grade("No idea\nat all", Item("i", "q", "5"))
    assert (missing.phi, missing.reason) == (None, "no_answer")


def test_unknown_gold_gives_no_value() -> None:
    grade = Grader("numeric").grade("Answer: 3", Item("i", "q", None))
    assert (grade.answer, grade.phi, grade.reason) == ("3", None, "missing_input")


@pytest.fixture
def metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_metrics.py").write_text(
        "def half(answer, gold): return 0.5 if answer == gold else 0\n"
        "def length(answer, gold, text): return len(text)\n"
        "def broken(answer, gold): raise KeyError('x')\n"
        "def nan(answer, gold): return float('nan')\n"
        "def word(answer, gold): return 'high'\n"
        "def one(answer): return 1\n"
        "value = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_metrics", raising=False)
    return "python:my_metrics"


def test_own_metrics(metrics: str) -> None:
    item = Item("i", "q", "5")
    assert Grader(f"{metrics}:half").grade("Answer: 5", item).phi == 0.5
    assert Grader(f"{metrics}:length").grade("Answer: 5", item).phi == 9.0
    assert Grader(f"{metrics}:half").grade("no\nanswer here", item).phi == 0.0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("broken", "failed on item 'i': KeyError"), ("nan", "gave nan on item 'i'; a finite number is needed"),
        ("word", "gave 'high'"), ("one", "must take \\(answer, gold\\)"), ("value", "has no function 'value'"),
        ("absent", "has no function 'absent'"),
    ],
)  # fmt: skip
def test_own_metrics_that_fail(metrics: str, name: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        Grader(f"{metrics}:{name}").grade("Answer: 5", Item("i", "q", "5"))


def test_metrics_that_do_not_exist() -> None:
    with pytest.raises(DataError, match="cannot import 'no_such_module_here'"):
        Grader("python:no_such_module_here:f")
    with pytest.raises(DataError, match="grading 'fuzzy' is unknown"):
        Grader("fuzzy")
