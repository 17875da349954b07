"""One call as the collector needs it: asked, asked again where that is due, parsed, and counted by stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.collection.confidence import parse_confidence
from pipeline.collection.judgements import UNIT, Scale
from pipeline.collection.prompts import Prompt, PromptSet, clean_text, render
from pipeline.collection.replies import FORMATS, Invalid, Parsed, reply_format, reply_schema
from pipeline.collection.rows import Reason
from pipeline.config import RunConfig
from pipeline.models.stopping import RunStopped
from pipeline.models.types import Answered, Asker, CallLabel, Failed, Message, Outcome, ReplySchema, Token

FIRST_CALLS = 20
"""Calls of a stage before its share of failures can stop the run."""
FIRST_FAILURES = 5
"""Failed calls of one model in a stage from which the limit holds for it alone."""
_SHOWN_TURN_CHARS = 8_000
_SHOWN_REPLY_CHARS = 400
_ALTERNATIVES = 5


@dataclass(frozen=True, slots=True)
class FreeReply:
    """A reply in free text.

    Attributes:
        text: what it says; None where there is nothing to read.
        reasoning: what the provider gives of its hidden reasoning.
        reason: why it is no usable answer, or None if it is one.
        finish_reason: as the provider says.
        key: request key of the reply, None if there is none.
        tokens: of the text as sent, where their probabilities were asked for and given.
    """

    text: str | None
    reasoning: str | None
    reason: Reason | None
    finish_reason: str | None
    key: str | None
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedReply:
    """A reply in JSON: its value, or why there is none; its text and tokens where it has a value."""

    value: Any
    reason: Reason | None
    repaired: bool
    key: str | None
    text: str = ""
    tokens: tuple[Token, ...] = ()


@dataclass(slots=True)
class StageCount:
    """What became of a stage's calls.

    Attributes:
        calls: made or served from the cache, repairs included.
        failed: terminal failures.
        repairs: repair requests.
        invalid: replies that were still invalid after it.
        truncated: replies cut off by the token limit.
        refused: replies refused or filtered.
        errors: failure message → how often.
    """

    calls: int = 0
    failed: int = 0
    repairs: int = 0
    invalid: int = 0
    truncated: int = 0
    refused: int = 0
    errors: Counter[str] = field(default_factory=Counter)


class Caller:
    """Asks for the collector.

    Args:
        config: the run.
        asker: the gateway.
        prompts: for the repair text.
        stop_on_failures: whether a stage with too many terminal failures stops the run.
    """

    def __init__(self, config: RunConfig, asker: Asker, prompts: PromptSet, *, stop_on_failures: bool = True) -> None:
        self._config = config
        self._asker = asker
        self._repair_prompt = prompts.repair
        self._limit = config.stage_failure_limit if stop_on_failures else None
        self.counts: dict[str, StageCount] = {}
        self._of_model: dict[tuple[str, str], StageCount] = {}
        self.live = 0
        """Calls under way."""
        self.stopped: RunStopped | None = None
        """Once set, nothing new is asked."""
        self.unusable: dict[str, str] = {}
        """Request key → how a judgement ends in which nothing could be read, until its row is made."""
        self.on_end: Callable[[], None] = lambda: None
        """Told whenever a call has ended."""

    async def free(
        self,
        prompt: Prompt,
        variables: Mapping[str, Any],
        model: str,
        label: CallLabel,
        *,
        draw: int,
        params: Mapping[str, Any] | None = None,
        may_be_cut: bool = False,
    ) -> tuple[FreeReply, tuple[Message, ...]]:
        """A chain of reasoning with a final answer, and the messages it replies to.

        An empty reply is asked for once more; one that is cut off is asked again only as ``retry_truncated`` says.
        With ``may_be_cut`` a reply that was cut off is as good as any.
        """
        messages: tuple[Message, ...] = ({"role": "user", "content": render(prompt, variables)},)
        outcome = await self._ask_whole(model, messages, label, draw, params, None, retry=not may_be_cut)
        if isinstance(outcome, Answered) and _is_empty(outcome):
            self._count(label.stage).repairs += 1
            again = (*messages, *self._repair("it was empty", FORMATS[prompt.reply], ""))
            outcome = await self._ask_whole(
                model, again, _part(label, "repair"), draw, params, None, retry=not may_be_cut
            )
        return self._free_reply(outcome, label.stage, may_be_cut), messages

    def _free_reply(self, outcome: Outcome, stage: str, may_be_cut: bool) -> FreeReply:
        if isinstance(outcome, Failed):
            return FreeReply(None, None, _failure_reason(outcome), None, outcome.key)
        reply = outcome.reply
        text = reply.text if reply.text.strip() else None
        reason = self._unusable(outcome, stage)
        if reason == "truncated" and may_be_cut and (text or reply.reasoning):
            reason = None
        if reason is None and text is None and reply.outcome != "no_answer" and not may_be_cut:
            reason = "empty"
        return FreeReply(text, reply.reasoning, reason, reply.finish_reason, outcome.key, reply.tokens)

    async def confidence(
        self, model: str, messages: Sequence[Message], text: str, label: CallLabel, *, draw: int, repair: bool
    ) -> tuple[float | None, Reason | None]:
        """The confidence a reply states; where it states none, it is asked for once more if ``repair``."""
        stated = parse_confidence(text)
        if isinstance(stated, Invalid) and repair:
            self._count(label.stage).repairs += 1
            again = (*messages, *self._repair(stated.problem, FORMATS["confidence"], text))
            outcome = await self._ask_whole(model, again, _part(label, "confidence"), draw, None, None)
            stated = parse_confidence(outcome.reply.text) if isinstance(outcome, Answered) else stated
        if isinstance(stated, Invalid):
            self._count(label.stage).invalid += 1
            return None, "invalid"
        return stated, None

    async def judged(
        self,
        prompt: Prompt,
        variables: Mapping[str, Any],
        parse: Callable[[str], Parsed[Any] | Invalid],
        model: str,
        label: CallLabel,
        *,
        draw: int,
        before: Sequence[Message] = (),
        scale: Scale = UNIT,
    ) -> JudgedReply:
        """A verdict, score or probability; an invalid reply is asked for once more, then it is null with a reason."""
        messages: tuple[Message, ...] = (*before, {"role": "user", "content": render(prompt, variables)})
        schema = reply_schema(prompt.reply, scale)
        outcome = await self._ask_whole(model, messages, label, draw, None, schema)
        read = self._read(outcome, label.stage, parse)
        if not isinstance(read, Invalid):
            return read
        self._count(label.stage).repairs += 1
        text = outcome.reply.text if isinstance(outcome, Answered) else ""
        again = (*messages, *self._repair(read.problem, reply_format(prompt.reply, scale), text))
        outcome = await self._ask_whole(model, again, _part(label, "repair"), draw, None, schema)
        read = self._read(outcome, label.stage, parse)
        if isinstance(read, Invalid):
            self._count(label.stage).invalid += 1
            text = outcome.reply.text if isinstance(outcome, Answered) else ""
            self.unusable[outcome.key] = text[-_SHOWN_REPLY_CHARS:]
            return JudgedReply(None, "invalid", True, outcome.key)
        return replace(read, repaired=True)

    async def letter(self, prompt: Prompt, variables: Mapping[str, Any], model: str, label: CallLabel) -> FreeReply:
        """A reply of one token with its alternatives; never asked for again, as nothing is read but its weights."""
        params = {self.cap_name(model): 1, "temperature": None, "top_logprobs": _ALTERNATIVES}
        messages: tuple[Message, ...] = ({"role": "user", "content": render(prompt, variables)},)
        outcome = await self._ask_whole(model, messages, label, 0, params, None, retry=False)
        return self._free_reply(outcome, label.stage, may_be_cut=True)

    def _read(
        self, outcome: Outcome, stage: str, parse: Callable[[str], Parsed[Any] | Invalid]
    ) -> JudgedReply | Invalid:
        if isinstance(outcome, Failed):
            return JudgedReply(None, _failure_reason(outcome), False, outcome.key)
        reason = self._unusable(outcome, stage)
        if reason is not None:
            self.unusable[outcome.key] = outcome.reply.text[-_SHOWN_REPLY_CHARS:]
            return JudgedReply(None, reason, False, outcome.key)
        if outcome.reply.outcome == "no_answer":  # nothing but thought: asking again would bring more of it
            return JudgedReply(None, "no_answer", False, outcome.key)
        parsed = parse(outcome.reply.text)
        if isinstance(parsed, Invalid):
            return parsed
        reply = outcome.reply
        return JudgedReply(parsed.value, None, parsed.mended, outcome.key, reply.text, reply.tokens)

    def _unusable(self, outcome: Answered, stage: str) -> Reason | None:
        reply = outcome.reply
        if reply.outcome == "refused":
            self._count(stage).refused += 1
            return "refused"
        if reply.outcome == "truncated" or (reply.outcome == "empty" and reply.reasoning):
            self._count(stage).truncated += 1
            return "truncated"
        return None

    def _repair(self, problem: str, form: str, text: str) -> tuple[Message, Message]:
        end = text[-_SHOWN_REPLY_CHARS:] or "(nothing)"
        asked = render(self._repair_prompt, {"problem": problem, "format": form, "previous_reply": end})
        reply = clean_text(text[-_SHOWN_TURN_CHARS:]) or "(nothing)"
        return {"role": "assistant", "content": reply}, {"role": "user", "content": asked}

    async def _ask_whole(
        self,
        model: str,
        messages: Sequence[Message],
        label: CallLabel,
        draw: int,
        params: Mapping[str, Any] | None,
        schema: ReplySchema | None,
        *,
        retry: bool = True,
    ) -> Outcome:
        outcome = await self._ask(model, messages, label, draw, params, schema)
        more = self._config.retry_truncated
        if not retry or more is None or not isinstance(outcome, Answered) or outcome.reply.outcome != "truncated":
            return outcome
        larger = {**(params or {}), self.cap_name(model): more.max_tokens}
        longer = await self._ask(model, messages, _part(label, "longer"), draw, larger, schema)
        return outcome if isinstance(longer, Failed) else longer

    async def _ask(
        self,
        model: str,
        messages: Sequence[Message],
        label: CallLabel,
        draw: int,
        params: Mapping[str, Any] | None,
        schema: ReplySchema | None,
    ) -> Outcome:
        if self.stopped is not None:
            raise RunStopped(self.stopped.reason, self.stopped.kind)
        self.live += 1
        try:
            outcome = await self._asker.ask(model, messages, label=label, draw=draw, params=params, schema=schema)
        except RunStopped as stop:
            self.stopped = self.stopped or stop
            raise
        finally:
            self.live -= 1
            self.on_end()
        self._watch(label.stage, model, outcome)
        return outcome

    def cap_name(self, model: str) -> str:
        """What the entry calls its token limit."""
        own = self._config.model_entry(model).params
        return "max_completion_tokens" if "max_completion_tokens" in own else "max_tokens"

    def _count(self, stage: str) -> StageCount:
        return self.counts.setdefault(stage, StageCount())

    def _watch(self, stage: str, model: str, outcome: Outcome) -> None:
        count, mine = self._count(stage), self._of_model.setdefault((stage, model), StageCount())
        count.calls += 1
        mine.calls += 1
        if not isinstance(outcome, Failed) or outcome.kind == "not_recorded":
            return
        count.failed += 1
        mine.failed += 1
        message = f"{model}: {outcome.kind}: {' '.join(outcome.message.split())[:200]}"
        for counted in (count, mine):
            counted.errors[message] += 1
        self._stop_if_too_many(f"stage {stage}", count, count.calls > FIRST_CALLS)
        # One dead target among six never reaches the limit of the stage, and would have been scored on nothing.
        self._stop_if_too_many(f"stage {stage}, model {model}", mine, mine.failed >= FIRST_FAILURES)

    def _stop_if_too_many(self, what: str, count: StageCount, enough: bool) -> None:
        if self._limit is None or not enough or self.stopped is not None or count.failed <= self._limit * count.calls:
            return
        common = "; ".join(f"{message} ({times}×)" for message, times in count.errors.most_common(3))
        self.stopped = RunStopped(
            f"{what}: {count.failed} of {count.calls} calls failed, more than the {self._limit:.0%} of"
            f" stage_failure_limit; most common: {common}",
            "failure_limit",
        )
        raise RunStopped(self.stopped.reason, self.stopped.kind)


def _is_empty(outcome: Answered) -> bool:
    reply = outcome.reply
    return (reply.outcome == "empty" and not reply.reasoning) or (reply.outcome == "ok" and not reply.text.strip())


def _failure_reason(failed: Failed) -> Reason:
    return "refused" if failed.kind == "content_policy" else "failed"


def _part(label: CallLabel, suffix: str) -> CallLabel:
    return replace(label, part=f"{label.part}:{suffix}" if label.part else suffix)
