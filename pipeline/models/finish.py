"""Finish reasons by allow-list: what a reply is worth that ended so, or that it is no reply."""

from __future__ import annotations

from typing import Literal

Ending = Literal["complete", "truncated", "refused", "broken"]

_COMPLETE = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls", "tool_use", "complete"})
_TRUNCATED = frozenset(
    {"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length",
     "model_context_window_exceeded", "pause_turn"}
)  # fmt: skip
_REFUSED = frozenset(
    {"content_filter", "content_filtered", "guardrail_intervened", "refusal", "safety", "recitation", "blocklist",
     "prohibited_content", "spii", "language", "image_safety", "other"}
)  # fmt: skip


def ending_of(finish_reason: str | None) -> Ending:
    """What the server's word for the end of a reply means; a word that is not listed is ``broken``.

    None is a whole body without such a word, which is complete. An ``abort`` taken for complete was stored for ever
    as half a sentence; a new word must be listed here before replies that end with it count.
    """
    word = (finish_reason or "stop").lower()
    if word in _COMPLETE:
        return "complete"
    if word in _TRUNCATED:
        return "truncated"
    return "refused" if word in _REFUSED else "broken"
