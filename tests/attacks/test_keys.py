"""Keys: clean or refused at the start, never where they would be kept, hidden however a server dresses its echo."""

from __future__ import annotations

import base64
import os
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer
from hypothesis import given
from hypothesis import strategies as st

import pipeline
from pipeline.cli import main
from pipeline.config import parse_config
from pipeline.credentials import clean_key, names_a_credential_parameter
from pipeline.errors import ConfigError, StoppedEarly
from pipeline.models.redaction import redact, redact_reply
from pipeline.runs.cassettes import export_run
from pipeline.runs.directory import RunDirectory

KEY = "sk-live-Zq7Xw4Vb2Nc9Mk5Lj8Hg3Fd6"
HEADER = "gatewaySECRET-77_x9"


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(keep_bodies=True) as running:
        yield running


@pytest.fixture(params=["direct", "litellm"])
def transport(request: pytest.FixtureRequest) -> str:
    """Both real transports."""
    return str(request.param)


def config(url: str, transport: str = "direct", **entry: Any) -> dict[str, Any]:
    """One model and four items."""
    return {
        "schema": 1,
        "name": "keys",
        "benchmark": {"preset": "embedded", "limit": 4},
        "models": {
            "gpt": {
                "model": "openai/gpt", "api_base": url, "api_key_env": "ATTACKED_KEY", "transport": transport,
                "params": {"max_tokens": 64}, **entry,
            }
        },
        "roles": {"targets": ["gpt"]},
        "design": {"labeled": 4},
        "estimate": ["naive"],
        "max_attempts": 2,
    }  # fmt: skip


def run(document: dict[str, Any], folder: Path) -> Any:
    return pipeline.run(document, run_id="r", runs_dir=folder / "runs", cache_dir=folder / "cache", yes=True)


@pytest.mark.parametrize("dirt", ["{}\n", " {}", "{}\r\n", "\t{}  "])
def test_white_space_around_a_key_falls_away(
    server: FaultServer, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dirt: str
) -> None:
    monkeypatch.setenv("ATTACKED_KEY", dirt.format(KEY))
    run(config(server.url, transport), tmp_path)
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    "dirty", ['"{}"', "'{}'", "Bearer {}", "bearer {}", "sk-a\n{}", "{}\x07", "{}\u00e9", "a b{}", "“{}”"]
)
def test_a_key_that_fits_no_header_is_refused_by_the_name_of_its_variable(
    server: FaultServer, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dirty: str
) -> None:
    monkeypatch.setenv("ATTACKED_KEY", dirty.format(KEY))
    with pytest.raises(ConfigError, match="ATTACKED_KEY") as refused:
        run(config(server.url, transport), tmp_path)
    assert KEY not in str(refused.value)
    assert server.seen.requests == 0
    assert not (tmp_path / "runs").exists()


def test_the_key_that_litellm_would_take_itself_is_cleaned_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f'"{KEY}"')
    document = config("", "litellm")
    document["models"]["gpt"] = {"model": "openai/gpt"}
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as refused:
        run(document, tmp_path)
    assert KEY not in str(refused.value)


PLANTED: dict[str, dict[str, Any]] = {
    "extra_headers": {"params": {"extra_headers": {"X-Api-Key": "hunter2"}}},
    "authorization": {"params": {"extra_headers": {"Authorization": "Token abc"}}},
    "extra_body": {"params": {"extra_body": {"provider": {"auth": {"inner": "hunter2"}}}}},
    "deep": {"params": {"extra_body": {"a": [{"b": {"client_secret": "hunter2"}}]}}},
    "camel": {"params": {"extra_body": {"subscriptionKey": "hunter2"}}},
    "aws": {"params": {"aws_secret_access_key": "hunter2"}},
    "azure": {"params": {"azure_ad_token": "hunter2", "ad": 1, "access_token": "hunter2"}},
    "by its look": {"params": {"user": KEY}},
    "by its look, deep": {"params": {"extra_body": {"note": f"use Bearer {KEY}"}}},
    "as a name": {"params": {"extra_body": {KEY: 1}}},
    "in the model": {"model": f"openai/{KEY}"},
    "in the model's query": {"model": "openai/gpt?api_key=hunter2"},
    "user information": {"api_base": "http://user:hunter2@127.0.0.1/v1"},
    "query": {"api_base": "http://127.0.0.1/v1?api-key=hunter2"},
    "code": {"api_base": "http://127.0.0.1/v1?code=hunter2"},
    "fragment": {"api_base": "http://127.0.0.1/v1#hunter2"},
    "path by its look": {"api_base": f"http://127.0.0.1/{KEY}/v1"},
    "path by its name": {"api_base": "http://127.0.0.1/token/a1b2c3/v1"},
    "path parameter": {"api_base": "http://127.0.0.1/v1;api_key=hunter2"},
    "escaped path": {"api_base": "http://127.0.0.1/v1%3Bapi_key%3Dhunter2"},
}


