"""A right answer is read in every wrapping and language; two answers at once, and wrong ones, never are right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent))
from reply_forms import CONFLICTS, CUES, ENGLISH_FORMS, LETTER_FORMS, NO_NUMBER, NUMBER_FORMS, TAILS, fill, replies

from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item

CITIES = ("Rome", "Paris", "Lima", "a green car")
PAIRS = [(1, 0), (2, 3), (0, 2), (3, 1)]
ROOT = Path(__file__).resolve().parent.parent.parent


def letters(forms: list[str], languages: list[str] | None = None) -> list[tuple[str, str, str | None]]:
    grader, read = Grader("choice"), []
    for _, reply in replies(forms, languages):
        for right, other in PAIRS:
            text = fill(reply, L=chr(65 + right), O=chr(65 + other), T=CITIES[right], U=CITIES[other])
            read.append((text, chr(65 + right), grader.answer(text, Item("i", "q", None, CITIES))))
    return read


@pytest.mark.parametrize("language", sorted(CUES))
def test_a_letter_in_every_form_of_a_language(language: str) -> None:
    assert not [case for case in letters(LETTER_FORMS, [language]) if case[1] != case[2]]


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_a_letter_among_words(language: str) -> None:
    assert not [case for case in letters(ENGLISH_FORMS, [language]) if case[1] != case[2]]


def test_two_letters_or_a_letter_and_another_text_are_no_answer() -> None:
    assert not [case for case in letters(CONFLICTS, ["en"]) if case[2] is not None]


@pytest.mark.parametrize("language", sorted(CUES))
def test_a_number_in_every_form_of_a_language(language: str) -> None:
    grader = Grader("numeric")
    wrong = []
    for _, reply in replies(NUMBER_FORMS, [language]):
        for number in ("42", "-7", "1000", "3.5", "0"):
            text = reply.replace("{}", number)
            if grader.grade(text, Item("i", "q", number)).phi != 1.0:
                wrong.append(text)
    assert not wrong


CHOICES = [
    ("B. Paris\n\nBecause it is so.", "B"), ("It is between two.\n\nSo it must be B.", "B"),
    ("The capital is Paris.", None),
    ("A. Rome\nB. Paris\nC. Lima", None), ("Answer: A\n\nWait, I choose B.", "B"), ("Answer: A. Wait, B.", "B"),
    ("Answer: all but B are wrong", "B"), ("The answer could be A, but it is B.", "B"), ("Answer: E", None),
    ("The answer is not listed.", None), ("The answer is not listed. The closest option is (C).", "C"),
    ("The answer is (A).\n\nI cannot determine the answer to this question.", None), ("故选：B", "B"), ("选B", "B"),
    ("答えは「B」です。", "B"), ("الإجابة الصحيحة هي (ب)", "B"), ("Ответ: В", "B"), ("उत्तर: (ब)", "B"),
    ("Cevap B'dir.", "B"),
    ("Let's try option C: it fits.\n\nThen", None), ('{"answer": ["A", "B"]}', None),
    ("The answer is (C).\nThe answer is", "C"),
    ("The fitting one is:\n\nB. Paris\n\nIt is in France.", "B"), ("Answer: Ⓑ", "B"), ("Answer: A → B", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "letter"), CHOICES)
def test_single_replies(text: str, letter: str | None) -> None:
    assert Grader("choice").answer(text, Item("i", "q", None, CITIES)) == letter


NUMBERS = [
    ("5 Million", 5_000_000), ("2.5 lakh", 250_000), ("4 dozen", 48), ("a dozen", 12),
    ("5 Mil", 5_000_000), ("5 mil", None),
    ("two hundred thirty-four", 234), ("minus seven", -7), ("—7", -7), ("3¾", 3.75),
    ("two and a half", 2.5), ("10⁻²", 0.01),
    ("1.5 x 10^3", 1500), ("1_000", 1000), ("12,34,567", 1_234_567), ("1.234.567", 1_234_567),
    ("42 m²", 42), ("5kg", 5),
    ("51xyz", None), ("5 feet 6 inches", 5.5), ("at least 5", None), ("5 ± 1", None),
    ("72 is wrong; it is 73", 73),
    ("x=5, y=6", None), ("5x", None), ("٤٢", 42), ("四百二十", 420), ("5万", 50_000),
    ("42 (43)", None), ("42 (forty-two)", 42),
    ("one of them", None), ("1:30", None), ("2^3", 8), ("5²", 25), ("&#8722;5", -5),
    ("7 * 8 = 56", 56), ("7 * 8", None),
    ("42, not 43", 42), ("#42", 42), ("42‰", None), ("half a million", 500_000),
    ("seventy-three percent", 0.73), ("fifteen hundred", 1500),
    ("72. No, 73.", 73),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "number"), NUMBERS)
def test_numbers(answer: str, number: float | None) -> None:
    grade = Grader("numeric").grade(f"Steps with 9.\nAnswer: {answer}", Item("i", "How many?", f"{number or 9}"))
    assert (grade.phi, grade.answer is None) == (float(number is not None), number is None)


@pytest.mark.parametrize(
    ("reply", "gold"),
    [("Antwort: 1.500", "1500"), ("Antwort: 3,5", "3.5"), ("Ответ: 3,14", "3.14"), ("Réponse : 1 500,25", "1500.25"),
     ("الإجابة: ٤٢٫٥", "42.5"), ("Respuesta: 2.000.000", "2000000"), ("Answer: 1.234,50", "1234.5")],
)  # fmt: skip
def test_decimal_commas_where_the_language_or_the_figure_shows_them(reply: str, gold: str) -> None:
    assert Grader("numeric").grade(reply, Item("i", "", gold)).phi == 1.0


def test_a_compound_is_given_in_the_unit_of_the_question() -> None:
    grader, text = Grader("numeric"), "Answer: 2 hours 30 minutes"
    assert grader.grade(text, Item("i", "How many minutes does it take?", "150")).phi == 1.0
    assert grader.grade(text, Item("i", "How many minutes does it take?", "2.5")).phi == 0.0
    assert grader.grade(text, Item("i", "How many hours does it take?", "2.5")).phi == 1.0


@given(st.sampled_from(sorted(CUES)), st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_the_last_committed_number_counts(language: str, first: int, last: int) -> None:
    for cue in CUES[language]:
        text = f"{cue.format(first)}\nNo, that is wrong.\n{cue.format(last)}"
        assert Grader("numeric").grade(text, Item("i", "", str(last))).phi == 1.0, text


@given(st.sampled_from("ABCD"), st.sampled_from("ABCD"), st.sampled_from(sorted(CUES)))
def test_the_last_committed_letter_counts(first: str, last: str, language: str) -> None:
    for cue in CUES[language]:
        text = f"{cue.format(first)}\nNo, that is wrong.\n{cue.format(last)}"
        assert Grader("choice").answer(text, Item("i", "", None, CITIES)) == last, text


@given(st.text(max_size=300))
def test_no_text_breaks_a_grader(text: str) -> None:
    for grading, gold in (("choice", "B"), ("numeric", "5"), ("exact", "x")):
        grade = Grader(grading).grade(text, Item("i", "q", gold, CITIES if grading == "choice" else None))
        assert grade.phi in (0.0, 1.0)


@pytest.mark.shared
def test_wrong_answers_to_real_items_are_never_right(shared_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded slice of ``python benchmarks/reading.py forms``, which tries every item."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.reading import count_forms

    tries, bad = count_forms(shared_path / "data", 0.01)
    assert sum(tries.values()) > 10_000
    assert not bad
    assert "reply_forms" in sys.modules


ANSWERS = {"choice": ("A", "B"), "numeric": ("42", "57"), "exact": ("Paris", "Lima"), "math": ("\\frac{1}{2}", "x+3")}
"""Two different answers of each grading."""
WRAPPINGS = ["{}", "**{}**", "`{}`", "${}$", "\\boxed{{{}}}", "\\text{{{}}}", "*{}*", "[{}]", '"{}"', "<b>{}</b>"]
OF_TEXT = frozenset(WRAPPINGS) - {"[{}]", "\\text{{{}}}"}
"""Those that leave a text as it is: brackets may belong to it, and \\text makes words of a formula."""
JOINED = [
    "{} or {}",
    "{} and {}",
    "{}; {}",
    "either {} or {}",
    "{} oder {}",
    "{} ou {}",
    "{}または{}",
    "{} atau {}",
    "{} или {}",
]


def right(grading: str, reply: str, gold: str) -> bool:
    choices = ("Rome", "Oslo", "Cairo", "Lagos") if grading == "choice" else None
    return Grader(grading).grade(reply, Item("i", "q", gold, choices)).phi == 1.0


@pytest.mark.parametrize("grading", sorted(ANSWERS))
@pytest.mark.parametrize("language", sorted(CUES))
def test_a_right_answer_in_any_wrapping_is_read(grading: str, language: str) -> None:
    gold = ANSWERS[grading][0]
    forms = [form for form in WRAPPINGS if form in OF_TEXT or grading in ("choice", "numeric")]
    cues = [
        cue for cue in CUES[language] if not (grading == "exact" and not cue.endswith(("{}", "{}.", "{}。", "{}**")))
    ]
    texts = [f"Steps.\n{cue.format(form.format(gold))}{tail}" for cue in cues for form in forms for tail in TAILS[:3]]
    assert not [text for text in texts if not right(grading, text, gold)]


@pytest.mark.parametrize("grading", sorted(ANSWERS))
@pytest.mark.parametrize("language", sorted(CUES))
def test_two_answers_at_once_are_none(grading: str, language: str) -> None:
    first, second = ANSWERS[grading]
    texts = [cue.format(both.format(first, second)) for cue in CUES[language] for both in JOINED]
    assert not [(text, gold) for text in texts for gold in (first, second) if right(grading, text, gold)]


@pytest.mark.parametrize(
    ("grading", "gold"), [("numeric", "17"), ("math", "17"), ("math", "\\frac{1}{2}"), ("exact", "17")]
)
def test_what_denies_or_bounds_an_answer_is_not_it(grading: str, gold: str) -> None:
    assert not [form for form in NO_NUMBER if right(grading, form.format(gold), gold)]
