"""A gateway over real HTTP against the test server, with time that runs faster where a test only waits."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from fault_server import FaultServer

from pipeline.models import Budget, Gateway, ModelSpec, ReplyCache
from pipeline.models.types import CallLabel, CallRecord, Outcome

KEY = "sk-test-0123456789abcdef"
LABEL = CallLabel("answer", "item-1", "target")


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """A fresh server."""
    with FaultServer() as running:
        yield running


@pytest.fixture(params=["direct", "litellm"])
def transport(request: pytest.FixtureRequest) -> str:
    """Both real transports."""
    return str(request.param)


class Desk:
    """One gateway, its records and its server."""

    def __init__(self, gateway: Gateway, records: list[CallRecord], cache: ReplyCache) -> None:
        self.gateway, self.records, self.cache = gateway, records, cache

    async def ask(self, text: str, model: str = "m", **kwargs: Any) -> Outcome:
        """Ask one user message."""
        kwargs.setdefault("label", LABEL)
        return await self.gateway.ask(model, [{"role": "user", "content": text}], **kwargs)


@pytest.fixture
def open_desk(tmp_path: Path, server: FaultServer) -> Callable[..., Any]:
    """Open a gateway with one entry ``m``; keyword arguments go to its ModelSpec, or to the gateway."""

    @asynccontextmanager
    async def desk(
        transport: str = "direct",
        *,
        cache_dir: Path | None = None,
        budget: Budget | None = None,
        hurry: float = 1.0,
        specs: dict[str, ModelSpec] | None = None,
        gateway: dict[str, Any] | None = None,
        **spec: Any,
    ) -> AsyncIterator[Desk]:
        spec.setdefault("api_base", server.url)
        spec.setdefault("api_key", KEY)
        spec.setdefault("params", {"temperature": 0.7, "max_tokens": 200})
        entry = ModelSpec("m", spec.pop("model", "openai/tester"), transport=transport, **spec)  # type: ignore[arg-type]
        records: list[CallRecord] = []
        options: dict[str, Any] = dict(gateway or {})
        if hurry != 1.0:
            options |= {"clock": lambda: time.monotonic() * hurry, "sleep": lambda s: asyncio.sleep(s / hurry)}
        with ReplyCache(cache_dir or tmp_path / "cache") as cache:
            async with Gateway(
                specs or {"m": entry}, cache=cache, budget=budget or Budget(), record=records.append, **options
            ) as opened:
                yield Desk(opened, records, cache)

    return desk
