"""An OpenAI-compatible server on 127.0.0.1 for tests and benchmarks: counts requests, fails when told to.

In a thread:        with FaultServer(latency_s=0.05) as server: … server.url …
As a process:       python tests/fault_server.py --latency 0.05   (prints its URL; control over HTTP)
As a provider:      python tests/fault_server.py --benchmark embedded   (simulated models answer its questions)
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parent))
from server_faults import FAULTS, Handler, Rule, change_reply, rule_from_json
from server_replies import prompt_of, reply_text, token_weights


@dataclass
class Seen:
    """What the server saw: every request counts, whatever became of it."""

    requests: int = 0
    answered: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    by_body: Counter[str] = field(default_factory=Counter)
    answered_by_body: Counter[str] = field(default_factory=Counter)
    by_model: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    completion_tokens: int = 0
    prompt_tokens: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the per-body counts as the numbers of bodies and of repeats."""
        values = {
            name: dict(value) if isinstance(value, Counter) else value
            for name, value in vars(self).items()
            if name not in ("by_body", "answered_by_body", "times")
        }
        for name in ("by_body", "answered_by_body"):
            counts: Counter[str] = getattr(self, name)
            values[f"{name}_distinct"] = len(counts)
            values[f"{name}_repeats"] = sum(counts.values()) - len(counts)
        return values


