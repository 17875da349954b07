"""ModelSpec: one model entry as the gateway sees it, with credentials that never show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeline.models.identity import public_endpoint
from pipeline.models.types import Price

TransportName = Literal["litellm", "direct", "simulated"]


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model entry.

    Attributes:
        name: name of the entry in the run configuration.
        model: provider-qualified model string (``openai/gpt-5.2``, ``sim/able``).
        api_base: base URL of the server, or None for the provider's own.
        api_key: the key itself; it never appears in ``repr``, in the request key, in the cache or in a log.
        api_key_env: name of the variable the key came from, for error messages.
        headers: further headers with their secret values; as hidden as the key.
        headers_env: header → name of the variable that its value comes from.
        transport: which transport carries the calls.
        params: sampling parameters sent with every call.
        drop_params: parameters that may be left out if the provider refuses them.
        max_concurrency: calls in flight at most; adapted downwards when the provider says 429.
        rpm: requests per minute at most, or None.
        tpm: tokens per minute at most, or None.
        price: USD per million tokens, or None where unknown.
        simulate: parameters of a simulated model.
        attempt_timeout_s: seconds from getting a slot to the last byte of one attempt.
        call_deadline_s: seconds over all attempts and waits of one call.
        max_attempts: attempts of one call, not counting those answered 429.
    """

    name: str
    model: str
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers_env: Mapping[str, str] = field(default_factory=dict)
    transport: TransportName = "litellm"
    params: Mapping[str, Any] = field(default_factory=dict)
    drop_params: tuple[str, ...] = ()
    max_concurrency: int = 16
    rpm: float | None = None
    tpm: float | None = None
    price: Price | None = None
    simulate: Mapping[str, Any] = field(default_factory=dict)
    attempt_timeout_s: float = 180.0
    call_deadline_s: float = 1800.0
    max_attempts: int = 6

    @property
    def endpoint(self) -> str | None:
        """The base URL without credentials: the part of it that identifies a request."""
        return public_endpoint(self.api_base)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every text that must show nowhere."""
        return (*((self.api_key,) if self.api_key else ()), *self.headers.values())

    @property
    def is_served(self) -> bool:
        """Whether its server is started by the run, on this machine."""
        return self.api_base is not None and self.api_base.startswith("served://")

    @property
    def provider(self) -> str:
        """What stands before the first slash of the model string."""
        return self.model.partition("/")[0]
