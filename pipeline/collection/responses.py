"""Replies in free text about one item: answers, anchors' answers, chains; graded, and turned into rows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.benchmark.extraction import strip_confidence
from pipeline.benchmark.grading import Grade
from pipeline.benchmark.items import Item
from pipeline.collection.calls import FreeReply
from pipeline.collection.context import FlowContext
from pipeline.collection.prompts import clean_text
from pipeline.collection.rows import CandidateRow, ProbabilityRow, Reason, ResponseOutcome, ResponseRow
from pipeline.collection.settling import settle
from pipeline.collection.token_probabilities import answer_logprobs
from pipeline.models.types import CallLabel, Message


@dataclass(frozen=True, slots=True)
class Answer:
    """A target's or anchor's reply with the messages that led to it."""

    reply: FreeReply
    messages: tuple[Message, ...]
    phi: float | None

    @property
    def judged_text(self) -> str | None:
        """What others may see of it: without its confidence; None if it is no usable answer."""
        if self.reply.reason is not None or self.reply.text is None:
            return None
        return strip_confidence(self.reply.text).strip() or None

    @property
    def conversation(self) -> tuple[Message, ...] | None:
        """The conversation in which the target has just answered; None if it has not."""
        text = self.reply.text
        if text is None or self.reply.reason not in (None, "truncated"):
            return None
        return (*self.messages, {"role": "assistant", "content": clean_text(text)})


@dataclass(frozen=True, slots=True)
class Chains:
    """w1 and w2 of one draw; None where there is nothing to read."""

    first: str | None
    second: str | None


class Responses:
    """Asks for free text about one item; every reply becomes a row."""

    def __init__(self, item: Item, context: FlowContext) -> None:
        self._item = item
        self._c = context
        self._plan = context.plan
        self._base: Mapping[str, Any] = {"question": item.question, "choices": item.choices}

    def _label(self, stage: str, role: str, **more: Any) -> CallLabel:
        return CallLabel(stage=stage, item=self._item.item_id, role=role, **more)

    async def answer(self, target: str, stage: str, draw: int, request_draw: int) -> Answer:
        """A target's answer: stage ``answer``, ``episode`` or ``candidates``."""
        if self._plan.given:
            return await self._given(target)
        prompt = self._c.prompts["candidates" if stage == "candidates" else self._plan.answer_prompt][0]
        label = self._label(stage, "target", target=target, draw=draw)
        reply, messages = await self._c.caller.free(prompt, self._base, target, label, draw=request_draw)
        grade = await self._grade(reply, target)
        confidence, why = await self._confidence(target, stage, reply, messages, label, request_draw)
        self._c.sink(self._response(target, stage, draw, reply, grade, confidence, why))
        if stage == "answer" and draw == 0 and target in self._plan.weighed:
            self._weigh(target, reply, grade)
        if stage == "candidates":
            self._c.sink(
                CandidateRow(
                    self._item.item_id, target, draw, grade.answer, grade.phi, _phi_reason(reply, grade), reply.key
                )
            )
        return Answer(reply, messages, grade.phi)

    def _weigh(self, target: str, reply: FreeReply, grade: Grade) -> None:
        """How probable the tokens of the final answer were."""
        weights = answer_logprobs(reply.tokens, reply.text or "", grade.answer) or (None, None)
        for signal, value in zip(("logprob_mean", "logprob_min"), weights, strict=True):
            self._c.sink(ProbabilityRow(self._item.item_id, target, signal, "answer", value))

    async def _given(self, target: str) -> Answer:
        """A response that exists already: rated by people, or graded against the gold answer as any other."""
        given = self._item.given.get(target)
        if given is None:
            reply = FreeReply(None, None, "missing_input", None, None)
            grade = Grade(None, None, "missing_input")
        else:
            reply = FreeReply(given.text, None, None, None, None)
            grade = await self._grade(reply, target)
        self._c.sink(self._response(target, "answer", 0, reply, grade, None, "not_asked"))
        return Answer(reply, (), grade.phi)

    def _rated(self, target: str, text: str) -> Grade:
        """The rating by the first criterion, where the file has one; the text is the answer."""
        given = self._item.given.get(target)
        rating = given.ratings.get(self._c.criteria[0]) if given is not None and self._c.criteria else None
        return Grade(text, rating, None if rating is not None else "not_asked")

    async def _confidence(
        self, target: str, stage: str, reply: FreeReply, messages: tuple[Message, ...], label: CallLabel, draw: int
    ) -> tuple[float | None, Reason | None]:
        if reply.reason is not None or reply.text is None:
            return None, reply.reason or "empty"
        if not self._plan.confidence:
            return None, "not_asked"
        needed = stage == "answer" and label.draw == 0 and self._plan.pointwise > 0
        return await self._c.caller.confidence(target, messages, reply.text, label, draw=draw, repair=needed)

    async def anchor(self, model: str) -> Answer:
        """An anchor's answer, the same for all targets."""
        label = self._label("anchor", "anchor")
        reply, messages = await self._c.caller.free(self._c.prompts["anchor"][0], self._base, model, label, draw=0)
        grade = await self._grade(reply, model)
        self._c.sink(self._response(model, "anchor", 0, reply, grade, None, "not_asked"))
        return Answer(reply, messages, grade.phi)

    async def chains(self, draw: int) -> Chains:
        """w1 and w2 of a draw; each has a request draw of its own, also where one model writes both."""
        models = self._plan.auxiliary or ()
        first, second = await settle(self._chain(model, 2 * draw + side) for side, model in enumerate(models))
        return Chains(first, second)

    async def _chain(self, model: str, draw: int) -> str | None:
        """A chain of reasoning; one that is cut off is as good as any."""
        caller = self._c.caller
        params = {caller.cap_name(model): self._c.config.design.auxiliary_max_tokens}
        label = self._label("auxiliary", "auxiliary", draw=draw)
        reply, _ = await caller.free(
            self._c.prompts["auxiliary"][0], self._base, model, label, draw=draw, params=params, may_be_cut=True
        )
        usable = reply.reason is None
        answer = self._c.grader.answer(reply.text, self._item) if usable and reply.text else None
        grade = Grade(answer, None, "not_asked")
        self._c.sink(self._response(model, "auxiliary", draw, reply, grade, None, "not_asked"))
        return (reply.text or reply.reasoning) if usable else None

    async def _grade(self, reply: FreeReply, who: str) -> Grade:
        if reply.reason is not None:
            return Grade(None, None, reply.reason)
        text = reply.text or ""  # without text, without a reason: thought that never came to an answer
        if self._c.grader.grading == "rating":
            return self._rated(who, text)
        if self._c.grader.may_block:
            return await asyncio.to_thread(self._c.grader.grade, text, self._item, who)
        return self._c.grader.grade(text, self._item, who)

    def _response(
        self,
        model: str,
        stage: str,
        draw: int,
        reply: FreeReply,
        grade: Grade,
        confidence: float | None,
        confidence_reason: Reason | None,
    ) -> ResponseRow:
        return ResponseRow(
            item_id=self._item.item_id,
            model=model,
            stage=stage,
            draw=draw,
            text=reply.text,
            reasoning=reply.reasoning,
            answer=grade.answer,
            confidence=confidence,
            confidence_reason=confidence_reason,
            phi=grade.phi,
            phi_reason=_phi_reason(reply, grade),
            outcome=_outcome(reply, grade),
            finish_reason=reply.finish_reason,
            request_key=reply.key,
        )


def _phi_reason(reply: FreeReply, grade: Grade) -> Reason | None:
    if grade.phi is not None:
        return None
    if reply.reason is not None:
        return reply.reason
    reasons: Mapping[str | None, Reason] = {
        "no_answer": "no_answer", "missing_input": "missing_input", "not_asked": "not_asked",
    }  # fmt: skip
    return reasons.get(grade.reason, "empty")


def _outcome(reply: FreeReply, grade: Grade) -> ResponseOutcome:
    if reply.finish_reason == "length" and reply.reason in (None, "truncated"):
        return "truncated"
    if reply.reason == "truncated":
        return "truncated"
    if reply.reason == "refused":
        return "refused"
    if reply.reason == "missing_input":  # this model's response to the item is not in the file
        return "no_answer"
    if reply.reason is not None:
        return "failed"
    return "ok" if grade.answer is not None else "no_answer"
