"""From a transport's raw reply to the Reply that is stored: outcome, cost, time."""

from __future__ import annotations

from datetime import UTC, datetime

from pipeline.models.pricing import reply_cost
from pipeline.models.transport import RawReply
from pipeline.models.types import Price, Reply, ReplyOutcome, Usage

__all__ = ["classify_outcome", "now_utc", "to_reply"]

_TRUNCATED = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "max_completion_tokens"})
_REFUSED = frozenset(
    {"content_filter", "content_filtered", "safety", "refusal", "blocklist", "prohibited_content", "recitation"}
)


def classify_outcome(raw: RawReply) -> ReplyOutcome:
    """What a complete reply is worth.

    ``refused``: a refusal field, or stopped by a content filter. ``truncated``: stopped by the token limit, or all of
    it spent on reasoning. ``empty``: no text otherwise.
    """
    reason = raw.finish_reason.lower()
    if raw.refusal or reason in _REFUSED:
        return "refused"
    if reason in _TRUNCATED:
        return "truncated"
    if not raw.text.strip():
        return "truncated" if raw.reasoning and raw.reasoning.strip() else "empty"
    return "ok"


def to_reply(raw: RawReply, *, latency_s: float, price: Price | None) -> Reply:
    """The reply as stored; where only a refusal field has text, that is the text."""
    return Reply(
        text=raw.text or raw.refusal or "",
        finish_reason=raw.finish_reason,
        outcome=classify_outcome(raw),
        usage=raw.usage or Usage(),
        reasoning=raw.reasoning,
        served_model=raw.served_model,
        latency_s=latency_s,
        cost_usd=None if raw.usage is None else reply_cost(price, raw.usage),
        at=now_utc(),
    )


def now_utc() -> str:
    """Now, UTC, ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
