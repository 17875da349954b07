"""How a simulated model judges: scores, comparisons and the probability that a target is right."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from pipeline.models.simulated.chance import Chance, logit, sigmoid
from pipeline.models.simulated.reading import Asked, final_answer
from pipeline.models.simulated.settings import Simulation
from pipeline.models.simulated.solving import solution_drawn
from pipeline.models.simulated.world import WorldItem

Verdict = Literal["A", "B", "tie"]

_PREFERENCE = re.compile(r"preference:\s*(.*)", re.IGNORECASE)
_EXAMPLES = re.compile(r"own answer was (correct|wrong)\.")


@dataclass(frozen=True, slots=True)
class Rater:
    """One simulated model's way of judging one item.

    What it thinks of an answer, and of a text beyond its answer, is fixed (the same however often it is asked);
    ``chance`` is what differs from one request to the next.
    """

    model: str
    settings: Simulation
    item: WorldItem
    chance: Chance

    def believes_right(self, answer: str | None) -> bool:
        """Its view of an answer, which is the truth with probability ``accuracy``; always the same view."""
        view = Chance("view", self.item.seed, self.model, self.item.question, answer or "")
        return self.item.is_right(answer) == view.happens(self.settings.accuracy)

    def score(self, response: str) -> float:
        """A score in [0, 1], two decimals."""
        worth = self._worth(response) + self.settings.leniency + self.settings.noise * self.chance.normal()
        return round(sigmoid(worth), 2)

    def compare(self, first: str, second: str) -> Verdict:
        """Which of two responses is better as a judge sees it."""
        settings = self.settings
        lead = self._worth(first) - self._worth(second) + settings.position_bias
        lead += settings.verbosity_bias * math.log2((len(first) + 50) / (len(second) + 50))
        return self._verdict(lead + settings.noise * math.sqrt(2) * self.chance.normal(), settings.tie_width)

    def prefer(self, first: str, second: str, own_answer: str | None) -> Verdict:
        """Which of two chains the model itself prefers: the one that agrees with what it takes for the answer.

        In a conversation where it has answered before, that is (nearly always) its answer there, so that the
        preference tells about that answer. Asked out of the blue it works the problem out afresh, so that the
        preference tells about its ability alone.
        """
        belief = own_answer
        if belief is None or not self.chance.happens(self.settings.coherence):
            fresh = Chance("belief", self.item.seed, self.model, self.item.question, *sorted((first, second)))
            belief = solution_drawn(self.item, self.settings.ability, fresh).answer
        one, two = self._agrees(first, belief), self._agrees(second, belief)
        if one and two and self.chance.happens(0.9):
            return "tie"
        lead = 2 * self.settings.strength * (one - two) + self.settings.position_bias
        noise = 2 * self.settings.noise * self.chance.normal()
        return self._verdict(lead + noise, 0.3 * self.settings.tie_width)

    def probability_right(self, asked: Asked) -> float:
        """Probability that a target answered right, given two chains and its preference; two decimals.

        Bayes' rule with the preference's likelihoods as one would guess them for a typical target, on the model's
        own view of the chains; it does not know the target.
        """
        answers = [final_answer(asked.texts.get(name, "")) for name in ("CHAIN A", "CHAIN B")]
        views = [self.believes_right(answer) for answer in answers]
        prior = self.settings.expects - 0.7 * self.item.difficulty + _from_examples(asked.prompt)
        evidence = _log_ratio(views[0], views[1], _preference(asked.prompt))
        worth = prior + 0.2 * (sum(views) - 1) + self.settings.sharpness * evidence
        return round(sigmoid(worth + self.settings.noise * self.chance.normal()), 2)

    def _worth(self, response: str) -> float:
        view = self.believes_right(final_answer(response))
        taste = Chance("text", self.item.seed, self.model, self.item.question, response)
        return self.settings.strength * (1 if view else -1) + self.settings.text_noise * taste.normal()

    def _agrees(self, chain: str, belief: str) -> bool:
        return _same(self.item, final_answer(chain), belief)

    def _verdict(self, lead: float, width: float) -> Verdict:
        if abs(lead) < width:
            return "tie"
        return "A" if lead > 0 else "B"


def _same(item: WorldItem, one: str | None, two: str | None) -> bool:
    if one is None or two is None:
        return False
    return one.strip() == two.strip() or (item.is_right(one) and item.is_right(two))


def _preference(prompt: str) -> Verdict:
    """The target's preference as the prompt tells it; neither, a tie or disagreement between orders is a tie."""
    told = _PREFERENCE.findall(prompt)
    last = told[-1] if told else ""
    sides = re.findall(r"\b(A|B)\b", last)
    return sides[0] if len(set(sides)) == 1 else "tie"


def _from_examples(prompt: str) -> float:
    """What the examples in the prompt say about the target, as a shift of log-odds, shrunk towards none."""
    outcomes = _EXAMPLES.findall(prompt)
    right = outcomes.count("correct")
    return logit((right + 4.0) / (len(outcomes) + 6.0)) - logit(4.0 / 6.0)


def _log_ratio(first: bool, second: bool, verdict: Verdict) -> float:
    """Log of how much likelier the preference is from a target that is right than from one that is wrong."""
    if first != second:
        if verdict == "tie":
            return -1.7
        return 1.05 if (verdict == "A") == first else -2.6
    if first:
        return 1.8 if verdict == "tie" else -1.9
    return 0.35 if verdict == "tie" else -0.15
