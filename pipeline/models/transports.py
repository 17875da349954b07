"""The default transports by name, imported only when a call is really made."""

from __future__ import annotations

from pipeline.errors import ConfigError
from pipeline.models.transport import Transport


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
