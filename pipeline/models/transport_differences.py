"""What the transports cannot read alike, and why: every other body reads the same over both."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransportDifference:
    """One kind of body that LiteLLM keeps from us.

    Attributes:
        what: the body.
        direct: what ``transport: direct`` makes of it.
        litellm: what ``transport: litellm`` makes of it.
        reason: why that cannot be undone.
    """

    what: str
    direct: str
    litellm: str
    reason: str


TRANSPORT_DIFFERENCES = (
    TransportDifference(
        what="an event stream that was not asked for",
        direct="put together and read",
        litellm="failed as a body that is not JSON",
        reason="LiteLLM fails on it before it shows the body to anyone",
    ),
)