class FaultServer:
    """The server, in a thread of its own.

    Args:
        latency_s: seconds before each reply.
        wrong_rate: share of replies that slip.
        seed: of the draws.
        keep_bodies: keep every request body in ``bodies`` (tests of what was sent).
        served_model: model string to report; None echoes the request's.
        replies: body and its digest → text and finish reason; None for text computed from the prompt alone, which is
            right only by chance.
    """

    def __init__(
        self,
        *,
        latency_s: float = 0.0,
        wrong_rate: float = 0.3,
        seed: int = 0,
        keep_bodies: bool = False,
        served_model: str | None = None,
        replies: Callable[[dict[str, Any], str], tuple[str, str]] | None = None,
        port: int = 0,
    ) -> None:
        self._replies = replies
        self.latency_s, self.wrong_rate = latency_s, wrong_rate
        self.seen = Seen()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.keep_bodies = keep_bodies
        self.served_model = served_model
        self.port = port
        self.on_answer: Callable[[], None] | None = None
        self.rules: list[Rule] = []
        self._handlers: dict[str, Handler] = dict(FAULTS)
        self._used: Counter[int] = Counter()
        self._refused: set[str] = set()
        self._rng = random.Random(seed)
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base URL that clients are given."""
        return f"http://127.0.0.1:{self.port}/v1"

    def fail(self, fault: str | Handler, **how: Any) -> None:
        """Add a rule, for a fault by name or a handler of the test's; keywords no rule has are the fault's options."""
        if not isinstance(fault, str):
            self._handlers[fault.__name__] = fault
            fault = fault.__name__
        of_rule = {name: how.pop(name) for name in list(how) if name in Rule.__dataclass_fields__}
        self.rules.append(Rule(fault, **of_rule, options=how))

    def reset(self) -> None:
        """Forget rules and counts."""
        self.rules, self._used, self._refused = [], Counter(), set()
        self.seen, self.bodies, self.headers = Seen(in_flight=self.seen.in_flight), [], []

    def __enter__(self) -> FaultServer:
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True, name="fault-server")
        self._thread.start()
        if not self._ready.wait(20):
            raise RuntimeError("the test server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        assert self._stop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def serve(self) -> None:
        """Serve until told to stop."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=256 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/control/stats", self._stats)
        app.router.add_post("/control/fail", self._control_fail)
        app.router.add_post("/control/reset", self._control_reset)
        app.router.add_route("*", "/{family:.*}", self._other_family)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, backlog=4096, reuse_address=True)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        try:
            await self._stop.wait()
        finally:
            await runner.cleanup()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        seen = self.seen
        try:
            body = json.loads(raw)
        except ValueError:
            return web.json_response({"error": {"message": "the body is not JSON", "code": None}}, status=400)
        digest = hashlib.blake2b(raw, digest_size=12).hexdigest()
        seen.requests += 1
        seen.by_body[digest] += 1
        seen.by_model[str(body.get("model"))] += 1
        seen.times.append(time.monotonic())
        seen.in_flight += 1
        seen.peak_in_flight = max(seen.peak_in_flight, seen.in_flight)
        if self.keep_bodies:
            self.bodies.append(body)
            self.headers.append(dict(request.headers))
        try:
            return await self._respond(request, body, digest)
        finally:
            seen.in_flight -= 1

    async def _respond(self, request: web.Request, body: dict[str, Any], digest: str) -> web.StreamResponse:
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        reply: dict[str, Any] | None = None
        for rule in self._due(body, digest):
            if rule.fault in self._handlers:
                endless = rule.fault in ("stall", "drip")
                if endless:
                    self._mark(rule, digest)
                response = await self._handlers[rule.fault](request, body, rule.options)
                if response is not None:
                    if not endless:
                        self._mark(rule, digest)
                    return response
            else:
                reply = reply or self._reply(body, digest)
                if not change_reply(rule.fault, reply, rule.options):
                    raise ValueError(f"no fault {rule.fault!r}")
                self._mark(rule, digest)
                break
        reply = reply or self._reply(body, digest)
        self.seen.answered += 1
        self.seen.answered_by_body[digest] += 1
        return web.json_response(reply)

    def _due(self, body: dict[str, Any], digest: str) -> list[Rule]:
        due = []
        for place, rule in enumerate(self.rules):
            if rule.times is not None and self._used[place] >= rule.times:
                continue
            if rule.model is not None and body.get("model") != rule.model:
                continue
            if rule.text is not None and rule.text not in prompt_of(body):
                continue
            if rule.first_tries_only and digest in self._refused:
                continue
            if rule.rate >= 1 or self._rng.random() < rule.rate:
                due.append(rule)
        return due

    def _mark(self, rule: Rule, digest: str) -> None:
        self._used[next(place for place, other in enumerate(self.rules) if other is rule)] += 1
        self._refused.add(digest)
        self.seen.faults[rule.fault] += 1

    def _reply(self, body: dict[str, Any], digest: str) -> dict[str, Any]:
        if self._replies is not None:
            text, finish = self._replies(body, digest)
        else:
            text, finish = reply_text(body, self._rng, self.wrong_rate), "stop"
        cap = body.get("max_tokens") or body.get("max_completion_tokens") or 10**9
        words = text.split(" ")
        if len(words) > cap:
            text, finish = " ".join(words[:cap]), "length"
        usage = {"prompt_tokens": len(prompt_of(body)) // 4 + 4, "completion_tokens": min(len(words), cap)}
        usage["total_tokens"] = sum(usage.values())
        self.seen.prompt_tokens += usage["prompt_tokens"]
        self.seen.completion_tokens += usage["completion_tokens"]
        if self.on_answer is not None:
            self.on_answer()
        message = {"role": "assistant", "content": text}
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish}
        if body.get("logprobs"):
            choice["logprobs"] = {"content": token_weights(text, int(body.get("top_logprobs") or 0))}
        return {
            "id": f"chatcmpl-{self._rng.getrandbits(64):016x}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": self.served_model or body.get("model"),
            "choices": [choice],
            "usage": usage,
        }

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.seen.requests += 1
        rows = []
        for place, text in enumerate(body["input"]):
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
            rows.append({"index": place, "object": "embedding", "embedding": [byte / 255 for byte in digest[:8]]})
        usage = {"prompt_tokens": 4 * len(rows), "total_tokens": 4 * len(rows)}
        return web.json_response({"object": "list", "data": rows, "model": body.get("model"), "usage": usage})

    async def _other_family(self, request: web.Request) -> web.StreamResponse:
        """Any other address, of another family of providers, say: whoever comes is kept with the headers brought."""
        await request.read()
        self.seen.requests += request.path not in ("/props", "/v1/models")  # what a server says of itself is no call
        self.headers.append(dict(request.headers))
        for rule in self._due({}, request.path):
            if rule.fault in self._handlers:
                response = await self._handlers[rule.fault](request, {}, rule.options)
                if response is not None:
                    self._mark(rule, request.path)
                    return response
        return web.json_response({"error": {"message": f"no {request.path} here", "code": None}}, status=404)

    async def _stats(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.seen.to_dict())

    async def _control_fail(self, request: web.Request) -> web.StreamResponse:
        self.rules.append(rule_from_json(await request.json()))
        return web.json_response({})

    async def _control_reset(self, request: web.Request) -> web.StreamResponse:
        self.reset()
        return web.json_response({})


async def _serve_process(server: FaultServer) -> None:
    task = asyncio.create_task(server.serve())
    while not server.port or not server._ready.is_set():
        await asyncio.sleep(0.01)
        if task.done():
            break
    print(server.url, flush=True)
    await task


def main() -> None:
    """Serve as a process of its own until killed or until stdin closes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--wrong-rate", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--benchmark", metavar="embedded|FILE", help="answer its questions as simulated models do")
    options = parser.parse_args()
    replies = None
    if options.benchmark:
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
        from tests.server_models import SimulatedReplies

        replies = SimulatedReplies(options.benchmark, seed=options.seed)
    server = FaultServer(
        latency_s=options.latency, wrong_rate=options.wrong_rate, seed=options.seed, port=options.port, replies=replies
    )

    def end_with_parent() -> None:
        with contextlib.suppress(OSError):
            sys.stdin.buffer.read()
        if server._loop is not None and server._stop is not None:
            server._loop.call_soon_threadsafe(server._stop.set)

    threading.Thread(target=end_with_parent, daemon=True).start()
    asyncio.run(_serve_process(server))


if __name__ == "__main__":
    main()
