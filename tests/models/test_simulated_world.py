"""The simulated world: what is right, how one goes wrong, how hard each question is."""

from __future__ import annotations

import statistics
import weakref
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from pipeline.benchmark.embedded import embedded_items
from pipeline.models.simulated.arithmetic import as_number, carry_slip, evaluate
from pipeline.models.simulated.chance import Chance
from pipeline.models.simulated.settings import SIMULATED_MODELS, Simulation
from pipeline.models.simulated.solving import solution_drawn, worked_chain
from pipeline.models.simulated.world import World

ITEMS = embedded_items()
WORLD = World.from_items(ITEMS)


@dataclass(frozen=True)
class Plain:
    """A benchmark item of someone else's."""

    question: str
    gold: str | None = None
    choices: tuple[str, ...] | None = None
    profile: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)


def test_chance_is_a_function_of_its_name_and_uniform() -> None:
    first, again, other = Chance("a", 1), Chance("a", 1), Chance("a", 2)
    numbers = [first.uniform() for _ in range(20_000)]
    assert numbers[:100] == [again.uniform() for _ in range(100)]
    assert numbers[0] != other.uniform()
    assert statistics.fmean(numbers) == pytest.approx(0.5, abs=4 * (1 / 12) ** 0.5 / 20_000**0.5)
    assert min(numbers) > 0
    assert max(numbers) < 1
    normals = [first.normal() for _ in range(20_000)]
    assert statistics.fmean(normals) == pytest.approx(0, abs=4 / 20_000**0.5)
    assert statistics.stdev(normals) == pytest.approx(1, abs=4 / 40_000**0.5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("1,200", 1200),
        ("$3.50", Fraction(7, 2)),
        ("-4", -4),
        ("3/4", Fraction(3, 4)),
        ("x", None),
        ("", None),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, value: Fraction | None) -> None:
    assert as_number(text) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [("2 + 3 * 4", 14), ("10 / 4", Fraction(5, 2)), ("20 - 3 - 4", 13), ("200 * 15%", 30), ("8 / 0", None)],
)
def test_expressions_are_evaluated_with_precedence(expression: str, value: Fraction | None) -> None:
    assert evaluate(expression) == value


def test_a_slip_is_carried_through_every_later_step() -> None:
    steps = ("Cost: 3 * 4 = 12", "With the fee: 12 + 5 = 17", "Money back: 50 - 17 = 33")
    lines, final = carry_slip(steps, 0, Fraction(13))
    assert lines == ("Cost: 3 * 4 = 13", "With the fee: 13 + 5 = 18", "Money back: 50 - 18 = 32")
    assert final == 32


def test_a_slip_in_a_published_solution_with_annotations() -> None:
    steps = ("He has 4*5=<<4*5=20>>20 eggs.", "He sells 20-8=$<<20-8=12>>12 of them.")
    lines, final = carry_slip(steps, 0, Fraction(19))
    assert lines == ("He has 4*5=19 eggs.", "He sells 19-8=$11 of them.")
    assert final == 11


@pytest.mark.parametrize("item", ITEMS[::7], ids=lambda item: item.item_id)
def test_wrong_solutions_are_wrong_distinct_and_look_like_answers(item: Any) -> None:
    known = WORLD.find(item.question)
    assert known is not None
    answers = [slip.answer for slip in known.slips]
    assert len(set(answers)) == len(answers) >= 3
    assert not any(known.is_right(answer) for answer in answers)
    assert all(as_number(answer) is not None for answer in answers)
    assert known.is_right(item.gold)


def test_questions_are_found_whatever_happened_to_their_white_space() -> None:
    item = ITEMS[5]
    assert WORLD.find("  " + item.question.replace(" ", "\n ") + "\n") is WORLD.find(item.question)
    assert WORLD.find("What is the capital of France?") is None


def test_difficulty_rises_with_the_profile() -> None:
    means = []
    for level in (1, 2, 3, 4, 5):
        known = [WORLD.find(item.question) for item in ITEMS if item.profile == level]
        means.append(statistics.fmean(entry.difficulty for entry in known if entry is not None))
    assert means == sorted(means)
    assert means[-1] - means[0] > 2.2


