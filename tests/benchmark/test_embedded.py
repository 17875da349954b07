"""The embedded benchmark: exact answers by brute force, unique items, the same bytes from the same seed."""

from __future__ import annotations

import ast
import hashlib
import itertools
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction

import pytest

from pipeline.benchmark.embedded import LEVELS, embedded_items, embedded_problems
from pipeline.benchmark.embedded.families import _value
from pipeline.benchmark.embedded.worded import Problem

Values = Mapping[str, int]


def _times(a: int, b: int) -> int:
    return sum(b for _ in range(a))


def _tank(v: Values) -> int:
    level = v["start"]
    for _ in range(v["t"]):
        level += v["rate"]
    for _ in range(v["s"]):
        level -= v["leak"]
    return level


def _fractions(v: Values) -> int:
    people = list(range(v["total"]))
    rest = [p for p in people if p % v["k"]]
    return sum(1 for place, _ in enumerate(rest) if place % v["m"])


def _schedule(v: Values) -> int:
    clock = 0
    for index in range(v["n"]):
        clock += v["length"] + (v["pause"] if index < v["n"] - 1 else 0)
    return clock


def _ratio(v: Values) -> int:
    one = Fraction(v["total"] * v["a"], v["a"] + v["b"]) + v["gift"]
    two = v["total"] - one
    return int(two - one)


def _catch_up(v: Values) -> int:
    first, second = v["ahead"], 0
    while second < first:
        first, second = first + v["slow"], second + v["fast"]
    return second


def _approach(v: Values) -> int:
    slow = fast = 0
    while slow + fast < v["distance"]:
        slow, fast = slow + v["v1"], fast + v["v2"]
    return fast - slow


def _tiles(v: Values) -> int:
    count = sum(1 for _ in range(0, 100 * v["along"], v["side"]) for _ in range(0, 100 * v["across"], v["side"]))
    return count * v["price"]


def _legs(v: Values) -> int:
    return next(n for n in range(v["heads"] + 1) if 4 * n + 2 * (v["heads"] - n) == v["legs"])


def _together(v: Values) -> int:
    return next(t for t in itertools.count(1) if Fraction(t, v["a"]) + Fraction(t, v["b"]) == v["batches"])


def _seats(v: Values) -> int:
    return sum(v["first"] + row * v["more"] for row in range(v["rows"]))


def _remainders(v: Values) -> int:
    start = max(v["m"], v["k"]) + 1
    return next(n for n in itertools.count(start) if n % v["m"] == v["r"] and n % v["k"] == v["s"])


def _handshakes(v: Values) -> int:
    return sum(1 for i, j in itertools.combinations(range(v["n"]), 2) if not (i < v["k"] and j < v["k"]))


def _either(v: Values) -> int:
    return sum((n % v["a"] == 0) != (n % v["b"] == 0) for n in range(1, v["top"] + 1))


def _backwards(v: Values) -> int:
    def after(amount: int) -> int:
        for _ in range(v["times"]):
            if amount % 2:
                return -1
            amount = amount // 2 - v["extra"]
        return amount

    return next(n for n in itertools.count() if after(n) == v["left"])


BRUTE_FORCE: dict[str, Callable[[Values], int]] = {
    "joined": lambda v: len(range(v["a"])) + len(range(v["b"])),
    "left_over": lambda v: len(set(range(v["a"])) - set(range(v["b"]))),
    "packs": lambda v: _times(v["a"], v["b"]),
    "shared": lambda v: next(n for n in itertools.count() if _times(v["b"], n) == v["total"]),
    "how_many_more": lambda v: len(range(v["b"], v["a"])),
    "missing_part": lambda v: len(range(v["a"], v["goal"])),
    "wheels": lambda v: _times(v["n"], v["wheels"]),
    "change": lambda v: next(n for n in itertools.count() if v["price"] + n == v["bill"]),
    "purchase": lambda v: v["bill"] - _times(v["n"], v["price"]),
    "packs_minus": lambda v: _times(v["a"], v["b"]) - v["c"],
    "pooled_shares": lambda v: next(n for n in itertools.count() if n * v["c"] == v["a"] + v["b"]),
    "times_as_many": lambda v: _times(v["k"] + 1, v["a"]),
    "bus": lambda v: v["a"] + v["on"] - v["off"],
    "two_kinds": lambda v: _times(v["n"], v["p"]) + _times(v["m"], v["q"]),
    "perimeter": lambda v: v["length"] + v["w"] + v["length"] + v["w"],
    "pages": lambda v: v["total"] - _times(v["days"], v["each"]),
    "discount": lambda v: int(v["n"] * Fraction(v["price"]) * (1 - Fraction(v["percent"], 100))),
    "fractions": _fractions,
    "tank": _tank,
    "savings": lambda v: v["start"] + sum(v["earn"] - v["spend"] for _ in range(v["weeks"])),
    "ages": lambda v: (v["young"] + v["t"]) + (v["young"] * v["k"] + v["t"]),
    "recipe": lambda v: int(Fraction(v["base"], v["people"]) * v["guests"]) - v["have"],
    "journey": lambda v: v["total"] - _times(v["h1"], v["v1"]) - _times(v["h2"], v["v2"]),
    "schedule": _schedule,
    "average_wanted": lambda v: next(
        x for x in itertools.count() if Fraction(v["k"] * v["mean"] + x, v["k"] + 1) == v["goal"]
    ),
    "overtime": lambda v: int(
        sum(Fraction(v["rate"]) * (1 if hour < 40 else Fraction(3, 2)) for hour in range(v["hours"])) - v["tax"]
    ),
    "ratio": _ratio,
    "mixture": lambda v: int(v["x"] * (1 - Fraction(v["p"], 100)) + v["y"] * (1 - Fraction(v["q"], 100))),
    "catch_up": _catch_up,
    "up_and_down": lambda v: int(v["price"] * (1 + Fraction(v["up"], 100)) * (1 - Fraction(v["down"], 100))),
    "tiles": _tiles,
    "approach": _approach,
    "legs": _legs,
    "together": _together,
    "seats": _seats,
    "bells": lambda v: sum(t % v["a"] == 0 and t % v["b"] == 0 for t in range(1, v["span"] + 1)),
    "remainders": _remainders,
    "handshakes": _handshakes,
    "either": _either,
    "backwards": _backwards,
}

