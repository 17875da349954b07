"""What a worded arithmetic problem is made of, and the seeded draws it is written with."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

_NAMES = (
    "Amara", "Bruno", "Chen", "Dalia", "Emil", "Farah", "Goran", "Hana", "Ivo", "Jamila", "Kofi", "Lena", "Mateo",
    "Nadia", "Omar", "Petra", "Quinn", "Rosa", "Stefan", "Tariq", "Uma", "Viktor", "Wanda", "Xenia", "Yusuf", "Zora",
)  # fmt: skip
_THINGS = (
    "marbles", "stickers", "pencils", "shells", "buttons", "postcards", "stamps", "beads", "tokens", "badges",
    "magnets", "crayons", "coins", "cards", "ribbons",
)  # fmt: skip
_FOODS = ("apples", "pears", "muffins", "rolls", "oranges", "plums", "cookies", "bagels", "peaches", "pretzels")


@dataclass(frozen=True, slots=True)
class Problem:
    """One worded problem with everything needed to check it.

    Attributes:
        family: which template wrote it.
        values: the numbers of its statement, by name.
        question: the statement, ending in what is asked.
        gold: the exact answer as a decimal string.
        steps: the worked solution; each ends in ``expression = value``, the last value is the answer.
    """

    family: str
    values: Mapping[str, int]
    question: str
    gold: str
    steps: tuple[str, ...]


class Draw:
    """Seeded choices, the same on every platform and Python version (only ``random()`` is relied upon)."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._names = list(_NAMES)

    def integer(self, low: int, high: int) -> int:
        """A whole number between low and high, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[int(self._random.random() * len(options))]

    def name(self) -> str:
        """A first name not yet used in this problem."""
        return self._names.pop(int(self._random.random() * len(self._names)))

    def things(self) -> str:
        """Small things that can be counted, in the plural."""
        return self.pick(_THINGS)

    def food(self) -> str:
        """Food that can be counted, in the plural."""
        return self.pick(_FOODS)


Family = Callable[[Draw], Problem]


def step(label: str, expression: str, value: int) -> str:
    """One line of a worked solution."""
    return f"{label}: {expression} = {value}"
