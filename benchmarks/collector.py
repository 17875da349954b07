"""The collector against its peers: CPU, throughput and calls in flight of one client each, side by side in one run.

    python benchmarks/collector.py [--prompts 2000] [--rounds 3] [--inspect PYTHON] [--only "bare aiohttp" ...]

Every client runs in a process of its own (imports included in its CPU seconds) against a server in another process with
50 ms latency, at concurrency 256, with distinct prompts. ``--inspect`` names a Python that has inspect-ai
installed, this one where it has it. Figures are medians over the rounds, with the least and the most CPU seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "tests" / "fault_server.py"
CONCURRENCY = 256
PARAMS = {"temperature": 0.7, "max_tokens": 200}


def prompt(i: int) -> str:
    """About 700 bytes, different for every call."""
    return f"Question {i}: what is {i} + {i * 7}? " + "Explain every step of your work carefully. " * 15 + "Answer:"


async def bounded(calls: int, one: Callable[[int], Awaitable[Any]]) -> None:
    """At most ``CONCURRENCY`` calls at a time."""

    async def worker(first: int) -> None:
        for i in range(first, calls, CONCURRENCY):
            await one(i)

    await asyncio.gather(*[worker(first) for first in range(min(CONCURRENCY, calls))])


async def bare_aiohttp(url: str, calls: int, folder: str) -> None:
    """The floor: POST and parse."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(i: int) -> None:
            body = {"model": "x", "messages": [{"role": "user", "content": prompt(i)}], **PARAMS}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                json.loads(await response.read())["choices"][0]["message"]["content"]

        await bounded(calls, one)


async def bare_litellm(url: str, calls: int, folder: str) -> None:
    """``litellm.acompletion`` alone, with the settings that spare it network and .env at import."""
    from pipeline.models.litellm_transport import import_litellm

    litellm = import_litellm()

    async def one(i: int) -> None:
        await litellm.acompletion(
            model="openai/x", api_base=url, api_key="none", messages=[{"role": "user", "content": prompt(i)}],
            num_retries=0, max_retries=0, **PARAMS,
        )  # fmt: skip

    await bounded(calls, one)