@pytest.mark.parametrize("place", PLANTED)
def test_a_credential_in_an_entry_is_refused_with_the_mend(place: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(config("http://127.0.0.1/v1", **PLANTED[place]))
    said = str(refused.value)
    assert "models.gpt" in said
    assert "credential" in said
    assert "hunter2" not in said
    assert KEY not in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "entry",
    [
        {"params": {"max_tokens": 5, "max_completion_tokens": 6, "top_k": 3, "logit_bias": {"50256": -100}}},
        {"params": {"extra_body": {"thinking": {"type": "enabled", "budget_tokens": 10}, "stop_token_ids": [1]}}},
        {"params": {"prompt_cache_key": "mine", "safety_identifier": "u1", "extra_headers": {"X-Title": "auxeval"}}},
        {"params": {"extra_body": {"skip_special_tokens": False, "min_tokens": 1, "return_token_ids": True}}},
        {"model": "xai/xai-grok-4-fast-reasoning"},
        {"model": "huggingface/hf-internal-testing/tiny-random-gpt2"},
        {"api_base": "https://gateway.ai.cloudflare.com/v1/0123456789abcdef0123456789abcdef/mine/openai"},
        {"api_base": "https://me.openai.azure.com/openai/deployments/gpt?api-version=2024-10-21"},
        {"api_base": "http://127.0.0.1:8000/keys/v1"},
    ],
)
def test_what_is_no_credential_is_taken(entry: dict[str, Any]) -> None:
    parse_config(config("http://127.0.0.1/v1", **entry))


@pytest.mark.parametrize("name", ["max_tokens", "tokenizer", "keywords", "prompt_cache_key", "author", "n_tokens"])
def test_ordinary_names_are_no_credentials(name: str) -> None:
    assert not names_a_credential_parameter(name)


@pytest.mark.parametrize("field", ["api_key_env", "headers_env"])
@pytest.mark.parametrize(
    "typed", [KEY, "sk-proj-abc def", "gsk_Zq7Xw4Vb2Nc9Mk5Lj8Hg3Fd6", "Zq7Xw4Vb2Nc9Mk5Lj8Hg3Fd6aa"]
)
def test_a_key_typed_where_a_name_belongs_is_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, field: str, typed: str
) -> None:
    import yaml

    monkeypatch.setenv("ATTACKED_KEY", KEY)
    entry = {field: typed if field == "api_key_env" else {"X-Gateway": typed}}
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump(config("http://127.0.0.1:9/v1", **entry)), encoding="utf-8")
    for command in (["config", "check", str(file)], ["run", str(file), "--yes", "--runs-dir", str(tmp_path / "runs")]):
        with pytest.raises(SystemExit) as end:
            main(command)
        printed = "".join(capsys.readouterr())
        if command[0] == "run":
            assert end.value.code == 2
            assert "models.gpt" in printed
        assert typed not in printed
    assert not (tmp_path / "runs").exists()


