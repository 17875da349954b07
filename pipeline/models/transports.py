"""The default transports by name, imported only when a call is really made, and what they cannot read alike."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.models.transport import Transport


@dataclass(frozen=True, slots=True)
class TransportDifference:
    """One kind of body that LiteLLM keeps from us; every other reads the same over both transports.

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


def default_transport(name: str) -> Transport:
    """A new transport.

    Raises:
        ConfigError: there is none of that name (simulated models are given to the gateway by the run).
    """
    if name == "litellm":
        from pipeline.models.litellm_transport import LiteLLMTransport

        return LiteLLMTransport()
    if name == "direct":
        from pipeline.models.direct_transport import DirectTransport

        return DirectTransport()
    raise ConfigError(f"no transport {name!r} here (known: litellm, direct; simulated models need a world of items)")
