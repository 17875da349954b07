"""The final answer of a reply: the last one it commits to, and nothing that only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.benchmark.extraction import choice_letter, final_answer, last_boxed, strip_confidence

CITIES = ("Paris", "London", "None of the above", "A dog")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Reasoning.\nAnswer: 5\nConfidence: 85", "5"),
        ("**Answer:** 72, in total", "72, in total"),
        ("**Answer: 72**", "72"),
        ("*Final Answer*: 9", "9"),
        ("### Answer: 9", "9"),
        ("> **Answer**: (D)", "(D)"),
        ("- Answer: 4", "4"),
        ("ANSWER : 4", "4"),
        ("Answer：４", "４"),
        ("Answer: 1\nNo, wrong.\nAnswer: 2", "2"),
        ("Antwort:\n\nAntwort: C", "C"),
        ("Réponse : 12", "12"),
        ("Respuesta: 12", "12"),
        ("Ответ: 12", "12"),
        ("答案：7", "7"),
        ("Answer:\n\n42\nConfidence: 3", "42"),
        ("Answer:\n$$\n42\n$$", "42"),
        ("so \\boxed{\\frac{1}{2}} it is", "\\frac{1}{2}"),
        ("\\boxed{1} then \\boxed{2} and \\boxed{3", "2"),
        ("\\boxed{\\text{a } \\} b}", "\\text{a } \\} b"),
        ("\\boxed{5}\nAnswer: 6", "6"),
        ("Answer: 6, no, \\boxed{7}", "7"),
        ("Answer: \\boxed{\\text{B}}", "\\text{B}"),
        ("Answer: `x = 3`", "x = 3"),
        ('Answer: "Paris"', "Paris"),
        ("Answer: <5>", "5"),
        ("The final answer is $\\boxed{12}$. I hope it is correct.", "12"),
        ("She has 3 + 4 = 7.\n#### 7", "7"),
        ("Long story.\nSo the answer is 18.", "18."),
        ("18", "18"),
        ("Answer: 5 Confidence: 80", "5"),
        ("Answer: none", "none"),
        ("Answer:", None),
        ("Answer: ?", None),
        ("Answer: ...", None),
        ("", None),
        ("   \n ", None),
        ("It is a long text\nwithout any commitment", None),
        ("Confidence: 90", None),
    ],
)
def test_final_answer(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("B", "B"), ("b", "B"), ("(B)", "B"), ("[B]", "B"), ("**B**", "B"), ("B.", "B"), ("B)", "B"), ("Ｂ", "B"),
        ("\\text{B}", "B"), ("option B", "B"), ("Option (B): London", "B"), ("the correct answer is B", "B"),
        ("B) London", "B"), ("B. London is the capital", "B"), ("B - London", "B"), ("It is (B)", "B"),
        ("London", "B"), ("london.", "B"), ("A dog", "D"), ("a dog", "D"), ("D: A dog", "D"),
        ("None of the above", "C"), ("B, because (A) is wrong", "B"),
        ("A or B", None), ("A, B", None), ("A/B", None), ("(A) and (B)", None), ("Both A and B", None), ("A B", None),
        ("B) Paris", None), ("not B", None), ("It isn't (B)", None), ("E", None), ("(E)", None),
        ("I don't know", None), ("Don't", None), ("A train", None), ("Neither", None), ("Berlin", None),
        ("all of them", None), ("", None),
    ],
)  # fmt: skip
def test_choice_letter(answer: str, letter: str | None) -> None:
    assert choice_letter(answer, CITIES) == letter


@pytest.mark.parametrize(("answer", "letter"), [("J", "J"), ("(I)", "I"), ("I think so", None), ("K", None)])
def test_letters_without_texts(answer: str, letter: str | None) -> None:
    assert choice_letter(answer, None) == letter


def test_letters_of_ten_choices() -> None:
    assert choice_letter("J", [f"choice {k}" for k in range(10)]) == "J"
    assert choice_letter("I", [f"choice {k}" for k in range(8)]) is None


def test_choice_by_text_needs_a_single_match() -> None:
    assert choice_letter("same", ("same", "same", "other")) is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x\nAnswer: 5\nConfidence: 90", "x\nAnswer: 5"),
        ("x\nAnswer: 5\n**Confidence:** 90%\n", "x\nAnswer: 5"),
        ("x\nAnswer: 5. Confidence: 3", "x\nAnswer: 5."),
        ("Confidence: 10\nx\nAnswer: 5", "x\nAnswer: 5"),
        ("My confidence in this is high.\nAnswer: 5", "My confidence in this is high.\nAnswer: 5"),
        ("confidence level = 90\nAnswer: 5", "Answer: 5"),
    ],
)
def test_strip_confidence(text: str, kept: str) -> None:
    assert strip_confidence(text) == kept


def test_boxes_are_found_by_counting_braces() -> None:
    assert last_boxed("\\boxed{{a}{b}} \\boxed{unclosed {c}") == (0, "{a}{b}")
    assert last_boxed("\\fbox{4} \\boxed {5}") == (9, "5")
    assert last_boxed("no box") is None


@given(st.text(max_size=300))
def test_no_text_breaks_extraction(text: str) -> None:
    answer = final_answer(text)
    assert answer is None or (answer and answer in (answer, text))
    choice_letter(answer or text, CITIES)
    assert len(strip_confidence(text)) <= len(text)
