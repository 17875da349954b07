"""Mathematical equality, and that no reply can hang or fill the machine."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.benchmark import math_grading
from pipeline.benchmark.grading import Grader, check_grading
from pipeline.benchmark.items import Item
from pipeline.benchmark.math_grading import MathPool, close_math_pool, math_equal
from pipeline.errors import DataError

needs_math = pytest.mark.skipif(importlib.util.find_spec("math_verify") is None, reason="extra math not installed")

PAIRS = [
    ("\\frac{1}{2}", "\\frac{1}{3}", 0), ("\\frac12", "0.5", 1), ("\\frac12", "\\frac{1}{2}", 1),
    ("14/3", "\\frac{14}{3}", 1),
    ("4.67", "\\frac{14}{3}", 0), ("(3,\\pi/2)", "\\left( 3, \\frac{\\pi}{2} \\right)", 1), ("-q+p", "p - q", 1),
    ("90", "90^\\circ", 1), ("90 degrees", "90^\\circ", 1), ("1,-2", "-2, 1", 1), ("1", "1,-2", 0),
    ("-2 and 1", "1,-2", 1),
    ("x=5", "5", 1), ("5", "x=5", 1), ("(b+2)(a+5)", "(a+5)(b+2)", 1), ("even", "\\text{even}", 1),
    ("\\text{odd}", "\\text{even}", 0), ("(3,4)", "(3,4]", 0), ("(3,4]", "(3,4]", 1), ("50\\%", "50\\%", 1),
    ("28\\%", "28\\%", 1), ("\\$20", "20", 1), ("\\$29.00", "29", 1), ("1\\,000", "1000", 1), ("-5i+6", "6 - 5i", 1),
    ("1+\\sqrt{19},1-\\sqrt{19}", "1 \\pm \\sqrt{19}", 1), ("\\sqrt{117}", "3\\sqrt{13}", 1),
    ("11\\sqrt{2}", "11\\sqrt2", 1),
    ("3,5", "3,5,7", 0), ("7,5,3", "3, 5, 7", 1), ("2(k+1)", "2k+2", 1), ("(31,6,-1)", "(6,31,-1)", 0),
    ("10\\text{ cm}", "10", 1), ("B", "B", 1), ("C", "B", 0), ("", "5", 0), ("}{", "5", 0), ("\\frac{1", "1", 0),
    ("\\boxed{5}", "5", 1), ("2k+3", "2k+2", 0),
    ("\\begin{pmatrix} -\\frac{1}{3} \\\\ \\frac{2}{3} \\end{pmatrix}",
     "\\begin{pmatrix} -1/3 \\\\ 2/3 \\end{pmatrix}", 1),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_math_pool()


@needs_math
@pytest.mark.parametrize(("answer", "gold", "phi"), PAIRS)
def test_pairs(answer: str, gold: str, phi: int) -> None:
    assert math_equal(answer, gold) == bool(phi)


@needs_math
def test_graded_from_a_reply() -> None:
    item = Item("i", "q", "\\frac{3}{56}")
    grade = Grader("math").grade("So it is\n\\[ \\boxed{\\dfrac{6}{112}} \\]\nConfidence: 80", item)
    assert (grade.answer, grade.phi) == ("\\dfrac{6}{112}", 1.0)


@needs_math
def test_expressions_that_never_end_are_not_equal_and_the_pool_lives_on() -> None:
    pool = MathPool(1, cpu_s=0.7, wall_s=20.0)
    try:
        assert pool.same("(x+1)^{100000}", "x^2 + 1") is False
        assert pool.limited == {"": 1}
        assert pool.same("\\frac12", "0.5") is True
    finally:
        pool.close()


@needs_math
def test_closing_ends_a_comparison_under_way() -> None:
    pool = MathPool(1, cpu_s=60.0, wall_s=60.0)
    assert pool.same("1/2", "\\frac12") is True
    started = time.monotonic()
    threading.Timer(0.3, pool.close).start()
    assert pool.same("(x+1)^{100000}", "x^2 + 1") is False
    pool.close()
    assert time.monotonic() - started < 20


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux")
def test_memory_of_a_worker_is_bounded() -> None:
    code = "from pipeline.benchmark.math_worker import limit_memory; limit_memory(2**30); bytearray(2**31)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MemoryError" in done.stderr


def test_overlong_answers_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(math_grading, "_compared", lambda *_: pytest.fail("was compared"))
    assert math_equal("x" * 1_000_000, "x") is False


def test_easy_cases_start_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(math_grading, "_compared", lambda *_: pytest.fail("was compared"))
    assert math_equal("1 000", "1000")
    assert math_equal("\\left( 3, 4 \\right)", "(3,4)")
    assert not math_equal("17", "18")


def test_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"grading math needs the extra math: pip install 'auxeval\[math\]'"):
        check_grading("math")


TYPED = [
    ("2½", "5/2", 1), ("2 1/2", "\\frac{5}{2}", 1), ("√2", "\\sqrt{2}", 1), ("√(x+1)", "\\sqrt{x+1}", 1),
    ("10⁻³", "0.001", 1), ("x³", "x^3", 1), ("2π", "2\\pi", 1), ("90°", "90", 1), ("4·5", "20", 1), ("3×4", "12", 1),
    ("2.5e3", "2500", 1), ("−5", "-5", 1), ("−∞", "-\\infty", 1), ("-3 \\le x < 5", "[-3,5)", 1),
    ("(-3,5)", "-3 < x < 5", 1), ("False", "false", 1), ("no solution", "\\text{No solution}", 1),
    ("12 \\text{ km}", "12", 1), ("12 \\text{ km}", "12 \\text{ km}", 1), ("12 km", "12\\text{ km}", 1),
    ("1.41421356237", "\\sqrt{2}", 1),
    ("12 \\text{ kg}", "12 \\text{ g}", 0), ("9\\text{ cm}^2", "9\\text{ cm}^3", 0), ("dog", "god", 0),
    ("listen", "silent", 0), ("0.6666667", "\\frac23", 0), ("1.4142", "\\sqrt{2}", 0),
    ("\\frac{1}{40!}", "\\frac{1}{41!}", 0),
    ("10^{-30}", "0", 0), ("x3", "x³", 0), ("28", "2⁸", 0), ("3 1/2", "31/2", 0), ("even", "odd", 0),
    ("-3 \\le x < 5", "[-3,5]", 0), ("1<x<4", "(1,5)", 0),
]  # fmt: skip


@needs_math
@pytest.mark.parametrize(("answer", "gold", "phi"), TYPED)
def test_mathematics_as_it_is_typed(answer: str, gold: str, phi: int) -> None:
    assert math_equal(answer, gold) == bool(phi)


@needs_math
@pytest.mark.shared
def test_cases(shared_path: Path) -> None:
    grader = Grader("math")
    lines = (shared_path / "cases/reading.jsonl").read_text("utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["what"] == "math"]
    wrong = [
        (case["id"], case["reply"], case["gold"])
        for case in cases
        if grader.grade(case["reply"], Item("i", "", case["gold"])).phi != float(case["expected"])
        or math_equal(case["reply"], case["gold"]) != case["expected"]
    ]
    assert not wrong


@needs_math
def test_a_users_file_of_the_packages_name_breaks_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a ``pipeline.py`` of the user's: the worker ran it, and could not start."""
    (tmp_path / "pipeline.py").write_text("raise SystemExit('the user's own file')")
    monkeypatch.chdir(tmp_path)
    pool = MathPool(1, cpu_s=60.0, wall_s=60.0)
    try:
        assert pool.same("x+1", "1+x") is True
    finally:
        pool.close()


