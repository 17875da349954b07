"""Response bodies that are bombs, or odd where no one looks: bounded once, read or refused alike by both transports."""

from __future__ import annotations

import gzip
import json
import resource
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer

from pipeline.models import RunStopped
from pipeline.models.http.bodies import LONGEST_BODY, tolerant_json
from pipeline.models.types import Answered, Failed
from tests.attacks.desk import ask


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture(params=["direct", "litellm"])
def transport(request: pytest.FixtureRequest) -> str:
    """Both real transports."""
    return str(request.param)


def reply(extra: str = "", content: str = '"Answer: 4"') -> str:
    """A whole reply with one more field, written as it stands."""
    return (
        '{"id": "1", "object": "chat.completion", "created": 1, "model": "tester", "choices": [{"index": 0, "message":'
        f' {{"role": "assistant", "content": {content}}}, "finish_reason": "stop"}}],'
        f' "usage": {{"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}{extra}}}'
    )


def _bomb(mebibytes: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(b" " * 2**20) for _ in range(mebibytes)) + packer.flush()


async def test_a_bomb_is_refused_at_64_mebibytes_and_asked_once(
    server: FaultServer, transport: str, tmp_path: Path
) -> None:
    server.fail("packed", data=_bomb(600))
    await ask(server.url, transport, tmp_path, "warm up", max_attempts=1)  # imports and pools are not the bomb's
    server.reset()
    server.fail("packed", data=_bomb(600))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (outcome,), _ = await ask(server.url, transport, tmp_path)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert isinstance(outcome, Failed)
    assert "64 MiB" in outcome.message
    assert server.seen.requests == 1
    assert grown < 200


async def test_a_body_that_is_long_without_compression_is_refused_too(
    server: FaultServer, transport: str, tmp_path: Path
) -> None:
    server.fail("packed", data=b" " * (LONGEST_BODY + 2**20), encoding="")
    (outcome,), _ = await ask(server.url, transport, tmp_path)
    assert isinstance(outcome, Failed)
    assert "64 MiB" in outcome.message
    assert server.seen.requests == 1


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "bare deflate", "two members"])
async def test_honest_compression_is_read(server: FaultServer, transport: str, tmp_path: Path, encoding: str) -> None:
    text = reply().encode("ascii")
    data = {
        "gzip": gzip.compress(text),
        "deflate": zlib.compress(text),
        "bare deflate": zlib.compress(text)[2:-4],
        "two members": gzip.compress(text[:40]) + gzip.compress(text[40:]),
    }[encoding]
    server.fail("packed", data=data, encoding="deflate" if "deflate" in encoding else "gzip")
    (outcome,), _ = await ask(server.url, transport, tmp_path)
    assert isinstance(outcome, Answered)
    assert outcome.reply.text == "Answer: 4"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
async def test_an_encoding_that_was_not_asked_for_is_refused_once(
    server: FaultServer, transport: str, tmp_path: Path, encoding: str
) -> None:
    server.fail("packed", data=b"\x1b\x00", encoding=encoding)
    (outcome,), _ = await ask(server.url, transport, tmp_path)
    assert isinstance(outcome, Failed)
    assert encoding in outcome.message
    assert server.seen.requests == 1


async def test_a_compressed_body_that_is_cut_off_is_asked_again(
    server: FaultServer, transport: str, tmp_path: Path
) -> None:
    server.fail("packed", data=gzip.compress(reply().encode("ascii"))[:-12], times=1)
    (outcome,), _ = await ask(server.url, transport, tmp_path)
    assert isinstance(outcome, Answered)
    assert server.seen.requests == 2


ODD: dict[str, bytes] = {
    "invalid UTF-8 in a field": reply(', "system_fingerprint": "X"').encode("ascii").replace(b'"X"', b'"\xff\xfe"'),
    "a whole number of 5,000 digits": reply(f', "nonce": {"7" * 5000}').encode("ascii"),
    "a list 3,000 deep": reply(f', "trace": {"[" * 3000}{"]" * 3000}').encode("ascii"),
    "a list 50,000 deep": reply(f', "trace": {"[" * 50_000}{"]" * 50_000}').encode("ascii"),
    "quotes and brackets in text": reply(f', "t": "[[{{\\\\\\"", "trace": {"[" * 3000}{"]" * 3000}').encode("ascii"),
    "a byte-order mark": b"\xef\xbb\xbf" + reply().encode("ascii"),
    "infinities": reply(', "a": Infinity, "b": NaN, "c": 1e999').encode("ascii"),
}


@pytest.mark.parametrize("kind", ODD)
async def test_what_no_one_reads_throws_no_paid_reply_away(
    server: FaultServer, transport: str, tmp_path: Path, kind: str
) -> None:
    server.fail("packed", data=ODD[kind], encoding="")
    (outcome,), (record,) = await ask(server.url, transport, tmp_path)
    assert isinstance(outcome, Answered), outcome
    assert outcome.reply.text == "Answer: 4"
    assert outcome.reply.usage.completion == 2
    assert (record.attempts, server.seen.requests) == (1, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [[1]], "b": 2}', {"a": [[1]], "b": 2}),
        ("[" * 200 + "]" * 200, None),
        (f'{{"deep": {"[" * 5000}{"]" * 5000}, "b": [1, {{"c": "]"}}]}}', "b"),
    ],
)
def test_only_what_is_too_deep_is_cut(text: str, value: Any) -> None:
    read = tolerant_json(text.encode("ascii"))
    if value == "b":
        assert read["b"] == [1, {"c": "]"}]
        json.dumps(read)
    elif value is not None:
        assert read == value


@pytest.mark.parametrize("text", ["", "{", "[1,", "[" * 5000, '{"a": ' * 5000, "nul", "<html>"])
def test_what_is_not_json_stays_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        tolerant_json(text.encode("ascii"))


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_closed_port_is_named(transport: str, tmp_path: Path) -> None:
    port = _closed_port()
    (outcome,), (record,) = await ask(f"http://127.0.0.1:{port}/v1", transport, tmp_path, max_attempts=2)
    assert isinstance(outcome, Failed)
    assert str(port) in outcome.message
    assert "Connect call failed" in outcome.message or "refused" in outcome.message
    assert record.attempts == 2


async def test_a_dead_proxy_is_named_and_final(transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = _closed_port()
    monkeypatch.setenv("all_proxy", f"127.0.0.1:{port}")
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RunStopped, match="proxy"):
        await ask("http://models.invalid/v1", transport, tmp_path)


async def test_a_name_that_does_not_exist_is_final_the_second_time(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    try:
        socket.getaddrinfo("no-such-host.invalid", 80)
    except socket.gaierror as error:
        if error.errno not in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)):
            pytest.skip("no resolver here that says that a name does not exist")
    with pytest.raises(RunStopped, match="does not exist"):
        await ask("http://no-such-host.invalid/v1", transport, tmp_path)
