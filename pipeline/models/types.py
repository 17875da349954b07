"""What a model call is made of: request, reply, outcome, and the record kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Message = Mapping[str, str]
"""``{"role": "system" | "user" | "assistant", "content": text}``."""

ReplyOutcome = Literal["ok", "truncated", "refused", "empty", "no_answer"]
"""``no_answer``: whole, but nothing except thought that never ended."""
FailureKind = Literal[
    "rate_limited", "server", "timeout", "connection", "invalid_body", "bad_request", "unsupported_parameter",
    "context_too_long", "content_policy", "auth", "not_found", "out_of_credit", "deadline", "not_recorded",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens.

    Attributes:
        input, output: of the prompt and of the reply.
        cached_input, cache_write: of prompt tokens that the provider had in its cache, or put there; None: ``input``.
        reasoning: of the thinking in the reply; None: ``output``.
        above: prompt tokens → the price of a whole call whose prompt has more.
        services: service tier, as ``priority`` → the price of a call that it serves.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None
    above: Mapping[int, Price] = field(default_factory=dict)
    services: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call: ``cached`` and ``written`` are part of ``prompt``, ``reasoning`` of ``completion``."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model's replies have shown: tokens of the longest, and prompt tokens beyond what their texts bound."""

    completion: int = 0
    excess: int = 0


@dataclass(frozen=True, slots=True)
class ReplySchema:
    """The JSON object asked for: its name and JSON Schema, for providers with structured output."""

    name: str
    json_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallLabel:
    """What a call is for; never part of its identity in the cache.

    ``part`` tells apart calls of one stage, item and model: the judge prompt, the anchor, the candidate.
    """

    stage: str
    item: str
    role: str
    target: str | None = None
    draw: int = 0
    order: str | None = None
    part: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One call exactly as sent, and the index of its independent replicate.

    Attributes:
        model: provider-qualified model string.
        endpoint: base URL without credentials, or None for the provider's own.
        messages: the conversation.
        params: every sampling parameter that is sent (``response_format`` included).
        draw: index of the replicate; never sent, but part of the key.
    """

    model: str
    endpoint: str | None
    messages: tuple[Message, ...]
    params: Mapping[str, Any]
    draw: int = 0


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a reply as the provider weighed it: its text, its log-probability, and the others it weighed."""

    text: str
    logprob: float
    others: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete reply of a provider.

    ``tokens`` are those of the text as sent, thought and all, where log-probabilities were asked for and given.
    ``latency_s``, ``cost_usd`` and ``at`` are those of the call that was paid for, also when it comes from the cache;
    ``cost_usd`` is None where no price is known.
    """

    text: str
    finish_reason: str
    outcome: ReplyOutcome
    usage: Usage
    reasoning: str | None = None
    served_model: str | None = None
    latency_s: float = 0.0
    cost_usd: float | None = None
    at: str = ""
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply is at hand, and durable on disk."""

    request: Request
    key: str
    reply: Reply
    cached: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """No reply: terminal for this call, the run goes on."""

    key: str
    kind: FailureKind
    message: str
    status: int | None = None


Outcome = Answered | Failed


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One line of ``calls.jsonl``.

    ``served`` is the model that the reply names, where it is not the one asked for; ``busy_s`` the seconds that the
    call's attempts held a slot.
    """

    key: str
    label: CallLabel
    model: str
    state: Literal["answered", "cached", "failed"]
    outcome: str
    attempts: int
    waits_s: float
    latency_s: float
    usage: Usage
    cost_usd: float | None
    error: Failed | None
    at: str
    sent: Mapping[str, Any] = field(default_factory=dict)
    served: str | None = None
    busy_s: float = 0.0


class Asker(Protocol):
    """What the collector needs of the gateway."""

    async def ask(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        label: CallLabel,
        draw: int = 0,
        params: Mapping[str, Any] | None = None,
        schema: ReplySchema | None = None,
    ) -> Outcome:
        """One call of the model entry named ``model``.

        Args:
            model: name of the model entry (not the provider's model string).
            messages: the conversation as sent.
            label: what the call is for (``calls.jsonl``); not part of its identity.
            draw: index of the independent replicate; part of its identity, never sent.
            params: sampling parameters that override the entry's (a token cap, say).
            schema: the JSON object asked for; sent as ``response_format`` as far as the model supports it.

        Returns:
            Answered (stored durably before it is returned) or Failed (terminal for this call).

        Raises:
            pipeline.models.RunStopped: no further calls may be made (budget, interrupt, a model refused for good).
        """
        ...
