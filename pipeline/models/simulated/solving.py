"""How a simulated model solves a problem: right or wrong, in words, with a confidence of its own."""

from __future__ import annotations

from pipeline.models.simulated.chance import Chance, sigmoid
from pipeline.models.simulated.settings import Simulation
from pipeline.models.simulated.world import Solution, WorldItem

_OPENINGS = (
    "Let me work through this.", "I take it step by step.", "First, what is given and what is asked.",
    "Here is how I get to the answer.", "Working from the numbers in the question:", "Let us go through it in order.",
    "I write down each step.", "Start with what the question tells us.", "This can be done one step at a time.",
    "Breaking the problem down:", "To find the answer, follow the quantities.", "Going through the statement:",
)  # fmt: skip
_LINKS = ("First", "Then", "Next", "After that", "From this", "Now", "So", "Going on")
_REMARKS = (
    "This uses only numbers from the question.", "That step is worth writing out.", "It follows directly.",
    "Nothing else changes here.", "I keep this for the next step.", "The units agree.",
    "That looks about right in size.",
)  # fmt: skip
_CLOSINGS = (
    "That settles it.", "This is what was asked.", "Nothing further is needed.", "So that is the result.",
    "With this the question is answered.", "The last number is the one wanted.", "This completes the work.",
    "Checking the size of the result, it is plausible.",
)  # fmt: skip


def solution_drawn(item: WorldItem, ability: float, chance: Chance) -> Solution:
    """A solution as a model of this ability would find it: right with its probability, else a common mistake."""
    if chance.happens(item.probability(ability)):
        return item.right
    slips = item.slips
    place = int(len(slips) * chance.uniform() ** 3)
    return slips[place]


def worked_chain(solution: Solution, length: float, chance: Chance) -> str:
    """The solution in words, terse to wordy (length in [0, 1]), without the final line."""
    lines = [chance.pick(_OPENINGS)]
    wordy = min(max(length + 0.35 * (chance.uniform() - 0.5), 0.0), 1.0)
    for index, step in enumerate(solution.steps):
        link = _LINKS[0] if index == 0 else chance.pick(_LINKS[1:])
        line = f"{link}: {step}" if wordy > 0.25 else step
        lines.append(f"{line.rstrip('.')}. {chance.pick(_REMARKS)}" if chance.happens(wordy * 0.8) else line)
    if wordy > 0.35:
        lines.append(chance.pick(_CLOSINGS))
    return "\n".join(lines)


def stated_confidence(item: WorldItem, right: bool, settings: Simulation, chance: Chance) -> int:
    """The confidence a model states, 0 to 100 in steps of 1 near the top and 5 elsewhere.

    It rises with how easy the model finds the problem and a little with being right, and is biased by the model's
    overconfidence: related to correctness, but not calibrated.
    """
    ease = 0.35 * (settings.ability - item.difficulty)
    signal = settings.confidence_signal * (1 if right else -1)
    percent = 100 * sigmoid(settings.overconfidence + ease + signal + settings.confidence_noise * chance.normal())
    return round(percent) if percent > 90 else 5 * round(percent / 5)
