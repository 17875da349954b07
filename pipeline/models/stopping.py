"""RunStopped: no further call may be made, and why."""

from __future__ import annotations

from typing import Literal

from pipeline.errors import AuxevalError

StopKind = Literal[
    "budget", "interrupted", "auth", "not_found", "out_of_credit", "unsupported_parameter", "rate_limited",
    "disk_full", "cache", "failure_limit", "closed",
]  # fmt: skip


class RunStopped(AuxevalError):
    """Raised by every ask once the gateway has stopped; what was paid for is stored.

    Attributes:
        reason: one line for the user.
        kind: what stopped it.
    """

    exit_code = 3

    def __init__(self, reason: str, kind: StopKind = "interrupted") -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind: StopKind = kind