PROBLEMS = [problem for seed in (0, 1, 2) for _, problem in embedded_problems(seed)]


def test_every_family_has_a_brute_force_answer() -> None:
    assert {problem.family for problem in PROBLEMS} == set(BRUTE_FORCE)
    assert sum(len(families) for families in LEVELS.values()) == len(BRUTE_FORCE)


@pytest.mark.parametrize("family", sorted(BRUTE_FORCE))
def test_gold_is_what_brute_force_finds(family: str) -> None:
    mine = [problem for problem in PROBLEMS if problem.family == family]
    for problem in mine:
        assert problem.gold == str(BRUTE_FORCE[family](problem.values)), problem.question


def _shown(problem: Problem) -> set[int]:
    words = {"three": 3, "four": 4}
    spoken = [words[word] for word in re.findall(r"[a-z]+", problem.question) if word in words]
    return {*map(int, re.findall(r"\d+", problem.question)), *spoken}


def test_every_value_stands_in_the_question() -> None:
    for problem in PROBLEMS:
        assert set(problem.values.values()) <= _shown(problem), problem.question


APPLY: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def test_each_worked_step_is_true_and_the_last_is_the_answer() -> None:
    for problem in PROBLEMS:
        for line in problem.steps:
            expression, value = line.rsplit(": ", 1)[1].split(" = ")
            numbers = [Fraction(token) for token in expression.split(" ")[::2]]
            result = numbers[0]
            for sign, number in zip(expression.split(" ")[1::2], numbers[1:], strict=True):
                result = APPLY[sign](result, number)
            assert result == Fraction(value), line
        assert problem.steps[-1].rsplit(" = ", 1)[1] == problem.gold
        assert Fraction(problem.gold) > 0


def test_items_are_two_hundred_at_five_levels_and_all_different() -> None:
    items = embedded_items()
    assert len(items) == 200
    assert Counter(item.profile for item in items) == dict.fromkeys((1, 2, 3, 4, 5), 40)
    assert len({item.item_id for item in items}) == len({item.question for item in items}) == 200


def test_wording_varies_beyond_the_numbers() -> None:
    shapes = {re.sub(r"\d+", "N", item.question) for item in embedded_items()}
    assert len(shapes) >= 120


def test_longer_solutions_at_higher_levels() -> None:
    lengths: dict[int, list[int]] = {level: [] for level in LEVELS}
    for level, problem in embedded_problems():
        lengths[level].append(len(problem.steps))
    means = [sum(lengths[level]) / len(lengths[level]) for level in (1, 2, 3, 4)]
    assert means == sorted(means)
    assert means[0] == 1


def test_same_seed_same_bytes() -> None:
    text = "\n".join(f"{item.item_id}|{item.question}|{item.gold}|{item.profile}" for item in embedded_items())
    again = "\n".join(f"{item.item_id}|{item.question}|{item.gold}|{item.profile}" for item in embedded_items(0))
    assert text == again
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "5605478524341a21"


def test_another_seed_writes_other_questions() -> None:
    zero = {item.question for item in embedded_items(0)}
    one = {item.question for item in embedded_items(1)}
    assert len(zero & one) < 10


def test_too_many_problems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PROBLEMS[0]
    monkeypatch.setitem(LEVELS, 3, (lambda draw: problem,))
    with pytest.raises(ValueError, match="2 different problems at level 3"):
        embedded_problems(per_level=2)


@pytest.mark.parametrize(
    "said", ["__import__('os')", "(1).real", "[n for n in (1, 2)]", "2 ** 9", "elsewhere", "lambda: 1", "7 / 2"]
)
def test_the_data_of_the_families_can_say_nothing_but_arithmetic(said: str) -> None:
    with pytest.raises(ValueError, match=r"arithmetic|whole number"):
        _value(ast.parse(said, mode="eval").body, {"n": 3}, {"integer": max})
    assert _value(ast.parse("integer(n, 2) * 4 / 6", mode="eval").body, {"n": 3}, {"integer": max}) == 2