def test_secret_headers_come_from_variables_and_land_nowhere_else(
    server: FaultServer, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTACKED_KEY", KEY)
    monkeypatch.setenv("GATEWAY_WORD", HEADER + "\n")
    plain = run(config(server.url, transport), tmp_path)
    before = server.seen.requests
    entry = {"headers_env": {"X-Gateway": "GATEWAY_WORD"}, "params": {"max_tokens": 64}}
    pipeline.run(
        config(server.url, transport, **entry), run_id="second", runs_dir=tmp_path / "runs",
        cache_dir=tmp_path / "cache", yes=True,
    )  # fmt: skip
    assert server.seen.requests == before  # in no identity of a request: everything was answered before
    entry["params"] = {"max_tokens": 65, "extra_headers": {"X-Title": "auxeval"}}  # type: ignore[dict-item]
    pipeline.run(
        config(server.url, transport, **entry), run_id="third", runs_dir=tmp_path / "runs",
        cache_dir=tmp_path / "cache", yes=True,
    )  # fmt: skip
    sent = [{name.lower(): value for name, value in headers.items()} for headers in server.headers[before:]]
    assert {headers.get("x-gateway") for headers in sent} == {HEADER}
    assert {headers.get("x-title") for headers in sent} == {"auxeval"}
    assert not any("extra_headers" in body or "X-Title" in str(body) for body in server.bodies)
    _nowhere(tmp_path, HEADER)
    assert plain.state == "done"


DRESSES = {
    "whole": KEY,
    "broken over lines": KEY[:9] + "\n  " + KEY[9:20] + "\r\n" + KEY[20:],
    "base64": base64.b64encode(KEY.encode()).decode(),
    "base64 in more": base64.b64encode(f'{{"k": "{KEY}"}}'.encode()).decode(),
    "base64 of the header": base64.b64encode(f"Authorization: Bearer {KEY}\r\nHost: x".encode()).decode(),
    "base64 over lines": base64.encodebytes((KEY + KEY).encode()).decode(),
    "in capitals": KEY.upper(),
    "in hex": KEY.encode().hex(),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_an_echoed_key_is_hidden_in_every_byte_written(
    server: FaultServer, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dress: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setenv("ATTACKED_KEY", KEY)
    echo = DRESSES[dress]
    message = {"content": f"You sent {echo} to me.\nAnswer: 4", "reasoning_content": f"Hm, {echo}."}
    more = {"model": f"gpt {echo}", "id": echo, "system_fingerprint": echo, "service_tier": echo}
    server.fail("shape", choice={"finish_reason": f"abort {echo}"}, times=1)
    server.fail("status", status=500, message=f"told {echo}", code=echo[:60], times=1)
    server.fail("shape", message={"content": "", "refusal": echo}, times=1)
    server.fail("shape", message=message, reply=more)
    with caplog.at_level("DEBUG"):
        result = run(config(server.url, transport), tmp_path)
    assert result.state == "done"
    export_run(RunDirectory(result.path), tmp_path / "run.jsonl.gz", cache_dir=tmp_path / "cache")
    texts = result.tables.responses["text"].to_list()
    assert sum("Answer: 4" in text for text in texts if text) == 3
    _nowhere(tmp_path, echo)
    _nowhere(tmp_path, KEY)
    assert KEY not in caplog.text


def test_an_echoed_key_in_an_error_is_hidden(
    server: FaultServer, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTACKED_KEY", KEY)
    server.fail("status", status=401, message=f"Incorrect API key provided: {KEY[:15]}\n{KEY[15:]}; {'x ' * 9000}{KEY}")
    with pytest.raises(StoppedEarly) as stopped:
        run(config(server.url, transport), tmp_path)
    assert KEY not in str(stopped.value)
    assert KEY[15:] not in str(stopped.value)
    _nowhere(tmp_path, KEY)
    _nowhere(tmp_path, KEY[15:])


def _nowhere(folder: Path, text: str) -> None:
    """The text is in no file, as it is, packed, in a cell of a table, or within the cache's packed entries."""
    import gzip
    import sqlite3
    import zlib

    import polars as pl

    kinds = set()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            kinds.add(path.suffix)
            data = path.read_bytes()
            assert text.encode() not in data, path
            if path.suffix == ".gz":
                assert text.encode() not in gzip.decompress(data), path
            if path.suffix == ".parquet":
                frame = pl.read_parquet(path)
                assert not any(text in str(cell) for row in frame.iter_rows() for cell in row), path
    if (folder / "runs").exists():
        assert {".json", ".jsonl", ".yaml"} <= kinds
    database = next(folder.rglob("cache.db"))
    with sqlite3.connect(database) as connection:
        for (value,) in connection.execute("SELECT value FROM Cache"):
            if isinstance(value, bytes) and value.startswith(b"AX1"):
                unpacked = zlib.decompress(value[19:])
                escaped = text.replace("\r", "\\r").replace("\n", "\\n")
                assert text.encode() not in unpacked
                assert escaped.encode() not in unpacked


def test_what_is_no_secret_stays_as_the_model_wrote_it() -> None:
    text = "none of these; test\n Answer: 4"
    assert redact_reply(text, ("none", "test", "EMPTY", KEY)) == text


@given(before=st.binary(max_size=7), after=st.binary(max_size=7))
def test_base64_hides_no_key_wherever_it_starts(before: bytes, after: bytes) -> None:
    coded = base64.b64encode(before + KEY.encode() + after).decode()
    clean = redact_reply(coded, (KEY,))
    assert "[hidden]" in clean
    for offset in range(3):
        inner = base64.b64encode(b"\0" * offset + KEY.encode()).decode()[5:-5]
        assert inner not in clean


@given(st.lists(st.sampled_from(["", " ", "\n", "\r\n\t", "\u200b"]), min_size=len(KEY), max_size=len(KEY)))
def test_a_key_broken_anywhere_is_known_again(gaps: list[str]) -> None:
    broken = "".join(character + gap for character, gap in zip(KEY, gaps, strict=True))
    assert redact_reply(f"a {broken} b", (KEY,)).startswith("a [hidden]")


def test_url_encoded_keys_are_hidden() -> None:
    key = "abc/def+ghi=jkl1234"
    assert "abc" not in redact(f"?k={urllib.parse.quote(key, safe='')}", (key,))


def test_a_clean_key_is_taken_as_it_is() -> None:
    assert clean_key(KEY, "K") == KEY


def test_run_folders_are_for_their_owner_alone(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTACKED_KEY", KEY)
    before = os.umask(0o022)
    try:
        result = run(config(server.url), tmp_path)
        assert os.umask(0o022) == 0o022  # ours alone, and given back
    finally:
        os.umask(before)
    for path in [result.path, *result.path.rglob("*"), *(tmp_path / "cache").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