async def openai_sdk(url: str, calls: int, folder: str) -> None:
    """The SDK of OpenAI, its retries off."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def one(i: int) -> None:
            await client.chat.completions.create(
                model="x", messages=[{"role": "user", "content": prompt(i)}], temperature=0.7, max_tokens=200
            )

        await bounded(calls, one)


def transport_client(name: str) -> Callable[[str, int, str], Awaitable[None]]:
    """One of our transports without the gateway."""

    async def run(url: str, calls: int, folder: str) -> None:
        from pipeline.models import ModelSpec
        from pipeline.models.transports import default_transport
        from pipeline.models.types import Request

        spec = ModelSpec("m", "openai/x", api_base=url, api_key="none", transport=name, params=PARAMS)  # type: ignore[arg-type]
        transport = default_transport(name)
        await transport.open()

        async def one(i: int) -> None:
            request = Request("openai/x", url, ({"role": "user", "content": prompt(i)},), PARAMS)
            await transport.send(spec, request, timeout_s=60)

        await bounded(calls, one)
        await transport.close()

    return run


def gateway_client(name: str) -> Callable[[str, int, str], Awaitable[None]]:
    """The whole gateway: identity, single flight, limits, a durable reply and a record per call."""

    async def run(url: str, calls: int, folder: str) -> None:
        from pipeline.models import Budget, Gateway, ModelSpec, ReplyCache
        from pipeline.models.types import CallLabel
        from pipeline.runs.call_log import CallLog

        spec = ModelSpec(
            "m", "openai/x", api_base=url, api_key="none", transport=name, params=PARAMS,  # type: ignore[arg-type]
            max_concurrency=CONCURRENCY,
        )  # fmt: skip
        with ReplyCache(Path(folder) / "cache") as cache, CallLog(Path(folder) / f"{time.time_ns()}.jsonl") as log:
            async with Gateway({"m": spec}, cache=cache, budget=Budget(), record=log.append) as gateway:

                async def one(i: int) -> None:
                    label = CallLabel("answer", str(i), "target")
                    await gateway.ask("m", [{"role": "user", "content": prompt(i)}], label=label)

                await bounded(calls, one)

    return run


async def collector(url: str, calls: int, folder: str) -> None:
    """The collecting part of a run: benchmark file, prompts, parsing, rows; one answer per item."""
    from pipeline.benchmark import draw_labeled, load_benchmark
    from pipeline.collection.collector import Collector
    from pipeline.collection.prompts import load_prompts
    from pipeline.config import parse_config
    from pipeline.models import Budget, Gateway, ModelSpec, ReplyCache
    from pipeline.runs.call_log import CallLog

    path = Path(folder) / "items.jsonl"
    if not path.exists():
        rows = ({"id": str(i), "question": prompt(i), "gold": str(i * 8)} for i in range(calls))
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    entry = {"model": "openai/x", "api_base": url, "transport": "direct", "params": PARAMS}
    config = parse_config(
        {
            "models": {"m": {**entry, "max_concurrency": CONCURRENCY}},
            "roles": {"targets": ["m"]},
            "estimate": ["naive"],
            "benchmark": {"preset": "custom", "path": str(path), "grading": "numeric"},
        }
    )
    benchmark = load_benchmark(config.benchmark, 0)
    labeled = draw_labeled(benchmark, 50, 0)
    spec = ModelSpec(
        "m", "openai/x", api_base=url, api_key="none", transport="direct", params=PARAMS, max_concurrency=CONCURRENCY
    )
    with ReplyCache(Path(folder) / "cache") as cache, CallLog(Path(folder) / f"{time.time_ns()}.jsonl") as log:
        async with Gateway({"m": spec}, cache=cache, budget=Budget(), record=log.append) as gateway:
            await Collector(config, benchmark, labeled, gateway, load_prompts(), lambda row: None).run()


CLIENTS: dict[str, Callable[[str, int, str], Awaitable[None]]] = {
    "bare aiohttp": bare_aiohttp,
    "openai SDK": openai_sdk,
    "direct transport": transport_client("direct"),
    "gateway, direct": gateway_client("direct"),
    "gateway, direct, cached": gateway_client("direct"),
    "collector, direct": collector,
    "collector, direct, cached": collector,
    "bare litellm": bare_litellm,
    "litellm transport": transport_client("litellm"),
    "gateway, litellm": gateway_client("litellm"),
    "gateway, litellm, cached": gateway_client("litellm"),
}

INSPECT = """
import sys, time, resource, json
url, calls, folder, _ = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
sys.path.insert(0, sys.argv[5])
from collector import prompt
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate
task = Task(dataset=[Sample(input=prompt(i), id=i) for i in range(calls)], solver=generate(cache=True))
began = time.monotonic()
(log,) = eval(task, model="openai/x", model_base_url=url, model_args={"responses_api": False}, max_connections=256,
     max_samples=256, max_tokens=200, temperature=0.7, log_dir=folder + "/logs", display="none")
usage = resource.getrusage(resource.RUSAGE_SELF)
assert log.status == "success", log.error
print(json.dumps({"cpu_s": usage.ru_utime + usage.ru_stime, "wall_s": time.monotonic() - began,
    "rss_mib": usage.ru_maxrss / 1024, "litellm": "litellm" in sys.modules}))
