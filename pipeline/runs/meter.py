"""The meter of a lease: what a process has spent, or may have, on disk before each attempt goes out."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from types import TracebackType

from pipeline.errors import ConfigError
from pipeline.models.budget import Budget, Cost, Spent
from pipeline.models.pricing import find_price, worst_case
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawReply, Transport
from pipeline.models.types import Price, Request
from pipeline.runs.leases import Lease

__all__ = ["MeteredBudget", "MeteredTransport", "read_meter"]

_FORM = struct.Struct("<qqdqd")


class MeteredBudget(Budget):
    """A lease whose spending outlives its process: a killed one costs its calls in flight, not its whole lease.

    The file says what was spent and the most that attempts in the air may cost. One write of 40 bytes per change, not
    synced: it survives the process, and where the machine is lost the lease counts as spent.

    Args:
        lease: the bounds.
        path: the file, made anew.
    """

    def __init__(self, lease: Lease, path: Path) -> None:
        super().__init__(usd=lease.usd, calls=lease.calls, tokens=lease.tokens)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._air_calls, self._air_tokens, self._air_usd = 0, 0, 0.0
        self._save()

    def __enter__(self) -> MeteredBudget:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def departs(self, worst: Cost) -> None:
        """An attempt is about to be sent."""
        self._move(1, worst)
        self._save()

    def lands(self, worst: Cost) -> None:
        """It has ended; what it cost is settled, written off or released next, in the same step of the event loop."""
        self._move(-1, worst)

    def release(self, worst: Cost) -> None:
        super().release(worst)
        self._save()

    def settle(self, worst: Cost, actual: Cost) -> None:
        super().settle(worst, actual)
        self._save()

    def write_off(self, worst: Cost) -> None:
        super().write_off(worst)
        self._save()

    def _move(self, sign: int, worst: Cost) -> None:
        self._air_calls += sign
        self._air_tokens += sign * worst.tokens
        self._air_usd = self._air_usd + sign * (worst.usd or 0.0) if self._air_calls else 0.0

    def _save(self) -> None:
        spent = self.spent
        os.pwrite(
            self._file,
            _FORM.pack(
                spent.calls + self._air_calls,
                spent.tokens,
                spent.usd,
                spent.possible_tokens + self._air_tokens,
                spent.possible_usd + self._air_usd,
            ),
            0,
        )


def read_meter(path: Path) -> Spent | None:
    """What a process spent or may have spent when it last wrote; None where there is no meter."""
    try:
        values = path.read_bytes()
    except OSError:
        return None
    if len(values) != _FORM.size:
        return None
    calls, tokens, usd, possible_tokens, possible_usd = _FORM.unpack(values)
    return Spent(calls, tokens, usd, possible_tokens, possible_usd)


class MeteredTransport:
    """A transport whose attempts are on the meter while they are in the air.

    Args:
        inner: carries them.
        budget: the lease.
        shared: whether the entry's tpm is a part of a larger one, which an attempt above it would pass.
    """

    def __init__(self, inner: Transport, budget: MeteredBudget, *, shared: bool) -> None:
        self._inner, self._budget, self._shared = inner, budget, shared
        self._prices: dict[str, Price | None] = {}

    async def open(self) -> None:
        """Open the transport within."""
        await self._inner.open()

    async def close(self) -> None:
        """Close the transport within."""
        await self._inner.close()

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        """One attempt.

        Raises:
            ConfigError: it may take more tokens than this process's share of a minute.
        """
        worst = worst_case(self._price(spec), request)
        if self._shared and spec.tpm is not None and worst.tokens > spec.tpm:
            raise ConfigError(
                f"models.{spec.name}: a call may take {worst.tokens} tokens and one worker's share of tpm is"
                f" {spec.tpm:.0f}; use fewer workers, or a smaller max_tokens"
            )
        self._budget.departs(worst)
        try:
            return await self._inner.send(spec, request, timeout_s=timeout_s)
        finally:
            self._budget.lands(worst)

    def _price(self, spec: ModelSpec) -> Price | None:
        """The price of an entry; it is looked up only where money is bounded."""
        if self._budget.usd is None:
            return None
        if spec.name not in self._prices:
            known = find_price(spec)
            self._prices[spec.name] = None if known is None else known.price
        return self._prices[spec.name]