@pytest.mark.parametrize("name", ["sim/strong", "sim/medium", "sim/weak"])
def test_share_of_right_answers_is_the_stated_truth(name: str) -> None:
    ability = SIMULATED_MODELS[name].ability
    right = total = 0
    variance = 0.0
    for item in ITEMS:
        known = WORLD.find(item.question)
        assert known is not None
        chance = known.probability(ability)
        variance += 20 * chance * (1 - chance)
        for draw in range(20):
            right += known.is_right(solution_drawn(known, ability, Chance("t", draw, item.item_id)).answer)
            total += 1
    error = variance**0.5 / total
    assert right / total == pytest.approx(WORLD.true_accuracy(Simulation(ability=ability)), abs=4 * error)


def test_truth_of_some_questions_and_of_a_target_that_sometimes_refuses() -> None:
    settings = Simulation(ability=1.0)
    easy = WORLD.true_accuracy(settings, [item.question for item in ITEMS if item.profile == 1])
    assert easy > WORLD.true_accuracy(settings) > 0.5
    refusing = Simulation(ability=1.0, refusal=0.25)
    assert WORLD.true_accuracy(refusing) == pytest.approx(0.75 * WORLD.true_accuracy(settings))
    empty = Simulation(ability=1.0, empty=0.5)
    assert WORLD.true_accuracy(empty) == pytest.approx(0.75 * WORLD.true_accuracy(settings))
    with pytest.raises(ValueError, match="no question"):
        WORLD.true_accuracy(settings, ["Who?"])
    with pytest.raises(ValueError, match="no questions"):
        WORLD.true_accuracy(settings, [])


def test_choices_text_answers_and_missing_golds() -> None:
    world = World.from_items([
        Plain("Pick one.", "B", ("red", "green", "blue")),
        Plain("Name it.", r"\frac{3}{7}"),
        Plain("Nobody knows."),
        Plain("A word?", "heron", profile="birds"),
    ])  # fmt: skip
    pick, name, lost, word = world
    assert pick.is_right("(b)")
    assert pick.is_right("green")
    assert not pick.is_right("red")
    assert {slip.answer for slip in pick.slips} == {"A", "C"}
    assert name.slips
    assert all(slip.answer != name.gold for slip in name.slips)
    assert as_number(lost.gold) is not None
    assert not any(word.is_right(slip.answer) for slip in word.slips)


def test_another_seed_is_another_world() -> None:
    other = World.from_items(ITEMS, seed=1)
    assert other.name != WORLD.name == World.from_items(ITEMS).name
    assert [item.difficulty for item in other] != [item.difficulty for item in WORLD]
    assert [item.gold for item in other] == [item.gold for item in WORLD]


def test_a_part_of_a_benchmark_is_a_part_of_its_world() -> None:
    part = World.from_items(ITEMS[50:60])
    assert list(part) == [WORLD.find(item.question) for item in ITEMS[50:60]]


def test_what_is_worked_out_does_not_pile_up() -> None:
    world = World.from_items([Plain(f"What is {k} plus {k}?", str(2 * k), profile=2) for k in range(5_000)])
    first = world.find("What is 0 plus 0?")
    assert first is not None
    assert first is world.find("What is 0 plus 0?")
    alive = weakref.ref(first)
    slips = first.slips
    del first
    for k in range(5_000):
        assert world.find(f"What is {k} plus {k}?") is not None
    assert alive() is None
    again = world.find("What is 0 plus 0?")
    assert again is not None
    assert again.slips == slips


def test_difficulty_of_other_axes_stays_within_reach() -> None:
    profiles: list[Any] = [3, 10, 12.5, 40, 400, 1e6, -1, float("inf"), "algebra", None]
    world = World.from_items([Plain(f"Question {k}?", "1", profile=profile) for k, profile in enumerate(profiles)])
    assert all(abs(item.difficulty) < 5 for item in world)


def test_chains_differ_from_draw_to_draw_and_wordy_ones_are_longer() -> None:
    known = WORLD.find(ITEMS[100].question)
    assert known is not None
    terse = [worked_chain(known.right, 0.1, Chance("c", draw)) for draw in range(60)]
    wordy = [worked_chain(known.right, 0.9, Chance("c", draw)) for draw in range(60)]
    assert statistics.fmean(map(len, wordy)) > 1.3 * statistics.fmean(map(len, terse))
    assert len(set(wordy)) == 60
