"""Every scenario of ``cases/http.jsonl`` over both transports: what a server does, and what must come of it."""

from __future__ import annotations

import json
import logging
import re
import shutil
import ssl
import subprocess
import zlib
from asyncio import sleep
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fault_server import FaultServer
from server_faults import Body

import pipeline
from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item
from pipeline.collection.examples import Example, Examples
from pipeline.errors import ConfigError, InputError
from pipeline.models import Budget, Gateway, ModelSpec, ReplyCache, RunStopped
from pipeline.models.types import Answered, CallLabel, CallRecord, Failed, Outcome, Price
from tests.attacks.conftest import one_target
from tests.attacks.test_bodies import _closed_port

LABEL = CallLabel("answer", "item-1", "target")


@dataclass
class Door:
    """A server, a transport, a folder: one gateway call after the other, with time that passes where one waits.

    Attributes:
        waits: what was slept between attempts, seconds of the gateway's clock.
    """

    server: FaultServer
    transport: str
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    caplog: pytest.LogCaptureFixture
    records: list[CallRecord] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    now: float = 0.0

    async def ask(self, *texts: str, budget: Budget | None = None, **entry: Any) -> list[Outcome]:
        """Ask each text once."""
        entry = {"api_base": self.server.url, "api_key": "sk-0123456789", "params": {"max_tokens": 50}, **entry}
        spec = ModelSpec("m", entry.pop("model", "openai/tester"), transport=self.transport, **entry)  # type: ignore[arg-type]

        async def skip(seconds: float) -> None:
            self.waits.append(seconds)
            self.now += seconds
            await sleep(0)

        with ReplyCache(self.folder / "cache") as cache:
            gateway = Gateway(
                {"m": spec}, cache=cache, budget=budget or Budget(), record=self.records.append,
                clock=lambda: self.now, sleep=skip,
            )  # fmt: skip
            async with gateway:
                return [
                    await gateway.ask("m", [{"role": "user", "content": text}], label=LABEL) for text in texts or ("?",)
                ]

    def shape(self, content: Any = "Answer: 42", finish: str = "stop", **reply: Any) -> None:
        """What every reply of the server is."""
        how: dict[str, Any] = {"message": {"content": content}, "choice": {"finish_reason": finish}}
        self.server.fail("shape", **how, reply=reply)

    def run(self, **overrides: Any) -> pipeline.RunResult:
        """A run of one target."""
        name = overrides.pop("name", "r")
        config = one_target(self.server.url, transport=self.transport, **overrides)
        return pipeline.run(
            config, run_id=name, runs_dir=self.folder / "runs", cache_dir=self.folder / "cache", yes=True
        )


def answered(outcomes: list[Outcome]) -> Answered:
    assert isinstance(outcomes[0], Answered), outcomes[0]
    return outcomes[0]


def failed(outcomes: list[Outcome]) -> Failed:
    assert isinstance(outcomes[0], Failed), outcomes[0]
    return outcomes[0]