def test_no_child_of_ours_looks_into_the_working_directory() -> None:
    """Every ``python -m pipeline…`` is started with -P."""
    root = Path(__file__).parents[2] / "pipeline"
    starts = [
        (path.name, before)
        for path in root.rglob("*.py")
        for before in re.findall(r"sys\.executable,([^\]]*?)\"pipeline\.", path.read_text(encoding="utf-8"))
    ]
    assert len(starts) >= 2
    assert [name for name, before in starts if '"-P"' not in before] == []


@needs_math
def test_a_model_that_struck_three_times_gets_a_shorter_limit_and_no_other_does() -> None:
    """Towers of powers hold a grader for the whole limit each: the first three alone."""
    pool = MathPool(1, cpu_s=0.5, wall_s=30.0)
    asked: list[tuple[str, float]] = []
    compare = pool._compare

    def kept(worker: object, answer: str, gold: str, cpu_s: float) -> bool | None:
        asked.append((answer, cpu_s))
        return compare(worker, answer, gold, cpu_s)  # type: ignore[arg-type]

    pool._compare = kept  # type: ignore[method-assign]
    try:
        for k in range(5):
            assert pool.same(f"(x+{k + 1})^{{100000}}", "x^2 + 1", "bad") is False
        assert pool.same("\\frac12", "0.5", "bad") is True
        assert pool.same("\\frac12", "0.5", "good") is True
    finally:
        pool.close()
    assert [limit for _, limit in asked] == [0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.5]
    assert pool.limited == {"bad": 5}
