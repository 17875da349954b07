"""One call over real HTTP through a gateway of its own, for attacks on what comes back."""

from __future__ import annotations

import time
from asyncio import sleep
from pathlib import Path
from typing import Any

from pipeline.models import Budget, Gateway, ModelSpec, ReplyCache
from pipeline.models.types import CallLabel, CallRecord, Outcome

KEY = "sk-attacked-0123456789abcdefghij"


async def ask(
    url: str, transport: str, folder: Path, *texts: str, **entry: Any
) -> tuple[list[Outcome], list[CallRecord]]:
    """Ask each text once, one after the other; back-off runs a hundred times as fast."""
    entry = {"model": "openai/tester", "api_base": url, "api_key": KEY, "params": {"max_tokens": 50}, **entry}
    spec = ModelSpec("m", transport=transport, **entry)  # type: ignore[arg-type]
    records: list[CallRecord] = []
    with ReplyCache(folder / "cache") as cache:
        async with Gateway(
            {"m": spec},
            cache=cache,
            budget=Budget(),
            record=records.append,
            clock=lambda: time.monotonic() * 100,
            sleep=lambda seconds: sleep(seconds / 100),
        ) as gateway:
            label = CallLabel("answer", "item-1", "target")
            outcomes = [
                await gateway.ask("m", [{"role": "user", "content": text}], label=label)
                for text in texts or ("2 + 2?",)
            ]
    return outcomes, records