async def _limited(request: web.Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """429 with exactly these headers and this message."""
    headers = {name.replace("_", "-"): value for name, value in options.get("headers", {}).items()}
    return web.json_response({"error": {"message": options.get("message", "slow down")}}, status=429, headers=headers)


async def thought_in_content(door: Door) -> None:
    for text in ("<think>\nAnswer: 40\n</think>\n\n**42**", "Answer: 40? no </think> 42"):
        door.server.reset()
        door.shape(text)
        reply = answered(await door.ask(text)).reply
        assert "40" not in reply.text
        assert Grader("numeric").grade(reply.text, Item("1", "?", "42")).phi == 1.0


async def broken_endings(door: Door) -> None:
    for word in ("abort", "network_error", "time_limit", "cancelled", "error"):
        door.server.reset()
        door.shape("Let me see. 6*7 is", finish=word)
        outcome = failed(await door.ask(word, max_attempts=2))
        assert word in outcome.message
        assert door.server.seen.requests == 2


async def refusing_endings(door: Door) -> None:
    for word in ("SPII", "OTHER", "LANGUAGE", "IMAGE_SAFETY"):
        door.server.reset()
        door.shape("cut text", finish=word)
        assert answered(await door.ask(word)).reply.outcome == "refused"


async def total_beyond_parts(door: Door) -> None:
    door.shape(usage={"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 9020})
    budget = Budget(tokens=20_000)
    with pytest.raises(RunStopped, match=r"budget\.tokens"):
        await door.ask(*map(str, range(20)), budget=budget)
    assert door.server.seen.requests <= 2
    assert door.records[0].usage.completion == 8020


async def usage_in_strings(door: Door) -> None:
    door.shape(usage={"prompt_tokens": "10", "completion_tokens": "5", "total_tokens": "15"})
    usage = answered(await door.ask()).reply.usage
    assert (usage.prompt, usage.completion) == (10, 5)


async def price_tiers(door: Door) -> None:
    door.shape(usage={"prompt_tokens": 300_000, "completion_tokens": 5_000, "total_tokens": 305_000})
    above = {200_000: Price(2.5, 15.0)}
    reply = answered(await door.ask(price=Price(1.25, 10.0, above=above))).reply
    assert reply.cost_usd == pytest.approx(0.825)


async def content_in_parts(door: Door) -> None:
    door.shape([{"type": "text", "text": "Answer: 42"}])
    budget = Budget(usd=1.0)
    assert answered(await door.ask(budget=budget, price=Price(1.0, 1.0))).reply.text == "Answer: 42"
    assert door.server.seen.requests == 1
    assert budget.spent.usd > 0


async def form_of_numbers(door: Door) -> None:
    for one, other in ((1, 1.0), (0, 0.0), (0.0, -0.0)):
        await door.ask("x", params={"temperature": one})
        paid = door.server.seen.requests
        await door.ask("x", params={"temperature": other})
        assert door.server.seen.requests == paid


async def impossible_requests(door: Door) -> None:
    door.server.fail(_limited, message="Request too large for gpt: Limit 30000, Requested 45000.")
    outcome = failed(await door.ask())
    assert "45000" in outcome.message
    assert door.server.seen.requests == 1


async def hint_of_zero(door: Door) -> None:
    headers = {"x_ratelimit_remaining_tokens": "-1", "x_ratelimit_reset_tokens": "0"}
    door.server.fail(_limited, headers=headers, times=5)
    answered(await door.ask(call_deadline_s=1000))
    paused = [wait for wait in door.waits if wait > 0.4]
    assert len(paused) >= 5
    assert max(paused) > 4  # it grew


async def hint_in_the_body(door: Door) -> None:
    door.server.fail(_limited, message="Please retry after 4 seconds.", times=1)
    answered(await door.ask())
    assert door.records[0].waits_s >= 4


async def clock_skew(door: Door) -> None:
    theirs = datetime.now(UTC) + timedelta(hours=1)
    date, then = (format_datetime(when, usegmt=True) for when in (theirs, theirs + timedelta(seconds=2)))
    door.server.fail(_limited, headers={"Date": date, "Retry_After": then}, times=1)
    answered(await door.ask())
    assert 1.9 <= door.records[0].waits_s < 10


async def bombs(door: Door) -> None:
    packer = zlib.compressobj(9, wbits=31)
    data = b"".join(packer.compress(b" " * 2**20) for _ in range(300)) + packer.flush()
    door.server.fail("packed", data=data)
    assert "64 MiB" in failed(await door.ask()).message
    assert door.server.seen.requests == 1


async def hidden_causes(door: Door) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        door.monkeypatch.delenv(name, raising=False)
    port = _closed_port()
    assert str(port) in failed(await door.ask(api_base=f"http://127.0.0.1:{port}/v1", max_attempts=1)).message
    door.monkeypatch.setenv("all_proxy", f"127.0.0.1:{port}")
    with pytest.raises(RunStopped, match="proxy"):
        await door.ask(api_base="http://models.invalid/v1")


async def shape_of_a_key(door: Door) -> None:
    door.monkeypatch.setenv("DOOR_KEY", "sk-0123456789abcdef\n")
    door.server.keep_bodies = True
    door.shape()
    door.run(entry={"api_key_env": "DOOR_KEY"}, items=2)
    assert {each.get("Authorization") for each in door.server.headers} == {"Bearer sk-0123456789abcdef"}
    door.monkeypatch.setenv("DOOR_KEY", "Bearer sk-0123456789abcdef")
    with pytest.raises(ConfigError, match="DOOR_KEY"):
        door.run(entry={"api_key_env": "DOOR_KEY"}, items=2, name="s")


async def proxy_of_the_environment(door: Door) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        door.monkeypatch.delenv(name, raising=False)
    door.monkeypatch.setenv("all_proxy", door.server.url.removesuffix("/v1").removeprefix("http://"))
    answered(await door.ask(api_base="http://models.invalid/v1"))
    assert door.server.seen.requests == 1


async def another_model_serves(door: Door) -> None:
    door.server.served_model = "gpt-2026-01-01"
    door.run(items=4)
    door.server.served_model = "other-small"
    with door.caplog.at_level(logging.WARNING):
        result = door.run(items=8, name="s")
    assert result.manifest["served"] == {"gpt": {"gpt-2026-01-01": 4, "other-small": 4}}
    (told,) = [record.message for record in door.caplog.records if "other-small" in record.message]
    assert "gpt-2026-01-01" in told
    lines = [json.loads(line) for line in (result.path / "calls.jsonl").read_text().splitlines()]
    assert [line.get("served") for line in lines].count("other-small") == 4
    assert "other-small (4)" in (result.path / "report.html").read_text()


async def copies_of_a_question(door: Door) -> None:
    rows = [{"id": str(k), "question": f"What is {k % 6} + 1?", "answer": str(k % 6 + 1)} for k in range(24)]
    file = door.folder / "copies.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    benchmark = {"preset": "custom", "path": str(file), "grading": "numeric"}
    benchmark["fields"] = {"id": "id", "question": "question", "gold": "answer"}  # type: ignore[assignment]
    door.shape()
    result = door.run(benchmark=benchmark, design={"labeled": 24})
    warnings = json.loads((result.path / "estimates.json").read_text())["warnings"]
    assert any("question" in warning["message"] and warning["code"].startswith("duplicate") for warning in warnings)


async def examples_leak_nothing(door: Door) -> None:
    ids = [str(k) for k in range(24)]
    questions = {name: f"What is {int(name) % 6}?" for name in ids}
    examples = Examples(ids, ["gpt"], 24, questions)
    for name in ids:
        examples.offer(name, "gpt", Example(questions[name], None, "a", "b", "tie", True))
    for name in ids:
        others = await examples.of_others(name, "gpt")
        assert len(others) == 20
        assert all(other.question != questions[name] for other in others)


async def misread_golds(door: Door) -> None:
    for gold in ("2 hours 30 minutes", "5²", "3 hundred"):
        file = door.folder / "golds.jsonl"
        file.write_text(json.dumps({"id": "1", "question": "How much?", "answer": gold}) + "\n")
        benchmark = {"preset": "custom", "path": str(file), "grading": "numeric"}
        benchmark["fields"] = {"id": "id", "question": "question", "gold": "answer"}  # type: ignore[assignment]
        with pytest.raises(InputError, match=re.escape(gold)):
            door.run(benchmark=benchmark, design={"labeled": 1})
    assert door.server.seen.requests == 0


Check = Callable[[Door], Awaitable[None]]
CHECKS: dict[str, Check] = {
    "reasoning-in-content": thought_in_content,
    "finish-unknown": broken_endings,
    "finish-unknown: refused": refusing_endings,
    "usage-total-exceeds-parts": total_beyond_parts,
    "usage-strings": usage_in_strings,
    "price-tier": price_tiers,
    "paid-not-counted": content_in_parts,
    "key-number-form": form_of_numbers,
    "impossible-429": impossible_requests,
    "retry-hint-zero": hint_of_zero,
    "retry-hint-body": hint_in_the_body,
    "clock-skew": clock_skew,
    "bomb": bombs,
    "cause-hidden": hidden_causes,
    "key-shape": shape_of_a_key,
    "proxy-env": proxy_of_the_environment,
    "served-model": another_model_serves,
    "duplicates": copies_of_a_question,
    "in-context-leak": examples_leak_nothing,
    "gold-misread": misread_golds,
}


@pytest.mark.parametrize("name", CHECKS)
async def test_scenario(
    name: str,
    server: FaultServer,
    transport: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await CHECKS[name](Door(server, transport, tmp_path, monkeypatch, caplog))


def _self_signed(folder: Path) -> Path:
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=nobody -keyout - -out -"
    pair = folder / "pair.pem"
    pair.write_bytes(subprocess.run(command.split(), check=True, capture_output=True).stdout)
    return pair


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate that nobody has signed")
async def test_an_unknown_authority_is_one_line_and_final(
    server: FaultServer,
    transport: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pair = _self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    secure = web.AppRunner(web.Application())
    await secure.setup()
    await web.TCPSite(secure, "127.0.0.1", 0, ssl_context=context).start()
    door = Door(server, transport, tmp_path, monkeypatch, caplog)
    try:
        with pytest.raises(RunStopped, match="certificate is not trusted") as stop:
            await door.ask(api_base=f"https://127.0.0.1:{secure.addresses[0][1]}/v1")
    finally:
        await secure.cleanup()
    assert "\n" not in str(stop.value)
    assert len(str(stop.value)) < 600
    assert len(door.waits) == 0  # final at once


def test_every_scenario_of_the_file_has_its_check(shared_path: Path) -> None:
    lines = (shared_path / "cases" / "http.jsonl").read_text().splitlines()
    for case in map(json.loads, lines):
        assert case["kind"] in CHECKS, case["scenario"]
    assert len(lines) == 23
