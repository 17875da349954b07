"""Gateway: the one door to every model. Cache first, then single flight, then a live call made durable."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from pipeline.errors import ConfigError
from pipeline.models.budget import Budget, Spent
from pipeline.models.cache import ReplyCache
from pipeline.models.entries import Entry
from pipeline.models.flights import Flight, Flights, GatewayStatus
from pipeline.models.identity import canonical_json, earlier_keys, request_key, sendable_messages
from pipeline.models.journal import Journal
from pipeline.models.leases import HEARTBEAT_S
from pipeline.models.ledger import Ledger
from pipeline.models.limits import ModelLimits
from pipeline.models.live_calls import Clock, LiveModel, Sent, service_of
from pipeline.models.negotiation import Negotiation
from pipeline.models.pricing import require_prices
from pipeline.models.providers import check_credentials
from pipeline.models.reading import now_utc, read_reply, to_reply
from pipeline.models.retries import CallTrace
from pipeline.models.served import ServedModels
from pipeline.models.spec import ModelSpec
from pipeline.models.stopping import RunStopped, StopKind
from pipeline.models.store import CacheWriteError
from pipeline.models.transport import Transport, TransportError
from pipeline.models.transports import default_transport
from pipeline.models.types import (
    Answered,
    CallLabel,
    CallRecord,
    Failed,
    Message,
    Outcome,
    Reply,
    ReplySchema,
    Request,
    Usage,
)

__all__ = ["Gateway", "GatewayStatus", "Miss"]

_LOG = logging.getLogger(__name__)
_MIN_FREE_BYTES = 16 * 2**20
_DISK_CHECK_S = 0.2
_NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Miss:
    """A request that a replay needed and nobody recorded."""

    label: CallLabel
    model: str
    key: str


class Gateway:
    """Asks models. Implements :class:`pipeline.models.types.Asker`; use as ``async with``.

    Args:
        specs: model entries by name.
        cache: where replies are kept; the gateway writes to it, the caller closes it.
        budget: what may be spent.
        record: told every outcome, once per ask.
        ledger: of the run that asks; by default of a run without a name.
        transports: by transport name; ``litellm`` and ``direct`` have defaults.
        offline: answer from the cache alone.
        recorded_failures: request key → failure, replayed when offline.
        negotiated: model entry → what an earlier session of the run learnt of it (``describe()``).
        on_negotiated: told (model entry, what was learnt).
        clock, sleep: time, for tests.

    Raises:
        ConfigError: (on entering) a missing key variable, an unknown provider, an unknown price under budget.usd.
    """

    def __init__(
        self,
        specs: Mapping[str, ModelSpec],
        *,
        cache: ReplyCache,
        budget: Budget,
        record: Callable[[CallRecord], None],
        ledger: Ledger | None = None,
        transports: Mapping[str, Transport] | None = None,
        offline: bool = False,
        recorded_failures: Mapping[str, Failed] | None = None,
        negotiated: Mapping[str, Mapping[str, Any]] | None = None,
        on_negotiated: Callable[[str, dict[str, Any]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._cache, self._budget, self._record = cache, budget, record
        self._transports: dict[str, Transport] = dict(transports or {})
        self._opened: dict[str, asyncio.Task[None]] = {}
        self._recorded_failures = recorded_failures or {}
        self._offline, self._on_negotiated = offline, on_negotiated
        self._flights: Flights[Outcome | None] = Flights()
        self._stopped: RunStopped | None = None
        self._journal = Journal(cache)
        self._ledger = None if offline else ledger or Ledger(cache, f"unnamed-{secrets.token_hex(8)}")
        self._heart: asyncio.Task[None] | None = None
        self._disk_checked, self._warned = -1e9, set[str]()
        self._clock, self._served_limits = Clock(clock, sleep), dict[str, ModelLimits]()
        self._models = {name: self._live_model(spec, (negotiated or {}).get(name)) for name, spec in specs.items()}
        self.misses: list[Miss] = []
        self.served = ServedModels({name: spec.model for name, spec in specs.items()})

    def _live_model(self, spec: ModelSpec, negotiated: Mapping[str, Any] | None) -> LiveModel:
        note = f"negotiated {canonical_json([spec.model, spec.endpoint, list(spec.drop_params)])}"

        def changed(learnt: dict[str, Any]) -> None:
            _LOG.log(logging.WARNING if learnt.get("dropped") else logging.INFO, "%s: takes %s", spec.name, learnt)
            if not self._offline:
                self._cache.set_note(note, learnt)
            if self._on_negotiated is not None:
                self._on_negotiated(spec.name, learnt)

        return LiveModel(
            spec,
            Negotiation(spec, self._cache.note(note) if negotiated is None else negotiated, changed),
            self._budget,
            self._ledger,
            self._journal,
            self._served_limits,
            transport=self._transport,
            before_attempt=self._before_attempt,
            clock=self._clock,
        )

    async def __aenter__(self) -> Gateway:
        specs = {name: model.spec for name, model in self._models.items()}
        if not self._offline:
            check_credentials(specs)
            if self._budget.usd is not None:
                require_prices(specs, {name: model.known_price for name, model in self._models.items()}, self._budget)
            self._heart = asyncio.create_task(self._beat())
        return self

    async def _beat(self) -> None:
        """Renew the leases for as long as the process is not hanging."""
        while self._ledger is not None:
            await asyncio.sleep(HEARTBEAT_S)
            self._journal.post(self._ledger.leases.beat)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel what is still in flight (``drain`` first to let it land), store what has arrived, close sockets."""
        self.stop("the gateway is closed", "closed")
        self._flights.interrupt(self._stop_error, waiting_only=False)
        await self._flights.landed(5.0)
        if self._heart is not None and self._ledger is not None:
            self._heart.cancel()
            self._journal.post(self._ledger.leases.close)
        await self._journal.close()
        for model in self._models.values():
            model.limits.close()
        for name in self._opened:
            await self._transports[name].close()

    @property
    def spent(self) -> Spent:
        """What was spent so far, earlier sessions given to the budget included."""
        return self._budget.spent

    @property
    def stopped(self) -> RunStopped | None:
        """Why no further call may be made, if so."""
        return self._stopped

    def describe(self) -> dict[str, dict[str, Any]]:
        """Model entry → ``price`` (with its source, None where unknown) and ``negotiated``, for the manifest."""
        return {name: model.describe() for name, model in self._models.items()}

    def status(self) -> GatewayStatus:
        """A snapshot for progress lines."""
        paused = {name: model.limits.paused_for() for name, model in self._models.items()}
        timed_out = sum(model.timed_out for model in self._models.values())
        return self._flights.status({name: seconds for name, seconds in paused.items() if seconds > 0}, timed_out)

    def stop(self, reason: str, kind: StopKind = "interrupted") -> None:
        """Start no further attempt: asks raise RunStopped, attempts in flight may land. The first reason stays."""
        if self._stopped is not None:
            return
        self._stopped = RunStopped(reason, kind)
        self._flights.keep = True
        self._flights.interrupt(self._stop_error, waiting_only=True)

    async def drain(self, seconds: float) -> bool:
        """After ``stop``: attempts in flight have ``seconds`` to land, the others are cut off; whether all landed."""
        self.stop("draining")
        landed = await self._flights.landed(seconds)
        if not landed:
            self._flights.interrupt(self._stop_error, waiting_only=False)
        return landed

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
        """One call; see :meth:`pipeline.models.types.Asker.ask`."""
        live = self._models.get(model)
        if live is None:
            raise ConfigError(f"no model entry {model!r} (known: {', '.join(self._models)})")
        sendable = sendable_messages(messages)
        while True:
            if self._stopped is not None:
                raise self._stop_error()
            sent = live.negotiation.params(params, schema)
            request = Request(live.spec.model, live.endpoint, sendable, sent, draw)
            key = request_key(request)
            # A reply that is stored while its call is still in the air is that call's: its record comes first.
            entry = None if key in self._flights else self._stored(request, key)
            if entry is not None:
                reply = read_reply(entry.reply)
                if not live.negotiation.answered(sent, reply):
                    continue
                return self._from_cache(live, entry, reply, label)
            if self._offline:
                return self._from_record(model, key, label)
            if not live.negotiation.uncertain(sent):
                outcome = await self._fly(live, request, key, label)
            else:
                async with live.negotiation.gate:
                    if not live.negotiation.uncertain(sent) or sent != live.negotiation.params(params, schema):
                        continue
                    outcome = await self._fly(live, request, key, label)
            if outcome is not None:
                return outcome

    def _stored(self, request: Request, key: str) -> Entry | None:
        """The entry in the cache, also under the key of an older version."""
        own = self._cache.get(key)
        if own is not None:
            return own
        return next((entry for each in earlier_keys(request) if (entry := self._cache.get(each)) is not None), None)

    async def _fly(self, live: LiveModel, request: Request, key: str, label: CallLabel) -> Outcome | None:
        """The outcome of a live call, shared with identical ones; None: ask again in the form now known to work."""
        outcome, first = await self._flights.join(
            key, live.spec.name, lambda flight: self._live(live, request, key, label, flight)
        )
        if first or outcome is None:
            return outcome
        if isinstance(outcome, Failed):
            self._record(self._failure_record(live.spec.name, outcome, label, CallTrace()))
            return outcome
        return self._from_cache(live, Entry(key, outcome.request, outcome.reply), outcome.reply, label)

    async def _live(
        self, live: LiveModel, request: Request, key: str, label: CallLabel, flight: Flight
    ) -> Outcome | None:
        trace = CallTrace()

        def entry_of(sent: Sent) -> Entry:
            service = service_of(sent.raw, request)
            others = int(request.params.get("top_logprobs") or 0)
            reply = to_reply(sent.raw, latency_s=sent.latency_s, price=live.price, service=service, alternatives=others)
            return Entry(key, request, reply, sent.raw.sent)

        try:
            entry = await live.call(request, key, flight, trace, entry_of)
        except TransportError as error:
            if live.negotiation.refused(request.params, error):
                return None
            return self._failed(live, key, label, error, trace)
        except RunStopped as error:
            self.stop(error.reason, error.kind)
            raise
        except CacheWriteError as error:
            self.stop(str(error), "cache")
            raise self._stop_error() from error
        if entry is None:  # another run on this cache asked, and paid
            return None
        reply = read_reply(entry.reply)
        if not live.negotiation.answered(request.params, reply):
            _LOG.warning(
                "%s: asked for %s, the server sent no JSON; asked again in another form",
                live.spec.name, request.params["response_format"]["type"],
            )  # fmt: skip
            return None
        self._note_changes(live, entry.sent)
        self._record(
            CallRecord(
                key, label, live.spec.name, "answered", reply.outcome, trace.attempts, trace.waits_s, reply.latency_s,
                reply.usage, reply.cost_usd, None, now_utc(), entry.sent, self._served(live, reply),
                trace.busy_s,
            )
        )  # fmt: skip
        return Answered(request, key, reply, cached=False)

    def _served(self, live: LiveModel, reply: Reply) -> str | None:
        """The model that a reply names, where it is not the one asked for."""
        self.served.see(live.spec.name, reply.served_model)
        name = live.spec.model
        return None if reply.served_model in (name, name.partition("/")[2]) else reply.served_model

    def _from_cache(self, live: LiveModel, entry: Entry, reply: Reply, label: CallLabel) -> Answered:
        self._record(
            CallRecord(
                entry.key, label, live.spec.name, "cached", reply.outcome, 0, 0.0, reply.latency_s, reply.usage,
                reply.cost_usd, None, reply.at, entry.sent, self._served(live, reply),
            )
        )  # fmt: skip
        return Answered(entry.request, entry.key, reply, cached=True)

    def _from_record(self, model: str, key: str, label: CallLabel) -> Failed:
        """Offline: the failure that was recorded, or a miss."""
        failed = self._recorded_failures.get(key)
        if failed is None:
            self.misses.append(Miss(label, model, key))
            failed = Failed(key, "not_recorded", f"no reply of {model} was recorded for this request")
        self._record(self._failure_record(model, failed, label, CallTrace()))
        return failed

    def _failed(self, live: LiveModel, key: str, label: CallLabel, error: TransportError, trace: CallTrace) -> Failed:
        """A terminal failure of this call, or the end of the run where every further call would fail alike."""
        where = f"{live.spec.name} ({live.spec.model})"
        status = f" (status {error.status})" if error.status else ""
        if error.stops_model:
            kind: StopKind = error.kind if error.kind in ("auth", "not_found", "out_of_credit") else "auth"
            self.stop(f"{where}: {error.message}{status}", kind)
            raise self._stop_error()
        if error.kind == "unsupported_parameter" and error.param:
            self.stop(
                f"{where} refuses the parameter {error.param}: {error.message}{status}; take it out of"
                f" models.{live.spec.name}.params, or list it under drop_params to leave it out",
                "unsupported_parameter",
            )
            raise self._stop_error()
        if trace.out_of_time:
            message = (
                f"gave up at call_deadline_s = {live.spec.call_deadline_s:g} after {trace.attempts} attempts;"
                f" the last: {error.message}"
            )
            failed = Failed(key, "deadline", message, error.status)
        else:
            failed = Failed(key, error.kind, error.message, error.status)
        self._record(self._failure_record(live.spec.name, failed, label, trace))
        return failed

    def _failure_record(self, model: str, failed: Failed, label: CallLabel, trace: CallTrace) -> CallRecord:
        return CallRecord(
            failed.key, label, model, "failed", "failed", trace.attempts, trace.waits_s, 0.0, _NO_USAGE, None, failed,
            now_utc(), busy_s=trace.busy_s,
        )  # fmt: skip

    def _note_changes(self, live: LiveModel, sent: Mapping[str, Any]) -> None:
        """Say once per model that what was sent differs from what was asked."""
        if sent and live.spec.name not in self._warned:
            self._warned.add(live.spec.name)
            _LOG.warning("%s: parameters sent differ from those asked for: %s", live.spec.name, dict(sent))

    async def _transport(self, spec: ModelSpec) -> Transport:
        """The transport of an entry, opened before its first use."""
        name = spec.transport
        if name not in self._transports:
            self._transports[name] = default_transport(name)
        transport = self._transports[name]
        if name not in self._opened:
            self._opened[name] = asyncio.create_task(transport.open())
        if not self._opened[name].done():
            await asyncio.shield(self._opened[name])
        self._opened[name].result()
        return transport

    def _before_attempt(self) -> None:
        """Raise where no attempt may start: stopped, or no room on disk for the reply that would be paid for."""
        if self._stopped is not None:
            raise self._stop_error()
        now = time.monotonic()
        if now - self._disk_checked >= _DISK_CHECK_S:
            free = self._cache.free_bytes()
            if free < _MIN_FREE_BYTES:
                raise RunStopped(
                    f"{self._cache.directory}: only {free / 2**20:.1f} MiB left on the disk; the next reply might not"
                    " be stored: free space, then resume",
                    "disk_full",
                )
            self._disk_checked = now

    def _stop_error(self) -> RunStopped:
        assert self._stopped is not None
        return RunStopped(self._stopped.reason, self._stopped.kind)
