"""LiveModel: one model entry's calls over its transport, within limits, budget and deadlines."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from pipeline.errors import ConfigError
from pipeline.models.budget import Budget, BudgetExceeded, Cost
from pipeline.models.embeddings import send_attempt
from pipeline.models.flights import Flight
from pipeline.models.identity import public_endpoint
from pipeline.models.limits import ModelLimits
from pipeline.models.negotiation import Negotiation
from pipeline.models.pricing import KnownPrice, find_price, reply_cost, worst_case
from pipeline.models.providers import environment_base
from pipeline.models.retries import CallTrace, send_with_retries
from pipeline.models.spec import ModelSpec
from pipeline.models.stopping import RunStopped
from pipeline.models.transport import RawReply, Transport, TransportError
from pipeline.models.types import Price, Request

__all__ = ["Clock", "LiveModel", "Sent"]

T = TypeVar("T")
_LONG_PAUSE_S = 900.0
_LEAST_SHARE = 0.1  # of an attempt's time: with less left before the deadline, none is sent


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, so that tests need not wait: seconds (monotonic) and a sleep."""

    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Sent:
    """An answered call: the raw reply and the latency of the attempt that brought it, seconds."""

    raw: RawReply
    latency_s: float


class LiveModel:
    """Calls of one model entry.

    Args:
        spec: the entry.
        negotiation: what the model takes.
        budget: shared by all models.
        transport: gives the opened transport of the entry.
        before_attempt: raises RunStopped where no further attempt may start (stopped, disk full).
        clock: time.
    """

    def __init__(
        self,
        spec: ModelSpec,
        negotiation: Negotiation,
        budget: Budget,
        *,
        transport: Callable[[ModelSpec], Awaitable[Transport]],
        before_attempt: Callable[[], None],
        clock: Clock,
    ) -> None:
        self.spec = spec
        self.endpoint = spec.endpoint or public_endpoint(environment_base(spec))
        self.negotiation = negotiation
        self.limits = ModelLimits(spec.max_concurrency, rpm=spec.rpm, tpm=spec.tpm, clock=clock.now, sleep=clock.sleep)
        self._budget = budget
        self._transport = transport
        self._before_attempt = before_attempt
        self._clock = clock
        self._rng = random.Random()

    @cached_property
    def known_price(self) -> KnownPrice | None:
        """Price and origin; looked up when first needed."""
        return find_price(self.spec)

    @property
    def price(self) -> Price | None:
        """The price, or None where unknown."""
        return None if self.known_price is None else self.known_price.price

    async def call(
        self, request: Request, flight: Flight, trace: CallTrace, store: Callable[[Sent], Awaitable[T]]
    ) -> T:
        """Attempt until answered and stored; what ``store`` returns.

        The slot is held until the reply is stored: no more than ``max_concurrency`` paid replies are ever at risk, and
        a disk that lags behind slows the asking down.

        Raises:
            TransportError: the last attempt's.
            RunStopped: no further attempt may be made (stopped, out of budget, a pause beyond reason).
        """
        transport = await self._transport(self.spec)
        worst = worst_case(self.price, request) if self._needs_worst_case else Cost(0, None)

        async def attempt() -> T:
            flight.phase, flight.reason = "waiting", "slot"
            self._before_attempt()
            generation = await self._start(worst, flight)
            started, took = self._clock.now(), worst.tokens
            if trace.last is not None and trace.too_late(started):  # the slot came too late
                self._budget.release(worst)
                self.limits.release(worst.tokens, 0)
                raise trace.last
            try:
                raw = await self._send(transport, request, trace, started)
            except TransportError as error:
                trace.last = error
                self._failed(error, worst, generation, trace)
                raise
            except ConfigError:  # found before anything was sent
                self._budget.release(worst)
                raise
            except BaseException:  # cancelled, or a defect: the provider may have worked
                self._budget.write_off(worst)
                raise
            else:
                flight.phase = "storing"
                sent = Sent(raw, self._clock.now() - started)
                actual = self._actual(raw, worst)
                self._budget.settle(worst, actual)
                self.limits.succeeded(worst.tokens, actual.tokens)
                took = actual.tokens
                trace.counted += 1
                return await store(sent)
            finally:
                self.limits.release(worst.tokens, took)

        def on_wait(error: TransportError, seconds: float) -> None:
            self._before_attempt()
            flight.phase = "waiting"
            flight.reason = f"{error.kind} {error.status}" if error.status else error.kind

        return await send_with_retries(
            attempt,
            trace,
            max_attempts=self.spec.max_attempts,
            clock=self._clock.now,
            sleep=self._clock.sleep,
            paused_for=self.limits.paused_for,
            on_wait=on_wait,
            rng=self._rng,
        )

    def _actual(self, raw: RawReply, worst: Cost) -> Cost:
        """What an answered attempt cost; the most it can have cost where the provider does not say."""
        if raw.usage is None:
            return worst
        usd = reply_cost(self.price, raw.usage) if self._priced else None
        return Cost(raw.usage.prompt + raw.usage.completion, usd)

    @property
    def _priced(self) -> bool:
        """Whether spending is counted in money; LiteLLM's table is read only then."""
        return self._budget.usd is not None or self.spec.price is not None or "known_price" in self.__dict__

    @property
    def _needs_worst_case(self) -> bool:
        return self._budget.bounded or self.spec.tpm is not None

    async def _start(self, worst: Cost, flight: Flight) -> int:
        """Reserve the worst case, then wait for a slot; the generation of the attempt."""
        flight.reason = "budget"
        try:
            await self._budget.reserve(worst)
        except BudgetExceeded as error:
            raise RunStopped(f"the budget does not allow the next call: {error}", "budget") from None
        flight.reason = "slot"
        try:
            generation = await self.limits.acquire(worst.tokens)
        except BaseException:
            self._budget.release(worst)
            raise
        flight.phase = "sending"
        return generation

    async def _send(self, transport: Transport, request: Request, trace: CallTrace, started: float) -> RawReply:
        """One attempt under its own time limit, which starts with the slot."""
        trace.attempts += 1
        if trace.deadline is None:
            trace.deadline = started + self.spec.call_deadline_s
            trace.least_s = min(self.spec.attempt_timeout_s, self.spec.call_deadline_s) * _LEAST_SHARE
        seconds = min(self.spec.attempt_timeout_s, trace.deadline - started)
        try:
            async with asyncio.timeout(seconds):
                return await send_attempt(transport, self.spec, request, timeout_s=seconds)
        except TimeoutError:
            raise TransportError("timeout", f"no complete reply within {seconds:g} s", maybe_billed=True) from None

    def _failed(self, error: TransportError, worst: Cost, generation: int, trace: CallTrace) -> None:
        if error.maybe_billed:
            self._budget.write_off(worst)
        else:
            self._budget.release(worst)
        if error.kind == "rate_limited" or error.overloaded:
            self.limits.rate_limited(generation, error.retry_after)
        if error.kind != "rate_limited":
            trace.counted += 1
        elif error.retry_after is not None and error.retry_after > max(_LONG_PAUSE_S, self.spec.call_deadline_s):
            raise RunStopped(
                f"{self.spec.name} ({self.spec.model}): the provider asks to wait {error.retry_after:.0f} s;"
                " resume then",
                "rate_limited",
            )

    def describe(self) -> dict[str, Any]:
        """Price and what was negotiated, for the manifest."""
        known = self.known_price
        price = None
        if known is not None:
            price = {
                "input_per_million": known.price.input,
                "output_per_million": known.price.output,
                "cached_input_per_million": known.price.cached_input,
                "source": known.source,
            }
        return {"price": price, "negotiated": self.negotiation.to_dict()}
