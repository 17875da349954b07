"""What simulated models know: each question's true answer, its difficulty, and how one goes wrong on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Protocol

from pipeline.models.simulated.arithmetic import as_number, carry_slip, last_number, written
from pipeline.models.simulated.chance import Chance, sigmoid
from pipeline.models.simulated.settings import Simulation

_LAWS = 1
"""Raised when the same request would get another reply in the same world."""
_KEPT = 2048
_ITEM_SD = 0.7
_VARIANTS = 6
_LETTERS = "ABCDEFGHIJ"


class KnownItem(Protocol):
    """What the world needs of a benchmark item."""

    @property
    def question(self) -> str:
        """The question as it will stand in prompts."""
        ...

    @property
    def gold(self) -> Any:
        """The true answer, or None where nobody knows it (the world then makes one up)."""
        ...

    @property
    def choices(self) -> Sequence[str] | None:
        """Texts of the choices, or None; gold is then a letter or the text of one."""
        ...

    @property
    def profile(self) -> Any:
        """The item's place on the profile axis, or None."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """May hold ``solution``: a worked solution, a step to a line."""
        ...


@dataclass(frozen=True, slots=True)
class Solution:
    """A worked chain: its lines and the answer it ends in."""

    steps: tuple[str, ...]
    answer: str


@dataclass(frozen=True)
class WorldItem:
    """One question with its truth.

    Attributes:
        question: its text.
        gold: the true answer.
        difficulty: log-odds that a model of ability 0 answers wrong.
        choices: texts of the choices, empty for a free answer.
        steps: lines of the right solution.
        seed: names the world's chance.
    """

    question: str
    gold: str
    difficulty: float
    choices: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    seed: int = 0

    @cached_property
    def right(self) -> Solution:
        """The right solution."""
        steps = self.steps or ("Reading the question closely settles what is asked.",)
        return Solution(steps, self.gold)

    @cached_property
    def slips(self) -> tuple[Solution, ...]:
        """Wrong solutions with different answers, the commonest mistake first; never empty."""
        chance = Chance("slips", self.seed, self.question)
        solutions: dict[str, Solution] = {}
        for attempt in range(4 * _VARIANTS):
            solution = self._slip(chance, attempt)
            if not self.is_right(solution.answer):
                solutions.setdefault(solution.answer, solution)
            if len(solutions) == _VARIANTS:
                break
        return tuple(solutions.values()) or (Solution(self.steps, "unknown"),)

    def is_right(self, answer: str | None) -> bool:
        """Whether an answer means the gold one: equal as text, as numbers, or as the choice's letter or text."""
        if answer is None:
            return False
        verdict = self._graded.get(answer)
        if verdict is None:
            verdict = self._graded[answer] = self._means_gold(answer)
        return verdict

    @cached_property
    def _graded(self) -> dict[str, bool]:
        """Answers met so far: few different ones are given, each of them often."""
        return {}

    def _means_gold(self, answer: str) -> bool:
        mine, truth = _plain(answer), _plain(self.gold)
        if mine == truth:
            return True
        if self.choices:
            return self._letter(answer) is not None and self._letter(answer) == self._letter(self.gold)
        number, gold = as_number(mine), as_number(truth)
        return number is not None and number == gold

    def probability(self, ability: float) -> float:
        """Probability that a model of this ability answers right."""
        return sigmoid(ability - self.difficulty)

    def _letter(self, answer: str) -> str | None:
        bare = answer.strip().strip("().*").upper()
        if len(bare) == 1 and bare in _LETTERS[: len(self.choices)]:
            return bare
        texts = [_plain(choice) for choice in self.choices]
        return _LETTERS[texts.index(_plain(answer))] if _plain(answer) in texts else None

    def _slip(self, chance: Chance, attempt: int) -> Solution:
        if self.choices:
            gold = self._letter(self.gold)
            others = [letter for letter in _LETTERS[: len(self.choices)] if letter != gold]
            letter = chance.pick(others) if others else "unknown"
            return Solution(("One of the choices seems to fit what is described.",), letter)
        results = [last_number(step) for step in self.steps]
        places = [index for index, result in enumerate(results) if result is not None]
        if places and attempt % 4 == 3 and len(places) > 1:
            kept = places[-2]
            return Solution(self.steps[: kept + 1], written(results[kept] or Fraction(0)))
        if places:
            place = chance.pick(places)
            lines, final = carry_slip(self.steps, place, _misjudged(results[place] or Fraction(0), chance))
            if final is not None:
                return Solution(lines, written(final))
        number = as_number(self.gold)
        if number is not None:
            return Solution(self.steps[:-1], written(_misjudged(number, chance)))
        return Solution(self.steps[:-1], self._mistaken(chance))

    def _mistaken(self, chance: Chance) -> str:
        """A wrong answer that is no number: another digit in it, or a word of the question."""
        digits = [index for index, sign in enumerate(self.gold) if sign.isdigit()]
        if digits and chance.happens(0.7):
            place = chance.pick(digits)
            digit = str((int(self.gold[place]) + 1 + chance.below(8)) % 10)
            return self.gold[:place] + digit + self.gold[place + 1 :]
        words = [word.strip(".,;:?!()\"'") for word in self.question.split()]
        long = [word for word in words if len(word) > 3 and not self.is_right(word)]
        return chance.pick(long) if long else "unknown"