"""


def client_main(name: str, url: str, calls: int, folder: str) -> None:
    """Run one client and print what it took."""
    began = time.monotonic()
    asyncio.run(CLIENTS[name](url, calls, folder))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.monotonic() - began,
        "rss_mib": usage.ru_maxrss / 1024,
        "litellm": "litellm" in sys.modules,
    }
    print(json.dumps(found))


def free_port() -> int:
    """A port for all servers of one round: the endpoint is part of a call's identity."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def measure(command: list[str], folder: str, port: int) -> dict[str, Any]:
    """One client against a fresh server."""
    server = subprocess.Popen(
        [sys.executable, str(SERVER), "--latency", "0.05", "--port", str(port)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    assert server.stdin is not None
    url = server.stdout.readline().strip()
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none", "INSPECT_CACHE_DIR": f"{folder}/inspect",
        "XDG_CACHE_HOME": f"{folder}/xdg",
    }  # fmt: skip
    try:
        done = subprocess.run(
            [part.replace("URL", url) for part in command], env=environment, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{command}: {done.stderr[-2000:]}")
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        with urllib.request.urlopen(url.replace("/v1", "/control/stats")) as response:
            stats = json.load(response)
    finally:
        server.stdin.close()
        server.wait(60)
    return {**found, "requests": stats["requests"], "peak": stats["peak_in_flight"]}


def main() -> None:
    """Interleave all clients, print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inspect", help="a Python with inspect-ai")
    parser.add_argument("--only", nargs="+", choices=tuple(CLIENTS), default=tuple(CLIENTS))
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        url, calls, folder = options.rest
        client_main(options.client, url, int(calls), folder)
        return
    inspect = options.inspect or (sys.executable if importlib.util.find_spec("inspect_ai") else None)
    found: dict[str, list[dict[str, Any]]] = {}
    compiled = tempfile.TemporaryDirectory()
    for _ in range(options.rounds):
        port = free_port()
        with tempfile.TemporaryDirectory() as base:
            # Compiled bytecode is kept, as it is for users, whatever this machine's settings are.
            os.environ["PYTHONDONTWRITEBYTECODE"], os.environ["PYTHONPYCACHEPREFIX"] = "", compiled.name
            commands = {name: [sys.executable, __file__, "--client", name, "URL"] for name in options.only}
            for name, command in commands.items():
                folder = f"{base}/{name.removesuffix(', cached')}"
                Path(folder).mkdir(exist_ok=True)
                found.setdefault(name, []).append(measure([*command, str(options.prompts), folder], folder, port))
                print(name, json.dumps(found[name][-1]), file=sys.stderr, flush=True)
            for name in ("Inspect", "Inspect, cached") if inspect else ():
                command = [inspect, "-c", INSPECT, "URL", str(options.prompts), base, name, str(Path(__file__).parent)]
                found.setdefault(name, []).append(measure(command, base, port))
                print(name, json.dumps(found[name][-1]), file=sys.stderr, flush=True)
    compiled.cleanup()
    report(found, options.prompts)


RATIOS = (
    ("litellm / direct, transport alone", "litellm transport", "direct transport", ">= 8"),
    ("litellm / direct, through the gateway", "gateway, litellm", "gateway, direct", ">= 4"),
    ("openai SDK / gateway, direct", "openai SDK", "gateway, direct", ""),
    ("Inspect / collector", "Inspect", "collector, direct", ""),
    ("Inspect cached / collector cached", "Inspect, cached", "collector, direct, cached", ">= 25"),
)
SHARES = (
    ("gateway on top of bare litellm", "gateway, litellm", "bare litellm", "<= 1"),
    ("gateway on top of its litellm transport", "gateway, litellm", "litellm transport", ""),
)


def report(found: dict[str, list[dict[str, Any]]], prompts: int) -> None:
    """The table and the ratios that matter, round by round."""
    print(
        f"{'client':28}{'CPU s':>8}{'(least–most)':>18}{'ms/call':>9}{'wall s':>8}{'RSS MiB':>9}{'requests':>10}"
        f"{'in flight':>11}  litellm"
    )
    for name, runs in found.items():
        row = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        spread = f"({min(run['cpu_s'] for run in runs):.2f}–{max(run['cpu_s'] for run in runs):.2f})"
        print(
            f"{name:28}{row['cpu_s']:8.2f}{spread:>18}{1e3 * row['cpu_s'] / prompts:9.2f}{row['wall_s']:8.1f}"
            f"{row['rss_mib']:9.0f}{row['requests']:10.0f}{row['peak']:11.0f}  {'imported' if row['litellm'] else '-'}"
        )
    if "Inspect" not in found:
        print("Inspect AI: absent here (extra bench)")
    print()
    for title, first, second, wanted in (*SHARES, *RATIOS):
        if first in found and second in found:
            pairs = [(a["cpu_s"], b["cpu_s"]) for a, b in zip(found[first], found[second], strict=True)]
            if (title, first, second, wanted) in SHARES:
                values, unit = [1e3 * (a - b) / prompts for a, b in pairs], " ms/call"
            else:
                values, unit = [a / b for a, b in pairs], "x CPU"
            middle, low, high = statistics.median(values), min(values), max(values)
            text = f"{title}: {middle:.2f}{unit} ({low:.2f}–{high:.2f})"
            print(f"{text}, wanted {wanted}" if wanted else text)


if __name__ == "__main__":
    main()
