"""`auxeval doctor`: a few cheap calls to every model at once, of the kind that a run would make, and what they tell."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fault_server import FaultServer

from pipeline.cli import main
from pipeline.models import ModelSpec, RawReply
from pipeline.models.probing import _Load, _proposals, _Timed
from pipeline.models.types import Usage

CONFIG = """\
schema: 1
name: d
benchmark: {{preset: embedded, limit: 12}}
models:
  a: {{model: openai/a, api_base: "{url}", transport: direct, api_key_env: TEST_KEY}}
  w: {{model: sim/aux-a}}
  vectors: {{model: openai/v, api_base: "{url}", transport: direct, api_key_env: TEST_KEY}}
roles: {{targets: [a], auxiliary: [w]}}
design: {{labeled: 6, algorithm: features, embedding: {embedding}}}
estimate: [naive, one_step]
"""


@pytest.mark.parametrize(("embedding", "embedded"), [("vectors", 1), ("a", 0)])
def test_a_model_that_only_embeds_is_asked_to_embed(
    embedding: str, embedded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEST_KEY", "k")
    with FaultServer(keep_bodies=True) as server:
        Path("c.yaml").write_text(CONFIG.format(url=server.url, embedding=embedding))
        with pytest.raises(SystemExit) as caught:
            main(["doctor", "c.yaml", "--json"])
        chats = sum("messages" in body for body in server.bodies)
        embedding_calls = server.seen.requests - chats
    document = json.loads(capsys.readouterr().out)
    assert not caught.value.code, document
    assert embedding_calls == embedded
    assert chats == 1 + 1 + 1 + 8  # ready, a schema, a sum alone, eight at once
    details = {check["check"]: check["detail"] for check in document["checks"]}
    assert "answered in" in details["model a"]
    assert ("embedded in" in details.get("model vectors", "")) == bool(embedded)


LOCAL = """\
schema: 1
name: d
benchmark: {{preset: embedded, limit: 12}}
models:
{models}
roles: {{targets: [a], judge: j}}
design: {{labeled: 6}}
estimate: [naive, lace]
"""


def entry(name: str, url: str, transport: str, model: str = "openai/tester") -> str:
    params = "params: {max_tokens: 4096}"
    return f'  {name}: {{model: {model}, api_base: "{url}", transport: {transport}, api_key_env: TEST_KEY, {params}}}'


def doctor(config: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], dict[str, str]]:
    Path("c.yaml").write_text(config)
    with pytest.raises(SystemExit) as caught:
        main(["doctor", "c.yaml", "--json"])
    document = json.loads(capsys.readouterr().out)
    return int(caught.value.code or 0), document, {check["check"]: check["detail"] for check in document["checks"]}


@pytest.fixture(params=["direct", "litellm"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEST_KEY", "sk-0123456789abcdef")
    return tmp_path


PROPS = {"total_slots": 2, "default_generation_settings": {"n_ctx": 2048}}


async def _obeys(request: web.Request, body: dict[str, Any], options: dict[str, Any]) -> web.StreamResponse | None:
    """A server that obeys a JSON schema, and says its slots and its context as llama.cpp does."""
    if request.path == "/props":
        return web.json_response(PROPS)
    if request.path.endswith("/models"):
        return web.json_response({"data": [{"id": "tester", "max_model_len": 4096}]})
    if "response_format" not in body:
        return None
    return web.json_response({"model": "tester", "choices": [{"message": {"content": '{"score": 1}'}}]})


def test_slots_context_and_the_schema_are_read_and_lead_to_proposals(
    place: Path, transport: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with FaultServer() as server:
        server.fail(_obeys)
        models = "\n".join(entry(name, server.url, transport) for name in "aj")
        code, document, details = doctor(LOCAL.format(models=models), capsys)
    assert code == 0, document
    assert "obeys a JSON schema" in details["model a"]
    assert "ends with its answer" in details["model a"]
    assert details["server a"].startswith("2 slots; context 2,048 tokens; ")
    assert "8 at once" in details["server a"]
    assert document["proposals"]["a"] == {"max_concurrency": 2, "max_tokens": 1024}
    assert "max_concurrency: 2" in details["better a"]


def test_what_a_server_ignores_is_said(place: Path, transport: str, capsys: pytest.CaptureFixture[str]) -> None:
    with FaultServer(served_model="llama-70b") as server:
        server.fail("text", content="It is good.")
        models = "\n".join(entry(name, server.url, transport) for name in "aj")
        code, _, details = doctor(LOCAL.format(models=models), capsys)
    assert code == 0
    assert "ignores a JSON schema" in details["model a"]
    assert "no line Answer: comes" in details["model a"]
    assert details["model a"].startswith("llama-70b answered in")
    assert "asked for openai/tester" in details["model a"]


def test_all_are_asked_at_once_and_none_twice(place: Path, transport: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Servers that refuse, fail, redirect or are not there: each is one line, after one request."""
    together = threading.Barrier(4, timeout=30)

    async def waits_for_all(request: web.Request, body: dict[str, Any], options: dict[str, Any]) -> Any:
        import asyncio

        await asyncio.to_thread(together.wait)  # broken where a model is asked only after another has answered
        return None

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    faults: list[tuple[str, dict[str, Any]]] = [
        ("status", {"status": 500}), ("status", {"status": 401}), ("rate_limit", {}),
        ("redirect", {"to": "http://other.invalid/v1"}),
    ]  # fmt: skip
    servers = [FaultServer() for _ in faults]
    names = [*(f"m{k}" for k in range(len(faults))), "closed"]
    try:
        for server, (fault, how) in zip(servers, faults, strict=True):
            server.__enter__()
            server.fail(waits_for_all)
            server.fail(fault, **how)
        urls = [*(server.url for server in servers), closed]
        models = "\n".join(entry(name, url, transport) for name, url in zip(names, urls, strict=True))
        config = (
            LOCAL.format(models=models)
            .replace("[a]", f"[{', '.join(names[:-1])}]")
            .replace("judge: j", "judge: closed")
        )
        code, document, details = doctor(config, capsys)
        asked = [server.seen.requests for server in servers]
    finally:
        for server in servers:
            server.__exit__(None, None, None)
    assert code == 2
    assert asked == [1] * len(servers)
    assert not any(check["ok"] for check in document["checks"] if check["check"].startswith("model "))
    for name, word in zip(names, ("500", "401", "429", "redirects", "closed"), strict=True):
        detail = details[f"model {name}"]
        assert "\n" not in detail
        assert word in detail or name == "closed", detail


def timed(seconds: float, tokens: int) -> _Timed:
    return _Timed(RawReply("x", "stop", Usage(10, tokens)), seconds)


@pytest.mark.parametrize(
    ("together", "proposed"),
    [
        (8.0, {"max_concurrency": 1, "attempt_timeout_s": 160.0}),  # eight took eight times as long: one slot
        (4.0, {"max_concurrency": 2, "attempt_timeout_s": 160.0}),
        (1.1, {"attempt_timeout_s": 160.0}),  # as many as wanted
    ],
)
def test_a_server_that_says_nothing_is_measured(together: float, proposed: dict[str, float]) -> None:
    spec = ModelSpec("m", "openai/m", params={"max_tokens": 1024}, max_concurrency=16, attempt_timeout_s=60.0)
    alone = timed(1.0, 20)
    load = _Load(alone, 8, [timed(together, 20)] * 8, together)
    assert "attempt_timeout_s" not in _proposals(spec, {}, timed(1.0, 2), None)  # too short a reply tells no speed
    assert _proposals(spec, {}, alone, load) == proposed
