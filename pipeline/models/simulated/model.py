"""A simulated model: a request in, a complete reply out, the same for the same request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.models.simulated.chance import Chance
from pipeline.models.simulated.judging import Rater, Verdict
from pipeline.models.simulated.reading import Asked, read_request
from pipeline.models.simulated.settings import Simulation
from pipeline.models.simulated.solving import solution_drawn, stated_confidence, worked_chain
from pipeline.models.simulated.world import World, WorldItem
from pipeline.models.types import Message, Usage

_REASONS: Mapping[Verdict, str] = {
    "A": "The steps of the first hold where those of the second do not convince me.",
    "B": "The second reaches its result by steps I can follow, unlike the first.",
    "tie": "Neither is better than the other as far as I can see.",
}


class UnknownQuestionError(Exception):
    """The request is about a question that the simulated world does not have."""


@dataclass(frozen=True, slots=True)
class SimulatedReply:
    """What the model says: text, reasoning text if apart, why it ended, tokens."""

    text: str
    finish_reason: str
    usage: Usage
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """One model ``sim/<name>`` in a world. It sees a request and nothing else of the run."""

    name: str
    settings: Simulation
    world: World

    def reply(self, messages: Sequence[Message], params: Mapping[str, Any], key: str) -> SimulatedReply:
        """The reply to a request.

        Args:
            messages: the conversation.
            params: what is sent with it; ``max_tokens`` and ``response_format`` matter.
            key: names the request and its draw; another key is another sample.

        Raises:
            UnknownQuestionError: the question is not in the world.
        """
        asked = read_request(messages, params.get("response_format"))
        item = self._item(asked)
        chance = Chance("reply", self.world.seed, self.name, key)
        faults = Chance("faults", self.world.seed, self.name, key)
        prompt_tokens = sum(len(message["content"]) for message in messages) // 4 + 4 * len(messages)
        if faults.happens(self.settings.refusal):
            text = "I cannot help with this request."
            return SimulatedReply(text, "content_filter", Usage(prompt_tokens, _tokens(text)))
        if faults.happens(self.settings.empty):
            return SimulatedReply("", "stop", Usage(prompt_tokens, 0))
        if asked.stage in ("answer", "chain"):
            reply = self._solve(item, asked, chance, faults)
        else:
            reply = SimulatedReply(self._judge(item, asked, chance, faults), "stop", Usage())
        limit = params.get("max_tokens") or params.get("max_completion_tokens")
        cut = (
            int(len(reply.text) * (0.2 + 0.6 * faults.uniform())) if faults.happens(self.settings.truncation) else None
        )
        return _within(reply, prompt_tokens, cut, int(limit) if limit else None)

    def _item(self, asked: Asked) -> WorldItem:
        item = self.world.find(asked.texts["QUESTION"]) if "QUESTION" in asked.texts else None
        if item is None and "QUESTION" not in asked.texts:
            item = self.world.find_in(asked.whole)
        if item is None:
            raise UnknownQuestionError(f"{self.name} is simulated and knows only the questions of this run's benchmark")
        return item

    def _solve(self, item: WorldItem, asked: Asked, chance: Chance, faults: Chance) -> SimulatedReply:
        if asked.repair and asked.own_answer is not None:
            right = item.is_right(asked.own_answer)
            confidence = stated_confidence(item, right, self.settings, chance)
            return SimulatedReply(f"Answer: {asked.own_answer}\nConfidence: {confidence}", "stop", Usage())
        solution = solution_drawn(item, self.settings.ability, chance)
        chain = worked_chain(solution, self.settings.length, chance)
        ending = f"Answer: {solution.answer}"
        if asked.stage == "answer":
            confidence = stated_confidence(item, item.is_right(solution.answer), self.settings, chance)
            ending += f"\nConfidence: {confidence}"
            if faults.happens(self.settings.malformed):
                ending = _spoiled_confidence(solution.answer, confidence, faults)
        if self.settings.reasoning:
            return SimulatedReply(ending, "stop", Usage(), reasoning=chain)
        return SimulatedReply(f"{chain}\n\n{ending}", "stop", Usage())

    def _judge(self, item: WorldItem, asked: Asked, chance: Chance, faults: Chance) -> str:
        rater = Rater(self.name, self.settings, item, chance)
        body: dict[str, Any]
        if asked.stage == "score":
            worst, best = asked.scale
            score = round(worst + (best - worst) * rater.score(asked.texts.get("RESPONSE", "")), 2)
            body = {"reason": "I compared the response with my own work on the problem.", "score": score}
        elif asked.stage == "probability":
            chance_right = rater.probability_right(asked)
            body = {"reason": "Judging by the chains and the preference between them.", "probability": chance_right}
        else:
            verdict = self._verdict(rater, asked)
            body = {"reason": _REASONS[verdict], "verdict": verdict}
        if faults.happens(self.settings.malformed):
            return _spoiled_json(body, faults)
        text = json.dumps(body)
        return _wrapped(text, faults) if faults.happens(self.settings.wrapped) else text

    def _verdict(self, rater: Rater, asked: Asked) -> Verdict:
        texts = asked.texts
        if "RESPONSE A" in texts and "RESPONSE B" in texts:
            return rater.compare(texts["RESPONSE A"], texts["RESPONSE B"])
        return rater.prefer(texts.get("CHAIN A", ""), texts.get("CHAIN B", ""), asked.own_answer)


def _within(reply: SimulatedReply, prompt_tokens: int, cut: int | None, limit: int | None) -> SimulatedReply:
    """The reply with its tokens counted, cut off where a fault or the token limit says."""
    reasoning_tokens = _tokens(reply.reasoning or "")
    room = max(4 * (limit - reasoning_tokens), 0) if limit is not None else None
    ends = [end for end in (cut, room) if end is not None and end < len(reply.text)]
    text, finish = (reply.text[: min(ends)], "length") if ends else (reply.text, "stop")
    usage = Usage(prompt_tokens, _tokens(text) + reasoning_tokens, 0, reasoning_tokens)
    return replace(reply, text=text, finish_reason=finish, usage=usage)


def _tokens(text: str) -> int:
    return -(-len(text) // 4)


def _spoiled_confidence(answer: str, confidence: int, faults: Chance) -> str:
    """Final lines whose confidence cannot be used; the answer can."""
    spoiled = ("", f"Confidence: {confidence + 120}", "Confidence: quite sure", "Confidence: NaN")
    return f"Answer: {answer}\n{faults.pick(spoiled)}".rstrip()


def _spoiled_json(body: Mapping[str, Any], faults: Chance) -> str:
    """A reply from which no verdict, score or probability can be had."""
    key, value = list(body.items())[-1]
    wrong: Any = "C" if key == "verdict" else value + 1.5
    conflicting: Any = {"A": "B", "B": "tie", "tie": "A"}[value] if key == "verdict" else "high"
    return faults.pick((
        "Both the work and its result would have to be looked at more closely before I could say.",
        json.dumps({**body, key: wrong}),
        json.dumps({"reason": body["reason"]}),
        json.dumps(body)[:-9] if key == "verdict" else json.dumps({**body, key: None}),
        f"{json.dumps({**body, key: conflicting})}\n{json.dumps(body)}" if key == "verdict" else json.dumps(
            {**body, key: conflicting}
        ),
    ))  # fmt: skip


def _wrapped(text: str, faults: Chance) -> str:
    """The same reply as chat models like to dress it."""
    return faults.pick((
        f"```json\n{text}\n```",
        f"Here is my judgement.\n\n{text}",
        f"{text}\n",
        f"{text[:-1]},}}",
    ))  # fmt: skip
