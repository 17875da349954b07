"""The gateway in a process of its own: cheap to import, clean at its end, stopped by a full disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fault_server import FaultServer

from pipeline.models import ReplyCache


def test_importing_the_room_is_cheap_and_closing_is_clean(tmp_path: Path, server: FaultServer) -> None:
    code = f"""
import asyncio, sys
import pipeline.models
heavy = {{"litellm", "aiohttp", "httpx", "openai", "diskcache", "pydantic"}} & set(sys.modules)
assert not heavy, heavy
from pipeline.models import *
from pipeline.models.types import CallLabel
async def main():
    spec = ModelSpec("m", "openai/x", api_base={server.url!r}, api_key="k", transport="direct")
    with ReplyCache({str(tmp_path / "c")!r}) as cache:
        async with Gateway({{"m": spec}}, cache=cache, budget=Budget(), record=lambda r: None) as gateway:
            await gateway.ask("m", [{{"role": "user", "content": "x"}}], label=CallLabel("answer", "1", "target"))
asyncio.run(main()); asyncio.run(main())
assert "litellm" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_a_disk_that_fills_up_stops_the_run_and_loses_only_what_was_in_flight(
    tmp_path: Path, server: FaultServer
) -> None:
    server.fail("text", content="".join(chr(33 + i * 7919 % 90) for i in range(20_000)))
    code = f"""
import asyncio, resource
from pipeline.models import *
from pipeline.models.types import CallLabel
async def main():
    spec = ModelSpec("m", "openai/x", api_base={server.url!r}, api_key="k", transport="direct", max_concurrency=4)
    cache = ReplyCache({str(tmp_path / "c")!r})
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))  # as a full disk: no file may grow further
    async with Gateway({{"m": spec}}, cache=cache, budget=Budget(), record=lambda r: None) as gateway:
        label = CallLabel("answer", "1", "target")
        asked = [gateway.ask("m", [{{"role": "user", "content": str(i)}}], label=label) for i in range(300)]
        results = await asyncio.gather(*asked, return_exceptions=True)
    stopped = [result for result in results if isinstance(result, RunStopped)]
    print(len(results) - len(stopped), stopped[0].kind, stopped[0])
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answered, kind, reason = done.stdout.strip().split(" ", 2)
    assert kind == "cache"
    assert "cannot be written" in reason
    with ReplyCache(tmp_path / "c") as cache:
        assert cache.verify().ok
        assert 0 < int(answered) <= len(cache) < 300
        assert server.seen.answered - len(cache) <= 4