def _misjudged(value: Fraction, chance: Chance) -> Fraction:
    """A number that one could take for this one."""
    kind = chance.below(5)
    size = max(1, int(abs(value)) // 10)
    if kind == 0:
        return value + (1 if chance.happens(0.5) else -1)
    if kind == 1:
        return value + (10 if chance.happens(0.5) or value < 12 else -10)
    if kind == 2:
        return value * 2
    digits = str(value.numerator)
    if kind == 3 and value.denominator == 1 and len(digits) >= 2 and digits[-1] != digits[-2] and value > 0:
        return Fraction(int(digits[:-2] + digits[-1] + digits[-2]))
    return value + 1 + chance.below(size + 4)


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(" .*`$").casefold()


def same_question(text: str) -> str:
    """What two writings of one question have in common: not white space, nor characters that cannot be sent."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    plain = " ".join(text.replace("\x00", "\ufffd").split())
    return text if plain == text else plain


class World:
    """All questions of a run, as the simulated models know them.

    Args:
        items: the benchmark, by its questions without regard to white space.
        seed: another seed is another world: other difficulties, other mistakes, other luck.
    """

    def __init__(self, items: Mapping[str, KnownItem], seed: int = 0) -> None:
        self._items = items
        self.seed = seed
        # What is worked out of an item is kept while the item is in work, so that memory does not grow with the items.
        self._worked_out = lru_cache(maxsize=_KEPT)(lambda question: _known(items[question], seed))

    @classmethod
    def from_items(cls, items: Iterable[KnownItem], *, seed: int = 0) -> World:
        """The world of these benchmark items.

        What is known of an item depends on that item and the seed alone, so that a part of a benchmark is a part of
        its world. Difficulty rises with a numeric profile (0.8 logits a level on axes of a few levels, 0.9 at each
        doubling on others such as lengths), differs by group on a categorical one, and varies from item to item with
        a standard deviation of 0.7.
        """
        return cls({same_question(item.question): item for item in items}, seed)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[WorldItem]:
        return (_known(item, self.seed) for item in self._items.values())

    @property
    def name(self) -> str:
        """Names the world in addresses: the version of its laws and the seed."""
        return f"world-{_LAWS}-{self.seed}"

    def find(self, question: str) -> WorldItem | None:
        """The item of a question, or None if this world has no such question."""
        key = same_question(question)
        return self._worked_out(key) if key in self._items else None

    def find_in(self, text: str) -> WorldItem | None:
        """The item whose question stands somewhere in a text, or None; looks at every question."""
        question = next((item.question for item in self._items.values() if item.question in text), None)
        return self.find(question) if question is not None else None

    def true_accuracy(self, simulation: Simulation, questions: Iterable[str] | None = None) -> float:
        """Expected share of right answers of a target on these questions (all by default).

        A reply that is refused, cut off, or empty twice counts as wrong, as ``missing_reply: wrong`` does.

        Raises:
            ValueError: there is no such question, or none at all.
        """
        total, count = 0.0, 0
        for item in self if questions is None else map(self._existing, questions):
            total += item.probability(simulation.ability)
            count += 1
        if not count:
            raise ValueError("the simulated world has no questions")
        usable = (1 - simulation.refusal) * (1 - simulation.empty) * (1 - simulation.truncation)
        answered = usable * (1 + (1 - simulation.refusal) * simulation.empty)
        return total / count * answered * (1 - simulation.bad_request)

    def _existing(self, question: str) -> WorldItem:
        item = self.find(question)
        if item is None:
            raise ValueError(f"the simulated world has no question {question[:60]!r}")
        return item


def _known(item: KnownItem, seed: int) -> WorldItem:
    chance = Chance("item", seed, item.question)
    difficulty = _level(item.profile, seed) + _ITEM_SD * chance.normal()
    choices = tuple(item.choices or ())
    gold = item.gold
    if gold is None:
        gold = chance.pick(_LETTERS[: len(choices)]) if choices else 2 + chance.below(98)
    lines = str(item.metadata.get("solution") or "").splitlines()
    steps = tuple(line.strip() for line in lines if line.strip())
    return WorldItem(item.question, str(gold), difficulty, choices, steps, seed)


def _level(profile: Any, seed: int) -> float:
    """Difficulty by place on the profile axis, within ±2 logits."""
    if profile is None:
        return 0.0
    if not isinstance(profile, int | float) or isinstance(profile, bool):
        return 0.9 * Chance("group", seed, str(profile)).normal()
    if profile <= 0 or not math.isfinite(profile):
        return 0.0
    level = 0.8 * (profile - 3) if profile <= 12 else 0.9 * math.log2(profile / 40)
    return min(max(level, -2.0), 2.0)
