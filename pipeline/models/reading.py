"""The one place where what a server sent becomes a reply: thought, text, outcome, cost, time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from pipeline.models.finish import ending_of
from pipeline.models.pricing import reply_cost
from pipeline.models.transport import NO_FINISH_REASON, RawReply
from pipeline.models.types import Price, Reply, ReplyOutcome, Usage
from pipeline.turn import read_turn


def classify_outcome(text: str, finish_reason: str, *, reasoning: str | None = None) -> ReplyOutcome:
    """What a reply is worth: its text as sent, thought and all, and the server's word for its end.

    ``truncated``: stopped by the token limit, or nothing but a provider's reasoning field. ``no_answer``: thought that
    never ended, in a text that the server calls whole. ``refused``: stopped by a filter. ``empty``: no text otherwise.
    A word that is not known ends no reply that is stored now; in an older cache it marks a cut one.
    """
    ending = ending_of(None if finish_reason == NO_FINISH_REASON else finish_reason)
    if ending == "refused":
        return "refused"
    if ending in ("truncated", "broken"):
        return "truncated"
    turn = read_turn(text)
    if turn.text.strip():
        return "ok"
    if turn.thought is not None:
        return "no_answer"
    return "truncated" if reasoning and reasoning.strip() else "empty"


def to_reply(
    raw: RawReply, *, latency_s: float, price: Price | None, service: str | None = None, alternatives: int = 0
) -> Reply:
    """The reply as stored: what the server sent; where only a refusal field has text, that is the text.

    Args:
        raw: as the transport read it.
        latency_s: of the attempt.
        price: of the model.
        service: tier that the call is charged by.
        alternatives: other tokens that were asked for beside each; a server that sends twenty unasked fills the cache.
    """
    text = raw.text or raw.refusal or ""
    return Reply(
        text=text,
        finish_reason=raw.finish_reason,
        outcome="refused" if raw.refusal else classify_outcome(text, raw.finish_reason, reasoning=raw.reasoning),
        usage=raw.usage or Usage(),
        reasoning=raw.reasoning,
        served_model=raw.served_model,
        latency_s=latency_s,
        cost_usd=None if raw.usage is None else reply_cost(price, raw.usage, service),
        at=now_utc(),
        tokens=tuple(replace(token, others=token.others[:alternatives]) for token in raw.tokens),
    )


def read_reply(reply: Reply) -> Reply:
    """A stored reply as it is used: thought in ``reasoning``, the reply alone in ``text``.

    What is stored is what the server sent, so that a reply of an older version, or of another transport, reads the
    same: the same server once gave 0 % over one transport and 100 % over the other, which cuts thought out itself.
    """
    turn = read_turn(reply.text)
    if turn.thought is None and turn.text == reply.text:
        return reply
    thoughts = [part for part in (reply.reasoning, turn.thought) if part]
    reasoning = "\n".join(dict.fromkeys(thoughts)) or None
    outcome = reply.outcome
    if outcome in ("ok", "empty", "no_answer"):
        outcome = classify_outcome(reply.text, reply.finish_reason, reasoning=reply.reasoning)
    return replace(reply, text=turn.text, reasoning=reasoning, outcome=outcome)


def now_utc() -> str:
    """Now, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
