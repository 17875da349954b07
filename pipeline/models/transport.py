"""Transport: what carries one attempt of a call to a model, and the one error it may raise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from pipeline.models.redaction import redact_reply
from pipeline.models.spec import ModelSpec
from pipeline.models.types import FailureKind, Request, Token, Usage

NO_FINISH_REASON = "unknown"
"""Stands in a stored reply for a server that gave no word for its end."""

RETRYABLE: frozenset[FailureKind] = frozenset({"rate_limited", "server", "timeout", "connection", "invalid_body"})
"""What may succeed when asked again unchanged; everything else is final."""

STOPS_MODEL: frozenset[FailureKind] = frozenset({"auth", "not_found", "out_of_credit"})
"""What every further call of the same model would meet as well."""


@dataclass(frozen=True, slots=True)
class RawReply:
    """A complete reply as a transport read it.

    Attributes:
        text: the reply's text; empty where the provider sent none.
        finish_reason: as the provider says it (``stop``, ``length``, ``content_filter``, …).
        usage: tokens, ``cached`` part of ``prompt`` and ``reasoning`` part of ``completion``; None where not given.
        reasoning: the reasoning text where the provider gives it.
        refusal: the text of a refusal field.
        served_model: the model string the provider reports.
        sent: the parameters really sent where they differ from those asked for, else empty.
        service_tier: the service tier that the provider says it was served by.
        tokens: of the text, with their log-probabilities, where the provider gives them.
    """

    text: str
    finish_reason: str
    usage: Usage | None
    reasoning: str | None = None
    refusal: str | None = None
    served_model: str | None = None
    sent: Mapping[str, Any] = field(default_factory=dict)
    service_tier: str | None = None
    tokens: tuple[Token, ...] = ()


def without_secrets(raw: RawReply, secrets: tuple[str, ...]) -> RawReply:
    """The reply without what a server echoed of the request's credentials, before anything of it is written."""
    if not secrets:
        return raw

    def clean(text: str | None) -> str | None:
        return None if text is None else redact_reply(text, secrets)

    text = clean(raw.text) or ""
    return replace(
        raw,
        text=text,
        tokens=raw.tokens if text == raw.text else (),  # their pieces would spell out what was taken out
        finish_reason=clean(raw.finish_reason) or "",
        reasoning=clean(raw.reasoning),
        refusal=clean(raw.refusal),
        served_model=clean(raw.served_model),
    )


@dataclass(frozen=True, slots=True)
class RawEmbeddings:
    """One vector per text, in order."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage
    served_model: str | None = None


class TransportError(Exception):
    """One attempt failed.

    Attributes:
        kind: what happened; decides whether the call is tried again.
        message: one line, safe to log and store (no credentials, at most a few hundred characters).
        status: HTTP status, where there was one.
        retry_after: seconds the provider asks to wait, from Retry-After or rate-limit reset headers.
        code: the provider's own error code.
        param: the request parameter that the provider refused.
        overloaded: the provider said that it is overloaded (529).
        maybe_billed: the provider may have done, and may charge for, the work.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        code: str | None = None,
        param: str | None = None,
        overloaded: bool = False,
        maybe_billed: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.status = status
        self.retry_after = retry_after
        self.code = code
        self.param = param
        self.overloaded = overloaded
        self.maybe_billed = maybe_billed

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in RETRYABLE

    @property
    def stops_model(self) -> bool:
        """Whether every further call of this model would fail the same way."""
        return self.kind in STOPS_MODEL


class Transport(Protocol):
    """Carries single attempts; knows nothing of cache, retries, limits or budget.

    Used from one event loop: ``open`` before the first ``send``, ``close`` after the last.
    """

    async def open(self) -> None:
        """Acquire what the transport needs; nothing is sent."""
        ...

    async def close(self) -> None:
        """Release every socket and task; safe to call twice."""
        ...

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        """One attempt.

        Args:
            spec: the model entry (credentials, endpoint, simulation parameters).
            request: exactly what is asked; ``request.draw`` must not reach the provider.
            timeout_s: what is left for this attempt; the gateway bounds it as well.

        Raises:
            TransportError: anything that kept a complete reply from arriving.
        """
        ...


@runtime_checkable
class EmbeddingTransport(Protocol):
    """A transport that can also embed texts."""

    async def embed(
        self, spec: ModelSpec, texts: Sequence[str], params: Mapping[str, Any], *, timeout_s: float
    ) -> RawEmbeddings:
        """One attempt to embed ``texts``; raises TransportError."""
        ...
