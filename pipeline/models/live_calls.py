"""LiveModel: one model entry's calls over its transport, within limits, budget and deadlines."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.errors import ConfigError
from pipeline.models.budget import Budget, BudgetExceeded, Cost
from pipeline.models.embeddings import is_embedding, send_attempt
from pipeline.models.entries import Entry
from pipeline.models.flights import Flight
from pipeline.models.identity import public_endpoint
from pipeline.models.journal import Journal
from pipeline.models.ledger import Attempt, Ledger
from pipeline.models.limits import ModelLimits, Slot
from pipeline.models.negotiation import Negotiation
from pipeline.models.pricing import KnownPrice, asked_service, find_price, reply_cost, worst_case
from pipeline.models.providers import environment_base
from pipeline.models.retries import CallTrace, send_with_retries
from pipeline.models.spec import ModelSpec
from pipeline.models.stopping import RunStopped
from pipeline.models.store import Sql
from pipeline.models.transport import RawReply, Transport, TransportError, without_secrets
from pipeline.models.types import Price, Request, Shown

_LOG = logging.getLogger(__name__)
_LONG_PAUSE_S = 900.0
_SHORTEST_POLL_S, _LONGEST_POLL_S = 0.05, 0.5
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
        ledger: of the run.
        journal: writes the ledger and the cache.
        served: limits that entries on one served model share: what waits here for a slot is not yet on the clock.
        transport: gives the opened transport of the entry.
        before_attempt: raises RunStopped where no further attempt may start (stopped, disk full).
        clock: time.
    """

    def __init__(
        self,
        spec: ModelSpec,
        negotiation: Negotiation,
        budget: Budget,
        ledger: Ledger | None,
        journal: Journal,
        served: dict[str, ModelLimits],
        *,
        transport: Callable[[ModelSpec], Awaitable[Transport]],
        before_attempt: Callable[[], None],
        clock: Clock,
    ) -> None:
        self.spec = spec
        self.endpoint = spec.endpoint or public_endpoint(environment_base(spec))
        self.negotiation = negotiation
        limits = ModelLimits(spec.max_concurrency, rpm=spec.rpm, tpm=spec.tpm, clock=clock.now, sleep=clock.sleep)
        self.limits = served.setdefault(self.endpoint or "", limits) if spec.is_served else limits
        self._budget, self._journal = budget, journal
        self._ledger = ledger
        self._shown = None if ledger is None else ledger.shown().get(spec.name)
        self._first = asyncio.Lock()
        self.timed_out = 0
        self._transport = transport
        self._before_attempt = before_attempt
        self._clock = clock
        self._rng = random.Random()

    @cached_property
    def known_price(self) -> KnownPrice | None:
        """Price and origin; looked up when first needed."""
        price = find_price(self.spec)
        if price is not None and price.guess is not None:
            _LOG.warning(
                "models.%s: the price of %s is a guess: %s; state it as price: {input_per_million: …,"
                " output_per_million: …}",
                self.spec.name, self.spec.model, price.guess,
            )  # fmt: skip
        return price

    @property
    def price(self) -> Price | None:
        """The price, or None where unknown."""
        return None if self.known_price is None else self.known_price.price

    async def call(
        self, request: Request, key: str, flight: Flight, trace: CallTrace, entry_of: Callable[[Sent], Entry]
    ) -> Entry | None:
        """Attempt until answered and stored; None where another process has stored the reply meanwhile.

        The slot is held until the reply is stored: no more than ``max_concurrency`` paid replies are ever at risk, and
        a disk that lags behind slows the asking down. Under a bound on money or tokens the first reply of a model is
        waited for: how long its replies are, and what its server counts, is known only then.

        Raises:
            TransportError: the last attempt's.
            RunStopped: no further attempt may be made (stopped, out of budget, a pause beyond reason).
        """
        if self._asks_one_first:
            async with self._first:
                if self._asks_one_first:
                    return await self._call(request, key, flight, trace, entry_of)
        return await self._call(request, key, flight, trace, entry_of)

    async def _call(
        self, request: Request, key: str, flight: Flight, trace: CallTrace, entry_of: Callable[[Sent], Entry]
    ) -> Entry | None:
        assert self._ledger is not None, "nothing is asked offline"
        ledger, journal = self._ledger, self._journal
        transport = await self._transport(self.spec)

        async def attempt() -> Entry | None:
            flight.phase = "waiting"
            self._before_attempt()
            started_as = await self._start(ledger, request, key, flight)
            if started_as is None:
                return None
            attempt, slot = started_as
            worst = attempt.worst
            started, took = self._clock.now(), worst.tokens
            if trace.last is not None and trace.too_late(started):  # the slot came too late
                self._free(attempt)
                self.limits.release(slot)
                raise trace.last
            try:
                raw = await self._send(transport, request, trace, started)
            except TransportError as error:
                trace.last = error
                self._failed(error, attempt, slot, trace)
                raise
            except ConfigError:  # found before anything was sent
                self._free(attempt)
                raise
            except BaseException:  # cancelled, or a defect: the provider may have worked
                self._write_off(attempt)
                raise
            else:
                flight.phase = "storing"
                entry = entry_of(Sent(raw, self._clock.now() - started))
                actual = self._actual(raw, request)
                if actual is None:
                    self._budget.write_off(worst)
                else:
                    self._budget.settle(worst, actual)
                took = (actual or worst).tokens
                self.limits.succeeded(slot, took)
                trace.counted += 1
                self._see(raw, attempt)

                def store(sql: Sql) -> bool:
                    ledger.settle(sql, attempt, key, actual, raw.usage)
                    return self._journal.cache.put(entry)

                return entry if await journal.do(store) else journal.cache.get(key) or entry
            finally:
                trace.busy_s += self._clock.now() - started
                self.limits.release(slot, took)

        def on_wait(error: TransportError, seconds: float) -> None:
            self._before_attempt()
            flight.phase = "waiting"
            flight.reason = f"{error.kind} {error.status}" if error.status else error.kind

        stored: Entry | None = None
        try:
            stored = await send_with_retries(
                attempt,
                trace,
                max_attempts=self.spec.max_attempts,
                clock=self._clock.now,
                sleep=self._clock.sleep,
                paused_for=self.limits.paused_for,
                on_wait=on_wait,
                rng=self._rng,
            )
            return stored
        finally:
            if stored is None:
                journal.post(lambda sql: ledger.leases.drop(sql, key))

    def _actual(self, raw: RawReply, request: Request) -> Cost | None:
        """What an answered attempt cost; None where the provider does not say, or says what cannot be."""
        usage = raw.usage
        if usage is None or (not usage.completion and not is_embedding(request) and (raw.text or raw.reasoning)):
            return None
        usd = reply_cost(self.price, usage, service_of(raw, request)) if self._priced else None
        return Cost(usage.prompt + usage.completion, usd)

    def _see(self, raw: RawReply, attempt: Attempt) -> None:
        """Remember how long the model's replies are, and what its server adds to a prompt."""
        before = self._shown or Shown()
        usage = raw.usage
        if usage is None:
            self._shown = before
        else:
            excess = usage.prompt - attempt.size
            self._shown = Shown(max(before.completion, usage.completion), max(before.excess, excess))

    def _free(self, attempt: Attempt) -> None:
        assert self._ledger is not None
        ledger = self._ledger
        self._budget.release(attempt.worst, sent=True)
        self._journal.post(lambda sql: ledger.free(sql, attempt))

    def _write_off(self, attempt: Attempt) -> None:
        assert self._ledger is not None
        ledger = self._ledger
        self._budget.write_off(attempt.worst)
        self._journal.post(lambda sql: ledger.unknown(sql, attempt))

    @property
    def _priced(self) -> bool:
        """Whether spending is counted in money; LiteLLM's table is read only then."""
        return self._budget.usd is not None or self.spec.price is not None or "known_price" in self.__dict__

    @property
    def _asks_one_first(self) -> bool:
        costs = self._budget.usd is not None and self.price not in (None, Price(0.0, 0.0))
        return self._shown is None and self.spec.transport != "simulated" and (costs or self._budget.tokens is not None)

    async def _start(self, ledger: Ledger, request: Request, key: str, flight: Flight) -> tuple[Attempt, Slot] | None:
        """Reserve the worst case, wait for a slot, journal the attempt; it and its slot.

        None where the reply is in the cache by now: another process has asked.
        """
        poll = _SHORTEST_POLL_S
        while True:
            worst, size = worst_case(self.price if self._priced else None, request, self._shown)
            flight.reason = "budget"
            try:
                await self._budget.reserve(worst)
            except BudgetExceeded as error:
                raise _out_of_budget(str(error)) from None
            flight.reason = "slot"
            try:
                slot = await self.limits.acquire(worst.tokens)
            except BaseException:
                self._budget.release(worst)
                raise
            attempt = ledger.attempt(worst, size)
            try:
                opened = await self._journal.do(
                    lambda sql, it=attempt: ledger.open(sql, it, key, self.spec.name, self._budget)  # type: ignore[misc]
                )
            except BaseException:
                self._budget.depart()
                self._free(attempt)
                self.limits.cancel(slot)
                raise
            if opened == "open":
                self._budget.depart()
                flight.phase = "sending"
                return attempt, slot
            self._budget.release(worst)
            self.limits.cancel(slot)
            if opened == "stored":
                return None
            if opened == "refused":
                flight.reason = "budget"
                if not await self._budget.landed():
                    raise _out_of_budget("what the runs of its ledger have spent and reserved leaves no room")
            else:
                flight.reason = "another run"
                await self._clock.sleep(poll)
                poll = min(_LONGEST_POLL_S, 2 * poll)
            self._before_attempt()

    async def _send(self, transport: Transport, request: Request, trace: CallTrace, started: float) -> RawReply:
        """One attempt under its own time limit, which starts with the slot."""
        trace.attempts += 1
        if trace.deadline is None:
            trace.deadline = started + self.spec.call_deadline_s
            trace.least_s = min(self.spec.attempt_timeout_s, self.spec.call_deadline_s) * _LEAST_SHARE
        seconds = min(self.spec.attempt_timeout_s, trace.deadline - started)
        try:
            async with asyncio.timeout(seconds):
                return without_secrets(
                    await send_attempt(transport, self.spec, request, timeout_s=seconds), self.spec.secrets
                )
        except TimeoutError:
            raise TransportError("timeout", f"no complete reply within {seconds:g} s", maybe_billed=True) from None

    def _failed(self, error: TransportError, attempt: Attempt, slot: Slot, trace: CallTrace) -> None:
        if error.maybe_billed:
            self._write_off(attempt)
        else:
            self._free(attempt)
        if error.kind == "rate_limited" or error.overloaded:
            self.limits.rate_limited(slot, error.retry_after)
        self.timed_out += error.kind == "timeout"
        crowded = error.kind == "timeout" and self.limits.timed_out(slot)
        if error.kind != "rate_limited":
            trace.counted += not crowded
        elif error.retry_after is not None and error.retry_after > max(_LONG_PAUSE_S, self.spec.call_deadline_s):
            raise RunStopped(
                f"{self.spec.name} ({self.spec.model}): the provider asks to wait {error.retry_after:.0f} s;"
                " resume then",
                "rate_limited",
            )

    def describe(self) -> dict[str, Any]:
        """Price and what was negotiated, for the manifest."""
        own_price = self.known_price
        price = None if own_price is None else {**_stated(own_price.price), "source": own_price.source}
        if price is not None and own_price is not None and own_price.guess is not None:
            price["guess"] = own_price.guess
        return {"price": price, "negotiated": self.negotiation.to_dict()}


def service_of(raw: RawReply, request: Request) -> str | None:
    """The service tier that an answered attempt is charged by: the server's word, else what was asked for."""
    return raw.service_tier or asked_service(request.params)


def _stated(price: Price) -> dict[str, Any]:
    """A price in the words of a configuration."""
    values: dict[str, Any] = {"input_per_million": price.input, "output_per_million": price.output}
    values["cached_input_per_million"] = price.cached_input
    for name in ("cache_write", "reasoning"):
        if (rate := getattr(price, name)) is not None:
            values[f"{name}_per_million"] = rate
    if price.above:
        values["tiers"] = [{"above_tokens": start, **_stated(each)} for start, each in sorted(price.above.items())]
    if price.services:
        values["services"] = {name: _stated(each) for name, each in sorted(price.services.items())}
    return values


def _out_of_budget(why: str) -> RunStopped:
    return RunStopped(f"the budget does not allow the next call: {why}", "budget")
