"""What one call costs in CPU beside its model: the ledger of money, and the HTTP client beneath a direct transport.

    python benchmarks/call_cost.py [ledger] [clients] [--calls 20000]

CPU of the process (all threads), so that a busy machine changes nothing but the noise. ``clients`` needs no network:
it asks the test server, in a process of its own, and takes httpx over aiohttp along where httpx-aiohttp is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import httpx

from pipeline.models.budget import Budget, Cost
from pipeline.models.cache import ReplyCache
from pipeline.models.entries import Entry
from pipeline.models.identity import request_key
from pipeline.models.journal import Journal
from pipeline.models.ledger import Ledger
from pipeline.models.types import Reply, Request, Usage

CONCURRENCY = 64
SERVER = Path(__file__).resolve().parent.parent / "tests" / "fault_server.py"


async def many(call: Callable[[int], Awaitable[object]], calls: int, at_once: int = CONCURRENCY) -> float:
    """CPU seconds a call, ``at_once`` of them in flight."""
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            await call(number)

    began = time.process_time()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return (time.process_time() - began) / calls


def entry(number: int) -> Entry:
    """A reply of some 600 characters."""
    request = Request("openai/m", None, ({"role": "user", "content": f"{number}: what is 17 + 25?" * 8},), {}, number)
    reply = Reply("The numbers are 17 and 25; so the result is 42.\nAnswer: 42\n" * 10, "stop", "ok", Usage(60, 200))
    return Entry(request_key(request), request, reply, {})


async def ledger_cost(calls: int) -> tuple[float, float]:
    """CPU seconds a call: storing the reply alone, and with its attempt reserved before and settled in between."""
    entries = [entry(number) for number in range(calls)]
    bounds = Budget(usd=1e9)
    with tempfile.TemporaryDirectory() as folder, ReplyCache(Path(folder) / "a") as cache:
        journal = Journal(cache)
        alone = await many(lambda k: journal.add(entries[k]), calls)
        await journal.close()
    with tempfile.TemporaryDirectory() as folder, ReplyCache(Path(folder) / "a") as cache:
        journal, ledger = Journal(cache), Ledger(cache, "run")

        async def call(k: int) -> None:
            one = entries[k]
            attempt = ledger.attempt(Cost(1000, 0.01), 500)
            await journal.do(lambda sql: ledger.open(sql, attempt, one.key, "m", bounds))

            def store(sql: object) -> bool:
                ledger.settle(sql, attempt, one.key, Cost(260, 0.001), one.reply.usage)  # type: ignore[arg-type]
                return cache.put(one)

            await journal.do(store)

        both = await many(call, calls)
        await journal.close()
    return alone, both


async def client_costs(calls: int) -> dict[str, float]:
    """Client → CPU seconds a call, 16 in flight."""
    server = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVER), stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    url = (await server.stdout.readline()).decode().strip() + "/chat/completions"
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 20}'
    headers = {"Content-Type": "application/json"}
    costs: dict[str, float] = {}
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False) as session:

            async def bare(_: int) -> None:
                async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                    await response.read()

            await many(bare, 100, 16)
            costs["aiohttp"] = await many(bare, calls, 16)
        clients = {"httpx": httpx.AsyncClient(timeout=None)}
        if importlib.util.find_spec("httpx_aiohttp"):
            from httpx_aiohttp import HttpxAiohttpClient

            clients["httpx over aiohttp"] = HttpxAiohttpClient(timeout=None)
        for name, client in clients.items():
            async with client:

                async def other(_: int, client: httpx.AsyncClient = client) -> None:
                    async with client.stream("POST", url, content=body, headers=headers) as response:
                        async for _piece in response.aiter_raw():
                            pass

                await many(other, 100, 16)
                costs[name] = await many(other, calls, 16)
    finally:
        server.terminate()
        await server.wait()
    return costs


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="ledger, clients; both by default")
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args()
    options.what = options.what or ["ledger", "clients"]
    if "ledger" in options.what:
        alone, both = asyncio.run(ledger_cost(options.calls))
        print(f"storing a reply        {alone * 1e3:.3f} ms of CPU a call")
        print(f"with the ledger        {both * 1e3:.3f}")
        print(f"the ledger             {(both - alone) * 1e3:.3f}")
    if "clients" in options.what:
        for name, cost in asyncio.run(client_costs(min(options.calls, 1000))).items():
            print(f"{name:22s} {cost * 1e3:.3f} ms of CPU a call")


if __name__ == "__main__":
    main()
