"""WorkerTransport: attempts carried out by the workers of a Dask scheduler, one message each way."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.dask_client import import_distributed
from pipeline.errors import AuxevalError
from pipeline.models.providers import with_credentials, without_credentials
from pipeline.models.spec import ModelSpec
from pipeline.models.stopping import RunStopped
from pipeline.models.transport import RawEmbeddings, RawReply, Transport, TransportError
from pipeline.models.transports import default_transport
from pipeline.models.types import Request

_NEW_WORKER_S = 30.0
_GRACE_S = 10.0

_CARRIERS: dict[tuple[str, int], Transport] = {}
"""In a worker process: (transport, its event loop) → the transport, opened at its first attempt."""


class WorkerTransport:
    """A transport whose attempts leave from worker processes, with the keys of their environments.

    The client's process keeps everything else: cache, ledger, leases, limits, retries. A worker holds nothing that
    its death could lose but the attempts in the air, which count as possibly charged and are made again.

    Args:
        name: of the transport that the workers use, ``direct`` or ``litellm``.
        address: of the scheduler.
        security: of the client that knows it.

    Attributes:
        workers: addresses of those that have carried something.
        lost: workers that died with an attempt in the air.
    """

    def __init__(self, name: str, address: str, security: Any = None) -> None:
        self._name, self._address, self._security = name, address, security
        self._client: Any = None
        self._load: Counter[str] = Counter()
        self._turn = itertools.count()
        self.workers: set[str] = set()
        self.lost: set[str] = set()

    async def open(self) -> None:
        """Connect to the scheduler from this event loop."""
        Client = import_distributed().Client
        self._client = await Client(self._address, security=self._security, asynchronous=True)

    async def close(self) -> None:
        """Close the connection; the workers stay."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        """One attempt; see :class:`pipeline.models.transport.Transport`."""
        reply: RawReply = await self._carry(spec, "send", (request,), timeout_s)
        return reply

    async def embed(
        self, spec: ModelSpec, texts: Sequence[str], params: Mapping[str, Any], *, timeout_s: float
    ) -> RawEmbeddings:
        """One attempt to embed ``texts``."""
        vectors: RawEmbeddings = await self._carry(spec, "embed", (list(texts), dict(params)), timeout_s)
        return vectors

    async def _carry(self, spec: ModelSpec, method: str, arguments: tuple[Any, ...], timeout_s: float) -> Any:
        worker = await self._least_busy()
        self._load[worker] += 1
        self.workers.add(worker)
        try:
            answers = await self._client.run(
                _carry, self._name, without_credentials(spec), method, arguments, timeout_s, workers=[worker]
            )
        except asyncio.CancelledError:
            raise
        except Exception as error:  # whatever Dask calls it: the worker, or the way to it, is gone
            if self._client.status != "running":
                raise RunStopped("the connection to the Dask scheduler was lost", "interrupted") from None
            self.lost.add(worker)
            message = f"the Dask worker {worker} was lost ({type(error).__name__})"
            raise TransportError("connection", message, maybe_billed=True) from None
        finally:
            self._load[worker] -= 1
        answer = answers[worker]
        if isinstance(answer, dict):
            raise TransportError(answer.pop("kind"), answer.pop("message"), **answer)
        return answer

    async def _least_busy(self) -> str:
        """The worker with the fewest attempts in the air, in turn among equals; a new one is waited for a while."""
        if self._client.status != "running":
            raise RunStopped("the connection to the Dask scheduler was lost", "interrupted")
        there = list(await self._client.ncores())
        if not there:
            try:
                await self._client.wait_for_workers(1, timeout=_NEW_WORKER_S)
            except TimeoutError:
                raise RunStopped("the Dask scheduler has no worker left", "interrupted") from None
            there = list(await self._client.ncores())
        turn = next(self._turn) % len(there)
        return str(min(there[turn:] + there[:turn], key=lambda worker: self._load[worker]))


async def _carry(name: str, spec: ModelSpec, method: str, arguments: tuple[Any, ...], timeout_s: float) -> Any:
    """In a worker: one attempt, what came of it; a failure as plain values."""
    place = (name, id(asyncio.get_running_loop()))
    try:
        if place not in _CARRIERS:
            carrier = default_transport(name)
            await carrier.open()
            _CARRIERS.setdefault(place, carrier)
        own = with_credentials(spec)
        async with asyncio.timeout(timeout_s + _GRACE_S):  # the client's own limit ends the attempt; this, its traces
            return await getattr(_CARRIERS[place], method)(own, *arguments, timeout_s=timeout_s)
    except TransportError as error:
        values = ("kind", "message", "status", "retry_after", "code", "param", "overloaded", "maybe_billed")
        return {value: getattr(error, value) for value in values}
    except AuxevalError as error:
        return {"kind": "bad_request", "message": str(error)}
    except TimeoutError:
        return {"kind": "timeout", "message": f"no complete reply within {timeout_s:g} s", "maybe_billed": True}
